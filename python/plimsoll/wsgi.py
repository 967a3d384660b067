"""WSGI middleware (PEP 3333)."""

from http import HTTPStatus
from urllib.parse import quote, unquote_to_bytes

from plimsoll.attachment import SAFE, Attachment, Outcome, Request, client_address, is_event_stream, rejection
from plimsoll.library import PlaceStruct

_KNOWN = {status.value for status in HTTPStatus}


class Middleware:
    """Gives each request of `application` its level, or turns it away.

    A level's prefix comes before `PATH_INFO`; `plimsoll.level` and `plimsoll.reason` are in the environment. A rejection is
    answered with its status, `Retry-After` and `RateLimit`, and the application is not called.
    """

    def __init__(self, application, state):
        self._application = application
        self._attachment = Attachment(state)

    def __call__(self, environ, start_response):
        request = _request(environ)
        decision = self._attachment.adapt(request)
        if decision is None:
            return self._application(environ, start_response)
        self._attachment.look_at_queue()
        if decision.level == 0:
            return _reject(decision, environ, start_response)
        place = None
        if decision.path != request.path:
            # What lies before the path is the level's prefix; the application is mounted where it was.
            prefix = decision.path[: len(decision.path) - len(request.path)]
            root = quote(environ.get("SCRIPT_NAME", "").encode("latin-1"), safe=SAFE).encode()
            place = PlaceStruct(request.host, root, prefix)
            environ["PATH_INFO"] = unquote_to_bytes(prefix).decode("latin-1") + environ.get("PATH_INFO", "")
        environ["plimsoll.level"], environ["plimsoll.reason"] = decision.level, decision.reason
        response = _Response(self._attachment, decision, place)
        try:
            response.body = self._application(environ, response.counted(start_response))
        except BaseException:
            response.end(Outcome.FAILED)
            raise
        return _Sized(response) if hasattr(response.body, "__len__") else response


class _Response:
    """A response's body: it counts its bytes, and ends its request."""

    def __init__(self, attachment, decision, place):
        self._attachment, self._decision, self._place = attachment, decision, place
        self._has_ended = False
        # How it ends if all of it is taken.
        self._outcome = Outcome.COMPLETED
        self.body = ()

    def counted(self, start_response):
        """`start_response`, whose `write` counts too, and which sees that a response stays open."""

        def start(status, headers, *arguments):
            if self._place:
                headers = [(name, self._mapped(name, value)) for name, value in headers]
            write = start_response(status, headers, *arguments)
            self._outcome = self._attachment.outcome_of(int(status[:3]))
            if any(name.lower() == "content-type" and is_event_stream(value.encode("latin-1")) for name, value in headers):
                self._attachment.stays_open(self._decision)

            def counted(data):
                self._attachment.log_size(self._decision, len(data))
                try:
                    return write(data)
                except OSError:
                    # Servers say so that the client has left.
                    self.end(Outcome.ABANDONED)
                    raise

            return counted

        return start

    def _mapped(self, name, value):
        return self._attachment.seen(self._place, name.encode("latin-1"), value.encode("latin-1")).decode("latin-1")

    def __iter__(self):
        try:
            for data in self.body:
                self._attachment.log_size(self._decision, len(data))
                yield data
        except GeneratorExit:
            raise
        except BaseException:
            self.end(Outcome.FAILED)
            raise
        self.end(self._outcome)

    def close(self):
        """The server has sent it, or its client has left before the end."""
        try:
            getattr(self.body, "close", lambda: None)()
        finally:
            self.end(Outcome.ABANDONED)

    def end(self, outcome):
        if not self._has_ended:
            self._has_ended = True
            self._attachment.done(self._decision, outcome)

    def __del__(self):
        self.end(Outcome.ABANDONED)


class _Sized:
    """A response of so many parts. Where it has one, servers tell its length."""

    def __init__(self, response):
        self._response, self.close = response, response.close

    def __len__(self):
        return len(self._response.body)

    def __iter__(self):
        return iter(self._response)


def _request(environ):
    def header(name):
        key = name.decode("latin-1").upper().replace("-", "_")
        value = environ.get(key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}")
        return None if value is None else value.encode("latin-1")

    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    return Request(
        method=environ["REQUEST_METHOD"].encode("latin-1"),
        host=header(b"host"),
        path=quote(path.encode("latin-1"), safe=SAFE).encode() or b"/",
        query=environ.get("QUERY_STRING", "").encode("latin-1"),
        client=client_address(environ.get("REMOTE_ADDR")),
        header=header,
    )


def _reject(decision, environ, start_response):
    headers, body = rejection(decision)
    # A number that a configuration may have and Python need not know.
    phrase = HTTPStatus(decision.status).phrase if decision.status in _KNOWN else "Rejected"
    start_response(f"{decision.status} {phrase}", headers)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
