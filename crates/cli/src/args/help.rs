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
    Adapt,
    Impact,
    Agent,
}

impl Topic {
    /// The commands.
    pub(crate) const COMMANDS: [Topic; 9] = [
        Topic::Run,
        Topic::Check,
        Topic::Demo,
        Topic::Simulate,
        Topic::Profile,
        Topic::Explain,
        Topic::Adapt,
        Topic::Impact,
        Topic::Agent,
    ];

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
            Topic::Adapt => "adapt",
            Topic::Impact => "impact",
            Topic::Agent => "agent",
        }
    }

    /// The options that it takes.
    pub(crate) const fn options(self) -> &'static [&'static str] {
        match self {
            Topic::Main => &["--help", "--version"],
            Topic::Run => &["--help"],
            Topic::Check => &["--json", "--help"],
            Topic::Agent => &["--check", "--dry-run", "--restore", "--json", "--help"],
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
            Topic::Adapt => ADAPT_OPTIONS,
            Topic::Impact => IMPACT_OPTIONS,
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
        Topic::Adapt => ADAPT,
        Topic::Impact => IMPACT,
        Topic::Agent => AGENT,
    }
}

const ADAPT_OPTIONS: &[&str] = &[
    "--policy",
    "--levels",
    "--without",
    "--image-limit",
    "--medium-limit",
    "--factor",
    "--similarity",
    "--avif",
    "--cosmetic-limit",
    "--depth",
    "--rule",
    "--log",
    "--snapshot",
    "--sparse",
    "--json",
    "--help",
];

const IMPACT_OPTIONS: &[&str] = &[
    "--log",
    "--adapted",
    "--costs",
    "--per-request",
    "--per-kb",
    "--policy",
    "--without",
    "--image-limit",
    "--medium-limit",
    "--factor",
    "--similarity",
    "--avif",
    "--cosmetic-limit",
    "--depth",
    "--rule",
    "--json",
    "--report",
    "--help",
];

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
  adapt SITE OUT make lighter versions of a site's folder
  impact SITE    say how many more visitors the lighter versions let a server carry
  agent FILE     stand beside an unmodified nginx or Apache, and choose the version
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
                       tail-drop, concurrency, rate, sac, cac, aces, gradient,
                       gradient2 or aimd (concurrency:64); may be given several
                       times
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

const ADAPT: &str = "\
Makes lighter copies of the site in the folder SITE: one tree for each level in the
folder OUT, and a manifest. SITE is not touched. The new trees take the place of the
old at once, when all are whole; what did not change is not done again.

Usage: plimsoll adapt SITE OUT [OPTIONS]

Levels: text is pages without anything that a browser has to load; light is what the
steps below leave; full is a copy.

Steps at the light level, any of which --without leaves out:
  images       those above the limit in 1/8 of the bytes, or as few as stay similar
  medium       those above the medium limit in 1/4, half as far from the original
  cosmetic     icons, bullets, bars and all below the limit give way to their text
  one-page     an image on several pages stays on one; on others a link takes its place
  backgrounds  small backgrounds of style sheets go
  responsive   of the candidates for several screens the smallest stays
  lazy         images further down load when they are seen
  video        videos load when they are started
  expendable   what is tagged or ruled expendable goes
  compressed   each text has a compressed copy beside it (page.html.gz), at full too:
               the gateway sends it, nginx with `gzip_static on`
  vector       SVG images lose what no browser draws

Tags in a page, on any element: data-plimsoll=\"expendable\" (may go), \"degradable\" (may
be reduced, but stays), \"important\" (is not touched).

Options:
      --policy FILE       a file that says all of this; docs/adaptation.md has its keys
      --levels LIST       of text, light, full (default all)
      --without LIST      steps to leave out
      --image-limit N     bytes above which images are reduced (default 32768)
      --medium-limit N    bytes above which they are of medium size (default 4096)
      --factor X          by this in bytes (default 8)
      --similarity X      but not below this structural similarity (default 0.9)
      --avif              AVIFs too, by libavif's avifenc and avifdec: seconds for each
      --cosmetic-limit N  bytes below which images are cosmetic (default 1024)
      --depth N           leave out pages more than N links from the first
      --rule GLOB=TAG     tag files by path; several times, the last that fits counts
      --log ACCESS.LOG    the most popular page keeps an image, not the nearest
      --snapshot URL      store the dynamic page at URL as it is now, under its path
                          in the lower trees; http only; several times
      --sparse            leave out of a tree what is the same in the next (for servers
                          that read the manifest)
      --json              what was made as one JSON object on stdout
  -h, --help              this page

Example:
  plimsoll adapt /var/www/html /srv/trees
  plimsoll adapt site trees --levels light --rule '*.woff2=expendable' --depth 4

Exit codes: 0 done, 1 failed or stopped by Ctrl-C (the old trees are as they were),
2 the input is wrong.";

const IMPACT: &str = "\
Says how many times as many visitors a server carries when the site in the folder SITE
is served at a lower level: optimistic (no visitor has a cache), pessimistic (every
visitor sees the whole site, with a cache), and as counted for a view of one page.

Usage: plimsoll impact SITE... [OPTIONS]

Without --adapted the levels are estimated: pages as `plimsoll adapt` would make them,
images as small as it would like them. Of several sites it prints what part of them
improves by how much. What adapt takes to set its steps, this takes too: see
`plimsoll adapt --help`.

Options:
      --adapted OUT     measure the trees that adapt made of the site
      --policy FILE     how it is adapted, as adapt takes it
      --log ACCESS.LOG  weigh pages by their views, too
      --per-request MS  what a request costs the server, a (default 1.6)
      --per-kb MS       what 1024 bytes cost it, b (default 0.065)
      --costs FILE      both from a configuration, the first upstream that states them
      --json            the figures as one JSON object on stdout
      --report FILE     a page with plots, as one HTML file; with --adapted, pages and
                        images before and after (pages by a browser, if there is one)
  -h, --help            this page

Example:
  plimsoll impact /var/www/html --log access.log
  plimsoll impact sites/* --report savings.html

Exit codes: 0 done, 1 failed, 2 the input is wrong.";

const AGENT: &str = "\
Stands beside an unmodified nginx or Apache, outside the path of requests. It probes
the server and reads its counters; under load it lets the server take a lighter content
tree: by a link for everybody, or, where the server can choose by client, for as many
clients as it takes. When the load has gone everybody gets full quality again.

Usage: plimsoll agent FILE [OPTIONS]

At the start it looks at everything: the trees, the link or file that it will exchange,
the probe, the counters, and whether nginx reads what it writes. On SIGTERM, SIGINT
(Ctrl-C) or a failure of its own it restores full quality, unless FILE says
`on_exit = \"keep\"`. docs/agent.md says what to write into nginx and Apache.

Options:
      --check    look at everything, and end
      --dry-run  decide and say so, but change nothing
      --restore  full quality for everybody, and end; makes the link or file if there is
                 none yet (systemd: `ExecStopPost=`, for after a kill)
      --json     the figures of each period as JSON lines on stdout
  -h, --help     this page

Example:
  plimsoll agent examples/agent.toml --dry-run
  plimsoll agent /etc/plimsoll/agent.toml

Exit codes: 0 stopped as told, 1 failed, 2 FILE or something that it names is wrong.";
