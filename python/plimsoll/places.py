"""A level's prefix, taken out again of what names a place on the site: redirects and the paths of cookies."""

import re

_REFERENCES = (b"location", b"content-location")
# What is before the path of a reference that names its host.
_ORIGIN = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)
_COOKIE_PATH = re.compile(rb";\s*path=", re.IGNORECASE)


class Places:
    """What a response says of places on its site. An application that routes a path with the prefix builds others from it, which
    a client must not be sent to: they would get the prefix twice, and stay light for ever."""

    def __init__(self, host, root, prefix):
        self._host, self._root, self._before = host, root, root + prefix

    def mapped(self, name: bytes, value: bytes) -> bytes:
        """A header's value without the prefix, which stays in what it says of other hosts."""
        name = name.lower()
        if name in _REFERENCES:
            origin = _ORIGIN.match(value)
            if origin and origin[1].lower() != (self._host or b"").lower():
                return value
            start = origin.end() if origin else 0
        elif name == b"set-cookie":
            path = _COOKIE_PATH.search(value)
            if not path:
                return value
            start = path.end()
        else:
            return value
        rest = value[start + len(self._before) :]
        if not value.startswith(self._before, start) or rest[:1] not in (b"", b"/", b"?", b"#", b";"):
            return value
        return value[:start] + self._root + (rest if rest.startswith(b"/") else b"/" + rest)
