//! The options of the commands that read a gateway's configuration, and of the demo.

use super::values::{Bounds, cookie, header, per_second, time_field, within};
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};
use plimsoll_gateway::Settings;
use plimsoll_sim::workload::LogTimes;
use std::net::IpAddr;
use std::path::PathBuf;

const SECONDS: Bounds<u64> = Bounds { what: "whole seconds", least: 5, most: Some(3600) };
const LOAD: Bounds<f64> = Bounds { what: "a multiple of the capacity", least: 0.1, most: Some(5.0) };
const CAPACITY: Bounds<u32> = Bounds { what: "whole pages per second", least: 100, most: Some(10_000) };
const SEED: Bounds<u64> = Bounds { what: "a whole number", least: 0, most: None };
const SPEED: Bounds<f64> = Bounds { what: "a factor", least: 0.001, most: Some(1e6) };
const SCALE: Bounds<f64> = Bounds { what: "a factor", least: 0.001, most: Some(1e4) };

const RUN_AFTER: &str = "\
On SIGTERM or SIGINT (Ctrl-C) it stops accepting and lets requests under way finish, for at most \
`timeouts.drain` of FILE; a second signal ends it at once.

On SIGHUP, or `POST /reload` at the admin listener, it reads FILE again: what is right takes its place at \
once, requests under way are not touched, and what is wrong is said and changes nothing.

On SIGUSR2 it starts its program again, which takes over the sockets that listen: no request is lost, and if \
the new process cannot start, this one goes on and says why.

Example:
  plimsoll run examples/one-site.toml
  curl http://127.0.0.1:9090/status
  curl -X POST http://127.0.0.1:9090/reload

Exit codes: 0 stopped as told, 1 failed (an address is in use, say) or stopped at once, 2 FILE is wrong.";

/// Be the gateway that FILE describes, until it is told to stop
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = RUN_AFTER)]
pub(crate) struct RunArguments {
    /// The configuration; docs/configuration.md has its keys
    pub(crate) file: PathBuf,
}

const TOP_AFTER: &str = "\
The promises come first, the worst at the top, each with what the loop does about it now; below them upstreams, classes and \
what happened lately. It asks once a second, and goes on after a restart. A controller inside a server (`plimsoll control \
--admin`) is watched by its address.

Example:
  plimsoll top
  plimsoll top /etc/plimsoll/plimsoll.toml
  plimsoll top 127.0.0.1:9090 --once | grep missed

Exit codes: 0 ended, 1 nothing answers there, 2 the input is wrong.";

/// Watch a running gateway or controller in the terminal
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = TOP_AFTER)]
pub(crate) struct TopArguments {
    /// The address of an admin listener, or the gateway's configuration, which has the address
    #[arg(value_name = "ADDRESS|FILE", default_value_t = Settings::ADMIN.to_string())]
    pub(crate) gateway: String,
    /// Print it once as text
    #[arg(long)]
    pub(crate) once: bool,
    /// The file with the token that the listener asks for; a configuration names its own
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

const CHECK_AFTER: &str = "\
All errors are shown at once, the first 20 of more: where, and what to write instead. If there are none, the plan is printed: \
what the servers carry and what the sites serve.

Example:
  plimsoll check examples/one-site.toml

Exit codes: 0 FILE is right, 1 it is and there are warnings (with --strict), 2 it is not.";

/// Say what is wrong with FILE, or what it means
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = CHECK_AFTER)]
pub(crate) struct CheckArguments {
    /// The configuration; docs/configuration.md has its keys
    pub(crate) file: PathBuf,
    /// Print the plan as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 1 if there are warnings
    #[arg(long)]
    pub(crate) strict: bool,
}

const DEMO_AFTER: &str = "\
A web server of known capacity meets more visitors than it can take, and so does the same server without \
the gateway. Everything runs in this process, on loopback addresses.

Without --seconds and --json it is a show of one minute: calm, three times the capacity, calm again. With \
either it is one step from nothing to the load; the server without the gateway has its turn afterwards, \
for as long.

Example:
  plimsoll demo
  plimsoll demo --seconds 30 --load 3 --json";

/// See it work: an overloaded server with and without the gateway
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = DEMO_AFTER)]
pub(crate) struct DemoArguments {
    #[arg(long, value_name = "N", value_parser = within(SECONDS),
        help = format!("Length of the step in {SECONDS} [default: 30]"))]
    pub(crate) seconds: Option<u64>,
    #[arg(long, value_name = "X", value_parser = within(LOAD), default_value = "3",
        help = format!("The load, as {LOAD}"))]
    pub(crate) load: f64,
    #[arg(long, value_name = "N", value_parser = within(CAPACITY), help = format!(
        "What the server can do, in {CAPACITY}; with fewer, chance has a larger part [default: 1000 for the show, 2000 \
         for the step]"))]
    pub(crate) capacity: Option<u32>,
    /// Seed of arrivals and clients
    #[arg(long, value_name = "N", value_parser = within(SEED), default_value = "1")]
    pub(crate) seed: u64,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Where the report goes, a page with plots [default: for the show a new file in the temporary folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the picture of the README instead, from the show in virtual time
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) picture: Option<PathBuf>,
}

const SIMULATE_AFTER: &str = "\
It runs the very code that the gateway runs, and says who would be served, degraded, delayed or turned \
away. What arrives comes from an access log (Common, Combined or JSON lines, .gz too) or from a workload, \
which also describes the true servers; without one they are what FILE says of them. With both, the log \
takes the place of the workload's streams.

Example:
  plimsoll simulate examples/one-site.toml --workload examples/workloads/step.toml
  plimsoll simulate --log access.log --speed 3 --capacity 200/s --report what-if.html
  plimsoll simulate site.toml --log access.log --sort --against 'nginx: limit_req rate=200r/s burst=50'

Exit codes: 0 done (also when stopped by Ctrl-C: what there is so far is printed), 1 failed or stopped by \
a second Ctrl-C, as a run must be that waits for its input, 2 the input is wrong.";

/// See what FILE would do with your access log, or a workload, in virtual time
#[derive(Args, Clone, Debug, Default, PartialEq)]
#[command(after_help = SIMULATE_AFTER)]
#[command(group = ArgGroup::new("arrivals").args(["log", "workload"]).required(true).multiple(true))]
pub(crate) struct SimulateArguments {
    /// The configuration; docs/configuration.md has its keys. Or an agent's file; docs/agent-keys.md has those [default: one
    /// site with a light level, before the log]
    pub(crate) file: Option<PathBuf>,
    /// The access log; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Sort the log by time first, in temporary files; without it only lines less than a minute late are put in place
    #[arg(long, requires = "log")]
    pub(crate) sort: bool,
    /// What a request took: the field's number behind the format's own, or its name in JSON or in name=value; with a unit
    /// (2:ms, duration:us); none to take none [default: what looks like one]
    #[arg(long, value_name = "FIELD", requires = "log", value_parser = time_field)]
    pub(crate) time_field: Option<LogTimes>,
    #[arg(long, value_name = "X", value_parser = within(SPEED), requires = "log",
        help = format!("Time of the log passes X times as fast, {SPEED} [default: 1]"))]
    pub(crate) speed: Option<f64>,
    #[arg(long, value_name = "N", value_parser = within(SCALE), requires = "log",
        help = format!("Each request of the log comes N times, {SCALE} [default: 1]"))]
    pub(crate) scale: Option<f64>,
    /// The host of requests whose line of the log names none [default: that of the only site]
    #[arg(long, value_name = "NAME", requires = "log", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) host: Option<String>,
    /// What the server can do, in requests a second at full quality (200/s), where no file says what a request takes
    #[arg(long, value_name = "N/s", value_parser = per_second, allow_hyphen_values = true)]
    pub(crate) capacity: Option<f64>,
    /// The workload; docs/workload.md has its keys
    #[arg(long, value_name = "FILE")]
    pub(crate) workload: Option<PathBuf>,
    /// Seed of everything random
    #[arg(long, value_name = "N", value_parser = within(SEED), default_value = "1")]
    pub(crate) seed: u64,
    /// The same arrivals met by another configuration, by an agent's file, or by none, tail-drop, concurrency, rate, sac, cac,
    /// aces, pools, gradient, gradient2 or aimd (concurrency:64), or by haproxy, nginx, envoy or mod_qos with their directives;
    /// may be given several times
    #[arg(long, value_name = "OTHER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) against: Vec<String>,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with plots, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write every decision, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Beside a running gateway: at the lowest priority, on one processor, in at most 1 GiB of memory, with lines of progress
    /// on stderr
    #[arg(long)]
    pub(crate) background: bool,
    /// What the gateway that asks has learned, in place of the state that an earlier run kept
    #[arg(long, value_name = "FILE", hide = true, requires = "background")]
    pub(crate) learned: Option<PathBuf>,
}

impl SimulateArguments {
    /// The message if neither a configuration nor a log is given: a log has a default configuration, but a workload is written
    /// for a configuration of its own.
    pub(super) fn missing(&self) -> Option<&'static str> {
        (self.file.is_none() && self.log.is_none()).then_some(
            "--workload needs the configuration that it is written for: name FILE before it; only --log may go without",
        )
    }
}

const EXPLAIN_AFTER: &str = "\
It says the request's site and class, and which conditions did not hold; its client; the level that this \
client gets at which m, the upstream and the path. Nothing is asked of any server.

Example:
  plimsoll explain examples/classes.toml --request 'GET /cart' --host shop.example \\
      --client 203.0.113.7 --cookie session=42

Exit codes: 0 explained, also that no site has the host; 2 the input is wrong.";

/// Say where a request belongs by FILE, and what its client gets when
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = EXPLAIN_AFTER)]
pub(crate) struct ExplainArguments {
    /// The configuration; docs/configuration.md has its keys
    pub(crate) file: PathBuf,
    /// The request; a path alone is asked for by GET
    #[arg(long, value_name = "METHOD /PATH", value_parser = RequestLine::parse)]
    pub(crate) request: RequestLine,
    /// The host that the request asks for [default: none]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(crate) host: String,
    /// The client's address, after trusted proxies
    #[arg(long, value_name = "ADDRESS", value_parser = address, default_value = "127.0.0.1")]
    pub(crate) client: IpAddr,
    /// A header of the request; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// A cookie of the request; may be given several times
    #[arg(long = "cookie", value_name = "NAME=VALUE", value_parser = cookie)]
    cookies: Vec<String>,
    /// A saved /status of the running gateway: its types that were found, and limits of upstreams with the reason
    #[arg(long, value_name = "FILE")]
    pub(crate) status: Option<PathBuf>,
    /// Print the explanation as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl ExplainArguments {
    /// Joins the cookies into one header, before any `cookie` header that was given too, because the first one counts. A host
    /// among the headers is the request's, unless `--host` names one: if there are two, the gateway answers 400.
    pub(super) fn join_headers(&mut self) {
        let named = self
            .headers
            .iter()
            .position(|(name, value)| name.eq_ignore_ascii_case("host") && !value.is_empty());
        if let Some(at) = named.filter(|_| self.host.is_empty()) {
            self.host = self.headers.remove(at).1;
        }
        if !self.cookies.is_empty() {
            let cookies = std::mem::take(&mut self.cookies).join("; ");
            self.headers.insert(0, ("cookie".to_owned(), cookies));
        }
    }
}

/// Method and target of a request, as typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestLine {
    pub(crate) method: String,
    /// The request's path and query.
    pub(crate) target: String,
}

impl RequestLine {
    fn parse(text: &str) -> Result<RequestLine, String> {
        let (method, target) = text.trim().split_once(' ').unwrap_or(("GET", text.trim()));
        let target = target.trim();
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_method = !method.is_empty() && method.bytes().all(letter);
        if !is_method || !target.starts_with('/') || target.contains(char::is_whitespace) {
            return Err("write a method and a path that begins with /, such as 'GET /index.html'".to_owned());
        }
        Ok(RequestLine { method: method.to_owned(), target: target.to_owned() })
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "write an IP address, such as 203.0.113.7".to_owned())
}
