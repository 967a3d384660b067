"""The origin and the three proxies: their configurations, and how they are started, pinned and stopped.

All are set alike where they can be: every keep-alive without a limit, no access log, connections to the origin kept,
one worker (or thread) for each core given. nginx has the 8 buffers of 32 KB and HAProxy the 96 KB that made them
fastest at 64 KB; their defaults are slower.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

FOREVER = "1000000000"

ORIGIN = """
daemon off; worker_processes 1; error_log {dir}/origin.log; pid {dir}/origin.pid; user root;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; open_file_cache max=16; etag off;
  keepalive_requests {forever}; keepalive_timeout 600s; keepalive_time 1d;
  client_body_temp_path {dir}/o1; proxy_temp_path {dir}/o2; fastcgi_temp_path {dir}/o3;
  uwsgi_temp_path {dir}/o4; scgi_temp_path {dir}/o5;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {dir}/files; }}
}}
"""

NGINX = """
daemon off; worker_processes {threads}; error_log {dir}/nginx.log; pid {dir}/nginx.pid; user root;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests {forever}; keepalive_timeout 600s; keepalive_time 1d;
  client_body_temp_path {dir}/n1; proxy_temp_path {dir}/n2; fastcgi_temp_path {dir}/n3;
  uwsgi_temp_path {dir}/n4; scgi_temp_path {dir}/n5;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 256; keepalive_requests {forever}; keepalive_timeout 600s; keepalive_time 1d; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096 reuseport;
    listen 127.0.0.1:{secure} ssl http2 backlog=4096 reuseport;
    ssl_session_cache shared:bench:10m;
    ssl_certificate {dir}/bench.pem; ssl_certificate_key {dir}/bench.pem; ssl_protocols TLSv1.3;
    location = /refused {{ return 503; }}
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_buffer_size 32k; proxy_buffers 8 32k; proxy_busy_buffers_size 64k;
    }}
  }}
}}
"""

HAPROXY = """
global
  nbthread {threads}
  maxconn 8192
  tune.bufsize 98304
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  timeout http-keep-alive 600s
  http-reuse always
  option forwardfor
frontend bench
  bind 127.0.0.1:{port} backlog 4096
  bind 127.0.0.1:{secure} backlog 4096 ssl crt {dir}/bench.pem alpn h2,http/1.1 ssl-min-ver TLSv1.3
  http-request set-header X-Forwarded-Proto http
  http-request return status 503 hdr Retry-After 1 if {{ path /refused }}
  default_backend origin
backend origin
  server origin 127.0.0.1:{origin} pool-max-conn 256
"""


class Missing(Exception):
    """A peer that is not installed, or a Plimsoll that cannot be started."""


def free_port():
    """A port that was free a moment ago; the two servers that cannot tell their own port are started with it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process, pinned to `cores`, that answers at `url`."""

    def __init__(self, name, command, cores, port, directory, environment=None):
        self.name, self.url, self.address = name, f"http://127.0.0.1:{port}", ("127.0.0.1", port)
        self.secure_url = None
        self._log = open(os.path.join(directory, f"{name}.out"), "wb")
        self._process = subprocess.Popen(
            ["taskset", "-c", cores] + command,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )

    def listen_at(self, port):
        """For a server that chose its own port."""
        self.url, self.address = f"http://127.0.0.1:{port}", ("127.0.0.1", port)

    def with_tls_at(self, port):
        """It speaks TLS at this port too."""
        self.secure_url = f"https://127.0.0.1:{port}"
        return self

    def log(self):
        """What it printed."""
        self._log.flush()
        with open(self._log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        """Whether it still runs."""
        return self._process.poll() is None

    def pids(self):
        """Its process and the children of that: nginx works in children."""
        found, fresh = [], [self._process.pid]
        while fresh:
            pid = fresh.pop()
            found.append(pid)
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    fresh += map(int, file.read().split())
        return found

    def wait_ready(self, seconds=10):
        """Until it accepts. Raises with its log if it does not."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.alive():
            try:
                socket.create_connection(self.address, timeout=1).close()
                return self
            except OSError:
                time.sleep(0.02)
        log = self.log()
        self.stop()
        raise Missing(f"{self.name} does not answer:\n{log}")

    def stop(self):
        """Ends it, and waits until it is gone."""
        if self.alive():
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()


def _program(name):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not path:
        raise Missing(f"{name} is not installed (make deps)")
    return path


def _write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def make_certificate(directory, name="bench", host="bench.test"):
    """A certificate of P-256 and its key in one file, as HAProxy wants them."""
    command = [_program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    command += ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    parts = [os.path.join(directory, name + ending) for ending in (".key", ".crt")]
    subprocess.run(command + ["-keyout", parts[0], "-out", parts[1]], check=True, capture_output=True)
    both = "".join(open(part, encoding="ascii").read() for part in parts)
    return _write(directory, name + ".pem", both)


def start_origin(directory, core):
    """Two static files, from the page cache."""
    make_certificate(directory)
    os.makedirs(os.path.join(directory, "files"), exist_ok=True)
    for name, size in (("1k", 1024), ("64k", 65536)):
        _write(directory, f"files/{name}", "x" * size)
    port = free_port()
    config = _write(directory, "origin.conf", ORIGIN.format(dir=directory, port=port, forever=FOREVER))
    command = [_program("nginx"), "-e", f"{directory}/origin.log", "-c", config]
    return Server("origin", command, core, port, directory).wait_ready()


def start_nginx(directory, origin, threads, cores):
    """nginx as a reverse proxy."""
    port, secure = free_port(), free_port()
    text = NGINX.format(
        dir=directory, port=port, secure=secure, origin=origin.address[1], threads=threads, forever=FOREVER
    )
    config = _write(directory, f"nginx{threads}.conf", text)
    command = [_program("nginx"), "-e", f"{directory}/nginx.log", "-c", config]
    return Server("nginx", command, cores, port, directory).wait_ready().with_tls_at(secure)


def start_haproxy(directory, origin, threads, cores):
    """HAProxy as a reverse proxy."""
    port, secure = free_port(), free_port()
    text = HAPROXY.format(dir=directory, port=port, secure=secure, origin=origin.address[1], threads=threads)
    config = _write(directory, f"haproxy{threads}.cfg", text)
    server = Server("haproxy", [_program("haproxy"), "-db", "-f", config], cores, port, directory)
    return server.wait_ready().with_tls_at(secure)


def start_plimsoll(binary, text, directory, threads, cores):
    """Plimsoll with a configuration whose port is 0; its log says which it got."""
    if not binary or not os.access(binary, os.X_OK):
        raise Missing(f"no binary at {binary} (make shipped)")
    config = _write(directory, f"plimsoll{threads}.toml", text)
    server = Server("plimsoll", [binary, "run", config], cores, 0, directory)
    until = time.monotonic() + 10
    while time.monotonic() < until and server.alive():
        log = server.log()
        found = re.search(r"\blistening on 127\.0\.0\.1:(\d+)$", log, re.MULTILINE)
        secure = re.search(r"\blistening on 127\.0\.0\.1:(\d+) \(TLS\)$", log, re.MULTILINE)
        # What is said after the listeners says that all of them are there.
        if found and "admin on " in log:
            server.listen_at(int(found.group(1)))
            ready = server.wait_ready()
            return ready.with_tls_at(int(secure.group(1))) if secure else ready
        time.sleep(0.02)
    log = server.log()
    server.stop()
    raise Missing(f"plimsoll does not start:\n{log}")
