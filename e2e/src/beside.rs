//! What the agent stands beside: an Apache and an nginx that know nothing of it, with two content trees.
//!
//! Apache's pages cost what CA measured for 64 KB and for 8 KB, `a + b x` with a = 1.604 ms and b = 0.063 ms/KB, slowed
//! down so that the machine does not matter: a page holds its worker for its time without using the CPU.

use crate::page::WORKERS;
use crate::process::{free_port, program};
use crate::{Folder, Process, binary, get};
use nix::sys::signal::Signal;
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many times as slow as the paper's server one worker is.
const SLOWER: f64 = 96.0;
/// CA's a (s) and b (s/KB).
const COSTS: (f64, f64) = (1.604e-3, 0.063e-3);
/// KB of a page of either tree.
pub const KILOBYTES: (usize, usize) = (64, 8);
/// How long each tree is loaded to find its rate.
const MEASURED_FOR: Duration = Duration::from_secs(4);
/// Connections that may wait for Apache, and for the application behind nginx.
pub const QUEUE: (u32, u32) = (256, 64);

/// What a page of so many KB costs one worker.
fn time(kilobytes: usize) -> Duration {
    Duration::from_secs_f64(SLOWER * (COSTS.0 + COSTS.1 * kilobytes as f64))
}

/// What Apache's pages cost it, measured: the paper's coefficients, and what a CGI process takes of this machine besides.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Full pages a second.
    pub full: f64,
    /// Light pages a second: CA's ratio times as many, for these a and b.
    pub light: f64,
}

impl Measured {
    /// Loads it with as many clients as it has workers, for a few seconds each tree.
    #[must_use]
    pub fn of(server: &Beside) -> Measured {
        let rate = |path: &str| {
            let started = Instant::now();
            let pages = AtomicU32::new(0);
            thread::scope(|scope| {
                for _ in 0..WORKERS {
                    scope.spawn(|| {
                        while started.elapsed() < MEASURED_FOR {
                            assert_eq!(get(server.address, path).status, 200, "{path}");
                            pages.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            f64::from(pages.into_inner()) / started.elapsed().as_secs_f64()
        };
        Measured { full: rate("/full/page"), light: rate("/light/page") }
    }

    /// `costs` for the agent's file: `a + 64 b` is 1 / full, `a + 8 b` is 1 / light.
    #[must_use]
    pub fn costs(&self) -> String {
        let (full, light) = KILOBYTES;
        let per_kilobyte = (1.0 / self.full - 1.0 / self.light) / (full - light) as f64;
        let (request, byte) = (1.0 / self.light - light as f64 * per_kilobyte, per_kilobyte / 1024.0);
        format!("costs = {{ request = \"{:.3}ms\", byte = \"{:.3}ns\" }}", request * 1e3, byte * 1e9)
    }
}

/// Makes a page: takes its time, and returns a CGI response.
#[must_use]
pub fn make(light: bool) -> Vec<u8> {
    let kilobytes = if light { KILOBYTES.1 } else { KILOBYTES.0 };
    thread::sleep(time(kilobytes));
    let bytes = kilobytes << 10;
    let mut page = format!("Content-Type: text/html\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
    page.extend(b"<p>page</p>\n".iter().cycle().take(bytes));
    page
}

/// A server with two trees, `full` and `light`, in its folder, and the page `/page`.
#[derive(Debug)]
pub struct Beside {
    /// Where it listens.
    pub address: SocketAddr,
    /// How many connections may wait.
    pub queue: u32,
    /// Where everything lies: trees, logs, and what the agent writes.
    pub folder: Folder,
    /// The running server.
    pub process: Process,
    _application: Option<Process>,
}

/// Apache prefork with few workers. The page is served through the link `www` in its folder, and `/mapped` from the tree
/// that the map `trees.map` has for the client's group. Panics, with its log, if it does not come up.
#[must_use]
pub fn apache(page: &Path) -> Beside {
    let folder = Folder::new();
    for tree in ["full", "light"] {
        let place = folder.write(&format!("{tree}/page"), fs::read(page).unwrap_or_default());
        fs::set_permissions(&place, Permissions::from_mode(0o755))
            .unwrap_or_else(|error| panic!("cannot open {}: {error}", place.display()));
    }
    folder.write("robots.txt", "User-agent: *\n");
    symlink(folder.path().join("full"), folder.path().join("www"))
        .unwrap_or_else(|error| panic!("no link: {error}"));
    let groups: String = (0..256).map(|group| format!("{group:02x} full\n")).collect();
    let first_line = "# Written by `plimsoll agent`, do not edit. Clients at full quality: 1\n";
    folder.write("trees.map", first_line.to_owned() + &groups);
    let port = free_port();
    let configuration = folder.write("apache.conf", apache_configuration(folder.path(), port));
    let mut command = Command::new(program("setpriv"));
    command.arg("--pdeathsig=TERM").arg(program("apache2")).process_group(0);
    command.arg("-DFOREGROUND").arg("-f").arg(configuration);
    let mut process = Process::spawn("apache", &mut command, &folder.path().join("apache.log"));
    process.wait_for("readiness", |log| log.contains("resuming normal operations").then_some(()));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Beside { address, queue: QUEUE.0, folder, process, _application: None }
}

fn apache_configuration(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    let user = if nix::unistd::geteuid().is_root() { "User www-data\nGroup www-data\n" } else { "" };
    let modules: String = ["mpm_prefork", "authz_core", "authz_host", "alias", "cgi", "status", "rewrite"]
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .concat();
    let queue = QUEUE.0;
    format!(
        "ServerRoot {folder}\nServerName e2e.test\nPidFile {folder}/apache.pid\nDefaultRuntimeDir {folder}\n\
         ErrorLog /dev/stderr\nLogLevel notice\n{user}{modules}\
         CustomLog {folder}/access.log \"%h %l %u %t \\\"%r\\\" %>s %B\"\n\
         StartServers {WORKERS}\nMinSpareServers 1\nMaxSpareServers {WORKERS}\n\
         ServerLimit {WORKERS}\nMaxRequestWorkers {WORKERS}\nMaxConnectionsPerChild 0\n\
         ListenBacklog {queue}\nKeepAlive Off\n\
         DocumentRoot {folder}\nListen 127.0.0.1:{port}\n\
         ScriptAlias /page {folder}/www/page\n\
         ScriptAlias /full/page {folder}/full/page\nScriptAlias /light/page {folder}/light/page\n\
         <Directory />\nRequire all granted\n</Directory>\n\
         <Location /server-status>\nSetHandler server-status\nRequire local\n</Location>\n\
         RewriteEngine On\nRewriteMap tree txt:{folder}/trees.map\n\
         RewriteCond expr \"md5('a key of yours' . %{{REMOTE_ADDR}}) =~ /^(..)/\"\n\
         RewriteRule ^/mapped$ /${{tree:%1}}/page [PT]\n"
    )
}

/// nginx in front of an application of few workers, whose trees are prefixes. It reads `split.conf`. Panics, with the
/// log, if one does not come up.
#[must_use]
pub fn nginx(page: &Path) -> Beside {
    let folder = Folder::new();
    let socket = folder.path().join("page.sock");
    let mut command = Command::new(page);
    command.arg(&socket).arg(QUEUE.1.to_string());
    let mut application = Process::spawn("page-scgi", &mut command, &folder.path().join("page.log"));
    application.wait_for("readiness", |log| log.contains("ready").then_some(()));
    fs::set_permissions(&socket, Permissions::from_mode(0o777))
        .unwrap_or_else(|error| panic!("cannot open {} to nginx: {error}", socket.display()));
    folder.write(
        "split.conf",
        "# Written by `plimsoll agent`, do not edit. Clients at full quality: 1\n\
         split_clients \"$remote_addr\" $plimsoll_tree { * \"/full\"; }\n",
    );
    let port = free_port();
    let configuration = folder.write("nginx.conf", nginx_configuration(folder.path(), port));
    let mut command = Command::new(program("nginx"));
    command.arg("-e").arg("/dev/stderr").arg("-c").arg(configuration);
    let mut process = Process::spawn("nginx", &mut command, &folder.path().join("nginx.log"));
    process.wait_for("readiness", |log| log.contains("start worker process ").then_some(()));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Beside { address, queue: QUEUE.1, folder, process, _application: Some(application) }
}

fn nginx_configuration(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    let user = if nix::unistd::geteuid().is_root() { "user www-data;\n" } else { "" };
    format!(
        "daemon off;\nworker_processes 1;\npid {folder}/nginx.pid;\nerror_log /dev/stderr notice;\n{user}\
         events {{ worker_connections 4096; }}\n\
         http {{\n\
           include {folder}/split.conf;\n\
           access_log off;\n\
           client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;\n\
           uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;\n\
           scgi_buffers 8 16k;\n\
           keepalive_timeout 60s;\n\
           keepalive_requests 1000000;\n\
           server {{\n\
             listen 127.0.0.1:{port};\n\
             location = /nginx_status {{ stub_status; }}\n\
             location / {{\n\
               scgi_pass unix:{folder}/page.sock;\n\
               scgi_param REQUEST_URI $plimsoll_tree$request_uri;\n\
               scgi_param CONTENT_LENGTH $content_length;\n\
             }}\n\
           }}\n\
         }}\n"
    )
}

impl Beside {
    /// The agent's file, with `more` after what is always in it.
    #[must_use]
    pub fn agent_file(&self, probe: &str, more: &str) -> PathBuf {
        let Beside { address, queue, .. } = self;
        let text = format!("[server]\nprobe = \"http://{address}{probe}\"\nqueue = {queue}\n{more}");
        self.folder.write("agent.toml", text)
    }

    /// The tree that the link leads to now.
    #[must_use]
    pub fn linked(&self) -> String {
        let target = fs::read_link(self.folder.path().join("www")).unwrap_or_default();
        target.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// F, as the first line of what the agent wrote tells it.
    #[must_use]
    pub fn fraction(&self, file: &str) -> f64 {
        let text = fs::read_to_string(self.folder.path().join(file)).unwrap_or_default();
        let first = text.lines().next().and_then(|line| line.rsplit(' ').next()?.parse().ok());
        first.unwrap_or_else(|| panic!("no fraction in {file}:\n{text}"))
    }
}

/// `plimsoll agent`, at work.
#[derive(Debug)]
pub struct Agent {
    /// The running program.
    pub process: Process,
}

impl Agent {
    /// Starts it; panics, with its log, if it refuses.
    #[must_use]
    pub fn start(file: &Path) -> Agent {
        Agent::start_with(file, &[])
    }

    /// Starts it with these options.
    #[must_use]
    pub fn start_with(file: &Path, options: &[&str]) -> Agent {
        let log = file.with_extension("log");
        let mut command = Command::new(binary());
        let mut process = Process::spawn("agent", command.arg("agent").arg(file).args(options), &log);
        process.wait_for("its beginning", |log| log.contains("agent beside").then_some(()));
        Agent { process }
    }

    /// Runs it to its end.
    #[must_use]
    pub fn output(file: &Path, option: &str) -> Output {
        let ran = Command::new(binary()).arg("agent").arg(file).arg(option).output();
        ran.unwrap_or_else(|error| panic!("cannot run {}: {error}", binary().display()))
    }

    /// Lines of its log that hold `what`.
    #[must_use]
    pub fn said(&self, what: &str) -> usize {
        self.process.log().lines().filter(|line| line.contains(what)).count()
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        self.process.signal(Signal::SIGTERM);
        self.process.wait()
    }
}
