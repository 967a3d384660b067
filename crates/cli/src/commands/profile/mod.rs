//! `plimsoll profile URL...`: loads a real server to find out what its requests cost.
//!
//! ```text
//! urls (are all on this machine?) -> consent -> probe (do they answer?) -> plimsoll_load::profile (watch: progress, Ctrl-C)
//!     -> facts (notes, section) -> JSON, or page -> text, HTML
//! ```
//!
//! The load crate measures; this room asks for consent and prints the results.

mod facts;
mod notes;
mod page;
mod plot;
mod section;
mod urls;

use crate::args::ProfileArguments;
use crate::output::failure::Failure;
use crate::output::new_file::NewFile;
use crate::output::progress::ProgressLine;
use crate::output::{json, text};
use crate::service::log;
use crate::service::open_files::raise_open_files;
use crate::service::signals::{Interrupt, Signals};
use plimsoll_load::profile::{Ended, Plan, Profile, Progress, Subject, Watch, is_page};
use plimsoll_load::{ErrorKind, Outcome};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The default time that all sizes take together (s).
const ABOUT: f64 = 60.0;
/// The least and the greatest default time of one size (s).
const EACH: (f64, f64) = (2.0, 10.0);
/// The load of the last phase, as a multiple of the highest rate.
const OVERLOAD: f64 = 2.0;

/// The results of the measurement, for every form of output.
pub(crate) struct Profiled {
    pub(crate) profile: Profile,
    /// The servers' names, for titles.
    pub(crate) servers: String,
    pub(crate) subjects: Vec<String>,
    pub(crate) rejecting: Option<String>,
    /// A remark if the URL that is to be rejected was answered like a page.
    pub(crate) wrong_rejection: Option<String>,
    pub(crate) loopback: bool,
    pub(crate) most_clients: u32,
    pub(crate) upstream: String,
    pub(crate) written: Option<PathBuf>,
    pub(crate) took: Duration,
}

pub(crate) fn profile(arguments: &ProfileArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    let plan = plan(arguments)?;
    let files = ProfileFiles::begin(arguments)?;
    let all: Vec<&Subject> = plan.subjects.iter().chain(&plan.rejecting).collect();
    let loopback = urls::are_loopback(all.iter().copied());
    let servers = urls::servers(all).join(", ");
    if !loopback && !arguments.permitted {
        return Err(not_permitted(&plan, &servers));
    }
    let interrupt = Interrupt::listen(signals)?;
    // A load of few clients works with the old limit of open files too, so a failure does not matter.
    let _ = raise_open_files();
    let wrong_rejection = probe(&plan)?;
    log::tell(announcement(&plan, &servers));
    let begin = Instant::now();
    let profile =
        plan.run(&mut ProfileWatcher { interrupt: &interrupt, line: ProgressLine::new(Duration::ZERO) });
    let mut profiled = Profiled {
        profile,
        servers,
        subjects: plan.subjects.iter().map(|subject| subject.name.clone()).collect(),
        rejecting: plan.rejecting.as_ref().map(|subject| subject.name.clone()),
        wrong_rejection,
        loopback,
        most_clients: plan.most_clients,
        upstream: arguments.upstream.clone(),
        written: None,
        took: begin.elapsed(),
    };
    tell(arguments, files, &mut profiled)
}

/// The files for the results, opened before the load: the load takes a minute, and a folder may be missing.
struct ProfileFiles {
    section: Option<NewFile>,
    report: Option<NewFile>,
}

impl ProfileFiles {
    fn begin(arguments: &ProfileArguments) -> Result<ProfileFiles, Failure> {
        let begin =
            |path: &Option<PathBuf>| path.as_deref().map(|path| NewFile::begin(path, &[])).transpose();
        arguments.write.as_deref().map_or(Ok(()), section::must_be_new)?;
        let files = ProfileFiles { section: begin(&arguments.write)?, report: begin(&arguments.report)? };
        NewFile::must_differ(("--write", &files.section), ("--report", &files.report))?;
        Ok(files)
    }
}

/// Writes and prints the results, and fails if anything is missing.
fn tell(arguments: &ProfileArguments, files: ProfileFiles, profiled: &mut Profiled) -> Result<(), Failure> {
    // The figures are printed even if a file cannot be written: measuring again takes a minute.
    let mut failures = Vec::new();
    if let (Some(file), Some(text)) = (files.section, section::section(profiled)) {
        match section::write(file, &text) {
            Ok(()) => profiled.written.clone_from(&arguments.write),
            Err(failure) => failures.push(failure),
        }
    }
    if let Some(file) = files.report {
        failures.extend(file.fill(&page::complete(profiled).to_html()).err());
    }
    json::print_or(arguments.json, &facts::facts(profiled), || text(profiled))?;
    if let Some(early) = notes::early_end(profiled) {
        match profiled.profile.ended {
            Ended::Interrupted => log::tell(early),
            _ => failures.push(Failure::Failed(early)),
        }
    }
    let mut failures = failures.into_iter();
    let first = failures.next();
    for other in failures {
        // A command ends with one code, so the other failures are printed here.
        other.report();
    }
    first.map_or(Ok(()), Err)
}

/// The tables and remarks of the page, the fit as a picture of characters, and the section to paste, as text.
pub(crate) fn text(profiled: &Profiled) -> String {
    let mut out = text::page(&page::page(profiled)) + "\n";
    if profiled.profile.highest.is_empty() {
        out += "Nothing was measured to its end.\n";
    }
    let points = profiled.profile.points();
    if let Some(picture) = profiled.profile.fit.and_then(|fit| plot::plot(&points, &fit)) {
        out += &format!("\n{picture}\n");
    }
    if let Some(section) = section::section(profiled) {
        out += &match &profiled.written {
            Some(file) => format!("\nWritten to {}:\n\n{section}", file.display()),
            None => format!("\nTo paste:\n\n{section}"),
        };
    }
    out
}

fn plan(arguments: &ProfileArguments) -> Result<Plan, Failure> {
    let subjects = urls::subjects(&arguments.urls, &arguments.sizes)?;
    let rejecting = arguments.rejecting.as_deref().map(urls::one).transpose()?;
    let mut plan = Plan {
        subjects,
        rejecting,
        each: Duration::ZERO,
        overload: (!arguments.no_overload).then_some(OVERLOAD),
        most_requests: arguments.requests,
        most_clients: arguments.clients,
    };
    let shared = (ABOUT / f64::from(plan.phases())).clamp(EACH.0, EACH.1);
    plan.each = Duration::from_secs_f64(arguments.seconds_per_size.unwrap_or(shared));
    Ok(plan)
}

fn intent(plan: &Plan) -> String {
    let beyond =
        plan.overload.map_or(String::new(), |factor| format!(", at last with {factor} times what it can do"));
    format!(
        "{} size{} for {:.0} s, with at most {} clients at once and {} requests in all{beyond}",
        plan.subjects.len(),
        if plan.subjects.len() == 1 { "" } else { "s" },
        plan.longest().as_secs_f64(),
        plan.most_clients,
        plan.most_requests
    )
}

fn announcement(plan: &Plan, servers: &str) -> String {
    format!(
        "Loading {servers} to its limit: {}. It serves nobody else meanwhile; Ctrl-C stops.",
        intent(plan)
    )
}

fn not_permitted(plan: &Plan, servers: &str) -> Failure {
    Failure::Input(format!(
        "error: {servers} is not on a loopback address, and this loads it to its limit: {}\nIt would serve next to \
         nobody else meanwhile. If you may do that to it, say so with `--i-may-load-this-server`.",
        intent(plan)
    ))
}

/// A sentence about a server that did not answer, and what to do.
fn no_answer(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "it takes no connection; start it, or name another host and port",
        ErrorKind::Timeout => "nothing came in time; name a page that it answers sooner",
        ErrorKind::Malformed => {
            "what it says is not HTTP/1.1; name a port at which it speaks that, without TLS"
        }
        ErrorKind::LocalLimit => "this machine has no more sockets; end what holds them",
        ErrorKind::Closed | ErrorKind::Reset | ErrorKind::Truncated => {
            "it ends the connection before its answer is whole; its log may say why"
        }
    }
}

/// Before any load, checks that every URL answers as it should. Returns a remark if the rejection looks like a page.
fn probe(plan: &Plan) -> Result<Option<String>, Failure> {
    let outcomes = plan.probe().map_err(|error| Failure::Input(format!("error: {error}")))?;
    let (mut wrong, mut down) = (Vec::new(), Vec::new());
    let mut note = None;
    for (place, (subject, outcome)) in plan.subjects.iter().chain(&plan.rejecting).zip(outcomes).enumerate() {
        let url = format!("http://{}{}", subject.target.host, subject.path);
        let is_rejection = place >= plan.subjects.len();
        match outcome {
            Outcome::Error(kind) => down.push(format!("{url} does not answer: {}", no_answer(kind))),
            Outcome::Answer(_) if is_rejection && is_page(outcome) => {
                note = Some(format!("{url} answered like a page, not like a rejection"));
            }
            Outcome::Answer(answer) if !is_rejection && !is_page(outcome) => {
                wrong
                    .push(format!("error: {url} answers {}; name URLs that are answered 200", answer.status));
            }
            Outcome::Answer(_) => {}
        }
    }
    match (wrong.is_empty(), down.is_empty()) {
        (true, true) => Ok(note),
        (false, _) => Err(Failure::Input(wrong.into_iter().chain(down).collect::<Vec<_>>().join("\n"))),
        (true, false) => Err(Failure::Failed(down.join("\n"))),
    }
}

/// Watches a profile: draws a progress bar, and ends it at Ctrl-C.
struct ProfileWatcher<'a> {
    interrupt: &'a Interrupt,
    line: ProgressLine,
}

impl Watch for ProfileWatcher<'_> {
    fn progress(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.interrupt.is_requested() {
            return ControlFlow::Break(());
        }
        let Progress { done, subject, what, requests } = progress;
        self.line.show(Some(*done), || format!("{subject:.20}: {what}, {requests} requests so far"));
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{self, Command};
    use plimsoll_load::profile::{Fit, Highest, Overload};

    /// 8 workers; a = 0.75 ms, b = 12.5 ns, b' = 25 ns, c = 0.375 ms, exactly.
    pub(crate) fn profiled() -> Profiled {
        let fit = Fit {
            per_request_seconds: 7.5e-4,
            per_byte_seconds: 1.25e-8,
            link_per_byte_seconds: Some(2.5e-8),
        };
        let found = |bytes: f64, seconds: f64| Highest {
            rate: 1.0 / seconds,
            uncertainty: 0.01,
            bytes,
            clients: 16,
            busy_clients: 8,
            alone: 1.0 / seconds / 8.1,
            climb: vec![(1, 1.0 / seconds / 8.1), (8, 1.0 / seconds), (16, 1.0 / seconds)],
            sustained: Some(0.95),
            response_seconds: Some(seconds * 10.0),
            late_seconds: 0.001,
            client_cpu: Some(0.1),
            machine_cpu: Some(0.5),
        };
        let bytes = [1.0, 4.0, 16.0, 64.0, 256.0].map(|kib| kib * 1024.0);
        let overload = Overload {
            subject: 2,
            offered: 2000.0,
            answered: 1000.0,
            failed: 0.0,
            bytes_per_second: 1e6,
            response_seconds: Some(0.5),
            late_seconds: 0.001,
            client_cpu: Some(0.2),
            per_failure_seconds: None,
            per_failure_error_seconds: None,
            per_failure_by_bytes_seconds: None,
        };
        let profile = Profile {
            highest: bytes.iter().map(|&bytes| found(bytes, fit.seconds(bytes))).collect(),
            rejecting: Some(found(0.0, 3.75e-4)),
            overload: Some(overload),
            fit: Some(fit),
            ended: Ended::Complete,
            requests: 12_000,
        };
        Profiled {
            profile,
            servers: "127.0.0.1:81".to_owned(),
            subjects: ["/1k", "/4k", "/16k", "/64k", "/256k"].map(str::to_owned).to_vec(),
            rejecting: Some("/full".to_owned()),
            wrong_rejection: None,
            loopback: true,
            most_clients: 256,
            upstream: "app".to_owned(),
            written: None,
            took: Duration::from_secs(20),
        }
    }

    fn arguments(urls: &[&str]) -> ProfileArguments {
        let words = ["profile"].iter().chain(urls).map(Into::into);
        let Ok(Command::Profile(arguments)) = args::parse(words) else { panic!("{urls:?}") };
        arguments
    }

    #[test]
    fn it_takes_about_a_minute_and_says_what_it_will_do() {
        let urls = ["http://127.0.0.1/1", "http://127.0.0.1/2", "http://127.0.0.1/3", "http://127.0.0.1/4"];
        let plan = plan(&arguments(&urls)).unwrap();
        assert_eq!(plan.longest(), Duration::from_secs(60));
        let text = announcement(&plan, "127.0.0.1");
        for part in
            ["4 sizes for 60 s", "256 clients", "2000000 requests", "2 times what it can do", "Ctrl-C"]
        {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let many =
            ProfileArguments { sizes: vec!["1".into(); 13], ..arguments(&["http://127.0.0.1/{size}"]) };
        assert_eq!(super::plan(&many).unwrap().longest(), Duration::from_secs(60));
    }

    #[test]
    fn another_machine_is_not_loaded_without_being_told_to() {
        match profile(&arguments(&["http://192.0.2.1:81/"])) {
            Err(Failure::Input(text)) => {
                for part in
                    ["192.0.2.1:81 is not on a loopback", "1 size for 30 s", "`--i-may-load-this-server`"]
                {
                    assert!(text.contains(part), "no {part:?} in {text}");
                }
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_reported_before_the_load() {
        let nobody = "http://127.0.0.1:1/";
        for option in ["--report", "--write"] {
            let failed = profile(&arguments(&[nobody, option, "no/such/file"])).unwrap_err();
            assert!(failed.text().contains("cannot write no/such/file"), "{failed:?}");
        }
        let both = profile(&arguments(&[nobody, "--report", "both-new", "--write", "both-new"])).unwrap_err();
        assert!(both.text().contains("both name both-new"), "{both:?}");
        assert!(!std::path::Path::new("both-new").exists());
    }

    #[test]
    fn the_page_and_the_json_have_the_figures() {
        let profiled = profiled();
        let html = page::complete(&profiled).to_html();
        for part in ["Service time by size", "/64k", "[upstream.app.capacity]", "320.0 Mbit/s"] {
            assert!(html.contains(part), "no {part:?}");
        }
        let json: serde_json::Value = serde_json::from_str(&json::line(&facts::facts(&profiled))).unwrap();
        assert_eq!((json["workers"].as_u64(), json["ended"].as_str()), (Some(8), Some("complete")));
        assert_eq!(json["costs"]["request"], 7.5e-4);
        assert_eq!(json["sizes"][4]["bytes"], 262_144.0);
        assert_eq!(json["sizes"][4]["fit_error"], 0.0);
    }

    #[test]
    fn the_tables_costs_notes_and_the_section_are_there() {
        let text = super::text(&profiled());
        for part in [
            "127.0.0.1:81: 12000 requests in 20 s\n",
            "4 KiB      1248.1/s  1.0 %        801 us   801 us",
            "at 95 %   8.01 ms",
            "/full (rejected)",
            "a    750 us",
            "b'   25.0 ns",
            "320.0 Mbit/s, what binds from 58.6 KiB on",
            "c    375 us",
            "T_f  -",
            "service time by size",
            "To paste:\n\n[upstream.app.capacity]",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(!text.contains("note:"), "{text}");
    }
}
