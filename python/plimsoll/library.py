"""libplimsoll's functions and structures, as plimsoll.h has them."""

import ctypes
import os
from pathlib import Path

NO_SITE, FORKED, PATH = -8, -7, -16
# Errors with a decision: the answer to such a request.
ANSWERED = (NO_SITE, PATH)

# Finds a header: from the context of the request and a name to the address of a text, or to nothing.
FindHeader = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)


class RequestStruct(ctypes.Structure):
    """plimsoll_request_t"""

    _fields_ = [
        ("method", ctypes.c_char_p),
        ("host", ctypes.c_char_p),
        ("path", ctypes.c_char_p),
        ("query", ctypes.c_char_p),
        ("client", ctypes.c_char_p),
        ("header", FindHeader),
        ("context", ctypes.py_object),
    ]


class DecisionStruct(ctypes.Structure):
    """plimsoll_decision_t"""

    _fields_ = [
        ("request", ctypes.c_uint64),
        ("level", ctypes.c_uint32),
        ("status", ctypes.c_uint32),
        ("retry_after", ctypes.c_uint32),
        ("frozen", ctypes.c_uint32),
        ("reason", ctypes.c_char_p),
        ("path_length", ctypes.c_size_t),
    ]


class PlaceStruct(ctypes.Structure):
    """plimsoll_place_t"""

    _fields_ = [("host", ctypes.c_char_p), ("root", ctypes.c_char_p), ("prefix", ctypes.c_char_p)]


def load():
    """The library that `PLIMSOLL_LIBRARY` names, else the one in this package, else the system's."""
    own = Path(__file__).with_name("libplimsoll.so.0")
    path = os.environ.get("PLIMSOLL_LIBRARY") or (str(own) if own.exists() else "libplimsoll.so.0")
    # No call waits, so that the interpreter keeps its lock meanwhile. The one that calls back gives it up: in a sub-interpreter
    # of Python 3.11 and before, a callback waits for the lock that its own thread has.
    library = ctypes.PyDLL(path)
    library.plimsoll_adapt = ctypes.CDLL(path).plimsoll_adapt
    handle, number = ctypes.c_void_p, ctypes.c_uint64
    for name, arguments in {
        "plimsoll_init": [ctypes.c_char_p, ctypes.POINTER(handle)],
        "plimsoll_adapt": [
            handle,
            ctypes.POINTER(RequestStruct),
            ctypes.c_char_p,
            ctypes.c_size_t,
            ctypes.POINTER(DecisionStruct),
        ],
        "plimsoll_look_at_queue": [handle],
        "plimsoll_map_place": [
            ctypes.POINTER(PlaceStruct),
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_size_t,
        ],
        "plimsoll_log_size": [handle, number, ctypes.c_uint64],
        "plimsoll_stays_open": [handle, number],
        "plimsoll_outcome_of": [ctypes.c_uint32],
        "plimsoll_done": [handle, number, ctypes.c_int],
    }.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    library.plimsoll_strerror.argtypes = [ctypes.c_int]
    library.plimsoll_strerror.restype = ctypes.c_char_p
    return library
