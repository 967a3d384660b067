//! `plimsoll agent`, and the two servers beside which the tests run it: an Apache and an nginx that know nothing of it.
//!
//! Apache's pages cost what CA measured for 64 KB and for 8 KB, `a + b x` with a = 1.604 ms and b = 0.063 ms/KB, slowed down so
//! that the machine does not matter: a page holds its worker for its time without using the processor.

use crate::apache::STATUS;
use crate::model::{SLOW_PAGES, ServerModel};
use crate::nginx::Parts;
use crate::{Apache, Folder, Nginx, Process, binary, open_to_all};
use nix::sys::signal::Signal;
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::time::Duration;

/// CA's costs, 96 times as slow.
pub const CA_PAGES: ServerModel = ServerModel {
    workers: 8,
    queue: 256,
    fixed: Duration::from_micros(96 * 1_604),
    per_kib: Duration::from_micros(96 * 63),
    kib: 64,
    exponential: false,
};
/// The pages behind nginx; its application has a longer queue than the gateway's tests give it.
pub const NGINX_PAGES: ServerModel = ServerModel { queue: 64, ..SLOW_PAGES };

/// Starts Apache with the page in a full and a light tree. `/page` is served through the link `www` in its folder, and
/// `/mapped` from the tree that the map `trees.map` has for the client's group.
pub fn apache(page: &Path) -> Apache {
    let folder = Folder::new();
    let program = fs::read(page).unwrap_or_else(|error| panic!("no {}: {error}", page.display()));
    for tree in ["full", "light"] {
        let place = folder.write(&format!("{tree}/page"), &program);
        fs::set_permissions(&place, Permissions::from_mode(0o755))
            .unwrap_or_else(|error| panic!("cannot open {}: {error}", place.display()));
    }
    folder.write("robots.txt", "User-agent: *\n");
    let groups: String = (0..256).map(|group| format!("{group:02x} full\n")).collect();
    let first_line = "# Written by `plimsoll agent`, do not edit. Clients at full quality: 1\n";
    folder.write("trees.map", first_line.to_owned() + &groups);
    link(folder.path(), "full");
    let (place, model) = (folder.path().display(), CA_PAGES.to_argument());
    let content = format!(
        "CustomLog {place}/access.log \"%h %l %u %t \\\"%r\\\" %>s %B\"\nDocumentRoot {place}\nSetEnv MODEL {model}\n\
         ScriptAlias /page {place}/www/page\nScriptAlias /full/page {place}/full/page\n\
         ScriptAlias /light/page {place}/light/page\n{STATUS}\
         RewriteEngine On\nRewriteMap tree txt:{place}/trees.map\n\
         RewriteCond expr \"md5('a key of yours' . %{{REMOTE_ADDR}}) =~ /^(..)/\"\n\
         RewriteRule ^/mapped$ /${{tree:%1}}/page [PT]\n"
    );
    let modules = ["alias", "cgi", "env", "status", "rewrite"];
    Apache::with(folder, (CA_PAGES.workers, CA_PAGES.queue), &modules, &content)
}

/// Starts nginx before an application whose trees are prefixes. It reads `split.conf`.
pub fn nginx(page: &Path) -> Nginx {
    let folder = Folder::new();
    folder.write(
        "split.conf",
        "# Written by `plimsoll agent`, do not edit. Clients at full quality: 1\n\
         split_clients \"$remote_addr\" $plimsoll_tree { * \"/full\"; }\n",
    );
    let include = format!("include {}/split.conf;", folder.path().display());
    let server = "location = /nginx_status { stub_status; }";
    let parts = Parts { http: &include, server, tree: "$plimsoll_tree" };
    Nginx::with_parts(folder, page, NGINX_PAGES, parts)
}

/// The trees of a site of one page, in a folder; nginx does not run yet.
pub fn static_trees() -> Folder {
    let folder = Folder::new();
    for tree in ["full", "light"] {
        folder.write(&format!("trees/{tree}/page.html"), format!("<p>{tree}"));
    }
    open_to_all(folder.path());
    folder
}

/// Starts nginx over such trees: it reads `split.conf`, and the variable there is its root.
pub fn static_nginx(folder: Folder) -> Nginx {
    let include = format!("include {}/split.conf;", folder.path().display());
    let server = "root $plimsoll_tree;\nlocation = /nginx_status { stub_status; }";
    Nginx::with(folder, &include, server)
}

/// Makes the link `www` lead to this tree.
pub fn link(folder: &Path, tree: &str) {
    drop(fs::remove_file(folder.join("www")));
    symlink(folder.join(tree), folder.join("www")).unwrap_or_else(|error| panic!("no link: {error}"));
}

/// The tree that the link leads to now.
pub fn linked(folder: &Path) -> String {
    let target = fs::read_link(folder.join("www")).unwrap_or_default();
    target.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The share of clients at full quality, as the first line of what the agent wrote says it.
pub fn fraction(folder: &Path, file: &str) -> f64 {
    let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
    let first = text.lines().next().and_then(|line| line.rsplit(' ').next()?.parse().ok());
    first.unwrap_or_else(|| panic!("no fraction in {file}:\n{text}"))
}

/// The running program.
#[derive(Debug)]
pub struct Agent {
    /// The running process.
    pub process: Process,
}

impl Agent {
    /// Writes the agent's file for the server at `address`.
    pub fn file(folder: &Folder, address: SocketAddr, (probe, queue): (&str, u32), more: &str) -> PathBuf {
        let text = format!("[server]\nprobe = \"http://{address}{probe}\"\nqueue = {queue}\n{more}");
        folder.write("agent.toml", text)
    }

    /// Starts it with these options; panics, with its log, if it refuses.
    pub fn start(file: &Path, options: &[&str]) -> Agent {
        let log = file.with_extension("log");
        let mut command = Command::new(binary());
        let mut process = Process::spawn("agent", command.arg("agent").arg(file).args(options), &log);
        process.wait_for("its beginning", |log| log.contains("agent beside").then_some(()));
        Agent { process }
    }

    /// Runs it to its end.
    pub fn output(file: &Path, option: &str) -> Output {
        let ran = Command::new(binary()).arg("agent").arg(file).arg(option).output();
        ran.unwrap_or_else(|error| panic!("cannot run {}: {error}", binary().display()))
    }

    /// How many lines of its log hold `what`.
    pub fn said(&self, what: &str) -> usize {
        self.process.log().lines().filter(|line| line.contains(what)).count()
    }

    /// Sends a signal, and waits until it has ended.
    pub fn end(&mut self, signal: Signal) -> ExitStatus {
        self.process.signal(signal);
        self.process.wait()
    }
}
