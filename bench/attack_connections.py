"""The part `connections` of `attacks.py`: what a gateway holds for so many hostile connections, and for one more."""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

import proxies
from attack_holders import KINDS

HERE = os.path.dirname(os.path.abspath(__file__))
# A process that may open 20,000 files accepts 14,984: it spares some for temporary files.
COUNTS = (5_000, 10_000, 14_900)
# What the last column is about.
BEYOND = 50_000
PROCESSES = 4

# With bounds as they are unless said, but for time: no client is cut for being slow while it is measured.
PLIMSOLL = """
[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
threads = 2
h2c = true

[tls]
listen = "127.0.0.1:0"
certificate = "bench.pem"

[upstream.origin]
address = "127.0.0.1:{origin}"
max_connections = 8
capacity = {{ workers = 8 }}

[timeouts]
head = "10m"
body = "10m"
send = "10m"
keep_alive = "10m"

[limits]
connections = 50000
"""


class Watched:
    """A gateway's process, its memory and its descriptors."""

    def __init__(self, pid):
        self.pid = pid

    def mib(self, field="VmRSS"):
        """A size in the status of the process: `VmHWM` is the most that it ever had."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024

    def forget_peak(self):
        """The peak begins anew."""
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def connections(self, port):
        """How many clients it has, as the kernel knows them: established, at its end."""
        with open(f"/proc/{self.pid}/net/tcp", encoding="ascii") as file:
            rows = (line.split() for line in file)
            return sum(1 for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01")


def start_clients(stack, kind, port, count, group):
    """So many connections, in processes of their own."""
    started = []
    for part in range(PROCESSES):
        share = count // PROCESSES + (part < count % PROCESSES)
        # Each from an address of its own, so that ports do not run out.
        source = f"127.0.{group + 1}.{part + 1}"
        command = [sys.executable, f"{HERE}/attack_holders.py", kind, "127.0.0.1", str(port), str(share), source]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stack.callback(end, process)
        started.append(process)
    for process in started:
        process.stdout.readline()


def end(process):
    """Lets its connections go."""
    process.stdin.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def measure(bench, kind, counts):
    """MiB at the start; for each count (connections, MiB at most, MiB then); and MiB 30 seconds after."""
    with ExitStack() as stack:
        directory = tempfile.mkdtemp(dir=bench.directory)
        proxies.make_certificate(directory)
        command = [sys.executable, f"{HERE}/attack_origin.py", "8", "0", "400000"]
        origin = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stack.callback(origin.wait)
        stack.callback(origin.terminate)
        text = PLIMSOLL.format(origin=origin.stdout.readline().split()[-1])
        every = "0-%d" % (os.cpu_count() - 1)
        server = proxies.start_plimsoll(bench.plimsoll, text, directory, 2, every)
        stack.callback(server.stop)
        watched = Watched(server.pids()[0])
        port = int(server.secure_url.rsplit(":", 1)[1]) if kind.startswith("TLS") else server.address[1]
        start, rows, before = watched.mib(), [], 0
        with ExitStack() as clients:
            for group, count in enumerate(counts):
                watched.forget_peak()
                start_clients(clients, kind, port, count - before, group)
                before = count
                time.sleep(bench.seconds)
                rows.append((watched.connections(port), watched.mib("VmHWM"), watched.mib()))
        time.sleep(30)
        return start, rows, watched.mib()


def at_beyond(counts, rows):
    """KiB for one more connection, between the last two counts, and by that MiB at BEYOND. Where a bound of all together keeps
    their number down, there are never more, and they hold no more."""
    peak = max(peak for _, peak, _ in rows)
    if len(rows) < 2 or rows[-1][0] < 0.95 * counts[-1]:
        return f"bounded, {peak:.0f}"
    (few, low, _), (many, high, _) = rows[-2:]
    each = max(high - low, 0) / (many - few)
    return f"{each * 1024:.1f} KiB each, {peak + each * (BEYOND - many):.0f}"


def show(bench):
    """Prints the table."""
    counts = list(bench.counts or COUNTS)
    print(f"\nmemory (MiB): at the start; connections and the most meanwhile; 30 s after; at {BEYOND:,} connections\n")
    for kind in [kind for kind in KINDS if not bench.kinds or any(word in kind for word in bench.kinds)]:
        start, rows, after = measure(bench, kind, counts)
        cells = ", ".join(f"{connections}: {peak:.0f}" for connections, peak, _ in rows)
        print(f"{kind:<40}{start:.0f}; {cells}; {after:.0f}; {at_beyond(counts, rows)}", flush=True)
