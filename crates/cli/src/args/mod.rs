//! The command line, as typed: which command, which options. What they mean is for the commands to say.

mod agent;
mod bounds;
mod content;
mod help;
pub(crate) mod source;

use crate::output::failure::Failure;
pub(crate) use agent::AgentArguments;
use bounds::Bounds;
pub(crate) use content::{AdaptArguments, ImpactArguments};
use help::Topic;
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// What the user asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// A page of help, or the version.
    Print(&'static str),
    Run(RunArguments),
    Check(CheckArguments),
    Demo(DemoArguments),
    Simulate(SimulateArguments),
    Profile(ProfileArguments),
    Explain(ExplainArguments),
    Adapt(AdaptArguments),
    Impact(ImpactArguments),
    Agent(AgentArguments),
}

/// `plimsoll run FILE`
#[derive(Debug, PartialEq)]
pub(crate) struct RunArguments {
    pub(crate) file: PathBuf,
}

/// `plimsoll check FILE`
#[derive(Debug, PartialEq)]
pub(crate) struct CheckArguments {
    pub(crate) file: PathBuf,
    pub(crate) json: bool,
}

/// `plimsoll demo`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DemoArguments {
    pub(crate) seconds: Option<u64>,
    pub(crate) load: Option<f64>,
    pub(crate) capacity: Option<u32>,
    pub(crate) seed: Option<u64>,
    pub(crate) json: bool,
}

/// `plimsoll simulate FILE`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SimulateArguments {
    pub(crate) file: PathBuf,
    pub(crate) workload: Option<PathBuf>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) speed: Option<f64>,
    pub(crate) scale: Option<f64>,
    pub(crate) seed: Option<u64>,
    /// Configurations or comparators.
    pub(crate) against: Vec<String>,
    pub(crate) json: bool,
    pub(crate) report: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
}

/// `plimsoll explain FILE`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExplainArguments {
    pub(crate) file: PathBuf,
    pub(crate) method: String,
    /// With its query.
    pub(crate) target: String,
    pub(crate) host: String,
    pub(crate) client: IpAddr,
    /// Name and value; cookies are among them.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) json: bool,
}

/// `plimsoll profile URL...`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProfileArguments {
    pub(crate) urls: Vec<String>,
    /// What `{size}` in a URL stands for, as typed.
    pub(crate) sizes: Vec<String>,
    pub(crate) rejecting: Option<String>,
    pub(crate) seconds_per_size: Option<f64>,
    pub(crate) clients: Option<u32>,
    pub(crate) requests: Option<u64>,
    pub(crate) no_overload: bool,
    /// The server may be one that others use.
    pub(crate) permitted: bool,
    /// The upstream's name in the section.
    pub(crate) upstream: Option<String>,
    pub(crate) write: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) report: Option<PathBuf>,
}

/// The command that `arguments`, without the program's name, ask for.
///
/// # Errors
/// [`Failure::Input`], with what to write instead.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Failure> {
    let mut parser = Parser::from_args(arguments);
    let topic = match parser.next().map_err(|error| wrong(&error.to_string(), Topic::Main))? {
        None | Some(Arg::Short('h') | Arg::Long("help")) => {
            return Ok(Command::Print(help::page(Topic::Main)));
        }
        Some(Arg::Short('V') | Arg::Long("version")) => return Ok(Command::Print(help::VERSION)),
        Some(Arg::Value(name)) => match name.to_str() {
            Some("help") => return help_on(&mut parser),
            Some(name) => topic(name)?,
            None => return Err(unknown_command(&name.to_string_lossy())),
        },
        Some(option) => return Err(unknown_option(&option, Topic::Main)),
    };
    match topic {
        Topic::Main => Ok(Command::Print(help::page(Topic::Main))),
        Topic::Run => run(&mut parser),
        Topic::Check => check(&mut parser),
        Topic::Demo => demo(&mut parser),
        Topic::Simulate => simulate(&mut parser),
        Topic::Profile => profile(&mut parser),
        Topic::Explain => explain(&mut parser),
        Topic::Adapt => content::adapt(&mut parser),
        Topic::Impact => content::impact(&mut parser),
        Topic::Agent => agent::agent(&mut parser),
    }
}

fn topic(name: &str) -> Result<Topic, Failure> {
    Topic::COMMANDS.into_iter().find(|topic| topic.name() == name).ok_or_else(|| unknown_command(name))
}

fn help_on(parser: &mut Parser) -> Result<Command, Failure> {
    let named = match parser.next() {
        Ok(Some(Arg::Value(name))) => topic(&name.to_string_lossy())?,
        _ => Topic::Main,
    };
    Ok(Command::Print(help::page(named)))
}

fn run(parser: &mut Parser) -> Result<Command, Failure> {
    let mut file = None;
    while let Some(argument) = next(parser, Topic::Run)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(Topic::Run))),
            Arg::Value(value) => only_file(&mut file, value, Topic::Run)?,
            option => return Err(unknown_option(&option, Topic::Run)),
        }
    }
    Ok(Command::Run(RunArguments { file: file.ok_or_else(|| no_file(Topic::Run))? }))
}

fn check(parser: &mut Parser) -> Result<Command, Failure> {
    let (mut file, mut json) = (None, false);
    while let Some(argument) = next(parser, Topic::Check)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(Topic::Check))),
            Arg::Long("json") => json = true,
            Arg::Value(value) => only_file(&mut file, value, Topic::Check)?,
            option => return Err(unknown_option(&option, Topic::Check)),
        }
    }
    Ok(Command::Check(CheckArguments { file: file.ok_or_else(|| no_file(Topic::Check))?, json }))
}

fn demo(parser: &mut Parser) -> Result<Command, Failure> {
    const TOPIC: Topic = Topic::Demo;
    let mut arguments = DemoArguments::default();
    while let Some(argument) = next(parser, TOPIC)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(TOPIC))),
            Arg::Long("json") => arguments.json = true,
            Arg::Long("seconds") => arguments.seconds = Some(number(parser, &bounds::SECONDS, TOPIC)?),
            Arg::Long("load") => arguments.load = Some(number(parser, &bounds::LOAD, TOPIC)?),
            Arg::Long("capacity") => arguments.capacity = Some(number(parser, &bounds::CAPACITY, TOPIC)?),
            Arg::Long("seed") => arguments.seed = Some(number(parser, &bounds::SEED, TOPIC)?),
            Arg::Value(value) => {
                let value = value.to_string_lossy();
                return Err(wrong(&format!("`{value}` is not wanted here: the demo needs no file"), TOPIC));
            }
            option => return Err(unknown_option(&option, TOPIC)),
        }
    }
    Ok(Command::Demo(arguments))
}

fn simulate(parser: &mut Parser) -> Result<Command, Failure> {
    const TOPIC: Topic = Topic::Simulate;
    let (mut file, mut arguments) = (None, SimulateArguments::default());
    while let Some(argument) = next(parser, TOPIC)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(TOPIC))),
            Arg::Long("json") => arguments.json = true,
            Arg::Long("workload") => path_once(&mut arguments.workload, parser, "workload", TOPIC)?,
            Arg::Long("log") => path_once(&mut arguments.log, parser, "log", TOPIC)?,
            Arg::Long("report") => path_once(&mut arguments.report, parser, "report", TOPIC)?,
            Arg::Long("trace") => path_once(&mut arguments.trace, parser, "trace", TOPIC)?,
            Arg::Long("speed") => arguments.speed = Some(number(parser, &bounds::SPEED, TOPIC)?),
            Arg::Long("scale") => arguments.scale = Some(number(parser, &bounds::SCALE, TOPIC)?),
            Arg::Long("seed") => arguments.seed = Some(number(parser, &bounds::SEED, TOPIC)?),
            Arg::Long("against") => {
                let other = path(parser, "against", TOPIC)?;
                arguments.against.push(other.to_string_lossy().into_owned());
            }
            Arg::Value(value) => only_file(&mut file, value, TOPIC)?,
            option => return Err(unknown_option(&option, TOPIC)),
        }
    }
    if arguments.workload.is_none() && arguments.log.is_none() {
        let what = "what is to arrive? Name an access log, `--log access.log`, or a workload, `--workload \
                    examples/workloads/step.toml`";
        return Err(wrong(what, TOPIC));
    }
    if arguments.log.is_none() && (arguments.speed.is_some() || arguments.scale.is_some()) {
        return Err(wrong("`--speed` and `--scale` are for `--log`; a workload states its own", TOPIC));
    }
    arguments.file = file.ok_or_else(|| no_file(TOPIC))?;
    Ok(Command::Simulate(arguments))
}

fn explain(parser: &mut Parser) -> Result<Command, Failure> {
    const TOPIC: Topic = Topic::Explain;
    let (mut file, mut request, mut json) = (None, None, false);
    let (mut host, mut client) = (String::new(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    let (mut headers, mut cookies) = (Vec::new(), Vec::new());
    while let Some(argument) = next(parser, TOPIC)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(TOPIC))),
            Arg::Long("json") => json = true,
            Arg::Long("request") => {
                request = Some(asked(&word(parser, "request", "method and path", "'GET /x'", TOPIC)?)?)
            }
            Arg::Long("host") => host = word(parser, "host", "a name", "shop.example", TOPIC)?,
            Arg::Long("client") => {
                let text = word(parser, "client", "an IP address", "203.0.113.7", TOPIC)?;
                let no_address =
                    |_| wrong(&format!("`--client {text}`: an IP address, such as 203.0.113.7"), TOPIC);
                client = text.parse().map_err(no_address)?;
            }
            Arg::Long("header") => {
                let text = word(parser, "header", "name and value", "'x-plan: gold'", TOPIC)?;
                headers.push(pair(&text, ':', "--header", "'x-plan: gold'")?);
            }
            Arg::Long("cookie") => {
                let text = word(parser, "cookie", "name and value", "session=42", TOPIC)?;
                let (name, value) = pair(&text, '=', "--cookie", "session=42")?;
                cookies.push(format!("{name}={value}"));
            }
            Arg::Value(value) => only_file(&mut file, value, TOPIC)?,
            option => return Err(unknown_option(&option, TOPIC)),
        }
    }
    let file = file.ok_or_else(|| no_file(TOPIC))?;
    let missing = || wrong("which request? Say `--request 'GET /path'`", TOPIC);
    let (method, target) = request.ok_or_else(missing)?;
    if !cookies.is_empty() {
        // Before a `cookie` header that was given too: the first one counts.
        headers.insert(0, ("cookie".to_owned(), cookies.join("; ")));
    }
    Ok(Command::Explain(ExplainArguments { file, method, target, host, client, headers, json }))
}

/// Method and target of `GET /path`, or of `/path` alone.
fn asked(text: &str) -> Result<(String, String), Failure> {
    let (method, target) = text.trim().split_once(' ').unwrap_or(("GET", text.trim()));
    let target = target.trim();
    let is_method =
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !is_method || !target.starts_with('/') || target.contains(char::is_whitespace) {
        let what =
            format!("`--request {text}`: a method and a path that begins with /, such as 'GET /index.html'");
        return Err(wrong(&what, Topic::Explain));
    }
    Ok((method.to_owned(), target.to_owned()))
}

/// Name and value of an option's text.
fn pair(text: &str, between: char, option: &str, example: &str) -> Result<(String, String), Failure> {
    match text.split_once(between) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(wrong(&format!("`{option} {text}`: a name and a value, such as {example}"), Topic::Explain)),
    }
}

fn profile(parser: &mut Parser) -> Result<Command, Failure> {
    const TOPIC: Topic = Topic::Profile;
    let mut arguments = ProfileArguments::default();
    while let Some(argument) = next(parser, TOPIC)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(TOPIC))),
            Arg::Long("json") => arguments.json = true,
            Arg::Long("no-overload") => arguments.no_overload = true,
            Arg::Long("i-may-load-this-server") => arguments.permitted = true,
            Arg::Long("sizes") => {
                let sizes = word(parser, "sizes", "sizes", "1K,16K,256K", TOPIC)?;
                arguments.sizes.extend(sizes.split(',').map(|size| size.trim().to_owned()));
            }
            Arg::Long("rejecting") => {
                let url = word(parser, "rejecting", "a URL", "http://127.0.0.1:8000/full", TOPIC)?;
                arguments.rejecting = Some(url);
            }
            Arg::Long("upstream") => {
                arguments.upstream = Some(word(parser, "upstream", "an upstream's name", "app", TOPIC)?);
            }
            Arg::Long("write") => arguments.write = Some(path(parser, "write", TOPIC)?),
            Arg::Long("report") => path_once(&mut arguments.report, parser, "report", TOPIC)?,
            Arg::Long("seconds-per-size") => {
                arguments.seconds_per_size = Some(number(parser, &bounds::SECONDS_PER_SIZE, TOPIC)?);
            }
            Arg::Long("clients") => arguments.clients = Some(number(parser, &bounds::CLIENTS, TOPIC)?),
            Arg::Long("requests") => arguments.requests = Some(number(parser, &bounds::REQUESTS, TOPIC)?),
            Arg::Value(url) => arguments.urls.push(url.to_string_lossy().into_owned()),
            option => return Err(unknown_option(&option, TOPIC)),
        }
    }
    if arguments.urls.is_empty() {
        let what = "which server? Name a URL for each size of content, `http://127.0.0.1:8000/small.html \
                    http://127.0.0.1:8000/large.jpg`, or all at once, `http://127.0.0.1:8000/{size}.html --sizes \
                    1K,16K,256K`";
        return Err(wrong(what, TOPIC));
    }
    Ok(Command::Profile(arguments))
}

/// The value of an option that is a word.
fn word(
    parser: &mut Parser,
    option: &str,
    what: &str,
    example: &str,
    topic: Topic,
) -> Result<String, Failure> {
    let value = parser.value().ok().and_then(|value| value.string().ok());
    let missing =
        || wrong(&format!("`--{option}` needs {what} after it, such as `--{option} {example}`"), topic);
    value.filter(|value| !value.is_empty()).ok_or_else(missing)
}

/// The value of an option that names a file and is given once: of two logs, neither must be lost silently.
fn path_once(
    slot: &mut Option<PathBuf>,
    parser: &mut Parser,
    option: &str,
    topic: Topic,
) -> Result<(), Failure> {
    let value = path(parser, option, topic)?;
    match slot.replace(value) {
        None => Ok(()),
        Some(first) => {
            Err(wrong(&format!("`--{option}` is given twice; the first is {}", first.display()), topic))
        }
    }
}

/// The value of an option that names a file.
fn path(parser: &mut Parser, option: &str, topic: Topic) -> Result<PathBuf, Failure> {
    let missing = |_| wrong(&format!("`--{option}` needs a file's name after it"), topic);
    parser.value().map(PathBuf::from).map_err(missing)
}

fn next(parser: &mut Parser, topic: Topic) -> Result<Option<Arg<'_>>, Failure> {
    parser.next().map_err(|error| wrong(&error.to_string(), topic))
}

/// The value of an option that is a number in bounds.
fn number<T: std::str::FromStr + PartialOrd>(
    parser: &mut Parser,
    bounds: &Bounds<T>,
    topic: Topic,
) -> Result<T, Failure> {
    let value = parser.value().ok().and_then(|value| value.string().ok());
    let shown = value.as_deref().unwrap_or_default().to_owned();
    let Bounds { option, what, example, range } = bounds;
    value
        .and_then(|value| value.parse().ok())
        .filter(|value| range.contains(value))
        .ok_or_else(|| wrong(&format!("`--{option} {shown}`: {what}, such as `--{option} {example}`"), topic))
}

fn only_file(file: &mut Option<PathBuf>, value: OsString, topic: Topic) -> Result<(), Failure> {
    match file.replace(value.into()) {
        None => Ok(()),
        Some(first) => {
            Err(wrong(&format!("one file, not several: `{}` was named first", first.display()), topic))
        }
    }
}

fn no_file(topic: Topic) -> Failure {
    wrong("which file? It is missing", topic)
}

fn unknown_command(name: &str) -> Failure {
    let known = Topic::COMMANDS.map(Topic::name);
    wrong(&format!("there is no command `{name}`{}", instead(name, &known)), Topic::Main)
}

fn unknown_option(option: &Arg<'_>, topic: Topic) -> Failure {
    let name = match option {
        Arg::Short(letter) => format!("-{letter}"),
        Arg::Long(name) => format!("--{name}"),
        Arg::Value(value) => value.to_string_lossy().into_owned(),
    };
    wrong(&format!("there is no option `{name}`{}", instead(&name, topic.options())), topic)
}

fn wrong(what: &str, topic: Topic) -> Failure {
    let command = [" ", topic.name()].concat();
    Failure::Input(format!("error: {what}\nSee `plimsoll{} --help`.", command.trim_end()))
}

/// What may have been meant.
fn instead(name: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|word| (distance(name, word), word)).min();
    match nearest {
        Some((distance, word)) if distance <= 2 => format!("; did you mean `{word}`?"),
        _ => format!("; there are {}", known.join(", ")),
    }
}

/// Levenshtein's: how many letters to put in, take out or change.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, Failure> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn refused(line: &str) -> String {
        match parsed(line) {
            Err(Failure::Input(text)) => text,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let check = Command::Check(CheckArguments { file: "a.toml".into(), json: true });
        assert_eq!(parsed("check --json a.toml"), Ok(check));
        let demo = DemoArguments {
            seconds: Some(30),
            load: Some(2.5),
            capacity: Some(500),
            seed: Some(7),
            json: true,
        };
        assert_eq!(
            parsed("demo --capacity 500 --load=2.5 --seed 7 --json --seconds 30"),
            Ok(Command::Demo(demo))
        );
        assert_eq!(parsed("run a.toml"), Ok(Command::Run(RunArguments { file: "a.toml".into() })));
    }

    #[test]
    fn help_is_found_everywhere() {
        for line in ["", "--help", "-h", "help"] {
            assert_eq!(parsed(line), Ok(Command::Print(help::page(Topic::Main))), "{line}");
        }
        for line in ["demo --seed 1 --help", "help demo", "demo -h"] {
            assert_eq!(parsed(line), Ok(Command::Print(help::page(Topic::Demo))), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write_instead() {
        for (line, said) in [
            ("chekc a", "did you mean `check`?"),
            ("frobnicate", "there are run, check, demo, simulate, profile, explain, adapt, impact"),
            ("check --jsno a", "did you mean `--json`?"),
            ("run", "which file?"),
            ("run a b", "one file, not several: `a` was named first"),
            ("demo a", "the demo needs no file"),
            ("demo --seconds", "whole seconds from 5 to 3600, such as `--seconds 30`"),
            ("demo --seconds 2", "whole seconds from 5"),
            ("demo --load NaN", "from 0.1 to 5"),
            ("demo --seed -1", "a whole number"),
            ("simulate a.toml", "what is to arrive?"),
            ("simulate a.toml --log", "`--log` needs a file's name"),
            ("simulate --log a.log", "which file?"),
            ("simulate a.toml --log a --log b", "`--log` is given twice; the first is a"),
            ("simulate a.toml --log b --speed 0", "from 0.001 to 1000000"),
            ("simulate a.toml --workload b --scale 2", "are for `--log`"),
            ("explain a.toml", "which request?"),
            ("explain a.toml --request GET", "a path that begins with /"),
            ("explain a.toml --request /x --client me", "an IP address, such as"),
            ("explain a.toml --request /x --cookie", "`--cookie` needs name and value after it"),
            ("explain a.toml --request /x --header a", "a name and a value, such as 'x-plan: gold'"),
            ("profile", "which server? Name a URL for each size"),
            ("profile http://a/ --seconds-per-size 0", "seconds from 1 to 300"),
            ("profile http://a/ --sizes", "`--sizes` needs sizes after it, such as `--sizes 1K,16K,256K`"),
            ("profile http://a/ --i-may-load-this-sever", "did you mean `--i-may-load-this-server`?"),
            ("adapt a", "two folders"),
            ("adapt a b --levels text,lihgt", "did you mean `light`?"),
            ("adapt a b --without lasy", "did you mean `lazy`?"),
            ("adapt a b --factor 0", "from 1 to 100"),
            ("adapt a b --rule x=y", "expendable, degradable, important"),
            ("adapt a b --dept 2", "did you mean `--depth`?"),
            ("impact", "which site?"),
            ("impact a b --log c", "`--log` is for one site"),
            ("impact a --costs b --per-kb 1", "not both"),
            ("simulate a.toml --logs b", "did you mean `--log`?"),
        ] {
            let text = refused(line);
            assert!(text.contains(said), "{line}: {text}");
        }
    }

    #[test]
    fn distances() {
        assert_eq!((distance("check", "chekc"), distance("", "abc"), distance("run", "run")), (2, 3, 0));
    }
}
