//! Servers that stay as they are, with `libplimsoll_preload.so` before the C library.

use crate::certificates::certificate;
use crate::module::module;
use crate::process::{free_port, program};
use crate::{Apache, Control, Folder, Process, open_to_all};
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// A kind of server.
#[derive(Clone, Copy, Debug)]
pub enum Unchanged {
    /// Four processes, one connection each, kept alive.
    Apache,
    /// Two processes with many connections each.
    Nginx,
    /// Threads, by `http.server`.
    Python,
    /// The same, which reads by the C library's checked functions, as servers that were built with `_FORTIFY_SOURCE` do.
    PythonChecked,
    /// The same in one thread, which works on one connection at a time, and handles SIGUSR1.
    PythonAlone,
    /// One thread, by libuv.
    Node,
    /// One process of nginx that speaks TLS, with HTTP/2 where a client asks for it.
    NginxTls,
    /// Python's `http.server` over TLS.
    PythonTls,
    /// No HTTP: a Python server that sends back what it gets, and speaks first.
    Echo,
}

/// The running server.
#[derive(Debug)]
pub struct Preloaded {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its folder: `page.html`, `light/page.html` and `healthz` are served.
    pub folder: Folder,
    /// The running process.
    pub process: Process,
}

/// The host of the certificate `own.pem` in the folder of a server that speaks TLS.
pub const TLS_HOST: &str = "e2e.test";

const PYTHON: &str = "
import functools, http.server, sys, time
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        if self.path == '/events':
            return self.events()
        time.sleep(0.05 if 'page' in self.path else 0)
        super().do_GET()
    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        self.do_GET()
    def events(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.end_headers()
        self.wfile.write(b'data: one\\n\\n')
        self.close_connection = True
        self.connection.recv(1)
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
server = Server(('127.0.0.1', int(sys.argv[1])), functools.partial(Handler, directory=sys.argv[2]))
print('ready', flush=True)
server.serve_forever()
";

const CHECKED: &str = "
import ctypes, io, socketserver
receive = getattr(ctypes.CDLL(None), '__recv_chk')
class Checked(io.RawIOBase):
    def __init__(self, connection):
        self.connection = connection
    def readable(self):
        return True
    def readinto(self, buffer):
        place = (ctypes.c_char * len(buffer)).from_buffer(buffer)
        return max(0, receive(self.connection.fileno(), place, len(buffer), len(buffer), 0))
setup = socketserver.StreamRequestHandler.setup
def checked(handler):
    setup(handler)
    handler.rfile = io.BufferedReader(Checked(handler.connection))
socketserver.StreamRequestHandler.setup = checked
";

/// The handshake is made by the thread that works on the connection.
const PYTHON_TLS: &str = "
import functools, http.server, ssl, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    def finish_request(self, request, address):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2] + '/own.pem', sys.argv[2] + '/own.key')
        super().finish_request(context.wrap_socket(request, server_side=True), address)
server = Server(('127.0.0.1', int(sys.argv[1])), functools.partial(Handler, directory=sys.argv[2]))
print('ready', flush=True)
server.serve_forever()
";

const NODE: &str = "
const [, port, folder] = process.argv, fs = require('fs')
require('http').createServer((request, response) => setTimeout(() => fs.readFile(folder + request.url, (error, data) => {
    response.statusCode = error ? 404 : 200
    response.end(data)
}), request.url.includes('page') ? 50 : 0)).listen(+port, '127.0.0.1', () => console.log('ready'))
";

const ECHO: &str = "
import socketserver, sys
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b'hello')
        while data := self.request.recv(100):
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 64
server = Server(('127.0.0.1', int(sys.argv[1])), Handler)
print('ready', flush=True)
server.serve_forever()
";

impl Preloaded {
    /// Starts it with the shared state of `control`. Panics, with its log, if it does not come up.
    pub fn start(kind: Unchanged, control: &Control) -> Preloaded {
        Preloaded::start_at(kind, &control.state())
    }

    /// The same with the shared state at this place, where there may be none yet.
    pub fn start_at(kind: Unchanged, state: &Path) -> Preloaded {
        let folder = Folder::new();
        folder.write("page.html", "full".repeat(25_000));
        folder.write("light/page.html", "light".repeat(20_000));
        folder.write("light/docs/page.html", "light");
        folder.write("healthz", "well\n");
        ["light", "light/docs"].iter().for_each(|name| open_to_all(&folder.path().join(name)));
        // Another user runs it.
        let library = folder.install(&module().join("libplimsoll_preload.so"));
        let variables = [("LD_PRELOAD", library.as_os_str()), ("PLIMSOLL_STATE", state.as_os_str())];
        match kind {
            Unchanged::Apache => apache(folder, &variables),
            Unchanged::Nginx => nginx(folder, &variables),
            Unchanged::NginxTls => nginx_with_tls(folder, &variables),
            Unchanged::PythonTls => {
                certificate(&folder, "own", TLS_HOST);
                script(folder, "python3", ["-c", PYTHON_TLS], &variables)
            }
            Unchanged::Python => script(folder, "python3", ["-c", PYTHON], &variables),
            Unchanged::PythonChecked => {
                script(folder, "python3", ["-c", &format!("{CHECKED}{PYTHON}")], &variables)
            }
            Unchanged::PythonAlone => {
                let alone = PYTHON.replace("ThreadingHTTPServer", "HTTPServer");
                let alone = format!(
                    "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('signal', flush=True)){alone}"
                );
                script(folder, "python3", ["-c", &alone], &variables)
            }
            Unchanged::Node => script(folder, "node", ["-e", NODE], &variables),
            Unchanged::Echo => script(folder, "python3", ["-c", ECHO], &variables),
        }
    }
}

/// A page takes a fifth of a second of its process.
fn apache(folder: Folder, variables: &[(&str, &OsStr)]) -> Preloaded {
    let content = format!(
        "DocumentRoot {}\n<Location ~ \"page.html$\">\nSetOutputFilter RATE_LIMIT\nSetEnv rate-limit 256\n</Location>\n",
        folder.path().display()
    );
    let apache =
        Apache::in_environment(variables, folder.clone(), (8, 64), &["dir", "env", "ratelimit"], &content);
    Preloaded { address: apache.upstream, process: apache.process, folder }
}

/// A page takes a second of its connection.
fn nginx(folder: Folder, variables: &[(&str, &OsStr)]) -> Preloaded {
    nginx_with(folder, variables, (2, ""), "location ~ page { limit_rate 64k; }")
}

fn nginx_with_tls(folder: Folder, variables: &[(&str, &OsStr)]) -> Preloaded {
    let (chain, key) = certificate(&folder, "own", TLS_HOST);
    let keys = format!("ssl_certificate {}; ssl_certificate_key {};", chain.display(), key.display());
    nginx_with(folder, variables, (1, "ssl http2"), &keys)
}

/// nginx with so many workers, options of `listen` and directives of its server.
fn nginx_with(
    folder: Folder,
    variables: &[(&str, &OsStr)],
    (workers, listen): (u32, &str),
    server: &str,
) -> Preloaded {
    let (port, place) = (free_port(), folder.path().display());
    let user = if nix::unistd::geteuid().is_root() { "user www-data;\n" } else { "" };
    let text = format!(
        "daemon off;\nworker_processes {workers};\npid {place}/nginx.pid;\nerror_log /dev/stderr notice;\n{user}\
         events {{ worker_connections 1024; }}\n\
         http {{\naccess_log off;\nsendfile on;\nclient_body_temp_path {place}/t1; proxy_temp_path {place}/t2;\n\
         fastcgi_temp_path {place}/t3; uwsgi_temp_path {place}/t4; scgi_temp_path {place}/t5;\n\
         server {{\nlisten 127.0.0.1:{port} {listen};\nroot {place};\n{server}\n}}\n}}\n"
    );
    let configuration = folder.write("nginx.conf", text);
    let mut command = Command::new(program("nginx"));
    command.args(["-e", "/dev/stderr", "-c"]).arg(configuration).envs(variables.iter().copied());
    started(folder, port, command, "start worker process ")
}

fn script(folder: Folder, name: &str, code: [&str; 2], variables: &[(&str, &OsStr)]) -> Preloaded {
    let port = free_port();
    let mut command = Command::new(program(name));
    command.args(code).arg(port.to_string()).arg(folder.path()).envs(variables.iter().copied());
    started(folder, port, command, "ready")
}

fn started(folder: Folder, port: u16, mut command: Command, readiness: &str) -> Preloaded {
    let mut process = Process::spawn("server", &mut command, &folder.path().join("server.log"));
    process.wait_for("readiness", |log| log.contains(readiness).then_some(()));
    Preloaded { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), process, folder }
}
