//! A real Apache with few workers: prefork, or threads where a test names `mpm_worker` or `mpm_event`.

use crate::application::application;
use crate::model::{LIGHT_TREE, ServerModel};
use crate::process::{free_port, program};
use crate::{Control, Folder, Process, module};
use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const MODULES: &str = "/usr/lib/apache2/modules";
/// The directives of Apache's own status page.
pub(crate) const STATUS: &str =
    "<Location /server-status>\nSetHandler server-status\nRequire local\n</Location>\n";

/// When each request ended and how long it took (us), by Apache.
const SERVED_LOG: &str = "served.log";

/// The running server.
///
/// It listens at two ports that its processes share. To clients that come straight, Apache is at its best without keep-alive:
/// each idle connection would hold one of the few processes, and the gateway would win too easily. The gateway keeps its few
/// connections, so it gets the other port.
#[derive(Debug)]
pub struct Apache {
    /// Where clients that come straight connect: no keep-alive.
    pub direct: SocketAddr,
    /// Where the gateway connects: keep-alive.
    pub upstream: SocketAddr,
    /// The running process.
    pub process: Process,
    /// The server's files.
    pub folder: Folder,
    _application: Option<Process>,
}

impl Apache {
    /// The bytes of an answer that [`serving`](Apache::serving) sends at once: `mod_ratelimit` sends a fifth of a second's
    /// worth first.
    pub const FREE_BYTES: usize = (256 << 10) / 5;

    /// Serves the pages of a model by the CGI program `page`, at `/page` in a full and a light tree, and its `/server-status`.
    pub fn pages(page: &Path, model: ServerModel) -> Apache {
        let folder = Folder::new();
        let page = folder.install(page);
        let (page, argument) = (page.display(), model.to_argument());
        let content = format!(
            "ScriptAlias {LIGHT_TREE}/page {page}\nScriptAlias /page {page}\nSetEnv MODEL {argument}\n{STATUS}"
        );
        Apache::with(folder, (model.workers, model.queue), &["alias", "cgi", "env", "status"], &content)
    }

    /// Serves the pages of a model from an application with as many workers as Apache has processes: each is held by its
    /// request for the page's time, and no process is made for it.
    pub fn holding(page: &Path, model: ServerModel) -> Apache {
        Apache::before_application(page, model, model.workers, "")
    }

    /// The same with so many processes, which decide by what `control` publishes. Each page names its level. Clients have the
    /// addresses that a gateway tells.
    pub fn deciding(page: &Path, model: ServerModel, processes: u32, control: &Control) -> Apache {
        let (library, state) = (module().display(), control.state());
        let content = format!(
            "LoadModule plimsoll_module {library}/mod_plimsoll.so\nPlimsollState {}\n\
             RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 127.0.0.0/8\n\
             Header set X-Plimsoll \"level=%{{PLIMSOLL_LEVEL}}e; reason=%{{PLIMSOLL_REASON}}e\"\n",
            state.display()
        );
        Apache::before_application(page, model, processes, &content)
    }

    fn before_application(page: &Path, model: ServerModel, processes: u32, more: &str) -> Apache {
        let folder = Folder::new();
        let (application, socket) = application(&folder, page, model);
        // The application closes after each answer.
        let content = format!(
            "{more}CustomLog {}/{SERVED_LOG} \"%{{end:usec}}t %D\"\n{STATUS}ProxyPass /server-status !\nProxyPass / unix:{}|scgi://localhost/ disablereuse=on\n",
            folder.path().display(),
            socket.display()
        );
        let modules = ["proxy", "proxy_scgi", "headers", "remoteip", "status"];
        let apache = Apache::with(folder, (processes, model.queue), &modules, &content);
        Apache { _application: Some(application), ..apache }
    }

    /// The part of its processes' time in which they worked on requests, by the server's own clock, in these seconds from its
    /// first request on. The server was started with [`holding`](Apache::holding) or [`deciding`](Apache::deciding).
    pub fn utilization(&self, workers: u32, seconds: Range<f64>) -> f64 {
        let log = fs::read_to_string(self.folder.path().join(SERVED_LOG)).unwrap_or_default();
        let served: Vec<(f64, f64)> = log
            .lines()
            .filter_map(|line| {
                let (end, took) = line.split_once(' ')?;
                let [end, took] = [end.parse::<f64>().ok()? / 1e6, took.parse::<f64>().ok()? / 1e6];
                Some((end - took, end))
            })
            .collect();
        let first = served.iter().map(|(begin, _)| *begin).fold(f64::INFINITY, f64::min);
        let (from, until) = (first + seconds.start, first + seconds.end);
        let within = |(begin, end): &(f64, f64)| (end.min(until) - begin.max(from)).max(0.0);
        served.iter().map(within).sum::<f64>() / (f64::from(workers) * (until - from))
    }

    /// Serves a folder with so many processes, and lines so slow that each byte above [`FREE_BYTES`](Apache::FREE_BYTES) of an
    /// answer holds a process: 1 s for 256 KiB. Its capacity then does not depend on the machine.
    pub fn serving(root: &Path, workers: u32) -> Apache {
        let content = format!(
            "AddType text/html html\nAddType text/css css\nAddType image/jpeg JPG\nAddType image/gif gif\n\
             DocumentRoot {}\n<Location />\nSetOutputFilter RATE_LIMIT\nSetEnv rate-limit 256\n</Location>\n",
            root.display()
        );
        Apache::with(Folder::new(), (workers, 16), &["env", "ratelimit", "mime"], &content)
    }

    /// Starts it with so many workers, places in the listen queue, these modules and this content. The workers are processes,
    /// or threads of two processes if one of the modules is `mpm_worker` or `mpm_event`. The content is that of the virtual
    /// host of each port, which it may end to begin others at `{port}`. Panics, with its log, if it does not come up.
    pub fn with(folder: Folder, sizes: (u32, u32), modules: &[&str], content: &str) -> Apache {
        Apache::in_environment(&[], folder, sizes, modules, content)
    }

    /// The same with these variables in its environment.
    pub fn in_environment(
        variables: &[(&str, &OsStr)],
        folder: Folder,
        (workers, queue): (u32, u32),
        modules: &[&str],
        content: &str,
    ) -> Apache {
        let (direct, upstream) = (free_port(), free_port());
        let has_threads = modules.iter().any(|name| name.starts_with("mpm_"));
        let processes = if has_threads { threads_of_two(workers) } else { prefork(workers) };
        let modules: String = ["authz_core", "authz_host"]
            .iter()
            .chain(if has_threads { None } else { Some(&"mpm_prefork") })
            .chain(modules)
            .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"))
            .collect();
        let types = if modules.contains("mod_mime") { "TypesConfig /dev/null\n" } else { "" };
        let place = folder.path().display();
        let [at_direct, at_upstream] =
            [direct, upstream].map(|port| content.replace("{port}", &port.to_string()));
        // Started by root, Apache changes to an unprivileged user and insists on one being named.
        let user = if nix::unistd::geteuid().is_root() { "User www-data\nGroup www-data\n" } else { "" };
        let text = format!(
            "ServerRoot {place}\nServerName e2e.test\nPidFile {place}/apache.pid\nDefaultRuntimeDir {place}\n\
             ErrorLog /dev/stderr\nLogLevel notice\n{user}{modules}{types}\
             {processes}MaxConnectionsPerChild 0\n\
             ListenBacklog {queue}\nMaxKeepAliveRequests 0\nKeepAliveTimeout 30\n\
             <Directory />\nRequire all granted\n</Directory>\n\
             Listen 127.0.0.1:{direct}\nListen 127.0.0.1:{upstream}\n\
             <VirtualHost *:{direct}>\nKeepAlive Off\n{at_direct}</VirtualHost>\n\
             <VirtualHost *:{upstream}>\nKeepAlive On\n{at_upstream}</VirtualHost>\n"
        );
        let configuration = folder.write("apache.conf", text);
        // Apache ends its whole process group when it ends, so it must not be in the test's group. Outside that group an
        // interrupted test run would leave it behind, so it ends with the thread that started it.
        let mut command = Command::new(program("setpriv"));
        command.arg("--pdeathsig=TERM").arg(program("apache2")).process_group(0);
        command.arg("-DFOREGROUND").arg("-f").arg(configuration).envs(variables.iter().copied());
        let mut process = Process::spawn("apache", &mut command, &folder.path().join("apache.log"));
        process.wait_for("readiness", |log| log.contains("resuming normal operations").then_some(()));
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Apache { direct: at(direct), upstream: at(upstream), process, folder, _application: None }
    }
}

/// One request for each process. As by default, the scoreboard has more places than there may be workers.
fn prefork(workers: u32) -> String {
    let places = 4 * workers;
    format!(
        "StartServers {workers}\nMinSpareServers 1\nMaxSpareServers {workers}\n\
         ServerLimit {places}\nMaxRequestWorkers {workers}\n"
    )
}

/// The same number of threads in two processes.
fn threads_of_two(workers: u32) -> String {
    let each = workers.div_ceil(2);
    format!(
        "StartServers 2\nServerLimit 8\nThreadLimit {each}\nThreadsPerChild {each}\n\
         MinSpareThreads 1\nMaxSpareThreads {most}\nMaxRequestWorkers {most}\n",
        most = 2 * each
    )
}
