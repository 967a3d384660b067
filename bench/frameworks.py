#!/usr/bin/env python3
"""Plimsoll's middleware in frameworks of others, under the servers that they are run by; `python/tests` has no framework.

    make frameworks

Installs the wheel of `make module` and the frameworks below, from PyPI, into a virtual environment of its own, and starts each
site of `framework_sites.py` with its server and a real `plimsoll control`. It asks for pages at full quality, lighter ones, a
redirect of a lighter one, rejections, a host that no site has, parts of a stream, a file, exceptions before a response and in
its middle, a stream of events that stays open, and pages by many clients at once. Then each request must have arrived and
ended once. It prints a line for each, and fails where one is not as it must be.
"""

import argparse
import ctypes
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = ["fastapi==0.165.0", "django==5.2.19", "flask==3.1.3", "uvicorn==0.54.0", "gunicorn==27.0.1"]
SERVERS = {
    "FastAPI under uvicorn, two processes": "uvicorn --factory framework_sites:fastapi --workers 2 --port {port}",
    "Django under uvicorn, two processes": "uvicorn --factory framework_sites:django_asgi --workers 2 --lifespan off --port {port}",
    "Django under gunicorn, four processes": "gunicorn framework_sites:django_wsgi() --workers 4 --bind 127.0.0.1:{port}",
    "Flask under gunicorn, four processes": "gunicorn framework_sites:flask() --workers 4 --bind 127.0.0.1:{port}",
}
CONFIGURATION = """
[gateway]
listen = "127.0.0.1:0"
[upstream.server]
address = "127.0.0.1:9"
capacity = { workers = 64 }
[[site]]
name = "whole"
host = "whole.test"
[[site.level]]
name = "light"
prefix = "/light"
[[site.level]]
name = "full"
[[site]]
name = "lighter"
host = "lighter.test"
[[site.level]]
name = "light"
prefix = "/light"
[[site]]
name = "closed"
host = "closed.test"
share_excess = false
guarantee = { rate = "0.01/s", burst = "1s" }
"""
TIMES, CLIENTS, PATIENCE = 20, 16, 30
FILE_BYTES = 300_000


class Site:
    """A site under its server, before a controller of its own."""

    def __init__(self, environment, command, folder):
        # Here, since they need the library and the program that the arguments name.
        from test_middleware import Control
        import plimsoll

        self.control = Control(CONFIGURATION)
        self.attachment = plimsoll.Attachment(self.control.state)
        self.attachment._attach(None)
        self.sent = 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = command.format(port=self.port).split()
        file = Path(folder, "file")
        file.write_bytes(b"x" * FILE_BYTES)
        variables = {**os.environ, "STATE": str(self.control.state), "FILE": str(file), "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("PLIMSOLL_LIBRARY", "PYTHONPATH"):
            variables.pop(name, None)
        self.log = open(Path(folder, "server.log"), "w+")
        program = [environment / "bin" / words[0], *words[1:]]
        self.server = subprocess.Popen(program, cwd=ROOT / "bench", env=variables, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.is_up)

    def is_up(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            assert self.server.poll() is None, Path(self.log.name).read_text()
            return False

    def ask(self, path, host="whole.test", read=True):
        """The status of an answer, its headers and its body; what did not come whole has a body of None."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        self.sent += host != "unknown.test"
        connection.request("GET", path, headers={"Host": host, "Connection": "close"})
        answer = connection.getresponse()
        if not read:
            return answer, connection
        try:
            body = answer.read()
        except (http.client.IncompleteRead, ConnectionError):
            body = None
        connection.close()
        return answer.status, answer.headers, body

    def counts(self):
        """Requests that have arrived, ended and been rejected, and those that hold a place."""
        classes = self.counted().values()
        return [sum(getattr(one, name) for one in classes) for name in ("arrived", "ended", "rejected")] + [self.in_service()]

    def counted(self):
        # All sites have classes of one name.
        from test_middleware import ClassStruct

        classes = {}
        while True:
            counted, number = ClassStruct(), len(classes)
            if self.attachment._library.plimsoll_class(self.attachment._handle, number, ctypes.byref(counted)) != 0:
                return classes
            classes[number] = counted

    def in_service(self):
        return self.control.in_service(self.attachment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Its processes are its group's.
        os.killpg(self.server.pid, signal.SIGTERM)
        try:
            self.server.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait()
        self.log.close()
        self.control.__exit__()


def wait_for(holds):
    """Whether it holds before long."""
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def is_rejection(answer):
    status, headers, _ = answer
    return status == 503 and headers["X-Plimsoll"].startswith("level=0") and int(headers["Retry-After"]) > 0


def open_stream(site):
    """A stream of events that stays open holds no place."""
    answer, connection = site.ask("/events", read=False)
    # The second look: a place that was given back stays so while the stream is open.
    holds = wait_for(lambda: site.in_service() == 0) and answer.readline() == b"data: one\n" and site.in_service() == 0
    connection.close()
    return holds


def crowd(site):
    """Pages by many clients at once."""
    found = []

    def client():
        for _ in range(TIMES):
            found.append(site.ask("/page")[::2])

    sent = site.sent
    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    # Threads count together only by chance.
    site.sent = sent + len(found)
    return len(found) == CLIENTS * TIMES and set(found) == {(200, b"page 2")}


def accounted_for(site):
    def holds():
        arrived, ended, rejected, in_service = site.counts()
        return arrived == site.sent and ended + rejected == arrived and in_service == 0

    return wait_for(holds)


CHECKS = {
    "pages at full quality": lambda site: {site.ask("/page")[::2] for _ in range(TIMES)} == {(200, b"page 2")},
    "lighter pages by their prefix": lambda site: site.ask("/page", "lighter.test")[::2] == (200, b"light page"),
    "a redirect without the prefix": lambda site: site.ask("/moved", "lighter.test")[1]["Location"] == "/page",
    "rejections": lambda site: wait_for(lambda: is_rejection(site.ask("/page", "closed.test")))
    and all(is_rejection(site.ask("/page", "closed.test")) for _ in range(TIMES)),
    "a host of no site": lambda site: site.ask("/page", "unknown.test")[0] == 421,
    "parts of a stream": lambda site: site.ask("/stream")[::2] == (200, b"one\ntwo\nthree\n"),
    "a file": lambda site: site.ask("/file")[::2] == (200, b"x" * FILE_BYTES),
    "an exception before a response": lambda site: site.ask("/broken")[0] == 500,
    "an exception in its middle": lambda site: site.ask("/half")[2] in (None, b"one\n"),
    "an open stream of events": open_stream,
    f"{CLIENTS} clients at once": crowd,
    "each request arrived and ended once": accounted_for,
}


def check(environment, name, command):
    """Whether all is as it must be."""
    print(name)
    with tempfile.TemporaryDirectory() as folder, Site(environment, command, folder) as site:
        kept = True
        for what, holds in CHECKS.items():
            held = holds(site)
            kept &= held
            print(f"  {what:<40} {'yes' if held else 'NO'}")
        arrived, ended, rejected, _ = site.counts()
        print(f"  {arrived} requests arrived, {rejected} were rejected, {ended} ended; {site.sent} were sent")
        if not kept:
            print(Path(site.log.name).read_text()[-4000:])
        return kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True, help="the program")
    parser.add_argument("--module", required=True, help="the folder that `make module` builds")
    arguments = parser.parse_args()
    module = Path(arguments.module).resolve()
    os.environ["PLIMSOLL"] = str(Path(arguments.plimsoll).resolve())
    os.environ["PLIMSOLL_LIBRARY"] = str(module / "libplimsoll.so.0")
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "python/tests")]
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        install = [environment / "bin/python", "-m", "pip", "install", "--quiet", *FRAMEWORKS, *module.glob("plimsoll-*.whl")]
        subprocess.run(install, check=True)
        kept = [check(environment, name, command) for name, command in SERVERS.items()]
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
