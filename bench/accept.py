"""What it costs the gateway to reject a client on a new connection: a request that is read and answered with 503, and the same
client turned away when its connection comes (`reject_at_accept`), without TLS and with it.

    python3 bench/accept.py PLIMSOLL [CONNECTIONS [ROUNDS]]

Each connection comes from another address of loopback and sends one request. The gateway has one thread, before
a server of ten pages a second, so that its own loop rejects all but a few. Cost is the process clock of the gateway over the
connections of a round. Rounds of the two gateways take turns, each after three seconds of the same load; the table shows medians.
"""

import collections
import json
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from measure import cpu_seconds

BATCH = 100
REQUEST = b"GET / HTTP/1.1\r\nHost: shop.test\r\nUser-Agent: bench\r\nAccept: */*\r\nConnection: close\r\n\r\n"


CONFIGURATION = """
[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
threads = 1

[upstream.origin]
address = "127.0.0.1:{origin}"
max_connections = 1

[upstream.origin.capacity]
workers = 1
costs = {{ request = "100ms" }}
"""


def serve(origin):
    """Ten pages a second."""
    connection = None
    while True:
        connection = connection or origin.accept()[0]
        if connection.recv(4096):
            time.sleep(0.1)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage")
        else:
            connection = None


class Gateway:
    """A running gateway, with a listener without TLS and one with it."""

    def __init__(self, program, folder, at_accept):
        place = Path(folder) / ("accept" if at_accept else "read")
        place.mkdir()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-keyout", "key.pem", "-out", "site.pem", "-days", "1", "-subj", "/CN=shop.test"],
            cwd=place, check=True, capture_output=True,
        )
        tls = '[tls]\nlisten = "127.0.0.1:0"\ncertificate = "site.pem"\nkey = "key.pem"\n'
        keys = f"[gateway]\nreject_at_accept = {str(at_accept).lower()}\nstate = \"off\"\n"
        self.origin = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serve, args=[self.origin], daemon=True).start()
        text = CONFIGURATION.format(origin=self.origin.getsockname()[1]).replace("[gateway]\n", keys, 1) + tls
        (place / "plimsoll.toml").write_text(text, encoding="utf-8")
        self.process = subprocess.Popen([program, "run", "plimsoll.toml"], cwd=place, stderr=subprocess.PIPE, text=True)
        log = ""
        while "admin on" not in log:
            log += self.process.stderr.readline()
        self.plain, self.tls = (int(port) for port in re.findall(r"listening on \S+?:(\d+)", log))
        self.admin = int(re.search(r"admin on \S+?:(\d+)", log).group(1))
        self.next = 0
        # Clients that wait for their page, so that the loop sees that they are not served: the last fifty.
        self.waiting = collections.deque(socket.socket() for _ in range(50))

    def connections(self, count, over_tls):
        """How many of so many clients were rejected: by an answer, or by the end of the connection."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        rejected = 0
        for _ in range(count // BATCH):
            # Connections come in batches, as in a flood: the gateway need not sleep between two.
            clients = [self.connect(over_tls) for _ in range(BATCH)]
            for client in clients:
                try:
                    if over_tls:
                        client = context.wrap_socket(client, server_hostname="shop.test")
                    client.sendall(REQUEST)
                    answer = client.recv(4096)
                    rejected += answer.startswith(b"HTTP/1.1 503") or not answer
                except TimeoutError:
                    self.waiting.append(client)
                    client = self.waiting.popleft()
                except (ConnectionError, ssl.SSLError):
                    rejected += 1
                client.close()
        return rejected

    def connect(self, over_tls):
        """A connection from another address of loopback."""
        self.next += 1
        client = socket.socket()
        client.bind((f"127.{1 + self.next // 62500 % 200}.{self.next // 250 % 250}.{1 + self.next % 250}", 0))
        # Nobody who is rejected waits this long.
        client.settimeout(0.1 if over_tls else 0.02)
        client.connect(("127.0.0.1", self.tls if over_tls else self.plain))
        return client

    def counts(self):
        """Arrivals and rejections of all classes, and connections that were turned away unread."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/status", timeout=10) as page:
            status = json.load(page)
        arrivals, rejected = (sum(row[key] for row in status["classes"]) for key in ("arrivals", "rejected"))
        return arrivals, rejected, status["connections_turned_away"]["overload"]

    def cost(self, count, over_tls):
        """CPU microseconds for a connection of a round, and the part of the round that was rejected."""
        # The loop takes a few periods to reject all but a few.
        until = time.monotonic() + 3
        while time.monotonic() < until:
            self.connections(500, False)
        before = cpu_seconds([self.process.pid])
        rejected = self.connections(count, over_tls)
        return (cpu_seconds([self.process.pid]) - before) / count * 1e6, rejected / count


def main():
    program = str(Path(sys.argv[1]).resolve())
    count, rounds = (int(text) for text in (sys.argv[2:] + ["5000", "7"][len(sys.argv[2:]):]))
    with tempfile.TemporaryDirectory() as folder:
        gateways = {"read, 503": Gateway(program, folder, False), "at accept": Gateway(program, folder, True)}
        try:
            before = {name: (gateway.next, gateway.counts()) for name, gateway in gateways.items()}
            for over_tls in (False, True):
                costs = {name: [] for name in gateways}
                for _ in range(rounds):
                    for name, gateway in gateways.items():
                        costs[name].append(gateway.cost(count if not over_tls else count // 5, over_tls))
                for name, rows in costs.items():
                    micros, rejected = (statistics.median(column) for column in zip(*rows))
                    print(f"{'TLS' if over_tls else 'plain':6}{name:12}{micros:8.1f} us  rejected {rejected:.4f}")
            for name, gateway in gateways.items():
                made = gateway.next - before[name][0]
                arrivals, rejected, unread = (now - then for now, then in zip(gateway.counts(), before[name][1]))
                print(f"{name}: {made} connections, {arrivals} arrivals, {rejected} rejected, {unread} of them unread")
        finally:
            for gateway in gateways.values():
                gateway.process.terminate()
                gateway.process.wait(timeout=40)


if __name__ == "__main__":
    main()
