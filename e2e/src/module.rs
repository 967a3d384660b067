//! A server whose own processes decide: `plimsoll control`, libplimsoll and mod_plimsoll.

use crate::built::assert_current;
use crate::plimsoll::{address_after, samples};
use crate::process::wait_until;
use crate::{Folder, Process, Response, binary, exchange, get, open_to_all, process::PATIENCE};
use std::env;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder that `PLIMSOLL_MODULE` names, as `make module` builds it, or else one that is made of the libraries that were
/// built with the binary, once for each program of tests. Panics, with what was said, if it cannot be.
pub fn module() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(folder) = env::var_os("PLIMSOLL_MODULE") {
            return folder.into();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let [libraries, folder] = ["examples", "module"].map(|name| binary().with_file_name(name));
        for library in ["libplimsoll.so", "libplimsoll_preload.so"] {
            assert_current(&libraries.join(library));
        }
        let built = Command::new(root.join(".ci/module")).args([&libraries, &folder]).output();
        let built = built.unwrap_or_else(|error| panic!("cannot run .ci/module: {error}"));
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        folder
    })
}

/// `plimsoll control`, with its state.
#[derive(Debug)]
pub struct Control {
    /// The running program.
    pub process: Process,
    folder: Folder,
    /// Options beside the state and the lanes.
    options: Vec<String>,
}

impl Control {
    /// Starts it as the user of the server's processes. Panics, with its log, if it does not come up.
    pub fn start(configuration: &str) -> Control {
        Control::start_with(configuration, &[])
    }

    /// The same with more options.
    pub fn start_with(configuration: &str, options: &[&str]) -> Control {
        let folder = Folder::new();
        folder.write("plimsoll.toml", configuration);
        open_to_all(folder.path());
        if let Some((user, group)) = server_user() {
            chown(folder.path(), Some(user), Some(group)).expect("root may give its folder away");
        }
        Control::start_in(folder, options.iter().copied().map(str::to_owned).collect())
    }

    /// Starts it again, with the state that it has left.
    pub fn again(&mut self) {
        *self = Control::start_in(self.folder.clone(), self.options.clone());
    }

    /// Starts it again, with another configuration.
    pub fn again_with(&mut self, configuration: &str) {
        self.folder.write("plimsoll.toml", configuration);
        self.again();
    }

    fn start_in(folder: Folder, options: Vec<String>) -> Control {
        let mut command = Command::new(binary());
        command.current_dir(folder.path()).args(["control", "plimsoll.toml", "--state", "state"]);
        if !options.iter().any(|option| option == "--lanes") {
            command.args(["--lanes", "64"]);
        }
        command.args(&options);
        if let Some((user, group)) = server_user() {
            command.uid(user).gid(group);
        }
        let mut process = Process::spawn("control", &mut command, &folder.path().join("control.log"));
        process.wait_for("its state", |log| log.contains("the shared state").then_some(()));
        Control { process, folder, options }
    }

    /// The file of the shared state.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Where it shows what it does. Panics, with the log, if it does not.
    pub fn admin(&self) -> SocketAddr {
        let log = self.process.log();
        address_after(&log, "admin on ").unwrap_or_else(|| panic!("no `admin on` in:\n{log}"))
    }

    /// A request of its admin listener, such as `GET /status`.
    pub fn ask(&self, line: &str) -> Response {
        exchange(self.admin(), format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }

    /// The sum of a metric's samples over all its labels; `None` if there is none.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let page = self.ask("GET /metrics").text();
        let values: Vec<f64> = samples(&page, name).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// Waits until its log has a line. Panics, with the log, if that takes too long.
    pub fn wait_for_line(&self, line: &str) {
        let found = wait_until(PATIENCE, || self.process.log().contains(line).then_some(()));
        assert!(found.is_some(), "no `{line}` in:\n{}", self.process.log());
    }
}

/// What `/server-status?auto` tells once nothing but the page that tells is in service.
#[derive(Debug)]
pub struct Accounts {
    /// Requests that have arrived.
    pub arrived: u64,
    /// Those that were turned away.
    pub rejected: u64,
    /// Processes that were found dead.
    pub deaths: u64,
    /// The requests that they held.
    pub returned: u64,
    /// Processes that are attached.
    pub attached: u64,
    /// How often it was asked, which is among the arrivals.
    pub asked: u64,
}

impl Accounts {
    /// Asks until all but the page that tells have ended. Panics, with the page, if they do not.
    pub fn at_rest(server: SocketAddr) -> Accounts {
        let (mut asked, mut last) = (0, String::new());
        let told = wait_until(PATIENCE, || {
            asked += 1;
            last = get(server, "/server-status?auto").text();
            let figure = |name: &str| -> Option<u64> {
                let line = last.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                line?.parse().ok()
            };
            let [arrived, ended] = [figure("PlimsollArrived")?, figure("PlimsollEnded")?];
            let is_at_rest = figure("PlimsollInService")? == 1 && ended + 1 == arrived;
            is_at_rest.then_some(Accounts {
                arrived,
                rejected: figure("PlimsollRejected")?,
                deaths: figure("PlimsollDeaths")?,
                returned: figure("PlimsollReturned")?,
                attached: figure("PlimsollAttached")?,
                asked,
            })
        });
        told.unwrap_or_else(|| panic!("requests do not end; last told:\n{last}"))
    }
}

/// The user of Apache's processes where root starts it.
fn server_user() -> Option<(u32, u32)> {
    let user = nix::unistd::geteuid().is_root().then(|| nix::unistd::User::from_name("www-data"));
    let user = user?.expect("users").expect("the user of Debian's Apache");
    Some((user.uid.as_raw(), user.gid.as_raw()))
}
