#!/usr/bin/env python3
"""Everything at once, for long: does the gateway lose a request, count one twice, grow, or panic?

    make soak                          ten minutes
    make soak SOAK="--minutes 60"      an hour
    python3 bench/soak.py --plimsoll target/debug/plimsoll --minutes 0.5 --upgrade-every 8

Twice the capacity of two servers of four workers each comes all the time, half of it over TLS, and a quarter over HTTP/2, by curl; a
part of the clients leaves. Meanwhile one server or the other is killed or stopped for a while, and both break answers off half-way; the
configuration is read again every five seconds, each time with another certificate; the process is replaced every minute; and for a while
the access log goes to a full disk. It fails if

- a request has no answer, although the gateway was there all the time, or more than half of the answers are none of the server;
- a request that was answered has no line in the access log, or any request has two, but for lines that were counted as dropped;
- no request was tried again on the other server, though one was killed some times;
- the gateway holds more than 2 % more memory in the last quarter than in the second, by the medians of what is seen each second, or was not given back what is in flight;
- a thread panics, or an upgrade or the end goes wrong.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from proxies import free_port, make_certificate
from soak_clients import Clients

SERVERS, WORKERS, SECONDS = 2, 8, 0.04
LOAD = 2.0
HERE = os.path.dirname(os.path.abspath(__file__))

CONFIGURATION = """
[gateway]
listen = "127.0.0.1:{port}"
admin = "127.0.0.1:{admin}"
threads = 2

[tls]
listen = "127.0.0.1:{tls}"
certificate = "{certificate}"

[upstream.origin]
address = {origins}
max_connections = {workers}
max_waiting = {most}
capacity = {{ workers = {workers} }}

[access_log]
file = "{log}"

[[site]]
name = "site"

[[site.level]]
name = "light"
prefix = "/light"

[[site.level]]
name = "full"
"""


class Soak:
    """The gateway, its server, and what is done to them."""

    def __init__(self, plimsoll, folder, options):
        self.folder, self.options = folder, options
        self.port, self.tls, self.admin, *self.origin_ports = (free_port() for _ in range(3 + SERVERS))
        self.certificates = [make_certificate(folder, name, "soak.test") for name in ("one", "other")]
        self.log, self.access = os.path.join(folder, "plimsoll.log"), os.path.join(folder, "access.log")
        self.file, self.reloads, self.upgrades = os.path.join(folder, "plimsoll.toml"), 0, 0
        self.memory, self.full, self.dropped, self.kills, self.wrong = [], None, 0, 0, []
        self.origins = [self.start_origin(port) for port in self.origin_ports]
        self.configure(self.access)
        self.process = subprocess.Popen([plimsoll, "run", self.file], stdout=open(self.log, "wb"), stderr=subprocess.STDOUT)
        self.pid = self.process.pid

    def start_origin(self, port):
        """Starts a server, anew after it was killed."""
        command = [sys.executable, os.path.join(HERE, "soak_origin.py"), str(port), str(WORKERS // SERVERS), str(SECONDS)]
        return subprocess.Popen(command)

    def configure(self, log):
        """Writes the configuration, in which every reload changes something."""
        certificate = self.certificates[self.reloads % 2]
        origins = json.dumps([f"127.0.0.1:{port}" for port in self.origin_ports])
        values = {"port": self.port, "tls": self.tls, "admin": self.admin, "origins": origins, "workers": WORKERS, "log": log,
                  "certificate": certificate}
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(most=2000 + self.reloads % 2, **values))
        os.rename(self.file + ".new", self.file)

    def said(self):
        """What the gateway has logged."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    async def until(self, what, condition, seconds=30):
        """Waits for something; that it does not happen is wrong."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := condition():
                return value
            await asyncio.sleep(0.02)
        self.wrong.append(f"{what} did not happen within {seconds} s")
        return None

    def metric(self, name):
        """The sum of a metric over its labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as answer:
            page = answer.read().decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", page, re.M))

    async def reload(self, log):
        """Has the configuration read again."""
        self.reloads += 1
        self.configure(log)
        done = self.said().count("reloaded ")
        os.kill(self.pid, signal.SIGHUP)
        await self.until("a reload", lambda: self.said().count("reloaded ") > done)

    async def upgrade(self):
        """Replaces the process."""
        done = len(re.findall(r"handed over to process (\d+)", self.said()))
        os.kill(self.pid, signal.SIGUSR2)
        found = await self.until("an upgrade", lambda: re.findall(r"handed over to process (\d+)", self.said())[done:])
        if found:
            self.pid, self.upgrades = int(found[0]), self.upgrades + 1

    async def operate(self, until):
        """Reloads, upgrades, and the full disk. One after the other, since each is about the process of the moment."""
        began = time.monotonic()
        length, next_upgrade, full_at = until - began, began + self.options.upgrade_every, began + 0.45 * (until - began)
        while time.monotonic() < until - 2:
            await asyncio.sleep(min(self.options.reload_every, until - time.monotonic()))
            if time.monotonic() > full_at and self.full is None:
                await self.full_disk(min(10, 0.1 * length))
            await self.reload(self.access)
            if time.monotonic() > next_upgrade and time.monotonic() < until - 5:
                await self.upgrade()
                next_upgrade += self.options.upgrade_every

    async def full_disk(self, seconds):
        """For a while the access log is on a full disk; what is dropped is counted by this process."""
        begun = time.time()
        await self.reload("/dev/full")
        await asyncio.sleep(seconds)
        await self.reload(self.access)
        await asyncio.sleep(1)
        self.full = (begun, time.time())
        self.dropped = self.metric("plimsoll_access_log_lines_dropped_total")

    async def trouble(self, until):
        """A server is stopped for a while, and one is killed, each in its turn."""
        turn = 0
        while time.monotonic() < until - 8:
            await asyncio.sleep(self.options.trouble_every)
            self.origins[turn].send_signal(signal.SIGSTOP)
            await asyncio.sleep(1)
            self.origins[turn].send_signal(signal.SIGCONT)
            await asyncio.sleep(self.options.trouble_every)
            self.origins[turn].kill()
            self.origins[turn].wait()
            self.kills += 1
            await asyncio.sleep(0.5)
            self.origins[turn] = self.start_origin(self.origin_ports[turn])
            turn = (turn + 1) % SERVERS

    def resident(self):
        """What the gateway holds of memory (KiB)."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

    async def watch_memory(self, until):
        """Looks each second. A process is another one after each upgrade, and two of them differ by some per cent: one look at each
        would tell chance."""
        began = time.monotonic()
        while time.monotonic() < until:
            await asyncio.sleep(1)
            try:
                self.memory.append((time.monotonic() - began, self.resident()))
            except (OSError, AttributeError):
                # It was replaced in this moment, and has ended.
                continue

    async def run(self):
        """All of it; returns the clients with what became of their requests."""
        await self.until("the start", lambda: "admin on" in self.said())
        await asyncio.sleep(0.5)
        until = time.monotonic() + 60 * self.options.minutes
        clients = Clients((self.port, self.tls), LOAD * WORKERS / SECONDS, self.options.seed)
        await asyncio.gather(clients.run(until), self.operate(until), self.trouble(until), self.watch_memory(until))
        await self.until("an end of what is in flight", lambda: self.metric("plimsoll_in_flight") == 0)
        os.kill(self.pid, signal.SIGTERM)
        await self.until("the end", lambda: not running(self.pid), 45)
        return clients

    def judge(self, clients):
        """Prints what came of it, and what is wrong."""
        fates, lines, again = {}, {}, 0
        for fate in clients.fates.values():
            fates[fate] = fates.get(fate, 0) + 1
        with open(self.access, encoding="utf-8") as file:
            for line in map(json.loads, file):
                again += line.get("tries", 0) > 1
                if found := re.search(r"[?&]id=(\d+)", line.get("path", "")):
                    lines[int(found.group(1))] = lines.get(int(found.group(1)), 0) + 1
        print(f"{len(clients.fates)} requests: {fates}; statuses {dict(sorted(clients.statuses.items()))}; "
              f"{clients.again} sent again on a new connection; {clients.pages} pages over HTTP/2; {again} tried on two servers")
        print(f"{self.reloads} reloads, {self.upgrades} upgrades, {self.dropped:.0f} lines dropped on a full disk")
        served, all_answers = clients.statuses.get("200", 0), sum(clients.statuses.values())
        if served < all_answers / 2:
            self.wrong.append(f"the server answered {served} of {all_answers} requests: it was not under load")
        if not again and self.kills > 4:
            self.wrong.append(f"a server was killed {self.kills} times, and no request was tried again on the other")
        lost = {fate: count for fate, count in fates.items() if fate.startswith("lost")}
        twice = [number for number, count in lines.items() if count > 1]
        missing = [number for number, fate in clients.fates.items() if fate == "answered" and number not in lines]
        late = [number for number in missing if not self.was_full(clients.times[number])]
        checks = [(lost, "requests were lost"), (twice, "requests have two lines"), (late, "answered requests have no line")]
        self.wrong += [f"{len(found)} {what}: {str(found)[:300]}" for found, what in checks if found]
        if len(missing) > self.dropped:
            self.wrong.append(f"{len(missing)} lines are missing, and {self.dropped:.0f} were counted as dropped")
        if panics := re.findall(r"^.*panicked.*$", self.said(), re.M):
            self.wrong.append(f"panics: {panics[:3]}")
        self.judge_memory()
        for what in self.wrong:
            print("WRONG:", what)
        return not self.wrong

    def was_full(self, when):
        """Whether a request of this moment may have met the full disk: it may end some seconds after it came."""
        return self.full is not None and self.full[0] - 30 < when < self.full[1]

    def judge_memory(self):
        """The last quarter beside the second, by the medians of all looks: in both the processes are as old as in the other."""
        end = 60 * self.options.minutes
        quarters = [[held for at, held in self.memory if n * end / 4 <= at < (n + 1) * end / 4] for n in range(4)]
        if not all(quarters):
            print("too few looks to judge memory")
            return
        print("memory by quarter, median (KiB):", [int(statistics.median(quarter)) for quarter in quarters])
        _, second, _, last = quarters
        grown = statistics.median(last) / statistics.median(second) - 1
        print(f"the last quarter beside the second: {100 * grown:+.1f} %")
        if grown > 0.02:
            self.wrong.append(f"memory grew by {100 * grown:.1f} %")


def running(process):
    """Whether a process runs; one that has ended and that nobody waits for does not."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return not file.read().rsplit(")", 1)[1].startswith(" Z")
    except OSError:
        return False


def main():
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--reload-every", type=float, default=5)
    parser.add_argument("--upgrade-every", type=float, default=60)
    parser.add_argument("--trouble-every", type=float, default=7)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plimsoll-soak-") as folder:
        soak = Soak(os.path.abspath(options.plimsoll), folder, options)
        good = False
        try:
            good = soak.judge(asyncio.run(soak.run()))
        finally:
            if not good:
                print(soak.said()[-6000:], file=sys.stderr)
            for origin in soak.origins:
                origin.kill()
            if running(soak.pid):
                os.kill(soak.pid, signal.SIGKILL)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
