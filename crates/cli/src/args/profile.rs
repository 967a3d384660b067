//! The options of `profile`.

use super::values::{Bounds, within};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

const SECONDS: Bounds<f64> = Bounds { what: "seconds", least: 1.0, most: Some(300.0) };
const CLIENTS: Bounds<u32> = Bounds { what: "clients, a whole number", least: 1, most: Some(4096) };
const REQUESTS: Bounds<u64> =
    Bounds { what: "requests, a whole number", least: 1, most: Some(1_000_000_000) };

const AFTER: &str = "\
Out comes what a request, a byte and a rejection cost the server: the [capacity] section of its upstream. \
Each URL is one size of one kind of content; sizes from 1 KB to 256 KB or more show most. Each is loaded \
by more and more clients until its rate no longer rises, then at random times at 80 and 95 % of that \
rate. At last the server is loaded with twice what it can do, to see what a request that fails costs it. \
It takes about a minute, and the server serves nobody else meanwhile.

Example:
  plimsoll profile 'http://127.0.0.1:8000/{size}.html' --sizes 1K,4K,16K,64K,256K
  plimsoll profile http://127.0.0.1:8000/search?q=a --seconds-per-size 30

Exit codes: 0 done (also when stopped by Ctrl-C: what there is so far is printed), 1 failed: the server \
died on the way, or the requests were used up; what was measured until then is printed, 2 the input is \
wrong.";

/// Load a real server to its limit, and say what requests cost it
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = AFTER)]
pub(crate) struct ProfileArguments {
    /// A page of the server; {size} in it stands for each of --sizes
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// What {size} in a URL stands for, one after the other
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = size)]
    pub(crate) sizes: Vec<String>,
    /// A URL that is always rejected, to see what a rejection costs
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) rejecting: Option<String>,
    #[arg(long, value_name = "S", value_parser = within(SECONDS),
        help = format!("How long each is loaded, in {SECONDS} [default: a minute for all, 2 to 10 each]"))]
    pub(crate) seconds_per_size: Option<f64>,
    #[arg(long, value_name = "N", value_parser = within(CLIENTS), default_value = "256",
        help = format!("Load it at once with at most this many {CLIENTS}"))]
    pub(crate) clients: u32,
    #[arg(long, value_name = "N", value_parser = within(REQUESTS), default_value = "2000000",
        help = format!("Send all together at most this many {REQUESTS}"))]
    pub(crate) requests: u64,
    /// Do not load the server with more than it can do
    #[arg(long)]
    pub(crate) no_overload: bool,
    /// Needed for a server that is not on a loopback address: you may load it until it serves nobody else
    #[arg(long = "i-may-load-this-server")]
    pub(crate) permitted: bool,
    /// The upstream's name in the section
    #[arg(long, value_name = "NAME", default_value = "app", value_parser = upstream)]
    pub(crate) upstream: String,
    /// Write the section to a new file
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with plots, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

fn size(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("write sizes with commas between, such as 1K,16K,256K".to_owned()),
        size => Ok(size.to_owned()),
    }
}

/// Parses the upstream's name, as the configuration takes it.
fn upstream(name: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(plain) {
        true => Ok(name.to_owned()),
        false => Err("write letters, digits, `-` and `_`, such as app".to_owned()),
    }
}
