//! The command line. The options of a command, their bounds and their help are defined once, in a struct; parsing, help,
//! shell completions, manual pages and docs/command-line.md come from that. In come the words that the user typed; out
//! goes one [`Command`] with its arguments, or what clap has to say instead.

mod agent;
#[cfg(feature = "adapt")]
mod content;
mod control;
mod gateway;
mod profile;
pub(crate) mod source;
mod values;

pub(crate) use agent::AgentArguments;
#[cfg(feature = "adapt")]
pub(crate) use content::{AdaptArguments, ImpactArguments, PolicyOptions};
pub(crate) use control::ControlArguments;
pub(crate) use gateway::{
    CheckArguments, DemoArguments, ExplainArguments, RequestLine, RunArguments, SimulateArguments,
    TopArguments,
};
pub(crate) use profile::ProfileArguments;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::iter;
use std::path::PathBuf;

const AFTER: &str = "\
Example:
  plimsoll demo

Exit codes: 0 done, 1 failed, 2 the input is wrong.";

/// The message for `adapt` or `impact` if the binary was built without them.
#[cfg(not(feature = "adapt"))]
pub(crate) const LEFT_OUT: &str = "\
this plimsoll was built without `adapt` and `impact`, which read images with a library in C that a gateway does not need; \
in the source of this version, `cargo install --locked --path crates/cli` builds one that has them";

/// A gateway that holds a web server at its load line: under load it serves a part of the clients a lighter version, and
/// rejects only when even that is not enough
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, after_help = AFTER, max_term_width = 88, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

/// What the user asked for.
#[derive(Debug, PartialEq, Subcommand)]
pub(crate) enum Command {
    Run(RunArguments),
    Top(TopArguments),
    Check(CheckArguments),
    Simulate(SimulateArguments),
    Explain(ExplainArguments),
    Profile(ProfileArguments),
    #[cfg(feature = "adapt")]
    Adapt(AdaptArguments),
    #[cfg(feature = "adapt")]
    Impact(ImpactArguments),
    /// `adapt` and `impact`, where they were left out of the build
    #[cfg(not(feature = "adapt"))]
    #[command(name = "adapt", alias = "impact", hide = true, disable_help_flag = true)]
    LeftOut {
        #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
        words: Vec<OsString>,
    },
    Agent(AgentArguments),
    Control(ControlArguments),
    Demo(DemoArguments),
    /// Print the JSON schema of a file, for editors that complete keys
    #[command(after_help = "Example:\n  plimsoll schema > plimsoll.schema.json")]
    Schema {
        /// What the file is for
        #[arg(value_enum, default_value_t = FileFormat::Configuration)]
        of: FileFormat,
    },
    /// Print the completions of this command line for a shell
    #[command(after_help = "Example:\n  plimsoll completions bash > /etc/bash_completion.d/plimsoll")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command
    #[command(after_help = "Example:\n  plimsoll manual /usr/local/share/man/man1")]
    Manual {
        /// The folder in which they are written
        folder: PathBuf,
    },
}

/// A kind of file that Plimsoll reads.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum FileFormat {
    Configuration,
    Workload,
    Agent,
    Adaptation,
}

/// The definition of the whole command line.
pub(crate) fn definition() -> clap::Command {
    // A value such as `-1` is a wrong number, not an unknown option.
    let negative = |option: clap::Arg| match option.get_action().takes_values() {
        true => option.allow_negative_numbers(true),
        false => option,
    };
    CommandLine::command().mut_subcommands(|command| command.mut_args(negative))
}

/// The command that `words`, without the program's name, ask for.
///
/// # Errors
/// What clap prints instead: a page of help, or what is wrong and what to write.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
    let words = iter::once("plimsoll".into()).chain(words);
    let mut definition = definition();
    let matches = definition.try_get_matches_from_mut(words)?;
    let mut command = CommandLine::from_arg_matches(&matches)?.command;
    match &mut command {
        Command::Explain(arguments) => arguments.join_headers(),
        Command::Simulate(arguments) => {
            if let (Some(missing), Some(simulate)) =
                (arguments.missing(), definition.find_subcommand_mut("simulate"))
            {
                return Err(simulate.error(ErrorKind::MissingRequiredArgument, missing));
            }
        }
        #[cfg(feature = "adapt")]
        Command::Impact(arguments) => {
            if let (Some(conflict), Some(impact)) =
                (arguments.conflict(), definition.find_subcommand_mut("impact"))
            {
                return Err(impact.error(ErrorKind::ArgumentConflict, conflict));
            }
        }
        _ => {}
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn parsed(line: &str) -> Result<Command, clap::Error> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn options_are_taken_in_any_order() {
        let check = Command::Check(CheckArguments { file: "a.toml".into(), json: true, strict: false });
        assert_eq!(parsed("check --json a.toml").unwrap(), check);
        let demo = DemoArguments {
            seconds: Some(30),
            load: 2.5,
            capacity: Some(500),
            seed: 7,
            json: true,
            report: None,
            picture: None,
        };
        assert_eq!(
            parsed("demo --capacity 500 --load=2.5 --seed 7 --json --seconds 30").unwrap(),
            Command::Demo(demo)
        );
        assert_eq!(parsed("run a.toml").unwrap(), Command::Run(RunArguments { file: "a.toml".into() }));
    }

    #[test]
    fn help_is_found_everywhere() {
        for line in ["--help", "-h", "help"] {
            let page = parsed(line).unwrap_err();
            assert_eq!((page.kind(), page.exit_code()), (ErrorKind::DisplayHelp, 0), "{line}");
            assert!(page.to_string().contains("Commands:"), "{page}");
        }
        let page = parsed("").unwrap_err();
        assert_eq!((page.use_stderr(), page.exit_code()), (true, 2));
        assert!(page.to_string().contains("Commands:"), "{page}");
        for line in ["demo --seed 1 --help", "help demo", "demo -h"] {
            let page = parsed(line).unwrap_err();
            assert_eq!((page.kind(), page.exit_code()), (ErrorKind::DisplayHelp, 0), "{line}");
            assert!(page.to_string().contains("--capacity <N>"), "{page}");
        }
    }

    #[test]
    fn several_cookies_are_one_header_before_others() {
        let line = "explain a --request /x --header cookie:z=0 --cookie a=1 --cookie b=2";
        let Command::Explain(arguments) = parsed(line).unwrap() else { panic!("another command") };
        let header = |value: &str| ("cookie".to_owned(), value.to_owned());
        assert_eq!(arguments.headers, [header("a=1; b=2"), header("z=0")]);
        assert_eq!((arguments.request.method.as_str(), arguments.request.target.as_str()), ("GET", "/x"));
        assert!(arguments.host.is_empty() && arguments.client.is_loopback());
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write_instead() {
        for (line, said) in [
            ("chekc a", "'check'"),
            ("frobnicate", "unrecognized subcommand 'frobnicate'"),
            ("check --jsno a", "'--json'"),
            ("run", "<FILE>"),
            ("run a b", "unexpected argument 'b'"),
            ("demo a", "unexpected argument 'a'"),
            ("demo --seconds", "a value is required for '--seconds <N>'"),
            ("demo --seconds 2", "write whole seconds from 5 to 3600"),
            ("demo --load NaN", "from 0.1 to 5"),
            ("demo --seed -1", "invalid value '-1' for '--seed <N>'"),
            ("simulate a.toml", "<--log <FILE>|--workload <FILE>>"),
            ("simulate a.toml --log", "a value is required for '--log <FILE>'"),
            ("simulate", "not provided:\n  <--log <FILE>|--workload <FILE>>\n\nUsage: "),
            ("simulate", "<--log <FILE>|--workload <FILE>> [FILE]"),
            ("simulate --workload a.toml", "name FILE before it"),
            ("simulate a.toml --log a --log b", "'--log <FILE>' cannot be used multiple times"),
            ("simulate a.toml --log b --speed 0", "from 0.001 to 1000000"),
            ("simulate a.toml --workload b --scale 2", "--log <FILE>"),
            ("explain a.toml", "--request <METHOD /PATH>"),
            ("explain a.toml --request GET", "a path that begins with /"),
            ("explain a.toml --request /x --client me", "an IP address, such as"),
            ("explain a.toml --request /x --cookie", "a value is required for '--cookie <NAME=VALUE>'"),
            ("explain a.toml --request /x --header a", "a name and a value, such as 'x-plan: gold'"),
            ("profile", "<URL>..."),
            ("profile http://a/ --seconds-per-size 0", "seconds from 1 to 300"),
            ("profile http://a/ --sizes", "a value is required for '--sizes <A,B,...>'"),
            ("profile http://a/ --sizes 1K,", "sizes with commas between, such as 1K,16K,256K"),
            ("profile http://a/ --upstream a.b", "write letters, digits"),
            ("profile http://a/ --i-may-load-this-sever", "'--i-may-load-this-server'"),
            ("adapt a", "<OUT>"),
            ("adapt a b --levels text,lihgt", "'light'"),
            ("adapt a b --without lasy", "'lazy'"),
            ("adapt a b --factor 0", "from 1 to 100"),
            ("adapt a b --rule x=y", "expendable, degradable, important"),
            ("adapt a b --dept 2", "'--depth'"),
            ("impact", "<SITE>..."),
            ("impact a b --log c", "--log is the access log of one site"),
            ("impact a b --adapted c", "--adapted names the trees of one site"),
            ("impact a --costs b --per-kb 1", "cannot be used with"),
            ("agent a --restore --dry-run", "cannot be used with"),
            ("simulate a.toml --logs b", "'--log'"),
            ("control a --admin", "a value is required for '--admin <ADDRESS>'"),
            ("control a --admin 127.0.0.1", "add a port: `\"127.0.0.1:8080\"`"),
            ("control a --admin localhost:9091", "write `\"127.0.0.1:9091\"`: names are not looked up here"),
            ("control a --admin :9091", "`\"0.0.0.0:9091\"` for every IPv4 address"),
            (
                "control a --admin off",
                "invalid value 'off' for '--admin <ADDRESS>': write an address and a port",
            ),
            ("control a --admni 127.0.0.1:1", "'--admin'"),
            ("schema workloads", "'workload'"),
        ] {
            let error = parsed(line).unwrap_err();
            let text = error.to_string();
            assert_eq!(error.exit_code(), 2, "{line}: {text}");
            assert!(text.contains(said), "{line}: {text}");
            assert!(text.contains("--help"), "{line}: {text}");
        }
    }
}
