"""ASGI middleware (version 3)."""

import asyncio
from urllib.parse import quote, unquote_to_bytes

from plimsoll.attachment import SAFE, Attachment, Outcome, Request, client_address, is_event_stream, rejection
from plimsoll.library import PlaceStruct

_PASS_BY = ("http.response.pathsend", "http.response.zerocopysend")


class Middleware:
    """Gives each HTTP request of `application` its level, or turns it away. Lifespans and WebSockets pass as they come.

    A level's prefix comes before the path; `scope["plimsoll"]` has `level` and `reason`. A rejection is answered with its status,
    `Retry-After` and `RateLimit`, and the application is not called.
    """

    # Starlette names its argument `app`.
    def __init__(self, app, state):
        self._application = app
        self._attachment = Attachment(state)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self._application(scope, receive, send)
        request = _request(scope)
        decision = self._attachment.adapt(request)
        if decision is None:
            return await self._application(scope, receive, send)
        self._attachment.look_at_queue()
        if decision.level == 0:
            return await _reject(decision, send)
        response = _Response(self._attachment, decision, scope["headers"], receive, send)
        try:
            # With these a response's bytes would pass by.
            extensions = {
                name: value for name, value in (scope.get("extensions") or {}).items() if name not in _PASS_BY
            }
            own = {"level": decision.level, "reason": decision.reason}
            scope = {**scope, "extensions": extensions, "plimsoll": own}
            if decision.path != request.path:
                # The application is mounted where it was: the level's prefix comes after its root.
                prefix, root = decision.path[: len(decision.path) - len(request.path)], scope.get("root_path", "")
                quoted = quote(root, safe=SAFE).encode()
                response.place = PlaceStruct(request.host, quoted, prefix)
                scope["raw_path"] = _within(quoted, prefix, request.path)
                scope["path"] = _within(root, unquote_to_bytes(prefix).decode("utf-8", "surrogateescape"), scope["path"])
            await self._application(scope, response.receive, response.send)
            await response.look()
        except asyncio.CancelledError:
            response.client_left = True
            raise
        finally:
            # Before its response's end a request has failed, unless the client has left.
            response.end(Outcome.ABANDONED if response.client_left else Outcome.FAILED)


class _Response:
    """A response: it counts its bytes, and ends its request."""

    def __init__(self, attachment, decision, headers, receive, send):
        self._attachment, self._decision = attachment, decision
        self._receive, self._send = receive, send
        # Where the level's prefix was put.
        self.place = None
        self._has_ended = False
        # Whether a look is possible: asked for a message, a server sends `100 Continue` to a client that waits for that.
        self._may_look = _is_asyncio() and all(name != b"expect" for name, _ in headers)
        # How it ends if all of it is sent.
        self._outcome = Outcome.COMPLETED
        self.client_left = False
        # Calls of the application that wait for a message.
        self._waiting = 0
        # Messages that a look has found, for the application's next calls.
        self._found = []

    async def receive(self):
        if self._found:
            return self._found.pop(0)
        self._waiting += 1
        try:
            return self._noted(await self._receive())
        finally:
            self._waiting -= 1

    def _noted(self, message):
        # After a response's end this is said of every client.
        if message["type"] == "http.disconnect" and not self._has_ended:
            self.client_left = True
        return message

    async def look(self):
        """Sees, without waiting, whether the client has left: few applications ask. One that waits for a message sees it itself."""
        if not self._may_look or self._has_ended or self._waiting or self._found:
            return
        message = await self._next()
        # That of a client that has left comes after the request's body.
        if message and message["type"] == "http.request" and not message.get("more_body", False):
            await self._next()

    async def _next(self):
        """The next message, for the application too, if it is there."""
        # Servers wait for an event before they take a message, so that none is lost with a call that is cancelled.
        asked = asyncio.ensure_future(self._receive())
        try:
            await asyncio.sleep(0)
        finally:
            is_there = asked.done() and not asked.cancelled() and asked.exception() is None
            if is_there:
                self._found.append(self._noted(asked.result()))
            asked.cancel()
        return self._found[-1] if is_there else None

    async def send(self, message):
        is_last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if is_last:
            await self.look()
        if self.place and message["type"] == "http.response.start":
            headers = message.get("headers", ())
            mapped = [(name, self._attachment.seen(self.place, name, value)) for name, value in headers]
            message = {**message, "headers": mapped}
        try:
            await self._send(message)
        except OSError:
            # Servers say so that the client has left.
            self.client_left = True
            raise
        if message["type"] == "http.response.start":
            self._outcome = self._attachment.outcome_of(message["status"])
            headers = message.get("headers", ())
            if any(name.lower() == b"content-type" and is_event_stream(value) for name, value in headers):
                self._attachment.stays_open(self._decision)
        if message["type"] != "http.response.body":
            return
        self._attachment.log_size(self._decision, len(message.get("body", b"")))
        if is_last:
            self.end(Outcome.ABANDONED if self.client_left else self._outcome)

    def end(self, outcome):
        if not self._has_ended:
            self._has_ended = True
            self._attachment.done(self._decision, outcome)


def _is_asyncio():
    try:
        return asyncio.get_running_loop() is not None
    except RuntimeError:  # Another library's loop, such as trio's.
        return False


def _within(root, prefix, path):
    """The path with the prefix after the root, where the path has it."""
    slash = path[:0] + ("/" if isinstance(path, str) else b"/")
    rest = path[len(root) :] if root and path.startswith(root + slash) else None
    return prefix + path if rest is None else root + prefix + rest


def _request(scope):
    headers = scope["headers"]

    def header(name):
        values = (value for key, value in headers if key == name)
        # Clients of HTTP/2 may send each cookie in a field of its own.
        return b"; ".join(values) or None if name == b"cookie" else next(values, None)

    client = scope.get("client")
    path = scope.get("raw_path") or quote(scope["path"], safe=SAFE).encode()
    return Request(
        method=scope["method"].encode("latin-1"),
        host=header(b"host"),
        path=path.partition(b"?")[0] or b"/",
        query=scope.get("query_string", b""),
        client=client_address(client[0] if client else None),
        header=header,
    )


async def _reject(decision, send):
    headers, body = rejection(decision)
    headers = [(name.lower().encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": decision.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
