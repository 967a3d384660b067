"""What is read from outside: CPU time, system calls and memory of a proxy, and what wrk says.

CPU is the process clock of the proxy's processes (utime + stime of all threads, in nanoseconds, dead threads included).
Loopback delivers a packet in the sender's own system call, so the kernel's work for a proxy is on the proxy's clock.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

RATE = 1000  # requests a second of each client in the cases that judge times


@dataclass
class Load:
    """One run of wrk."""

    requests: int
    refused: int  # answers that are not 2xx or 3xx
    errors: int
    p99_ms: float


def cpu_seconds(pids):
    """CPU seconds used so far; Linux's clock id of another process is made from its pid (clock_getcpuclockid)."""
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def resident_mib(pids):
    """Resident memory, shared pages counted once for each process."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            total += int(file.read().split()[1]) * page
    return total / 2**20


def parse_latency(text):
    """wrk's `570.00us`, `1.31ms`, `2.00s` in milliseconds."""
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]


def parse_wrk(output):
    """The figures of wrk's report."""
    requests = int(re.search(r"(\d+) requests in", output).group(1))
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    p99 = re.search(r"^\s+99%\s+(\S+)", output, re.MULTILINE)
    return Load(
        requests,
        int(refused.group(1)) if refused else 0,
        sum(map(int, errors.groups())) if errors else 0,
        parse_latency(p99.group(1)) if p99 else float("nan"),
    )


def pinned(core, seconds, *command):
    """What a program says that loads for so long on one core. Raises if it cannot run."""
    command = ["taskset", "-c", core, *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[3]} failed: {done.stdout}{done.stderr}")
    return done.stdout


def wrk(url, connections, seconds, core):
    """A closed loop on one pinned thread."""
    return parse_wrk(pinned(core, seconds, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url))


def parse_h2load(output):
    """The figures of h2load's report."""
    total, succeeded = re.search(r"requests: (\d+) total, .* (\d+) succeeded", output).groups()
    codes = list(map(int, re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output).groups()))
    # With a duration, those under way at its end are begun and not done.
    wrong = re.search(r"(\d+) failed, (\d+) errored, (\d+) timeout", output)
    done = min(sum(codes), int(total))
    return Load(done, codes[2] + codes[3], int(wrong.group(3)) + max(0, sum(codes[:2]) - int(succeeded)), float("nan"))


def h2load(url, streams, seconds, core):
    """HTTP/2 on one connection with so many requests under way."""
    return parse_h2load(pinned(core, seconds, "h2load", "-t1", "-c1", f"-m{streams}", f"-D{seconds}", url))


def at_a_rate(url, clients, seconds, core):
    """HTTP/1.1 at [`RATE`] requests a second from each client, whatever is answered."""
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as log:
        options = ["--h1", "-t1", f"-c{clients}", f"--rps={RATE}", f"-D{seconds}", f"--log-file={log.name}"]
        said = pinned(core, seconds, "h2load", *options, url)
        times = sorted(int(line.split()[2]) for line in log)  # start, status, microseconds
    load = parse_h2load(said)
    load.p99_ms = times[int(0.99 * len(times))] / 1e3 if times else float("nan")
    return load


def connections(kind, url, seconds, core):
    """New connections, one after the other (connections.py)."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "connections.py")
    port = url.split("/")[2].rsplit(":", 1)[1]
    counts = json.loads(pinned(core, seconds, sys.executable, program, kind, port, str(seconds)))
    return Load(counts["requests"], counts["refused"], counts["errors"], float("nan"))


def load_with(tool, url, width, seconds, core):
    """One run of the load that a row asks for; `width`: connections, or streams."""
    if tool == "wrk":
        return wrk(url, width, seconds, core)
    if tool == "rate":
        return at_a_rate(url, width, seconds, core)
    return h2load(url, width, seconds, core) if tool == "h2load" else connections(tool, url, seconds, core)


def cpu_per_request(proxy, tool, url, width, seconds, core):
    """(microseconds of the proxy's CPU per answered request, the load that was offered)."""
    before = cpu_seconds(proxy.pids())
    load = load_with(tool, url, width, seconds, core)
    spent = cpu_seconds(proxy.pids()) - before
    return spent / max(load.requests, 1) * 1e6, load


def system_calls_per_request(proxy, url, connections, seconds, core):
    """(calls per request, the tool that counted), or (None, why not).

    perf's tracepoint hardly slows the proxy. strace does, and so changes how many events one wake-up brings; it is
    what is left where tracepoints may not be read.
    """
    command = ["taskset", "-c", core, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url]
    if shutil.which("perf"):
        pids = ",".join(map(str, proxy.pids()))
        perf = ["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", pids, "--"] + command
        done = subprocess.run(perf, capture_output=True, text=True, check=False)
        calls = re.search(r"^(\d+),", done.stderr, re.MULTILINE)
        if done.returncode == 0 and calls:
            return int(calls.group(1)) / max(parse_wrk(done.stdout).requests, 1), "perf"
    if not shutil.which("strace"):
        return None, "neither perf nor strace works here"
    strace = ["strace", "-c", "-f", "-q"] + [f"-p{pid}" for pid in proxy.pids()]
    with subprocess.Popen(strace, stderr=subprocess.PIPE, text=True) as tracer:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        tracer.send_signal(signal.SIGINT)
        report = tracer.communicate(timeout=30)[1]
    calls = re.search(r"^100\.00\s+\S+\s+\S+\s+(\d+)(?:\s+\d+)?\s+total", report, re.MULTILINE)
    if not calls:
        return None, "strace counted nothing"
    return int(calls.group(1)) / max(parse_wrk(done.stdout).requests, 1), "strace"


def open_idle(address, count, path):
    """`count` keep-alive connections, each of which has had one answer."""
    held = []
    request = f"GET {path} HTTP/1.1\r\nHost: bench.test\r\n\r\n".encode()
    for _ in range(count):
        connection = socket.create_connection(address, timeout=10)
        connection.sendall(request)
        held.append(connection)
    for connection in held:
        connection.settimeout(10)
        if not connection.recv(65536).startswith(b"HTTP/1.1 200"):
            raise RuntimeError("an idle connection was not answered with 200")
    return held
