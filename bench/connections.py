"""A client that opens one connection after the other, for the rows of the benchmark that are about connections.

    python3 bench/connections.py full|resumed|refused PORT SECONDS

`full` and `resumed` end a connection when its TLS handshake is done; `refused` sends a request without TLS and reads its answer to
the end of the connection. Prints how many there were, how many were answered with an error status, and how many went wrong. It is
slower than any proxy, which does not matter: the proxy's own clock is read.
"""

import json
import socket
import ssl
import sys
import time

REQUEST = b"GET /%s HTTP/1.1\r\nHost: bench.test\r\nUser-Agent: bench\r\nAccept: */*\r\nConnection: close\r\n\r\n"


class Handshakes:
    """TLS 1.3 with a server, each time with all of it or each time with the session of the first."""

    def __init__(self, address, resumes):
        self.address, self.session = address, None
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        if resumes:
            # Tickets come after the handshake, and are read with the first answer.
            with self.connect() as client:
                client.sendall(REQUEST % b"1k")
                while client.recv(65536):
                    pass
                self.session = client.session

    def connect(self):
        """A connection whose handshake is done."""
        client = socket.create_connection(self.address, timeout=10)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.context.wrap_socket(client, server_hostname="bench.test", session=self.session)

    def one(self):
        """Whether a handshake was of the kind that is wanted; none has an answer that could refuse."""
        with self.connect() as client:
            return client.session_reused == (self.session is not None), False


class Refused:
    """A request on a connection of its own."""

    def __init__(self, address):
        self.address = address

    def one(self):
        """Whether there was an answer, and whether it refuses."""
        with socket.create_connection(self.address, timeout=10) as client:
            client.sendall(REQUEST % b"refused")
            answer = b""
            while part := client.recv(65536):
                answer += part
        return answer.startswith(b"HTTP/1.1 "), answer.startswith(b"HTTP/1.1 5")


def main():
    """Connects until the time is over."""
    kind, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    address = ("127.0.0.1", port)
    client = Refused(address) if kind == "refused" else Handshakes(address, kind == "resumed")
    counts = {"requests": 0, "refused": 0, "errors": 0}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            is_right, refuses = client.one()
        except (OSError, ssl.SSLError):
            is_right, refuses = False, False
        counts["requests"] += 1
        counts["refused"] += refuses
        counts["errors"] += not is_right
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
