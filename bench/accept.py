"""What it costs the gateway to reject a client on a new connection: a request that is read and answered with 503, and the same
client turned away when its connection comes (`reject_at_accept`), without TLS and with it.

    python3 bench/accept.py PLIMSOLL [CONNECTIONS [ROUNDS]]

Each connection comes from another address of loopback and sends one request. The gateway has one thread, before
a server of ten pages a second, so that its own loop rejects all but a few. Cost is the process clock of the gateway over the
connections of a round. Rounds of the two gateways take turns, each after three seconds of the same load; the table shows medians.

Beside them the floor: what the system's work costs a program that does nothing else (accept_floor.c, built by `cc`), with and
without an answer, by calls and by io_uring. `of 503` is what each row takes of the gateway's own parsed 503 in the same rounds: no
gateway that accepts a connection to turn it away can have less than the rows that close it.
"""

import collections
import json
import re
import shutil
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

# What the floor does with a connection: see accept_floor.c.
FLOORS = ["close", "reset", "answer", "last", "read", "uring-close", "uring-answer"]
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


class Clients:
    """Those of one server."""

    def __init__(self):
        self.plain = self.tls = self.process = None
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
        try:
            client.connect(("127.0.0.1", self.tls if over_tls else self.plain))
        except ConnectionResetError:
            # It was made, and reset at once: the next call says so too.
            pass
        return client

    def cost(self, count, over_tls):
        """CPU microseconds for a connection of a round, and the part of the round that was rejected."""
        before = cpu_seconds([self.process.pid])
        rejected = self.connections(count, over_tls)
        return (cpu_seconds([self.process.pid]) - before) / count * 1e6, rejected / count

    def end(self):
        """Ends the server."""
        self.process.terminate()
        self.process.wait(timeout=40)


class Floor(Clients):
    """A program that does no more than the mode says."""

    def __init__(self, program, mode):
        super().__init__()
        self.process = subprocess.Popen([program, mode], stdout=subprocess.PIPE, text=True)
        self.plain = int(self.process.stdout.readline() or 0)


class Gateway(Clients):
    """A running gateway, with a listener without TLS and one with it."""

    def __init__(self, program, folder, at_accept):
        super().__init__()
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
    def counts(self):
        """Arrivals and rejections of all classes, and connections that were turned away unread."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/status", timeout=10) as page:
            status = json.load(page)
        arrivals, rejected = (sum(row[key] for row in status["classes"]) for key in ("arrivals", "rejected"))
        return arrivals, rejected, status["connections_turned_away"]["overload"]

    def cost(self, count, over_tls):
        """The same, once the loop rejects all but a few, which takes it some periods."""
        until = time.monotonic() + 3
        while time.monotonic() < until:
            self.connections(500, False)
        return super().cost(count, over_tls)


def start_floors(folder):
    """{mode: server} of those that work here."""
    program, source = str(Path(folder) / "floor"), str(Path(__file__).with_name("accept_floor.c"))
    if not shutil.which("cc"):
        print("no floor: there is no cc")
        return {}
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    floors = {mode: Floor(program, mode) for mode in FLOORS}
    for mode in [mode for mode, floor in floors.items() if not floor.plain]:
        print(f"no floor {mode}: this system does not have it")
        floors.pop(mode).process.wait()
    return floors


def show(over_tls, costs):
    """A row for each server: the median cost, and what it is of the gateway's parsed 503."""
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in costs.items()}
    parsed = medians["read, 503"][0]
    for name, (micros, rejected) in medians.items():
        least = min(micros for micros, _ in costs[name])
        kind = "TLS" if over_tls else "plain"
        print(f"{kind:6}{name:20}{micros:8.1f} us (least {least:.1f})  of 503 {micros / parsed:.2f}  rejected {rejected:.4f}")


def main():
    """Takes turns, and prints the table."""
    program = str(Path(sys.argv[1]).resolve())
    count, rounds = (int(text) for text in (sys.argv[2:] + ["5000", "7"][len(sys.argv[2:]):]))
    with tempfile.TemporaryDirectory() as folder:
        gateways = {"read, 503": Gateway(program, folder, False), "at accept": Gateway(program, folder, True)}
        floors = start_floors(folder)
        try:
            before = {name: (gateway.next, gateway.counts()) for name, gateway in gateways.items()}
            for over_tls in (False, True):
                servers = gateways if over_tls else gateways | {f"floor: {mode}": own for mode, own in floors.items()}
                costs = {name: [] for name in servers}
                for _ in range(rounds):
                    for name, server in servers.items():
                        costs[name].append(server.cost(count if not over_tls else count // 5, over_tls))
                show(over_tls, costs)
            for name, gateway in gateways.items():
                made = gateway.next - before[name][0]
                arrivals, rejected, unread = (now - then for now, then in zip(gateway.counts(), before[name][1]))
                print(f"{name}: {made} connections, {arrivals} arrivals, {rejected} rejected, {unread} of them unread")
        finally:
            for server in [*gateways.values(), *floors.values()]:
                server.end()


if __name__ == "__main__":
    main()
