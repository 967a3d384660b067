"""Clients of a soak: requests at a rate, each with a number of its own, on kept and on new connections, half of them over TLS, and as
pages of ten at once over HTTP/2; some leave.

HTTP/2 is spoken by curl. The package `h2` of Python cannot finish the streams of a connection that was told to end, which every upgrade
does.

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
# How many requests a page has over HTTP/2, and how many of all arrivals are such pages: about a quarter of the requests.
PAGE, PAGES = 10, 0.032
# Curl's codes: its own time is over, an answer ends early, a stream is reset. INTERNAL_ERROR is how the gateway ends an answer that
# the server breaks off, which its client may not have seen begin.
TIMED_OUT, PARTIAL, STREAM_ERROR = 28, 18, 92


class Clients:
    """All clients of one gateway."""

    def __init__(self, ports, rate, seed):
        self.rate, self.random = rate, random.Random(seed)
        # The name in the certificate is judged elsewhere.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # By whether it speaks TLS.
        self.places = [(ports[0], None), (ports[1], context)]
        self.kept = [[], []]
        self.fates, self.statuses, self.times = {}, {}, {}
        self.tasks, self.again, self.pages = set(), 0, 0

    async def run(self, until):
        """Requests at random moments until then; returns when the last one has ended."""
        number, due = 0, time.monotonic()
        while time.monotonic() < until:
            count = PAGE if self.random.random() < PAGES else 1
            due += self.random.gammavariate(count, 1 / self.rate)
            await asyncio.sleep(max(0, due - time.monotonic()))
            task = asyncio.create_task(self.ask(number) if count == 1 else self.page(range(number, number + count)))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            number += count
        await asyncio.gather(*self.tasks)
        for _, writer in self.kept[0] + self.kept[1]:
            writer.close()

    def path(self, number):
        """What a request asks for: some answers break off."""
        page = "reset" if self.random.random() < 0.005 else f"page-{number % 50}"
        return f"/{page}?id={number}"

    async def page(self, numbers):
        """Requests at once on one connection of HTTP/2."""
        self.pages += 1
        self.times.update(dict.fromkeys(numbers, time.time()))
        leaves = self.random.random() < 0.03
        port = self.places[1][0]
        command = ["curl", "--silent", "--insecure", "--noproxy", "*", "--http2", "--parallel", "--config", "-",
                   "--max-time", str(self.random.random() * 0.05 if leaves else PATIENCE),
                   "--connect-to", f"soak.test:443:127.0.0.1:{port}",
                   "--write-out", "%{url_effective} %{http_version} %{http_code} %{exitcode} %{errormsg}\\n"]
        pages = "".join(f'url = "https://soak.test{self.path(number)}"\noutput = "/dev/null"\n' for number in numbers)
        pipe = asyncio.subprocess.PIPE
        curl = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
        said, _ = await curl.communicate(pages.encode())
        for line in said.decode().splitlines():
            url, version, status, code, why = (line + " ").split(" ", 4)
            if status != "000":
                self.statuses[status] = self.statuses.get(status, 0) + 1
            is_broken = int(code) == PARTIAL or (int(code) == STREAM_ERROR and "INTERNAL_ERROR" in why)
            if leaves and int(code) == TIMED_OUT:
                fate = "left"
            elif is_broken:
                fate = "broken"
            else:
                fate = "answered" if (version, code) == ("2", "0") else f"lost: {line}"
            self.fates[int(url.rsplit("=", 1)[1])] = fate
        for number in numbers:
            self.fates.setdefault(number, "lost: curl said nothing of it")

    async def ask(self, number):
        """One request."""
        self.times[number] = time.time()
        leaves = self.random.random() < 0.03
        keeps = self.random.random() < 0.7
        tls = self.random.random() < 0.5
        head = f"GET {self.path(number)} HTTP/1.1\r\nHost: soak.test\r\n{'' if keeps else 'Connection: close'}".rstrip()
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
