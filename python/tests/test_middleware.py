"""The middleware before a real `plimsoll control`: `PLIMSOLL` names the program, `PLIMSOLL_LIBRARY` libplimsoll, and
`PLIMSOLL_HEADER` plimsoll.h."""

import asyncio
import ctypes
import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import wsgiref.simple_server
from dataclasses import replace
from pathlib import Path

import plimsoll
from plimsoll import Outcome, asgi, library, wsgi

PARENT = os.getpid()

CONFIGURATION = """
[gateway]
listen = "127.0.0.1:0"
[upstream.server]
address = "127.0.0.1:1"
[upstream.server.capacity]
workers = 64
[[site]]
name = "www"
host = "www.test"
upstream = "server"
exempt = [{ path = "/healthz" }]
[[site.level]]
name = "light"
prefix = "/light"
[[site.level]]
name = "full"
[[site.class]]
name = "gold"
match = { header = { "x-plan" = "gold" } }
"""


# A stream occupies one of the server's workers.
KEEPING = CONFIGURATION.replace("[upstream.server.capacity]", "tunnels_keep_places = true\n[upstream.server.capacity]")


class Control:
    """`plimsoll control` with its state."""

    def __init__(self, configuration=CONFIGURATION):
        self.folder = tempfile.TemporaryDirectory()
        file, self.state = Path(self.folder.name, "site.toml"), Path(self.folder.name, "state")
        file.write_text(configuration)
        command = [os.environ["PLIMSOLL"], "control", file, "--state", self.state]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        said = self.process.stderr.readline()
        assert "was made" in said, said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()
        self.folder.cleanup()

    def counts(self, attachment):
        """Requests that have arrived and ended, by class, and bytes."""
        classes = {}
        while True:
            counted = ClassStruct()
            number = len(classes)
            if attachment._library.plimsoll_class(attachment._handle, number, ctypes.byref(counted)) != 0:
                return classes
            classes[counted.name.decode()] = counted


    def in_service(self, attachment):
        """Requests that hold a place."""
        status = StatusStruct()
        assert attachment._library.plimsoll_status(attachment._handle, ctypes.byref(status)) == 0
        return status.in_service


class Prefork:
    """Two processes that take connections from one listen queue, and work on one at a time."""

    def __init__(self, application):
        self.server = wsgiref.simple_server.make_server("127.0.0.1", 0, application, handler_class=Quiet)
        self.server.socket.listen(64)
        self.children = [os.fork() for _ in range(2) if os.getpid() == PARENT]
        if os.getpid() != PARENT:
            try:
                self.server.serve_forever()
            finally:
                os._exit(1)

    def ask(self):
        """The status of an answer, its headers and its body."""
        connection = http.client.HTTPConnection(*self.server.server_address, timeout=60)
        connection.request("GET", "/page", headers={"Host": "www.test"})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.server.server_close()


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


class StatusStruct(ctypes.Structure):
    """plimsoll_status_t"""

    _fields_ = [
        ("controller", ctypes.c_uint32),
        ("frozen", ctypes.c_uint32),
        ("lanes", ctypes.c_uint32),
        ("attached", ctypes.c_uint32),
        ("generation", ctypes.c_uint64),
        ("arrived", ctypes.c_uint64),
        ("ended", ctypes.c_uint64),
        ("in_service", ctypes.c_uint64),
        ("deaths", ctypes.c_uint64),
        ("returned", ctypes.c_uint64),
    ]


class ClassStruct(ctypes.Structure):
    """plimsoll_class_t"""

    _fields_ = [
        ("site", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("service_level", ctypes.c_double),
        ("levels", ctypes.c_uint32),
        ("arrived", ctypes.c_uint64),
        ("rejected", ctypes.c_uint64),
        ("ended", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    ]


class Header(unittest.TestCase):
    def test_structures_are_those_of_the_header(self):
        header = Path(os.environ["PLIMSOLL_HEADER"]).read_text()
        header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
        for structure in (library.RequestStruct, library.DecisionStruct, ClassStruct, StatusStruct):
            name = structure.__doc__
            body = re.search(r"typedef struct " + name + r" \{(.*?)\} " + name, header, re.S)
            declared = re.findall(r"(\w+);", body.group(1))
            self.assertEqual([field[0] for field in structure._fields_], declared)


def outcomes_of(middleware):
    """How each request ends from now on."""
    outcomes, attachment = [], middleware._attachment
    done = attachment.done

    def noted(decision, outcome):
        outcomes.append(outcome)
        done(decision, outcome)

    attachment.done = noted
    return outcomes


class Wsgi(unittest.TestCase):
    def ask(self, middleware, path="/page", consume=True, **environ):
        said = []
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": path,
            "HTTP_HOST": "www.test",
            "REMOTE_ADDR": "192.0.2.1",
            **environ,
        }

        def start_response(status, headers, exc_info=None):
            said.append((status, dict(headers)))
            return lambda data: None

        body = middleware(environ, start_response)
        data = b"".join(body) if consume else b""
        getattr(body, "close", lambda: None)()
        return said[0], data

    def test_a_request_is_counted_once_however_it_ends(self):
        def application(environ, start_response):
            if environ["PATH_INFO"] == "/broken":
                raise ValueError("broken")
            start_response("200 OK", [])
            return iter([environ["PATH_INFO"].encode(), b"!"])

        with Control() as control:
            middleware = wsgi.Middleware(application, control.state)
            (status, _), data = self.ask(middleware)
            self.assertEqual((status, data), ("200 OK", b"/page!"))
            self.ask(middleware, consume=False)
            with self.assertRaises(ValueError):
                self.ask(middleware, path="/broken")
            self.ask(middleware, HTTP_X_PLAN="gold")
            self.ask(middleware, path="/healthz")
            (status, headers), _ = self.ask(middleware, HTTP_HOST="other.test")
            self.assertEqual((status, headers["X-Plimsoll"]), ("421 Misdirected Request", "level=0; reason=no-site"))
            classes = control.counts(middleware._attachment)
            counted = {name: (one.arrived, one.ended, one.rejected) for name, one in classes.items()}
            self.assertEqual(counted, {"gold": (1, 1, 0), "default": (3, 3, 0), "exempt": (1, 1, 0)})
            self.assertEqual(classes["default"].bytes, len("/page!"))

    def test_a_state_that_was_made_anew_is_told_from_a_controller_that_is_gone(self):
        def application(environ, start_response):
            start_response("200 OK", [])
            return [b"page"]

        def until(said):
            end = time.monotonic() + 60
            while not any(said in line for line in log.output):
                self.assertLess(time.monotonic(), end, log.output)
                self.ask(middleware)
                time.sleep(0.05)

        with Control() as control, self.assertLogs("plimsoll", "WARNING") as log:
            middleware = wsgi.Middleware(application, control.state)
            self.ask(middleware)
            control.process.terminate()
            control.process.wait()
            until("no controller is awake")
            with Control(KEEPING) as other:
                os.replace(other.state, control.state)
                until("the state was made anew")

    def test_a_response_of_known_parts_says_how_many(self):
        # By them a server tells the length of a response of one part, and keeps the connection.
        parts = {"/one": [b"page"], "/two": (b"pa", b"ge"), "/open": iter([b"page"])}

        def application(environ, start_response):
            start_response("200 OK", [])
            return parts[environ["PATH_INFO"]]

        with Control() as control:
            middleware = wsgi.Middleware(application, control.state)
            lengths = []
            for path in parts:
                environ = {"REQUEST_METHOD": "GET", "HTTP_HOST": "www.test", "PATH_INFO": path, "REMOTE_ADDR": "192.0.2.7"}
                body = middleware(environ, lambda *_: None)
                lengths.append(len(body) if hasattr(body, "__len__") else None)
                self.assertEqual(b"".join(body), b"page")
                body.close()
            self.assertEqual(lengths, [1, 2, None])
            self.assertEqual(control.counts(middleware._attachment)["default"].bytes, 3 * len("page"))

    def test_a_client_without_an_address_is_counted_too(self):
        def application(environ, start_response):
            start_response("200 OK", [])
            return [b"page"]

        # What comes from this machine alone may be exempt.
        configuration = CONFIGURATION.replace("exempt = [", 'exempt = [{ client = "127.0.0.1" }, { client = "::1" }, ')
        with Control(configuration) as control:
            middleware = wsgi.Middleware(application, control.state)
            # A server says so of a Unix socket's clients; a link-local address has a zone.
            for address in ("localhost", "", "fe80::1%eth0"):
                self.ask(middleware, REMOTE_ADDR=address)
            self.assertEqual(control.counts(middleware._attachment)["default"].ended, 3)
        addresses = {plimsoll.attachment.client_address(None) for _ in range(70_000)}
        self.assertEqual(len(addresses), 70_000, "no two are one client")

    def test_an_error_of_the_server_is_a_failure(self):
        def application(environ, start_response):
            start_response(environ["PATH_INFO"][1:], [])
            return [b"page"]

        with Control() as control:
            middleware = wsgi.Middleware(application, control.state)
            outcomes = outcomes_of(middleware)
            for status in ("404 Not Found", "500 Internal Server Error", "200 OK"):
                self.ask(middleware, path="/" + status)
        self.assertEqual(outcomes, [Outcome.COMPLETED, Outcome.FAILED, Outcome.COMPLETED])

    def test_a_stream_of_events_gives_its_place_back_unless_it_occupies_a_worker(self):
        in_service = []

        def application(environ, start_response):
            start_response("200 OK", [("Content-Type", "Text/Event-Stream; charset=utf-8")])
            for _ in range(2):
                in_service.append(control.in_service(middleware._attachment))
                yield b"data: one\n\n"

        for configuration, expected in ((CONFIGURATION, [0, 0]), (KEEPING, [1, 1])):
            in_service.clear()
            with Control(configuration) as control:
                middleware = wsgi.Middleware(application, control.state)
                self.ask(middleware)
                counted = control.counts(middleware._attachment)["default"]
                after = control.in_service(middleware._attachment)
            self.assertEqual((in_service, after), (expected, 0))
            self.assertEqual((counted.arrived, counted.ended, counted.bytes), (1, 1, 22))

    def test_a_path_is_classified_as_it_was_sent_and_has_the_prefix_of_its_level(self):
        seen = []

        def application(environ, start_response):
            seen.append((environ["plimsoll.level"], environ["SCRIPT_NAME"], environ["PATH_INFO"]))
            start_response("200 OK", [])
            return [b""]

        # No light page would fit below this line: all get the lowest level at once.
        only_light = CONFIGURATION.replace('[[site.level]]\nname = "full"\n', "")
        with Control(only_light) as control:
            middleware = wsgi.Middleware(application, control.state)
            self.ask(middleware, path="/caf\u00c3\u00a9 au lait", SCRIPT_NAME="/shop")
            self.assertEqual(seen, [(1, "/shop", "/light/caf\u00c3\u00a9 au lait")])

    def test_places_that_an_application_names_are_without_the_prefix_of_its_level(self):
        # By what the application says, what the client gets.
        places = {
            "/shop/light/docs/": "/shop/docs/",
            "http://www.test/shop/light?a=/light": "http://www.test/shop/?a=/light",
            "https://other.test/shop/light/docs/": "https://other.test/shop/light/docs/",
            "//www.test/shop/light/": "//www.test/shop/light/",
            "/shop/lighter": "/shop/lighter",
            "http://www.test:8080/shop/light": "http://www.test:8080/shop/",
        }
        said = [("Location", place) for place in places]
        others = [("Refresh", "5; url=/shop/light/x"), ("Set-Cookie", "a=/; Path=/shop/light/x; Secure"), ("X-Is", "/shop/light/")]

        def application(environ, start_response):
            start_response("301 Moved Permanently", [*said, *others])
            return [b""]

        only_light = CONFIGURATION.replace('[[site.level]]\nname = "full"\n', "")
        got = []
        with Control(only_light) as control:
            middleware = wsgi.Middleware(application, control.state)
            request = {"REQUEST_METHOD": "GET", "HTTP_HOST": "www.test", "SCRIPT_NAME": "/shop", "PATH_INFO": "/docs"}
            middleware(request, lambda status, headers: got.extend(headers)).close()
        self.assertEqual([value for _, value in got], [*places.values(), "5; url=/shop/x", "a=/; Path=/shop/x; Secure", "/shop/light/"])

    def test_processes_with_one_listen_queue_answer_and_count_each_request_once(self):
        def application(environ, start_response):
            time.sleep(0.02)
            page = environ["PATH_INFO"].encode()[1:6]
            start_response("200 OK", [("Content-Length", str(len(page)))])
            return [page]

        found, is_over = [], threading.Event()

        def client():
            while not is_over.is_set():
                found.append(server.ask())

        small = CONFIGURATION.replace("workers = 64", "workers = 2")
        with Control(small) as control, Prefork(wsgi.Middleware(application, control.state)) as server:
            clients = [threading.Thread(target=client) for _ in range(16)]
            for each in clients:
                each.start()
            time.sleep(2)
            is_over.set()
            for each in clients:
                each.join()
            for status, headers, body in found:
                self.assertIn((status, body if status == 200 else b""), [(200, b"page"), (200, b"light"), (503, b"")])
                self.assertEqual(status == 503, "Retry-After" in headers)
            own = plimsoll.Attachment(control.state)
            own._attach(None)
            # An answer may be read before its process has counted its end.
            end = time.monotonic() + 60
            while True:
                counted = control.counts(own)["default"]
                if counted.rejected + counted.ended == len(found) or time.monotonic() > end:
                    break
                time.sleep(0.01)
            self.assertEqual((counted.arrived, counted.rejected + counted.ended), (len(found), len(found)))

    def test_a_rejection_says_when_to_come_again_and_calls_no_application(self):
        called = []

        def application(environ, start_response):
            called.append(environ["PATH_INFO"])
            start_response("200 OK", [])
            return [b"page"]

        with Control() as control:
            middleware = wsgi.Middleware(application, control.state)
            middleware._attachment.adapt = lambda request: REJECTED
            (status, headers), data = self.ask(middleware)
            self.assertEqual(self.ask(middleware, REQUEST_METHOD="HEAD"), ((status, headers), b""))
            others = {}
            # A configuration may say any number from 400 to 599, also one that has no name.
            for number in (429, 450):
                middleware._attachment.adapt = lambda request: replace(REJECTED, status=number)
                others[number] = self.ask(middleware)[0]
        self.assertEqual(status, "503 Service Unavailable")
        self.assertEqual((headers["Retry-After"], headers["X-Plimsoll"]), ("2", "level=0; reason=overload"))
        self.assertEqual(headers["RateLimit"], '"overload";r=0;t=2')
        self.assertEqual((called, int(headers["Content-Length"])), ([], len(data)))
        self.assertEqual([other[0] for other in others.values()], ["429 Too Many Requests", "450 Rejected"])
        self.assertEqual({other[1]["Retry-After"] for other in others.values()}, {"2"})

    def test_without_a_controller_requests_go_as_they_come(self):
        def application(environ, start_response):
            self.assertNotIn("plimsoll.level", environ)
            start_response("200 OK", [])
            return [b"page"]

        middleware = wsgi.Middleware(application, "/no/such/state")
        with self.assertLogs("plimsoll", "WARNING") as logs:
            for _ in range(3):
                self.assertEqual(self.ask(middleware)[1], b"page")
        self.assertEqual(len(logs.output), 1, "it is not tried again with each request")

    def test_a_forked_process_attaches_itself(self):
        def application(environ, start_response):
            start_response("200 OK", [])
            return [b"page"]

        with Control() as control:
            middleware = wsgi.Middleware(application, control.state)
            self.ask(middleware)
            child = os.fork()
            if child == 0:
                os._exit(0 if self.ask(middleware)[1] == b"page" else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(control.counts(middleware._attachment)["default"].arrived, 2)

    def test_a_process_that_is_forked_while_another_thread_attaches_does_not_wait_for_it(self):
        def application(environ, start_response):
            start_response("200 OK", [])
            return [environ["plimsoll.reason"].encode()]

        with Control() as control:
            middleware = wsgi.Middleware(application, control.state)
            # As another thread of the parent does, which the child has not.
            with middleware._attachment._lock:
                child = os.fork()
                if child == 0:
                    # It ends the child if that waits.
                    signal.alarm(20)
                    os._exit(0 if self.ask(middleware)[1] == b"full" else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.ask(middleware)
            self.assertEqual(control.counts(middleware._attachment)["default"].arrived, 2)


REQUEST = plimsoll.Request(
    method=b"GET", host=b"www.test", path=b"/page", query=b"", client=b"192.0.2.1", header=lambda name: None
)


REJECTED = plimsoll.Decision(level=0, reason="overload", path=b"/page", status=503, retry_after=2)


# As mod_wsgi runs applications. The sub-interpreter's thread is the process's first one.
IN_SUB_INTERPRETER = """
import sys, _xxsubinterpreters as interpreters
program = '''
import sys
sys.path[:] = {path!r}
from plimsoll import Attachment, Request
attachment = Attachment({state!r})
request = Request(b"GET", b"www.test", b"/page", b"", b"192.0.2.1", {{b"x-plan": b"gold"}}.get)
decision = attachment.adapt(request)
attachment.done(decision, 0)
print(decision.level, flush=True)
'''
interpreters.run_string(interpreters.create(), program.format(path=sys.path, state=sys.argv[1]))
"""


class SubInterpreter(unittest.TestCase):
    @unittest.skipIf(sys.version_info >= (3, 12), "extension modules are refused there")
    def test_a_header_is_found_in_a_sub_interpreter(self):
        with Control() as control:
            command = [sys.executable, "-c", IN_SUB_INTERPRETER, str(control.state)]
            environment = {**os.environ, "PYTHONPATH": str(Path(plimsoll.__file__).parent.parent)}
            asked = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20)
            self.assertEqual((asked.stdout, asked.stderr), ("2\n", ""))
            attachment = plimsoll.Attachment(control.state)
            attachment.adapt(plimsoll.Request(b"GET", b"www.test", b"/", b"", b"192.0.2.1", lambda name: None))
            self.assertEqual(control.counts(attachment)["gold"].ended, 1)


class Asgi(unittest.TestCase):
    def ask(self, middleware, path="/page", headers=(), messages=(), **scope):
        sent = []
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"www.test"), *headers],
            "client": ("192.0.2.1", 5),
            **scope,
        }
        waiting = list(messages)

        async def receive():
            return waiting.pop(0) if waiting else {"type": "http.request", "body": b""}

        async def send(message):
            sent.append(message)

        asyncio.run(middleware(scope, receive, send))
        return sent

    def test_a_request_is_counted_once_however_it_ends(self):
        async def application(scope, receive, send):
            if scope["type"] == "lifespan":
                return
            message = await receive()
            if scope["path"] == "/broken":
                raise ValueError("broken")
            if scope["path"] == "/cancelled":
                raise asyncio.CancelledError
            if message["type"] == "http.disconnect":
                return
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            await send({"type": "http.response.body", "body": b"two"})
            self.assertEqual(scope["plimsoll"]["reason"], "full")

        with Control() as control:
            middleware = asgi.Middleware(application, control.state)
            sent = self.ask(middleware)
            self.assertEqual([message.get("body") for message in sent[1:]], [b"one", b"two"])
            self.ask(middleware, headers=[(b"x-plan", b"gold")])
            self.ask(middleware, messages=[{"type": "http.disconnect"}])
            for path, error in (("/broken", ValueError), ("/cancelled", asyncio.CancelledError)):
                with self.assertRaises(error):
                    self.ask(middleware, path=path)
            self.ask(middleware, type="lifespan")
            sent = self.ask(middleware, headers=[(b"host", b"x")], type="http", path="/page")
            self.assertEqual(sent[0]["status"], 200, "the first host counts")
            classes = control.counts(middleware._attachment)
            counted = {name: (one.arrived, one.ended, one.rejected) for name, one in classes.items()}
            self.assertEqual(counted, {"gold": (1, 1, 0), "default": (5, 5, 0), "exempt": (0, 0, 0)})
            self.assertEqual(classes["default"].bytes, 12)

    def test_a_request_that_fails_before_or_after_its_application_gives_its_place_back(self):
        async def application(scope, receive, send):
            # It is raised where the task waits next, which is after the application has returned.
            asyncio.current_task().cancel()

        only_light = CONFIGURATION.replace('[[site.level]]\nname = "full"\n', "")
        with Control(only_light) as control:
            middleware = asgi.Middleware(application, control.state)
            outcomes = outcomes_of(middleware)
            with self.assertRaises(asyncio.CancelledError):
                self.ask(middleware)
            with self.assertRaises(UnicodeEncodeError):
                self.ask(middleware, root_path="/\ud800")
            counted = control.counts(middleware._attachment)["default"]
            self.assertEqual((counted.arrived, counted.ended, control.in_service(middleware._attachment)), (2, 2, 0))
        self.assertEqual(outcomes, [Outcome.ABANDONED, Outcome.FAILED])

    def test_an_error_of_the_server_is_a_failure(self):
        async def application(scope, receive, send):
            await send({"type": "http.response.start", "status": int(scope["path"][1:]), "headers": []})
            await send({"type": "http.response.body", "body": b"page"})

        with Control() as control:
            middleware = asgi.Middleware(application, control.state)
            outcomes = outcomes_of(middleware)
            for status in (404, 500, 200):
                self.ask(middleware, path=f"/{status}")
        self.assertEqual(outcomes, [Outcome.COMPLETED, Outcome.FAILED, Outcome.COMPLETED])

    def test_a_client_that_left_is_seen_where_the_application_does_not_ask(self):
        seen = []

        async def application(scope, receive, send):
            if scope["path"] == "/none":
                return
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            if scope["path"] == "/asks":
                seen.append(await receive())
            await send({"type": "http.response.body", "body": b"two"})
            seen.append(await receive())

        async def ask(path, messages, *headers):
            """Messages come one by one; then the server waits."""
            waiting, woken = list(messages), asyncio.Event()

            async def receive():
                if not waiting:
                    await woken.wait()
                return waiting.pop(0)

            async def send(message):
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    waiting.append({"type": "http.disconnect"})
                    woken.set()

            scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"host", b"www.test"), *headers]}
            await middleware(scope, receive, send)

        whole, left = {"type": "http.request", "body": b"body"}, {"type": "http.disconnect"}
        part = {**whole, "more_body": True}
        with Control() as control:
            middleware = asgi.Middleware(application, control.state)
            outcomes = outcomes_of(middleware)
            for path, messages in (
                ("/page", [whole, left]),
                ("/none", [whole, left]),
                ("/asks", [whole, left]),
                ("/page", [whole]),
                ("/page", [part]),
                ("/none", [whole]),
            ):
                asyncio.run(ask(path, messages))
            asyncio.run(ask("/page", [whole, left], (b"expect", b"100-continue")))
        abandoned, completed, failed = Outcome.ABANDONED, Outcome.COMPLETED, Outcome.FAILED
        self.assertEqual(outcomes, [abandoned, abandoned, abandoned, completed, completed, failed, completed])
        self.assertEqual(seen, [whole, whole, left, whole, part, whole], "no message is lost")

    def test_streams_of_events_leave_the_places_to_others(self):
        async def application(scope, receive, send):
            kind = b"text/event-stream" if scope["path"] == "/events" else b"text/html"
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
            await send({"type": "http.response.body", "body": b"data: one\n\n", "more_body": True})
            await receive()
            await send({"type": "http.response.body"})

        async def ask_while_open(middleware, path):
            is_open, may_end = asyncio.Event(), asyncio.Event()

            async def receive():
                is_open.set()
                await may_end.wait()
                return {"type": "http.request", "body": b""}

            async def send(message):
                pass

            scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"host", b"www.test")]}
            asked = asyncio.create_task(middleware(scope, receive, send))
            await is_open.wait()
            in_service = control.in_service(middleware._attachment)
            may_end.set()
            await asked
            return in_service

        with Control() as control:
            middleware = asgi.Middleware(application, control.state)
            self.assertEqual(asyncio.run(ask_while_open(middleware, "/events")), 0)
            self.assertEqual(asyncio.run(ask_while_open(middleware, "/page")), 1)
            counted = control.counts(middleware._attachment)["default"]
            self.assertEqual((counted.arrived, counted.ended), (2, 2))

    def test_a_level_has_its_prefix_and_a_rejection_its_time(self):
        seen = []

        async def application(scope, receive, send):
            seen.append((scope["plimsoll"]["level"], scope["path"], scope["raw_path"]))
            place = scope["raw_path"] + b"/"
            await send({"type": "http.response.start", "status": 307, "headers": [(b"location", place)]})
            await send({"type": "http.response.body"})

        only_light = CONFIGURATION.replace('[[site.level]]\nname = "full"\n', "")
        with Control(only_light) as control:
            # As Starlette makes it.
            middleware = asgi.Middleware(app=application, state=control.state)
            self.ask(middleware, path="/caf\u00e9", raw_path=b"/caf%C3%A9")
            sent = self.ask(middleware, path="/api/page", root_path="/api")
            self.assertEqual(dict(sent[0]["headers"]), {b"location": b"/api/page/"})
            self.assertEqual(seen, [(1, "/light/caf\u00e9", b"/light/caf%C3%A9"), (1, "/api/light/page", b"/api/light/page")])
            for number in (503, 429):
                middleware._attachment.adapt = lambda request: replace(REJECTED, status=number)
                sent = self.ask(middleware)
                headers = dict(sent[0]["headers"])
                self.assertEqual((sent[0]["status"], len(seen), headers[b"retry-after"]), (number, 2, b"2"))
                self.assertEqual(headers[b"ratelimit"], b'"overload";r=0;t=2')


if __name__ == "__main__":
    unittest.main()
