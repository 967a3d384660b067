"""Clients of a soak: requests at a rate, each with a number of its own, on kept and on new connections, half of them over TLS; some
leave.

What becomes of each is told by one word:

    answered    a whole answer
    broken      an answer that broke off: its server did
    left        its client closed the connection before the answer
    lost        none of it, although the gateway is there
"""

import asyncio
import random
import ssl
import time

PATIENCE = 30


class Clients:
    """All clients of one gateway."""

    def __init__(self, ports, rate, seed):
        self.rate, self.random = rate, random.Random(seed)
        # Whose certificate it is, is judged elsewhere.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # By whether it speaks TLS.
        self.places = [(ports[0], None), (ports[1], context)]
        self.kept = [[], []]
        self.fates, self.statuses, self.times = {}, {}, {}
        self.tasks, self.again = set(), 0

    async def run(self, until):
        """Requests at random moments until then; returns when the last one has ended."""
        number, due = 0, time.monotonic()
        while time.monotonic() < until:
            due += self.random.expovariate(self.rate)
            await asyncio.sleep(max(0, due - time.monotonic()))
            task = asyncio.create_task(self.ask(number))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            number += 1
        await asyncio.gather(*self.tasks)
        for _, writer in self.kept[0] + self.kept[1]:
            writer.close()

    async def ask(self, number):
        """One request."""
        self.times[number] = time.time()
        leaves = self.random.random() < 0.03
        keeps = self.random.random() < 0.7
        tls = self.random.random() < 0.5
        page = "reset" if self.random.random() < 0.005 else f"page-{number % 50}"
        head = f"GET /{page}?id={number} HTTP/1.1\r\nHost: soak.test\r\n{'' if keeps else 'Connection: close'}".rstrip()
        try:
            self.fates[number] = await asyncio.wait_for(self.exchange(head + "\r\n\r\n", tls, keeps, leaves), PATIENCE)
        except asyncio.TimeoutError:
            self.fates[number] = "lost: no answer in time"
        except OSError as error:
            self.fates[number] = f"lost: {error}"

    async def exchange(self, head, tls, keeps, leaves):
        """Sends a request and reads its answer. A kept connection that has ended meanwhile is replaced, as every client does."""
        kept, (port, context) = self.kept[tls], self.places[tls]
        while True:
            fresh = not (keeps and kept)
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context) if fresh else kept.pop()
            fate, stays = "", False
            try:
                writer.write(head.encode())
                if leaves:
                    await asyncio.sleep(self.random.random() * 0.05)
                    return "left"
                fate, stays = await self.answer(reader)
            except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError) as error:
                fate = f"lost: {error!r}"
            finally:
                if stays and keeps:
                    kept.append((reader, writer))
                else:
                    writer.close()
            if not fate.startswith("lost") or fresh:
                return fate
            self.again += 1

    async def answer(self, reader):
        """Its fate, and whether the connection stays."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = head.split(" ")[1]
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        self.statuses[status] = self.statuses.get(status, 0) + 1
        try:
            await reader.readexactly(int(fields["content-length"]))
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            return "broken", False
        return "answered", fields.get("connection") != "close"
