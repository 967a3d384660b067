//! The pages of help.

/// What there is help on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Main,
    Run,
    Check,
    Demo,
    Simulate,
    Profile,
    Explain,
}

impl Topic {
    /// The commands.
    pub(crate) const COMMANDS: [Topic; 6] =
        [Topic::Run, Topic::Check, Topic::Demo, Topic::Simulate, Topic::Profile, Topic::Explain];

    /// The command's name; the program itself has none.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Topic::Main => "",
            Topic::Run => "run",
            Topic::Check => "check",
            Topic::Demo => "demo",
            Topic::Simulate => "simulate",
            Topic::Profile => "profile",
            Topic::Explain => "explain",
        }
    }

    /// The options that it takes.
    pub(crate) const fn options(self) -> &'static [&'static str] {
        match self {
            Topic::Main => &["--help", "--version"],
            Topic::Run => &["--help"],
            Topic::Check => &["--json", "--help"],
            Topic::Demo => &["--seconds", "--load", "--capacity", "--seed", "--json", "--help"],
            Topic::Simulate => &[
                "--log",
                "--speed",
                "--scale",
                "--workload",
                "--seed",
                "--against",
                "--json",
                "--report",
                "--trace",
                "--help",
            ],
            Topic::Explain => {
                &["--request", "--host", "--client", "--header", "--cookie", "--json", "--help"]
            }
            Topic::Profile => &[
                "--sizes",
                "--rejecting",
                "--seconds-per-size",
                "--clients",
                "--requests",
                "--no-overload",
                "--i-may-load-this-server",
                "--upstream",
                "--write",
                "--json",
                "--report",
                "--help",
            ],
        }
    }
}

/// The answer to `--version`.
pub(crate) const VERSION: &str = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));

/// The page on `topic`.
pub(crate) const fn page(topic: Topic) -> &'static str {
    match topic {
        Topic::Main => MAIN,
        Topic::Run => RUN,
        Topic::Check => CHECK,
        Topic::Demo => DEMO,
        Topic::Simulate => SIMULATE,
        Topic::Profile => PROFILE,
        Topic::Explain => EXPLAIN,
    }
}

const MAIN: &str = "\
A gateway that holds a web server at its load line: under load it serves a part of
the clients a lighter version, and rejects only when even that is not enough.

Usage: plimsoll COMMAND

Commands:
  run FILE       be the gateway that FILE describes
  check FILE     say what is wrong with FILE, or what it means
  simulate FILE  see what FILE would do with your access log at three times the load
  explain FILE   say where a request belongs, and what its client gets when
  profile URL    find out by loading a server what requests cost it
  demo           see it work: an overloaded server with and without the gateway

Options:
  -h, --help     this page; `plimsoll COMMAND --help` has more
  -V, --version  the version

Example:
  plimsoll demo

Exit codes: 0 done, 1 failed, 2 the input is wrong.";

const RUN: &str = "\
Runs the gateway that FILE describes, until it is told to stop.

Usage: plimsoll run FILE

On SIGTERM or SIGINT (Ctrl-C) it accepts no more connections, finishes the requests
under way, and ends. A second signal ends it at once. On SIGHUP, or `POST /reload` to
the admin listener, it reads FILE again: what is right takes its place at once, requests
under way are not touched, and what is wrong is said and changes nothing.

Options:
  -h, --help  this page

Example:
  plimsoll run examples/one-site.toml
  curl http://127.0.0.1:9090/status
  curl -X POST http://127.0.0.1:9090/reload

Exit codes: 0 stopped as told, 1 failed (an address is in use, say) or stopped at once,
2 FILE is wrong.";

const CHECK: &str = "\
Says everything that is wrong with FILE, at once: where, and what to write instead.
If nothing is, prints the plan: what the servers carry and what the sites serve.

Usage: plimsoll check [--json] FILE

Options:
      --json  the plan as one JSON object
  -h, --help  this page

Example:
  plimsoll check examples/one-site.toml

Exit codes: 0 FILE is right, 2 it is not.";

const DEMO: &str = "\
Shows what the gateway does: a web server of known capacity, more visitors than it
can take, and the same visitors at the same server without the gateway.
Everything runs in this process, on loopback addresses.

Usage: plimsoll demo [OPTIONS]

Without --seconds and --json it is a show of one minute: calm, three times the
capacity, calm again. With either it is one step from nothing to the load; the
server without the gateway has its turn afterwards, for as long.

Options:
      --seconds N   length of the step, 5 to 3600 (default 30)
      --load X      the load as a multiple of the capacity, 0.1 to 5 (default 3)
      --capacity N  of the server in full pages per second, 100 to 10000 (default
                    1000 for the show, 2000 for the step); with fewer, chance
                    has a larger part
      --seed N      of arrivals and clients (default 1)
      --json        figures as one JSON object on stdout
  -h, --help        this page

Example:
  plimsoll demo
  plimsoll demo --seconds 30 --load 3 --json";

const SIMULATE: &str = "\
Runs the configuration FILE in virtual time, through the very code that the gateway
runs, and says who would have been served, degraded, delayed or turned away.

Usage: plimsoll simulate FILE --log ACCESS.LOG [--speed X] [--scale N] [OPTIONS]
       plimsoll simulate FILE --workload WORKLOAD.toml [OPTIONS]

What arrives comes from an access log (Common, Combined or JSON lines, .gz too, - is
standard input) or from a workload, which also describes the true servers; without
one they are what FILE says of them. With both, the log takes the place of the
workload's streams.

Options:
      --log FILE       the access log
      --speed X        its time passes X times as fast (default 1)
      --scale N        each of its requests comes N times (default 1)
      --workload FILE  the workload: docs/workload.md
      --seed N         of everything random (default 1)
      --against OTHER  the same arrivals met by another configuration, or by none,
                       tail-drop, concurrency, rate, sac, cac, gradient, gradient2
                       or aimd (concurrency:64); may be given several times
      --json           figures as one JSON object on stdout
      --report FILE    a page with plots, as one HTML file
      --trace FILE     every decision, as JSON lines
  -h, --help           this page

Example:
  plimsoll simulate examples/one-site.toml --workload examples/workloads/step.toml
  plimsoll simulate site.toml --log access.log --speed 3 --report what-if.html

Exit codes: 0 done (also when stopped by Ctrl-C: what there is so far is printed),
1 failed, 2 the input is wrong.";

const PROFILE: &str = "\
Loads a real server to its limit and says what a request, a byte and a rejection cost
it: the [capacity] section of its upstream. It takes about a minute.

Usage: plimsoll profile URL... [OPTIONS]

Each URL is one size of one kind of content; sizes from 1 KB to 256 KB or more tell
most. Each is loaded by more and more clients until its rate no longer rises, then at
random times at 80 and 95 % of that rate. At last the server is loaded with twice what
it can do, to see what a request that fails costs it. The server serves nobody else
meanwhile.

Options:
      --sizes A,B,...         what {size} in a URL stands for, one after the other
      --rejecting URL         one that is always rejected: what does that cost?
      --seconds-per-size S    how long each is loaded, 1 to 300 (default: a minute for
                              all, at least 2 and at most 10 each)
      --clients N             at most so many at once, 1 to 4096 (default 256)
      --requests N            at most so many, all together (default 2000000)
      --no-overload           not more than it can do
      --i-may-load-this-server
                              needed for a server that is not on a loopback address:
                              you may load it until it serves nobody else
      --upstream NAME         in the section (default app)
      --write FILE            the section, to a new file
      --json                  figures as one JSON object on stdout
      --report FILE           a page with plots, as one HTML file
  -h, --help                  this page

Example:
  plimsoll profile 'http://127.0.0.1:8000/{size}.html' --sizes 1K,4K,16K,64K,256K
  plimsoll profile http://127.0.0.1:8000/search?q=a --seconds-per-size 30

Exit codes: 0 done (also when stopped by Ctrl-C: what there is so far is printed),
1 failed: the server died on the way, or the requests were used up; what was measured
until then is printed, 2 the input is wrong.";

const EXPLAIN: &str = "\
Says what the configuration FILE makes of a request: its site and class, and which
conditions did not hold; its client; the level that this client gets at which m, the
upstream and the path. Nothing is asked of any server.

Usage: plimsoll explain FILE --request 'GET /path' [OPTIONS]

Options:
      --request 'METHOD /PATH'  the request
      --host NAME               the host that it asks for (default: none)
      --client ADDRESS          who asks, after trusted proxies (default 127.0.0.1)
      --header 'NAME: VALUE'    a header; may be given several times
      --cookie 'NAME=VALUE'     a cookie; may be given several times
      --json                    as one JSON object
  -h, --help                    this page

Example:
  plimsoll explain examples/classes.toml --request 'GET /cart' --host shop.example \\
      --client 203.0.113.7 --cookie session=42

Exit codes: 0 told, also that no site has the host; 2 the input is wrong.";
