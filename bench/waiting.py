#!/usr/bin/env python3
"""What waiting costs: the gateway's CPU per request where every request waits, beside one where none does.

    python3 bench/waiting.py --plimsoll target/release/plimsoll

Both gateways have one class with a promised delay and the same load; one is told of few workers, so that whoever comes
finds them taken, the other of many. *Busy*: 64 clients of 16 workers as fast as they can before a fast origin; *few*: 32
of 4 workers. *Idle*: 3 clients of one worker, and an origin that answers 400 times a second whoever asks (nginx
`limit_req`). Rounds are interleaved, the difference is
taken within a round; a round in which the waiting gateway was seen without anybody waiting, or the other one with
somebody, is left out, and so is one with errors or rejections.
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


def microseconds(server, case, waits, options):
    """CPU per request, and the rate; or None and why the round does not count."""
    look = Look(server)
    look.start()
    try:
        cost, load = measure.cpu_per_request(server, case.path, case.clients, options.seconds, options.load_core)
    finally:
        seen = look.over()
    if load.errors or load.refused:
        return None, f"{load.errors} errors, {load.refused} refused"
    # Somebody waits nearly always; in the other gateway nobody ever.
    share = sum(1 for waiting in seen if waiting > 0) / max(len(seen), 1)
    if share < 0.8 if waits else share > 0:
        return None, f"{share:.0%} of looks saw somebody wait"
    return cost, load.requests / options.seconds


def measure_case(case, origin, directory, options):
    """Lines of the report."""
    cores = options.proxy_core if case.threads == 1 else f"{options.proxy_core},{options.load_core}"
    with ExitStack() as stack:
        servers = {}
        for waits in (False, True):
            workers = case.workers if waits else PLENTY
            text = CONFIGURATION.format(threads=case.threads, origin=origin.address[1], workers=workers)
            servers[waits] = proxies.start_plimsoll(options.plimsoll, text, directory, case.threads, cores)
            stack.callback(servers[waits].stop)
            measure.wrk(servers[waits].url + case.path, case.clients, 1, options.load_core)
        without, difference, rates, skipped = [], [], [], []
        for turn in range(options.rounds):
            found = {}
            for waits in (False, True) if turn % 2 else (True, False):
                found[waits], rate = microseconds(servers[waits], case, waits, options)
                (rates if found[waits] else skipped).append(rate)
            if all(found.values()):
                without.append(found[False])
                difference.append(found[True] - found[False])
    if not difference:
        return [f"{case.name:<20} nothing measured: {skipped}"]
    low, high = figures.bootstrap_interval(difference)
    line = f"{case.name:<20}{median(without):>12.1f}{median(difference):>12.2f}   [{low:.2f}, {high:.2f}]"
    line += f"   {median(rates):.0f}/s, {len(difference)} rounds"
    return [line] + [f"    left out: {why}" for why in skipped]


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
    print(f"{'us of CPU per request':<20}{'no waiting':>11}{'waiting':>12}   [95 % interval of the difference]")
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
