"""A process that is attached to the shared state of `plimsoll control`, and the three calls of one request."""

import ctypes
import enum
import itertools
import logging
import os
import socket
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Callable, Optional

from plimsoll import library

# What a path may have as it is (RFC 3986, pchar).
SAFE = "/:@!$&'()*+,;=~-._"

_log = logging.getLogger("plimsoll")
# While the state cannot be opened, it is tried again after this time (seconds).
_AGAIN = 1.0
# Room for what a level puts before a path (bytes).
_PREFIX = 1024
# Numbers of clients of which no address is known.
_unknown = itertools.count()


class Outcome(enum.IntEnum):
    """How a request ended."""

    COMPLETED = 0
    FAILED = 1
    ABANDONED = 2


@dataclass
class Request:
    """A request, as far as it decides. Paths are as they were sent, without a query."""

    method: bytes
    host: Optional[bytes]
    path: bytes
    query: bytes
    # The client's address.
    client: bytes
    # Finds a header's value by its name in lower case.
    header: Callable[[bytes], Optional[bytes]]


@dataclass
class Decision:
    """What was decided of a request."""

    # 1 to M, the highest; 0 where it is rejected.
    level: int
    # Why: a reason of the gateway's headers and metrics.
    reason: str
    # The path to serve, which has the level's prefix.
    path: bytes
    # The status code of a rejection.
    status: int = 0
    # After how many seconds a client that was rejected may come again.
    retry_after: int = 0
    # The request's number for `log_size` and `done`; 0 where it is rejected, and then they are not called.
    number: int = 0


def rejection(decision: "Decision") -> tuple[list[tuple[str, str]], bytes]:
    """The headers and the body of a rejection, as the gateway has them unless it is told others."""
    bodies = {421: b"No site of this name.\n", 400: b"The path has a dot segment.\n"}
    body = bodies.get(decision.status, b"This site is busy right now. Please try again in a moment.\n")
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
        ("X-Plimsoll", f"level=0; reason={decision.reason}"),
    ]
    if decision.retry_after:
        # Nothing is left of what the server can do, until then.
        limit = f'"{decision.reason}";r=0;t={decision.retry_after}'
        headers += [("Retry-After", str(decision.retry_after)), ("RateLimit", limit)]
    return headers, body


def client_address(text: Optional[str]) -> bytes:
    """A client's address, without a zone. Where there is none, as at a Unix socket, another one for each request, so that no
    two share what happens to them: one of documentation's own (RFC 3849), which no client has."""
    address = (text or "").partition("%")[0]
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, address)
            return address.encode()
        except OSError:
            continue
    # Clients are told apart by the first 64 bits.
    number = next(_unknown) & 0xFFFFFFFF
    return f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::".encode()


def is_event_stream(content_type: bytes) -> bool:
    """Whether a response of this type stays open for as long as its client likes."""
    return content_type.strip().lower().startswith(b"text/event-stream")


@library.FindHeader
def _find_header(context, name):
    find, kept = context  # A value is kept until the call has returned.
    try:
        value = find(name.lower())
    except Exception:  # It must not pass through C; the request has no such header then.
        _log.exception("a header cannot be read")
        return None
    if value is None:
        return None
    text = ctypes.c_char_p(value)
    kept.append(text)
    return ctypes.cast(text, ctypes.c_void_p).value


# What the log has of the controller, by `frozen` of a decision.
_CONTROLLER = {
    0: "the controller is awake again",
    1: "no controller is awake: levels stand still",
    2: "the state was made anew, so levels stand still: start the server's processes anew",
}

_attachments = weakref.WeakSet()


def _renew_locks():
    """In a child there is no thread that would release a lock which another thread of the parent held at the fork."""
    for attachment in _attachments:
        attachment._lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_locks)


class Attachment:
    """Attaches this process to the state at `state` with its first request, and each process that is forked from it with its own.

    While the state cannot be opened, requests go as they came and are not counted; the log says why, and it is tried again each
    second.
    """

    def __init__(self, state):
        self._state = str(state).encode()
        self._library = library.load()
        self._lock = threading.Lock()
        self._handle = None
        self._next_try = 0.0
        self._frozen = 0
        # Errors that the log has.
        self._told = set()
        _attachments.add(self)

    def adapt(self, request: Request) -> Optional[Decision]:
        """Decides on a request that has come. None: it goes as it came, and is not counted."""
        handle = self._handle or self._attach(None)
        if handle is None:
            return None
        error, decision = self._adapt(handle, request)
        if error == library.FORKED:
            handle = self._attach(handle)
            if handle is None:
                return None
            error, decision = self._adapt(handle, request)
        if error and error not in library.ANSWERED:
            if error not in self._told:
                self._told.add(error)
                _log.error("a request is not counted, and others may be: %s", self._sentence(error))
            return None
        return decision

    def look_at_queue(self) -> None:
        """Tells the controller how many connections wait in the listen queues of this process; to be called with each request."""
        if self._handle is not None:
            self._library.plimsoll_look_at_queue(self._handle)

    def seen(self, place: "library.PlaceStruct", name: bytes, value: bytes) -> bytes:
        """A header's value as the client must see it: an application that routes a path with the level's prefix builds redirects
        and cookies from it, and a client that followed them would get the prefix twice."""
        room = len(value) + 1
        seen = ctypes.create_string_buffer(room)
        error = self._library.plimsoll_map_place(ctypes.byref(place), name, value, seen, room)
        return value if error else seen.value

    def log_size(self, decision: Decision, size: int) -> None:
        """Counts bytes of a response's body as they are delivered."""
        self._library.plimsoll_log_size(self._handle, decision.number, size)

    def stays_open(self, decision: Decision) -> None:
        """Says, once, that a response stays open for as long as its client likes, so that its request gives its place back."""
        self._library.plimsoll_stays_open(self._handle, decision.number)

    def outcome_of(self, status: int) -> Outcome:
        """How a request ends whose whole response has this status."""
        return Outcome(self._library.plimsoll_outcome_of(status))

    def done(self, decision: Decision, outcome: Outcome) -> None:
        """Ends a request, exactly once."""
        self._library.plimsoll_done(self._handle, decision.number, int(outcome))

    def _adapt(self, handle, request):
        context = (request.header, [])
        made = library.RequestStruct(
            request.method, request.host, request.path, request.query, request.client, _find_header, context
        )
        room = len(request.path) + _PREFIX
        path, decided = ctypes.create_string_buffer(room), library.DecisionStruct()
        error = self._library.plimsoll_adapt(handle, ctypes.byref(made), path, room, ctypes.byref(decided))
        if error and error not in library.ANSWERED:
            return error, None
        if not error and decided.frozen != self._frozen:
            self._frozen = decided.frozen
            _log.warning(_CONTROLLER.get(self._frozen, _CONTROLLER[1]))
        rewritten = path.raw[: decided.path_length] if decided.level else request.path
        return error, Decision(
            level=decided.level,
            reason=decided.reason.decode(),
            path=rewritten,
            status=decided.status,
            retry_after=decided.retry_after,
            number=decided.request,
        )

    def _attach(self, stale):
        """The handle of this process. `stale` is one of the process that this one was forked from, which is left as it is."""
        with self._lock:
            if self._handle is not None and self._handle is not stale:
                return self._handle
            if time.monotonic() < self._next_try:
                return None
            handle = ctypes.c_void_p()
            error = self._library.plimsoll_init(self._state, ctypes.byref(handle))
            self._handle = None if error else handle
            if error:
                self._next_try = time.monotonic() + _AGAIN
                _log.warning("%s: %s; requests are served as they come", self._state.decode(), self._sentence(error))
            return self._handle

    def _sentence(self, error):
        return self._library.plimsoll_strerror(error).decode()
