"""The clients of `attacks.py`: those that attack, in a process of their own, and those that only want a page.

    python3 attack_clients.py ATTACK PORT       attacks until it is ended; prints `ready` once all have begun
"""

import asyncio
import socket
import sys
import time

STEP = 0.1

UPLOAD = b"POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n"
ONE_BYTE = b"POST /form HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n"
DOWNLOAD = b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
UPGRADE = b"GET /socket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
# 17 KB in lines that every server takes.
UNFINISHED = b"GET / HTTP/1.1\r\nHost: h\r\n" + b"".join(b"X-%d: " % n + b"x" * 5600 + b"\r\n" for n in range(3))


async def send_slowly(reader, writer):
    """1,200 bytes a second of a body."""
    while True:
        writer.write(b"x" * 120)
        await writer.drain()
        await asyncio.sleep(STEP)


async def send_nothing(reader, writer):
    """The answer, or the end, begins the next try."""
    await reader.read(64)


async def read_slowly(reader, writer):
    """20 KB a second."""
    while await reader.read(2000):
        await asyncio.sleep(STEP)


async def ask_again(reader, writer):
    """Asks as often as it is answered."""
    while await reader.read(4096):
        writer.write(HEALTH)


async def hold(reader, writer):
    """Keeps what it has for as long as it is let, and stays away after that."""
    await reader.read()
    writer.close()
    await asyncio.sleep(3600)


# Name: what it is, how many clients, what each sends first, and what it does then.
ATTACKS = {
    "two slow senders": (2, UPLOAD, send_slowly),
    "slow senders": (16, UPLOAD, send_slowly),
    "one byte": (16, ONE_BYTE, send_nothing),
    "slow readers": (16, DOWNLOAD, read_slowly),
    "streams": (16, UPLOAD.replace(b"/upload", b"/stream"), send_slowly),
    "exempt": (40, HEALTH, ask_again),
    "tunnels": (300, UPGRADE, hold),
    "6000 heads": (6_000, UNFINISHED, hold),
    "14000 heads": (14_000, UNFINISHED, hold),
}


async def connect(port):
    """A connection with little room for what comes, so that a slow reader is one on the wire."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)
    client.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
    except OSError:
        client.close()
        raise
    return await asyncio.open_connection(sock=client, limit=4096)


async def one(port, first, then, begun):
    """One client: it begins again whenever it is cut."""
    while True:
        writer = None
        try:
            reader, writer = await connect(port)
            writer.write(first)
            await writer.drain()
            begun.release()
            await then(reader, writer)
        except OSError:
            await asyncio.sleep(STEP)
        finally:
            if writer:
                writer.close()
        await asyncio.sleep(0.01)


async def attack(name, port):
    """Attacks for ever."""
    count, first, then = ATTACKS[name]
    begun = asyncio.Semaphore(0)
    tasks = []
    for number in range(count):
        tasks.append(asyncio.create_task(one(port, first, then, begun)))
        # Connections come one after another, so that no backlog is what is measured.
        if number % 50 == 49:
            await asyncio.sleep(0.05)
    for _ in range(count):
        await asyncio.wait_for(begun.acquire(), 60)
    print("ready", flush=True)
    await asyncio.gather(*tasks)


async def pages(port, clients, seconds):
    """How many pages so many clients get, each of which asks again when it is answered; and the longest time that one took."""
    until, got, longest = time.monotonic() + seconds, 0, 0.0

    async def client():
        nonlocal got, longest
        while time.monotonic() < until:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(STEP)
                continue
            try:
                while (begun := time.monotonic()) < until:
                    writer.write(b"GET /page HTTP/1.1\r\nHost: h\r\n\r\n")
                    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), until - begun)
                    if head.split(b" ")[1] != b"200":
                        await asyncio.sleep(STEP)
                        break
                    body = await asyncio.wait_for(reader.readexactly(4), 10)
                    longest = max(longest, time.monotonic() - begun)
                    got += body == b"page"
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                longest = max(longest, time.monotonic() - begun)
            finally:
                writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return got / seconds, longest


if __name__ == "__main__":
    try:
        asyncio.run(attack(sys.argv[1], int(sys.argv[2])))
    except KeyboardInterrupt:
        pass
