//! A real Apache, prefork, with few workers and a slow CGI page.

use crate::page::{LIGHT_TREE, WORKERS};
use crate::process::{free_port, program};
use crate::{Folder, Process};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Apache with few processes: [`WORKERS`] and one page, `/page`, in a full and a light tree, and its `/server-status`; or
/// over a folder.
///
/// It listens at two ports that its processes share. To clients that come straight, Apache is at its best without
/// keep-alive: each idle connection would hold one of the few processes, and the gateway would win too easily. The
/// gateway keeps its few connections, so it gets the other port.
#[derive(Debug)]
pub struct Apache {
    /// Where clients that come straight connect: no keep-alive.
    pub direct: SocketAddr,
    /// Where the gateway connects: keep-alive.
    pub upstream: SocketAddr,
    /// The running server.
    pub process: Process,
    _folder: Folder,
}

impl Apache {
    /// Starts it with the CGI program `page`. Panics, with its log, if it does not come up.
    #[must_use]
    pub fn start(page: &Path) -> Apache {
        let folder = Folder::new();
        let page = folder.install(page);
        let content = scripted(&page);
        Apache::with(folder, WORKERS, &content)
    }

    /// Starts it over a folder, with so few processes, and lines so slow that each byte above
    /// [`FREE_BYTES`](Apache::FREE_BYTES) of an answer holds a process: 1 s for 256 KiB. So its capacity does not hang on
    /// the machine. Panics, with its log, if it does not come up.
    #[must_use]
    pub fn serving(root: &Path, workers: usize) -> Apache {
        Apache::with(Folder::new(), workers, &slow_lines(root))
    }

    /// What goes out at once (`mod_ratelimit` sends a fifth of a second's worth before it first waits).
    pub const FREE_BYTES: usize = (256 << 10) / 5;

    fn with(folder: Folder, workers: usize, content: &str) -> Apache {
        let (direct, upstream) = (free_port(), free_port());
        let text = configuration(folder.path(), workers, [direct, upstream]) + content;
        let configuration = folder.write("apache.conf", text);
        let log = folder.path().join("apache.log");
        // When told to end, Apache ends its whole process group, so it must not be in ours; outside it, an interrupted
        // test run would leave it behind, so it ends with the thread that started it.
        let mut command = Command::new(program("setpriv"));
        command.arg("--pdeathsig=TERM").arg(program("apache2")).process_group(0);
        command.arg("-DFOREGROUND").arg("-f").arg(configuration);
        let mut process = Process::spawn("apache", &mut command, &log);
        process.wait_for("readiness", |log| log.contains("resuming normal operations").then_some(()));
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Apache { direct: at(direct), upstream: at(upstream), process, _folder: folder }
    }
}

const MODULES: &str = "/usr/lib/apache2/modules";

fn scripted(page: &Path) -> String {
    let page = page.display();
    format!(
        "LoadModule alias_module {MODULES}/mod_alias.so\n\
         LoadModule cgi_module {MODULES}/mod_cgi.so\n\
         ScriptAlias {LIGHT_TREE}/page {page}\n\
         ScriptAlias /page {page}\n\
         LoadModule status_module {MODULES}/mod_status.so\n\
         <Location /server-status>\nSetHandler server-status\nRequire local\n</Location>\n"
    )
}

fn slow_lines(root: &Path) -> String {
    let root = root.display();
    format!(
        "LoadModule env_module {MODULES}/mod_env.so\n\
         LoadModule ratelimit_module {MODULES}/mod_ratelimit.so\n\
         LoadModule mime_module {MODULES}/mod_mime.so\n\
         TypesConfig /dev/null\n\
         AddType text/html html\n\
         AddType text/css css\n\
         AddType image/jpeg JPG\n\
         AddType image/gif gif\n\
         DocumentRoot {root}\n\
         <Location />\nSetOutputFilter RATE_LIMIT\nSetEnv rate-limit 256\n</Location>\n"
    )
}

fn configuration(folder: &Path, workers: usize, [direct, upstream]: [u16; 2]) -> String {
    let folder = folder.display();
    let modules = MODULES;
    // As by default: more places on the scoreboard than there may be workers.
    let places = 4 * workers;
    // Started by root, Apache changes to an unprivileged user and insists on one being named.
    let user = if nix::unistd::geteuid().is_root() { "User www-data\nGroup www-data\n" } else { "" };
    format!(
        "ServerRoot {folder}\n\
         ServerName e2e.test\n\
         PidFile {folder}/apache.pid\n\
         DefaultRuntimeDir {folder}\n\
         ErrorLog /dev/stderr\n\
         LogLevel notice\n\
         {user}\
         LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         LoadModule authz_host_module {modules}/mod_authz_host.so\n\
         StartServers {workers}\n\
         MinSpareServers 1\n\
         MaxSpareServers {workers}\n\
         ServerLimit {places}\n\
         MaxRequestWorkers {workers}\n\
         MaxConnectionsPerChild 0\n\
         ListenBacklog 16\n\
         MaxKeepAliveRequests 0\n\
         KeepAliveTimeout 30\n\
         <Directory />\nRequire all granted\n</Directory>\n\
         Listen 127.0.0.1:{direct}\n\
         Listen 127.0.0.1:{upstream}\n\
         <VirtualHost *:{direct}>\nKeepAlive Off\n</VirtualHost>\n\
         <VirtualHost *:{upstream}>\nKeepAlive On\n</VirtualHost>\n"
    )
}
