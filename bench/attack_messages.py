"""The corpora of malformed requests and hostile responses (`crates/gateway/tests/corpus`) through both gateways."""

import ast
import os
import re
import socket
import threading
from contextlib import ExitStack

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../crates/gateway/tests/corpus")
# A hostile response, with the method that was asked with.
ANSWER = re.compile(r'"([A-Z]+)",\s*(b"(?:\\.|[^"\\])*")', re.S)
LITERAL = re.compile(r'b"((?:\\.|[^"\\])*)"|"((?:\\.|[^"\\])*)"\.as_bytes\(\)', re.S)


def literals(text):
    """The bytes that Rust's literals stand for."""
    for match in LITERAL.finditer(text):
        inside = re.sub(r"\\\n\s*", "", match.group(1) or match.group(2) or "").replace("\n", "\\n")
        if match.group(1) is not None:
            yield ast.literal_eval(f'b"{inside}"')
        else:
            inside = re.sub(r"\\u\{([0-9a-f]+)\}", lambda code: chr(int(code.group(1), 16)), inside)
            yield ast.literal_eval(f'"{inside}"').encode()


def table(name, first, last=None):
    """The text of a table."""
    with open(f"{CORPUS}/{name}.rs", encoding="utf-8") as file:
        text = file.read()
    text = text[text.index(first) :]
    return text[: text.index(last)] if last else text


class Server:
    """Answers every connection with the same bytes once a head has come, and keeps what it got."""

    def __init__(self, stack):
        self.answer, self.got = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        stack.callback(self.listener.close)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream):
        got = b""
        with stream:
            stream.settimeout(0.15)
            try:
                while part := stream.recv(65536):
                    got += part
            except OSError:
                pass
            if got:
                self.got.append(got)
            try:
                stream.sendall(self.answer)
            except OSError:
                pass


def ask(port, request):
    """All that comes back."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port)) as client:
        # A proxy that waits for more than was sent gives no answer.
        client.settimeout(1)
        try:
            client.sendall(request)
            while part := client.recv(65536):
                answer += part
        except OSError:
            pass
    return answer


def is_whole(request):
    """Whether a server takes these bytes for a whole request."""
    head, end, body = request.partition(b"\r\n\r\n")
    if not end:
        return False
    if b"chunked" in head.lower():
        return body.endswith(b"0\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return not length or len(body) >= int(length.group(1))


def show(bench):
    """How many of the malformed requests reach the server whole, and what becomes of the hostile responses."""
    malformed = list(literals(table("requests", "REFUSED", "pub(crate) const READ")))
    hostile = [(case.group(1), *literals(case.group(2))) for case in ANSWER.finditer(table("responses", "RESPONSES"))]
    for kind in ("told", "nginx"):
        who = "Plimsoll" if kind == "told" else kind
        with ExitStack() as stack:
            server = Server(stack)
            gateway = bench.gateway(stack, kind, server.port)
            refused = unanswered = reached = 0
            for request in malformed:
                server.got.clear()
                answer = ask(gateway.address[1], request)
                refused += bool(re.match(rb"HTTP/1\.[01] [45]", answer))
                unanswered += not answer
                reached += any(is_whole(got) for got in server.got)
            told = f"{refused} refused, {unanswered} without an answer, {reached} reach the server whole"
            print(f"\n{who}: of {len(malformed)} malformed requests {told}", flush=True)
            statuses, second = {}, 0
            for method, response in hostile:
                server.answer = response
                request = f"{method} / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
                answer = ask(gateway.address[1], request.encode())
                found = re.match(rb"HTTP/1\.[01] ([1-5]\d\d) ", answer)
                status = found.group(1).decode() if found else "end" if not answer else "no status"
                statuses[status] = statuses.get(status, 0) + 1
                second += b"evil" in answer
            told = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
            print(f"{who}: {len(hostile)} hostile responses give {told}; bytes of a second response in {second}", flush=True)
