#!/usr/bin/env python3
"""Attacks on Plimsoll and on nginx, one after the other in the same way: what others get meanwhile, beside what they get without.

    make attacks                                print the table
    make attacks ATTACKS="--only memory"        of the parts goodput, memory, connections, messages, processes, slowhttptest

Four clients ask for pages, each again when it is answered, before a server of eight workers that takes 40 ms a page. For each attack
and gateway the runs without and with it take turns, and the ratio is taken within a turn. All goes over 127.0.0.1, with bounded numbers
of clients, bytes and seconds. It fails nothing: the invariants are tests (`e2e/tests`).
"""

import argparse
import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

import attack_connections
import attack_messages
import attack_processes
import proxies
from attack_clients import ATTACKS, pages
from measure import resident_mib

WORKERS, SECONDS = 8, 0.04
CLIENTS = 4
# From the last attacker's beginning to the measurement (s): a burst at the beginning is no lasting harm.
SETTLE = 3
HERE = os.path.dirname(os.path.abspath(__file__))

NGINX = """
daemon off; worker_processes 2; error_log {dir}/nginx.log; pid {dir}/nginx.pid; user root; worker_rlimit_nofile 40000;
events {{ worker_connections 20000; }}
http {{
  access_log off; client_max_body_size 200m;
  client_body_temp_path {dir}/n1; proxy_temp_path {dir}/n2; fastcgi_temp_path {dir}/n3; uwsgi_temp_path {dir}/n4; scgi_temp_path {dir}/n5;
  map $http_upgrade $upgrade_or_close {{ default upgrade; '' ''; }}
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    proxy_http_version 1.1; proxy_set_header Host $host;
    proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $upgrade_or_close;
    location / {{ proxy_pass http://origin; }}
    location /stream {{ proxy_pass http://origin; proxy_request_buffering off; }}
  }}
}}
"""

PLIMSOLL = """
[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
threads = 2

[upstream.origin]
address = "127.0.0.1:{origin}"
{told}
max_tunnels = 20

[limits]
body = "200 MB"
stream = "/stream"
connections = 30000

[[site]]
name = "site"
exempt = [{{ path = "/healthz" }}]
"""
TOLD = f"max_connections = {WORKERS}\ncapacity = {{ workers = {WORKERS} }}"


class Bench:
    """The programs under attack, and what is printed of them."""

    def __init__(self, plimsoll, seconds, rounds, kinds, counts):
        self.plimsoll, self.seconds, self.rounds, self.kinds, self.counts = plimsoll, seconds, rounds, kinds, counts
        self.directory = tempfile.mkdtemp(prefix="attacks-")

    def origin(self, stack):
        """Starts the server behind."""
        command = [sys.executable, f"{HERE}/attack_origin.py", str(WORKERS), str(SECONDS)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stack.callback(end, process)
        return int(process.stdout.readline().split()[-1])

    def gateway(self, stack, kind, origin):
        """Starts a gateway before it: nginx, or Plimsoll that was told the workers or was not."""
        directory = tempfile.mkdtemp(dir=self.directory)
        path = os.path.join(directory, "nginx.conf" if kind == "nginx" else "plimsoll2.toml")
        every = "0-%d" % (os.cpu_count() - 1)
        if kind == "nginx":
            port = proxies.free_port()
            with open(path, "w", encoding="utf-8") as file:
                file.write(NGINX.format(dir=directory, port=port, origin=origin))
            command = [proxies._program("nginx"), "-e", f"{directory}/nginx.log", "-c", path]
            server = proxies.Server("nginx", command, every, port, directory).wait_ready()
        else:
            text = PLIMSOLL.format(origin=origin, told=TOLD if kind == "told" else "")
            server = proxies.start_plimsoll(self.plimsoll, text, directory, 2, every)
        server.configuration = path
        stack.callback(server.stop)
        return server

    def goodput(self, name, kind):
        """Pages a second of others without the attack and with it in each round, and the longest that one took."""
        ratios, longest, rates = [], 0.0, []
        for _ in range(self.rounds):
            with ExitStack() as stack:
                server = self.gateway(stack, kind, self.origin(stack))
                asyncio.run(pages(server.address[1], CLIENTS, 2))
                without, _ = asyncio.run(pages(server.address[1], CLIENTS, self.seconds))
                attack = begin(stack, name, server.address[1])
                with_it, slowest = asyncio.run(pages(server.address[1], CLIENTS, self.seconds))
                end(attack)
            ratios.append(with_it / without if without else float("nan"))
            rates.append((without, with_it))
            longest = max(longest, slowest)
        return statistics.median(ratios), longest, rates

    def memory(self, name, kind):
        """MiB before, under the attack, and ten and thirty seconds after; and pages for others meanwhile."""
        with ExitStack() as stack:
            server = self.gateway(stack, kind, self.origin(stack))
            asyncio.run(pages(server.address[1], CLIENTS, 1))
            marks = [resident_mib(server.pids())]
            attack = begin(stack, name, server.address[1])
            rate, _ = asyncio.run(pages(server.address[1], CLIENTS, 4))
            marks.append(resident_mib(server.pids()))
            end(attack)
            for wait in (10, 20):
                asyncio.run(pages(server.address[1], CLIENTS, wait))
                marks.append(resident_mib(server.pids()))
        return marks, rate


def begin(stack, name, port):
    """An attack in a process of its own, once all its clients have begun."""
    process = subprocess.Popen(
        [sys.executable, f"{HERE}/attack_clients.py", name, str(port)], stdout=subprocess.PIPE, text=True
    )
    stack.callback(end, process)
    if process.stdout.readline().strip() != "ready":
        print(f"attacks: {name} did not begin", file=sys.stderr)
    time.sleep(SETTLE)
    return process


def end(process):
    """Ends a process that was started here."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def show_goodput(bench):
    print(f"\ngoodput of {CLIENTS} others with the attack, of that without; the slowest answer\n")
    print(f"{'attack':<20}{'workers told':>22}{'not told':>22}{'nginx':>22}")
    for name in [name for name in ATTACKS if "heads" not in name]:
        cells = []
        for kind in ("told", "not told", "nginx"):
            ratio, longest, _ = bench.goodput(name, kind)
            cells.append(f"{ratio:.2f}, {longest:.2f} s")
        print(f"{name:<20}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def show_memory(bench):
    print("\nmemory (MiB) before, under the attack, 10 s and 30 s after; pages a second for others meanwhile\n")
    for name in [name for name in ATTACKS if "heads" in name]:
        for kind in ("told", "nginx"):
            marks, rate = bench.memory(name, kind)
            shown = ", ".join(f"{mark:.0f}" for mark in marks)
            print(f"{name:<20}{'Plimsoll' if kind == 'told' else kind:<10}{shown}; {rate:.0f} a second", flush=True)


def show_slowhttptest(bench):
    program = shutil.which("slowhttptest")
    if not program:
        print("\nslowhttptest is not installed: apt-get install slowhttptest")
        return
    print("\nslowhttptest, 500 connections for 30 s: goodput of others, the slowest answer, what the tool says\n")
    modes = {
        "-H": ["-H", "-i", "5"],
        "-B": ["-B", "-i", "5", "-s", "8192"],
        "-R": ["-R", "-a", "10", "-b", "3000", "-i", "5"],
        "-X": ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"],
    }
    for mode, arguments in modes.items():
        for kind in ("told", "nginx"):
            with ExitStack() as stack:
                server = bench.gateway(stack, kind, bench.origin(stack))
                without, _ = asyncio.run(pages(server.address[1], CLIENTS, 5))
                url = server.url + ("/large" if mode == "-X" else "/page")
                command = [program, "-c", "500", "-r", "100", "-l", "30", "-p", "3", "-u", url, *arguments]
                tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                stack.callback(end, tool)
                with_it, longest = asyncio.run(pages(server.address[1], CLIENTS, 25))
                said = tool.communicate(timeout=60)[0]
            available = "NO" if "service available:   NO" in said else "YES"
            who = "Plimsoll" if kind == "told" else kind
            print(f"{mode}  {who:<10}{with_it / without:.2f}, {longest:.2f} s, available throughout: {available}", flush=True)


PARTS = {
    "goodput": show_goodput,
    "memory": show_memory,
    "connections": attack_connections.show,
    "messages": attack_messages.show,
    "processes": attack_processes.show,
    "slowhttptest": show_slowhttptest,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--plimsoll", default=os.path.join(HERE, "../target/shipped/plimsoll"), help="the binary")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given several times")
    parser.add_argument("--seconds", type=float, default=6, help="of each run")
    parser.add_argument("--rounds", type=int, default=3, help="of runs without and with an attack")
    parser.add_argument("--kind", action="append", help="of the part connections, those with this in their name alone")
    parser.add_argument("--connections", type=int, action="append", help="of the part connections; may be given several times")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    bench = Bench(os.path.abspath(arguments.plimsoll), arguments.seconds, arguments.rounds, arguments.kind, arguments.connections)
    try:
        for part in arguments.only or PARTS:
            PARTS[part](bench)
    finally:
        shutil.rmtree(bench.directory, ignore_errors=True)


if __name__ == "__main__":
    main()
