"""What idle connections over TLS hold: opens many to a gateway, sends one request on each, and prints what it has resident.

    python3 bench/idle.py PLIMSOLL [CONNECTIONS]
"""

import json
import resource
import socket
import ssl
import sys
import tempfile
import time

import measure
import plimsoll_config
import proxies


def main():
    """Opens them in one thread, one after the other."""
    program, count = sys.argv[1], int((sys.argv[2:] + ["10000"])[0])
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with tempfile.TemporaryDirectory(prefix="plimsoll-idle-") as folder:
        origin = proxies.start_origin(folder, "0-1")
        text = plimsoll_config.proxying(origin.address[1], 2) + "\n[timeouts]\nkeep_alive = \"1h\"\n"
        gateway = proxies.start_plimsoll(program, text, folder, 2, "0-1")
        try:
            port, before, held = int(gateway.secure_url.rsplit(":", 1)[1]), measure.resident_mib(gateway.pids()), []
            for number in range(count):
                client = socket.socket()
                # One address has too few ports for all of them.
                client.bind((f"127.0.{1 + number // 20000}.1", 0))
                client.connect(("127.0.0.1", port))
                client = context.wrap_socket(client, server_hostname="bench.test")
                client.sendall(b"GET /1k HTTP/1.1\r\nHost: bench.test\r\n\r\n")
                got = b""
                while len(got) < 1024 or not got.startswith(b"HTTP/1.1 200"):
                    part = client.recv(65536)
                    if not part:
                        raise RuntimeError(f"connection {number} ended: {got[:100]}")
                    got += part
                held.append(client)
            time.sleep(3)
            print(json.dumps({
                "connections": len(held),
                "before_mib": round(before, 1),
                "resident_mib": round(measure.resident_mib(gateway.pids()), 1),
            }))
        finally:
            gateway.stop()
            origin.stop()


if __name__ == "__main__":
    main()
