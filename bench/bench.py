#!/usr/bin/env python3
"""CPU per proxied request: Plimsoll beside nginx and HAProxy, in interleaved rounds of one run.

    make bench                 print the table
    make bench KEEP=1          and record it under bench/runs/
    make bench BENCH_ARGS="--rounds 3 --seconds 1"

One proxy worker is pinned to core 0, the origin and wrk to core 1. In each round every proxy is loaded in turn, so that
what disturbs the machine disturbs all alike; the ratio to a peer is taken within a round. Prints what it skipped, and
why, when a peer is missing. Exits 0 unless it could measure nothing at all.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import measure
import plimsoll_config
import proxies
import record
import table

CONNECTIONS = 32
MODERATE = 8  # connections of the latency case: the proxy is busy, not saturated
PEERS = ("nginx", "haproxy")
ORDER = ("plimsoll",) + PEERS


@dataclass
class Case:
    """One row of the table."""

    name: str
    path: str
    threads: int = 1
    connections: int = CONNECTIONS
    figure: str = "cpu"  # or "p99"
    tls: bool = False  # over TLS 1.3, each connection with one handshake
    tool: str = "wrk"  # or "h2load", "rate", or what connections.py does
    refused: bool = False  # every answer must be a rejection, else none may be
    values: dict = field(default_factory=dict)  # proxy -> one figure for each round, None where it failed


def cases():
    """All rows, in the order in which a round measures them."""
    return [
        Case("1 KB, 1 thread", "/1k"),
        Case("64 KB, 1 thread", "/64k"),
        Case("503, 1 thread", "/refused", refused=True),
        Case("1 KB, 2 threads", "/1k", threads=2),
        Case("64 KB, 2 threads", "/64k", threads=2),
        Case("1 KB over TLS 1.3", "/1k", tls=True),
        Case("64 KB over TLS 1.3", "/64k", tls=True),
        Case("1 KB over HTTP/2, 32 streams", "/1k", tls=True, tool="h2load"),
        Case("TLS 1.3 handshake, full", "", tls=True, tool="full"),
        Case("TLS 1.3 handshake, resumed", "", tls=True, tool="resumed"),
        Case("new connection, 503", "", refused=True, tool="refused"),
        # A rate that all can take: in a closed loop the quicker proxy has the origin's core wait, and its own times grow.
        Case("1 KB, p99 of 8 clients at 8,000/s", "/1k", connections=MODERATE, figure="p99", tool="rate"),
        Case("64 KB, p99 of 8 clients at 8,000/s", "/64k", connections=MODERATE, figure="p99", tool="rate"),
    ]


def in_a_network_of_its_own():
    """Runs the rest in a network namespace whose loopback does not pace.

    Some kernels are set to BBR, which also paces loopback, and every ten seconds lets a connection send four packets in
    200 ms: what is measured then is how old a proxy's connections are. Needs root; without it the machine's setting
    stays, and the table names it.
    """
    if os.geteuid() != 0 or os.environ.get("PLIMSOLL_BENCH_NETWORK") or not shutil.which("unshare"):
        return
    os.environ["PLIMSOLL_BENCH_NETWORK"] = "own"
    script = 'ip link set lo up; sysctl -q -w net.ipv4.tcp_congestion_control=reno; exec "$@"'
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, *sys.argv])


def start_all(stack, directory, options, skipped):
    """{(proxy, threads, refusing): server}. What does not start goes to `skipped`."""
    origin = proxies.start_origin(directory, options.load_core)
    stack.callback(origin.stop)
    both = f"{options.proxy_core},{options.load_core}"
    running = {}

    def start(key, starter, *arguments):
        try:
            running[key] = starter(*arguments)
            stack.callback(running[key].stop)
        except proxies.Missing as why:
            skipped.append(f"{key[0]}, {key[1]} thread(s): {why}")

    for threads, cores in ((1, options.proxy_core), (2, both)):
        start(("nginx", threads, False), proxies.start_nginx, directory, origin, threads, cores)
        start(("haproxy", threads, False), proxies.start_haproxy, directory, origin, threads, cores)
        text = plimsoll_config.proxying(origin.address[1], threads)
        start(("plimsoll", threads, False), proxies.start_plimsoll, options.plimsoll, text, directory, threads, cores)
    if ("plimsoll", 1, False) in running:
        text = plimsoll_config.refusing(origin.address[1])
        start(("plimsoll", 1, True), proxies.start_plimsoll, options.plimsoll, text, directory, 1, options.proxy_core)
    return running


def server_for(running, proxy, case):
    """The peers refuse by path, Plimsoll by a load line of nearly nothing."""
    return running.get((proxy, case.threads, case.refused and proxy == "plimsoll"))


def url(server, case):
    """Where a case asks."""
    return (server.secure_url if case.tls else server.url) + case.path


def run_round(running, all_cases, options, skipped, turn):
    """Loads every proxy once for every case; who goes first changes from round to round."""
    order = ORDER[turn % 3 :] + ORDER[: turn % 3]
    for case in all_cases:
        for proxy in order:
            server = server_for(running, proxy, case)
            values = case.values.setdefault(proxy, [])
            if server is None:
                values.append(None)
                continue
            if case.refused:
                # Plimsoll's loop has been calm since the last round, and needs a period to see that it is not.
                measure.wrk(server.url + "/refused", CONNECTIONS, 2, options.load_core)
            where, width = url(server, case), case.connections
            cost, load = measure.cpu_per_request(server, case.tool, where, width, options.seconds, options.load_core)
            wanted = load.requests if case.refused else 0
            if load.errors or abs(load.refused - wanted) > 0.02 * load.requests:
                skipped.append(f"{proxy}, {case.name}: {load.errors} errors, {load.refused} refused of {load.requests}")
                values.append(None)
                continue
            values.append(load.p99_ms if case.figure == "p99" else cost)


def warm_up(running, all_cases, options):
    """Fills the pools and the caches, so that the first round is like the others."""
    for case in all_cases:
        for proxy in ORDER:
            server = server_for(running, proxy, case)
            if server and case.figure == "cpu":
                measure.load_with(case.tool, url(server, case), case.connections, 1, options.load_core)


def beside(running, options, skipped):
    """What is not compared by ratio: system calls, and memory with 1,000 idle connections."""
    rows = []
    for case in cases():
        if case.threads != 1 or case.figure != "cpu" or case.tool != "wrk":
            continue
        row = {"name": f"system calls, {case.name}"}
        for proxy in ORDER:
            server = server_for(running, proxy, case)
            if server:
                calls, how = measure.system_calls_per_request(server, url(server, case), CONNECTIONS, 2, options.load_core)
                row[proxy] = calls
                if calls is None:
                    skipped.append(f"{proxy}, {row['name']}: {how}")
        rows.append(row)
    before, after = {"name": "resident MiB, after the load"}, {"name": "resident MiB, 1,000 idle connections more"}
    for proxy in ORDER:
        server = running.get((proxy, 1, False))
        if not server:
            continue
        before[proxy] = measure.resident_mib(server.pids())
        try:
            held = measure.open_idle(server.address, 1000, "/1k")
            after[proxy] = measure.resident_mib(server.pids())
            for connection in held:
                connection.close()
        except (OSError, RuntimeError) as why:
            skipped.append(f"{proxy}, idle connections: {why}")
    return rows + [before, after]


def measure_all(options):
    """(cases with their values, rows beside, what was skipped)."""
    skipped, all_cases = [], cases()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="plimsoll-bench-"))
        os.chmod(directory, 0o755)
        running = start_all(stack, directory, options, skipped)
        warm_up(running, all_cases, options)
        for turn in range(options.rounds):
            print(f"round {turn + 1} of {options.rounds}", file=sys.stderr)
            run_round(running, all_cases, options, skipped, turn)
        rows = beside(running, options, skipped)
    return all_cases, rows, skipped


def main():
    """Measures, prints, records."""
    in_a_network_of_its_own()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", help="the binary to measure")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=1, help="of load for each figure of a round")
    parser.add_argument("--proxy-core", default="0")
    parser.add_argument("--load-core", default="1")
    parser.add_argument("--keep", action="store_true", help="record the run in bench/runs/")
    options = parser.parse_args()
    began = time.monotonic()
    try:
        all_cases, rows, skipped = measure_all(options)
    except (proxies.Missing, FileNotFoundError) as why:
        print(f"bench: skipped everything: {why}")
        return 0
    text = table.render(all_cases, rows, skipped, record.machine())
    print(text)
    print(f"\n{options.rounds} rounds in {time.monotonic() - began:.0f} s")
    if options.keep:
        print("recorded in", record.keep(text, all_cases, rows, skipped))
    measured = any(value is not None for case in all_cases for values in case.values.values() for value in values)
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
