"""Plimsoll's configurations for the benchmark: control on, nothing switched off to be faster."""

PROXYING = """
[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
threads = {threads}

[tls]
listen = "127.0.0.1:0"
certificate = "bench.pem"
min_version = "1.3"

[upstream.origin]
address = "127.0.0.1:{origin}"
max_connections = 256
capacity = {{ workers = 256 }}
"""

REFUSING = """
[gateway]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
threads = 1

[upstream.origin]
address = "127.0.0.1:{origin}"
max_connections = 1
max_waiting = 0

[upstream.origin.capacity]
workers = 1
load_line = 0.01
costs = {{ request = "10s" }}
"""


def proxying(origin_port, threads):
    """Room to spare: every request is classified, admitted, measured and accounted for, at full level."""
    return PROXYING.format(origin=origin_port, threads=threads)


def refusing(origin_port):
    """A load line of nearly nothing, and requests said to be dear: the loop itself turns away all but a few."""
    return REFUSING.format(origin=origin_port)
