#!/usr/bin/env python3
"""What waiting costs: the gateway's CPU per request where every request waits, beside one where none does.

    python3 bench/waiting.py --plimsoll target/release/plimsoll

A gateway with one class of a promised delay is told of few workers, so that whoever comes finds them taken. Beside it,
where nobody waits: the same clients before a gateway that is told of many workers (*many*), and on the same gateway no
more clients than it has workers (*fewer*). The first has more requests at the origin at once, so that one look of the
gateway finds more answers; the second has as many there, and differs by the waiting alone. *Busy*: 64 clients of 16
workers as fast as they can before a fast origin; *few*: 32 of 4 workers. *Idle*: 3 clients of one worker, and an origin
that answers 400 times a second whoever asks (nginx `limit_req`). Rounds are interleaved, the difference is taken within
a round; a round in which nobody was seen waiting where everybody should, or somebody where nobody should, is left out,
and so is one with errors or rejections.
"""

import argparse
import os
import re
import select
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

import bench
import figures
import measure
import proxies
import record

CONFIGURATION = """
[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
threads = {threads}

[upstream.origin]
address = "127.0.0.1:{origin}"
max_connections = {workers}
capacity = {{ workers = {workers} }}

[[site]]
name = "bench"
delay = "5s"
guarantee = {{ rate = "1000000/s", bandwidth = "100 Gbit/s" }}
"""

ORIGIN_PACED = """limit_req_zone $server_port zone=pace:32k rate=400r/s;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {dir}/files;
    location = /paced {{ limit_req zone=pace burst=1000; alias {dir}/files/1k; }} }}
}}
"""

PLENTY = 256


@dataclass(frozen=True)
class Case:
    """A load, and how many workers leave everybody waiting."""

    name: str
    path: str
    threads: int
    clients: int
    workers: int


CASES = (
    Case("busy, 1 thread", "/1k", 1, 64, 16),
    Case("busy, 2 threads", "/1k", 2, 64, 16),
    Case("few, 1 thread", "/1k", 1, 32, 4),
    Case("few, 2 threads", "/1k", 2, 32, 4),
    Case("idle, 1 thread", "/paced", 1, 3, 1),
    Case("idle, 2 threads", "/paced", 2, 3, 1),
)


def start_origin(directory, core):
    """The benchmark's nginx, and a file that it paces."""
    text = proxies.ORIGIN
    proxies.ORIGIN = text[: text.rindex("server {{")] + ORIGIN_PACED
    try:
        return proxies.start_origin(directory, core)
    finally:
        proxies.ORIGIN = text


class Look(threading.Thread):
    """How many waited, seen now and then while a load runs."""

    def __init__(self, server):
        super().__init__()
        found = re.search(r"\badmin on 127\.0\.0\.1:(\d+)", server.log())
        self._url = f"http://127.0.0.1:{found.group(1)}/metrics"
        self._over = threading.Event()
        self.seen = []

    def run(self):
        while not self._over.wait(0.2):
            with urllib.request.urlopen(self._url, timeout=5) as answer:
                text = answer.read().decode()
            self.seen.append(float(re.search(r"^plimsoll_waiting\{.*\} (\S+)$", text, re.MULTILINE).group(1)))

    def over(self):
        """Ends it; what it saw."""
        self._over.set()
        self.join()
        return self.seen


def microseconds(server, case, clients, options):
    """CPU per request, and the rate; or None and why the round does not count."""
    look = Look(server)
    look.start()
    try:
        cost, load = measure.cpu_per_request(server, case.path, clients, options.seconds, options.load_core)
    finally:
        seen = look.over()
    if load.errors or load.refused:
        return None, f"{load.errors} errors, {load.refused} refused"
    # Somebody waits nearly always; in the other gateway nobody ever.
    share = sum(1 for waiting in seen if waiting > 0) / max(len(seen), 1)
    waits = server.workers < clients
    if share < 0.8 if waits else share > 0:
        return None, f"{share:.0%} of looks saw somebody wait"
    return cost, load.requests / options.seconds


def measure_case(case, origin, directory, options):
    """Lines of the report."""
    cores = options.proxy_core if case.threads == 1 else f"{options.proxy_core},{options.load_core}"
    with ExitStack() as stack:
        servers = {}
        for workers in (case.workers, PLENTY):
            text = CONFIGURATION.format(threads=case.threads, origin=origin.address[1], workers=workers)
            # Its log says where its metrics are, and has the server's name.
            own = os.path.join(directory, f"{case.name} of {workers}")
            os.mkdir(own)
            server = proxies.start_plimsoll(options.plimsoll, text, own, case.threads, cores)
            stack.callback(server.stop)
            server.workers = workers
            measure.wrk(server.url + case.path, case.clients, 1, options.load_core)
            servers[workers] = server
        few, plenty = servers[case.workers], servers[PLENTY]
        arms = {"waits": (few, case.clients), "many": (plenty, case.clients), "fewer": (few, case.workers)}
        found, skipped = {arm: [] for arm in arms}, []
        for turn in range(options.rounds):
            costs = {}
            for arm in list(arms) if turn % 2 else reversed(arms):
                costs[arm], rate = microseconds(arms[arm][0], case, arms[arm][1], options)
                if not costs[arm]:
                    skipped.append(f"{arm}: {rate}")
            if all(costs.values()):
                for arm, cost in costs.items():
                    found[arm].append(cost)
    if not found["waits"]:
        return [f"{case.name:<16} nothing measured: {skipped}"]
    line = f"{case.name:<16}"
    for arm in ("many", "fewer"):
        more = [waits - other for waits, other in zip(found["waits"], found[arm])]
        low, high = figures.bootstrap_interval(more)
        interval = f"[{low:.1f}, {high:.1f}]"
        line += f"{median(found[arm]):>9.1f}{median(more):>8.1f} {interval:<14}"
    return [line + f"{len(found['waits'])} rounds"] + [f"    left out: {why}" for why in skipped]


def bare_wake(core, sleeper_core, wakes=400):
    """CPU of both sides of a wake of who sleeps in epoll_wait by who writes an eventfd (us): the least that one costs here."""
    spent = {}
    for writes in (False, True):
        event = os.eventfd(0, os.EFD_NONBLOCK)
        sleeper = os.fork()
        os.sched_setaffinity(0, {core if sleeper else sleeper_core})
        if sleeper == 0:
            poll = select.epoll()
            poll.register(event, select.EPOLLIN | select.EPOLLET)
            while True:
                poll.poll()
        time.sleep(0.1)
        before = measure.cpu_seconds([os.getpid(), sleeper])
        for _ in range(wakes):
            time.sleep(0.0025)
            if writes:
                os.eventfd_write(event, 1)
        spent[writes] = measure.cpu_seconds([os.getpid(), sleeper]) - before
        os.kill(sleeper, signal.SIGKILL)
        os.waitpid(sleeper, 0)
        os.close(event)
    return (spent[True] - spent[False]) / wakes * 1e6


def bare_wakes(options):
    """A line of the report."""
    before = os.sched_getaffinity(0)
    own, other = int(options.proxy_core), int(options.load_core)
    same, across = ([bare_wake(own, core) for _ in range(5)] for core in (own, other))
    os.sched_setaffinity(0, before)
    return f"a bare wake: {median(same):.1f} us where both are on one core, {median(across):.1f} us from core to core"


def main():
    """Measures and prints."""
    bench.in_a_network_of_its_own()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True, help="the binary to measure")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--proxy-core", default="0")
    parser.add_argument("--load-core", default="1")
    parser.add_argument("--only", default="", help="the cases whose name contains this")
    options = parser.parse_args()
    began = time.monotonic()
    print(record.machine())
    print(bare_wakes(options), flush=True)
    print("us of CPU per request where nobody waits, and how much more where all do [95 % interval]")
    print(f"{'':<16}{'many':>9}{'more':>8}{'':<15}{'fewer':>9}{'more':>8}")
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="plimsoll-waiting-"))
        os.chmod(directory, 0o755)
        try:
            origin = start_origin(directory, options.load_core)
            stack.callback(origin.stop)
            for case in (case for case in CASES if options.only in case.name):
                print("\n".join(measure_case(case, origin, directory, options)), flush=True)
        except proxies.Missing as why:
            print(f"waiting: skipped: {why}")
    print(f"{options.rounds} rounds of {options.seconds} s each in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
