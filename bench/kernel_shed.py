"""What a connection that is turned away costs a machine: by nftables, which resets it, and by a program that accepts it and answers.

    python3 bench/kernel_shed.py [CONNECTIONS [ROUNDS]]          as root, with nft and cc

It runs in a network namespace of its own. Over loopback the system's work for either side is done in the time of the process that
sends, so both process clocks are added up. What the client itself takes is in each row alike: the difference to the row `closed`, a
port at which nobody listens, is what a server's side costs beyond a reset. Rounds take turns; the table shows medians.
"""

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from accept import start_floors
from measure import cpu_seconds

RULES = """
table inet shed {
    set clients { type ipv4_addr; flags timeout; }
    chain arrivals {
        type filter hook input priority -150; policy accept;
        tcp dport 8080 tcp flags & (fin|syn|rst|ack) == syn ip saddr @clients counter reject with tcp reset
    }
}
add element inet shed clients { 127.1.0.1 timeout 1h }
"""


def connect(source, port, count):
    """So many connections, one after the other."""
    for _ in range(count):
        client = socket.socket()
        client.bind((source, 0))
        try:
            client.connect(("127.0.0.1", port))
            client.recv(4096)
        except ConnectionError:
            pass
        client.close()


def cost(source, port, server, count):
    """CPU microseconds of both sides for a connection."""
    own, other = time.process_time(), cpu_seconds([server]) if server else 0
    connect(source, port, count)
    both = time.process_time() - own + (cpu_seconds([server]) - other if server else 0)
    return both / count * 1e6


def measure(count, rounds):
    """Takes turns, and prints the table."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    nft = shutil.which("nft") or "/usr/sbin/nft"
    subprocess.run([nft, "-f", "-"], input=RULES, text=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        floors = start_floors(folder)
        answering, closing = floors["answer"], floors["close"]
        ways = {
            "closed port": ("127.1.0.2", 1, None),
            "nftables": ("127.1.0.1", 8080, None),
            "accept, close": ("127.1.0.2", closing.plain, closing.process.pid),
            "accept, send, close": ("127.1.0.2", answering.plain, answering.process.pid),
        }
        costs = {name: [] for name in ways}
        try:
            for _ in range(rounds):
                for name, (source, port, server) in ways.items():
                    costs[name].append(cost(source, port, server, count))
        finally:
            for floor in floors.values():
                floor.end()
    for name, own in costs.items():
        print(f"{name:22}{statistics.median(own):7.1f} us, {statistics.median(own) - statistics.median(costs['closed port']):+6.1f} us")


def main():
    """Runs itself again in a namespace of its own."""
    if os.environ.get("KERNEL_SHED") != "inside":
        again = ["unshare", "--net", sys.executable, *sys.argv]
        sys.exit(subprocess.run(again, env=os.environ | {"KERNEL_SHED": "inside"}, check=False).returncode)
    count, rounds = (int(text) for text in (sys.argv[1:] + ["4000", "7"][len(sys.argv[1:]):]))
    measure(count, rounds)


if __name__ == "__main__":
    main()
