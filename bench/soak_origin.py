"""The server behind the gateway of a soak: some workers, light pages under /light that take a fifth, and answers that break off.

    python3 soak_origin.py PORT WORKERS SECONDS
"""

import asyncio
import socket
import struct
import sys

from attack_origin import read_body, read_head

PAGE = b"x" * 8192
RESET = struct.pack("ii", 1, 0)


async def answer(line, writer, workers, seconds):
    """One answer; false if it breaks off half-way."""
    path = line.split(" ")[1]
    light = path.startswith("/light/")
    async with workers:
        await asyncio.sleep(seconds * (0.2 if light else 1.0))
    body = PAGE[:1024] if light else PAGE
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
    if "/reset" not in path:
        writer.write(body)
        await writer.drain()
        return True
    writer.write(body[: len(body) // 2])
    await writer.drain()
    # Closed at once, with what is unsent thrown away.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    return False


async def connection(reader, writer, workers, seconds):
    """One request after another."""
    try:
        while (head := await read_head(reader)) is not None:
            await read_body(reader, head[1])
            if not await answer(head[0], writer, workers, seconds):
                break
    except (ConnectionError, asyncio.IncompleteReadError, ValueError):
        pass
    finally:
        writer.close()


async def main(port, count, seconds):
    """Serves until it is ended."""
    workers = asyncio.Semaphore(count)
    serve = lambda reader, writer: connection(reader, writer, workers, seconds)
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024, reuse_address=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
