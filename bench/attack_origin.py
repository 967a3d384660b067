"""The server behind the gateways under attack: some workers, each of which serves one request at a time, from its head to the last
byte of its answer, and takes a fixed time for it. It is what a slow client can occupy.

    python3 attack_origin.py WORKERS SECONDS [BYTES]       prints its port; BYTES of a large page
"""

import asyncio
import sys

# Bytes of a large page where none are named.
LARGE = 20_000_000
# What may lie in the socket of an answer before the worker waits for its reader.
SOCKET = 64 * 1024


async def read_head(reader):
    """The request's line and its fields, names in small letters; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return None
    lines = head.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines[1:] if line)
    return lines[0], {name.lower(): value.strip() for name, _, value in fields}


async def read_body(reader, fields):
    """Throws a body away."""
    if fields.get("transfer-encoding"):
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            await reader.readexactly(size + 2)
            if size == 0:
                return
    left = int(fields.get("content-length", 0))
    while left > 0:
        part = await reader.read(min(left, 65536))
        if not part:
            raise ConnectionResetError
        left -= len(part)


async def serve(reader, writer, workers, seconds, large):
    """One connection. Idle ones occupy no worker."""
    writer.transport.set_write_buffer_limits(high=SOCKET)
    while True:
        head = await read_head(reader)
        if head is None:
            return
        line, fields = head
        if "upgrade" in fields:
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            await reader.read()
            return
        async with workers:
            await read_body(reader, fields)
            await asyncio.sleep(seconds)
            body = large if line.split(" ")[1].startswith("/large") else b"page"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            for start in range(0, len(body), SOCKET):
                writer.write(body[start : start + SOCKET])
                await writer.drain()
        if fields.get("connection", "").lower() == "close":
            return


async def main(count, seconds, size):
    """Serves until it is ended."""
    workers, large = asyncio.Semaphore(count), b"x" * size

    async def connection(reader, writer):
        try:
            await serve(reader, writer, workers, seconds, large)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
    print("listening on", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else LARGE))
