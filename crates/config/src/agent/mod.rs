//! The file of `plimsoll agent`: an unmodified server, how its load is sensed, two content trees, and the switch between them.
//!
//! Input: the text of the file. Output: [`Agent`], plain data. The settings of the control loop are the core's own type
//! ([`plimsoll_core::agent::AgentLoopSettings`]).

pub(crate) mod keys;
mod resolve;
pub(crate) mod values;

use crate::diagnostic::Diagnostics;
use plimsoll_core::agent::{AgentLoopSettings, LoadSense};
use plimsoll_core::promises::{Condition, Plant, Promises, Site};
use std::fmt;
use std::path::PathBuf;
use toml::de::DeTable;

/// The settings of an agent's file.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    /// The page that is requested to see whether the server is overloaded.
    pub probe: HttpUrl,
    /// Where the server's counters are read.
    pub counters: CountersAt,
    /// How the counters become a utilization.
    pub sense: LoadSense,
    /// Where the server writes its process id, if that is known.
    pub pid: Option<PathBuf>,
    /// The settings of the control loop.
    pub settings: AgentLoopSettings,
    /// The tree of full quality: a folder for a link, otherwise the name that the server's own configuration uses for it.
    pub full: String,
    /// The degraded tree, in the same form.
    pub degraded: String,
    /// The switch between the two trees.
    pub chooser: Chooser,
    /// Which tree is left behind when the agent ends.
    pub on_exit: OnExit,
}

impl Agent {
    /// Promises for the server behind the agent, with the names that a workload uses: a plant `server`, and a site `site` whose
    /// levels `degraded` and `full` are the two trees. They promise nothing about them.
    pub fn promises(&self) -> Promises {
        let workers = match self.sense {
            LoadSense::Gap { workers: Some(workers) } => workers,
            LoadSense::Gap { workers: None } | LoadSense::Linear { .. } => 1,
        };
        let mut plant = Plant::new("server", workers);
        plant.set_point = self.settings.load_line;
        let mut site = Site::new("site", &["degraded", "full"]);
        site.exempt.push(Condition { paths: vec![self.probe.target.clone()], ..Condition::default() });
        Promises::of(plant, site)
    }
}

/// Where a server's counters are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CountersAt {
    /// The server's access log: Common, Combined, or JSON lines.
    Log(PathBuf),
    /// The page `server-status?auto` of Apache's mod_status.
    ServerStatus(HttpUrl),
    /// The page of nginx's module `stub_status`.
    StubStatus(HttpUrl),
    /// The packets of an interface, to and from the probe's port.
    Wire(String),
}

/// The switch between the two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// A symbolic link, for all clients alike.
    Link(PathBuf),
    /// nginx, by client.
    Nginx(Nginx),
    /// Apache, by client, from a text map that it reads again whenever it changes.
    Apache(PathBuf),
}

/// The file for nginx, and how nginx is made to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nginx {
    /// The file that its configuration includes.
    pub file: PathBuf,
    /// The variable that holds a client's tree, without `$`.
    pub variable: String,
    /// The key of a client, in nginx's variables.
    pub client: String,
    /// Where nginx writes its process id.
    pub pid: PathBuf,
    /// The program nginx, for `nginx -t`.
    pub program: PathBuf,
    /// nginx's configuration file, if it is not the built-in one.
    pub configuration: Option<PathBuf>,
    /// The seed from which the hash key is derived; `None` if it is to be drawn.
    pub seed: Option<u64>,
}

/// The tree that the agent leaves behind when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExit {
    /// Full quality for all clients.
    #[default]
    Restore,
    /// The tree, or fraction, that was chosen last.
    Keep,
}

/// A page over HTTP or HTTPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl {
    /// How the page is requested.
    pub scheme: Scheme,
    /// Host and port to connect to; the host is looked up later.
    pub address: String,
    /// The `Host` header.
    pub host: String,
    /// Path and query.
    pub target: String,
}

/// How a page is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP without encryption.
    Http,
    /// HTTP over TLS.
    Https,
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(to, "{scheme}://{}{}", self.host, self.target)
    }
}

/// Whether a text is an agent's file rather than a configuration: it has a section that only an agent's file has.
pub fn is_agent(source: &str) -> bool {
    has_section(source, &["server", "trees"])
}

/// Whether a text is a configuration rather than an agent's file.
pub fn is_configuration(source: &str) -> bool {
    has_section(source, &["gateway", "upstream", "folder", "site"]) && !is_agent(source)
}

fn has_section(source: &str, names: &[&str]) -> bool {
    let has = |file: &DeTable<'_>| file.keys().any(|key| names.contains(&key.get_ref().as_ref()));
    DeTable::parse(source).is_ok_and(|file| has(file.get_ref()))
}

/// Reads an agent's file. `name` is the file's name as the user gave it: diagnostics show it, and relative paths are taken from
/// its folder.
///
/// # Errors
/// All errors of the file at once.
pub fn parse_agent(source: &str, name: &str) -> Result<Agent, Diagnostics> {
    crate::syntax::read_file(source, name, |file: &keys::AgentKeys, findings| {
        resolve::resolve(file, name, findings)
    })
}
