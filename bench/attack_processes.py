"""What surrounds both gateways fails: a configuration that is a pipe, a log that cannot be written, few descriptors."""

import asyncio
import os
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack

import attack_messages
import proxies
from attack_clients import pages


def exit_within(process, seconds):
    """The exit code, or that there is none in time."""
    begun = time.monotonic()
    try:
        code = process.wait(timeout=seconds)
        return f"exit {code} after {time.monotonic() - begun:.1f} s"
    except subprocess.TimeoutExpired:
        return f"still there after {seconds} s"


def hanging_reload(bench, kind):
    """The configuration becomes a pipe without a writer: a reload, a request, and then an order to end."""
    with ExitStack() as stack:
        server = bench.gateway(stack, kind, bench.origin(stack))
        process, path = server._process, server.configuration
        os.remove(path)
        os.mkfifo(path)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        rate, _ = asyncio.run(pages(server.address[1], 1, 1))
        process.send_signal(signal.SIGTERM)
        said = exit_within(process, 15)
        if process.poll() is None:
            # A reader that waits for a writer gets its end.
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            process.kill()
    return f"{rate:.0f} pages a second meanwhile; SIGTERM: {said}"


def full_log(bench, kind):
    """All that is logged goes to a full disk."""
    with ExitStack() as stack:
        command, port = bare(bench, kind, bench.origin(stack), "/dev/full")
        with open("/dev/full", "wb") as full:
            process = subprocess.Popen(command, stdout=full, stderr=full)
        stack.callback(lambda: process.poll() is None and process.kill())
        if not answers(port, process):
            return f"does not start ({process.poll()})"
        rate, _ = asyncio.run(pages(port, 2, 2))
        process.send_signal(signal.SIGTERM)
        return f"{rate:.0f} pages a second; SIGTERM: {exit_within(process, 10)}"


def few_descriptors(bench, kind):
    """With limits of descriptors from 8 to 32: from which on it answers, and from which it serves twelve requests at once."""
    starts, all_served = [], []
    with ExitStack() as stack:
        origin = bench.origin(stack)
        for limit in range(8, 33, 3):
            command, port = bare(bench, kind, origin, "/dev/null")
            script = f'ulimit -n {limit}; exec "$@"'
            process = subprocess.Popen(["sh", "-c", script, "sh", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if answers(port, process):
                starts.append(limit)
                fetch = ["curl", "-s", "-m", "5", f"http://127.0.0.1:{port}/page"]
                clients = [subprocess.Popen(fetch, stdout=subprocess.PIPE) for _ in range(12)]
                if sum(client.communicate()[0] == b"page" for client in clients) == len(clients):
                    all_served.append(limit)
            if process.poll() is None:
                process.terminate()
            process.wait(timeout=10)
    said = [str(limits[0]) if limits else "none" for limits in (starts, all_served)]
    return f"of 8, 11, ... 32: answers from {said[0]} on, serves 12 of 12 from {said[1]} on"


def bare(bench, kind, origin, log):
    """A gateway's command, with its log there where it has one of its own, and its port."""
    directory, port = tempfile.mkdtemp(dir=bench.directory), proxies.free_port()
    if kind == "nginx":
        path = proxies._write(directory, "nginx.conf", NGINX.format(dir=directory, port=port, origin=origin, log=log))
        return [proxies._program("nginx"), "-e", log, "-c", path], port
    path = proxies._write(directory, "plimsoll.toml", PLIMSOLL.format(origin=origin, port=port))
    return [bench.plimsoll, "run", path], port


NGINX = """
daemon off; worker_processes 1; error_log {log}; pid {dir}/nginx.pid; user root; events {{ worker_connections 512; }}
http {{
  access_log {log};
  client_body_temp_path {dir}/n1; proxy_temp_path {dir}/n2; fastcgi_temp_path {dir}/n3; uwsgi_temp_path {dir}/n4; scgi_temp_path {dir}/n5;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{origin}; }} }}
}}
"""
PLIMSOLL = """
[gateway]
listen = "127.0.0.1:{port}"
admin = "127.0.0.1:0"
threads = 1

[upstream.origin]
address = "127.0.0.1:{origin}"
max_connections = 8
capacity = {{ workers = 8 }}
"""


def answers(port, process):
    """Whether it answers within two seconds."""
    until = time.monotonic() + 2
    while time.monotonic() < until and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return bool(attack_messages.ask(port, b"GET /page HTTP/1.0\r\n\r\n"))
        except OSError:
            time.sleep(0.05)
    return False


def show(bench):
    """Prints each for both."""
    for what, attack in (
        ("a configuration that is a pipe", hanging_reload),
        ("an access log on a full disk", full_log),
        ("few descriptors", few_descriptors),
    ):
        for kind in ("told", "nginx"):
            print(f"{what}, {'Plimsoll' if kind == 'told' else kind}: {attack(bench, kind)}", flush=True)
