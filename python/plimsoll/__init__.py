"""Holds a Python server at its load line, by three calls of libplimsoll around each request.

`plimsoll.wsgi.Middleware` and `plimsoll.asgi.Middleware` make the calls for an application. `plimsoll.Attachment` makes them for
anything else.
"""

from plimsoll.attachment import Attachment, Decision, Outcome, Request

__all__ = ["Attachment", "Decision", "Outcome", "Request"]
