//! The tables of UC 7.2, the costs, and what to know beside them, as text.

use super::words::{percent, rate, size, time};
use super::{Profiled, plot, section};
use plimsoll_load::profile::{Ended, Highest, MOST_LATE, Overload, Point};

/// A client's thread that takes more of a processor than this may be what ended the rise.
const BUSY_CLIENT: f64 = 0.85;
/// The same of the whole machine.
const BUSY_MACHINE: f64 = 0.95;
/// A client that is later than this in the open loop brings arrivals in bunches of its own (s).
const LATE: f64 = 0.02;
/// A rate less sure than this is pointed out, and so is a size that the fit misses by more.
const UNSURE: f64 = 0.05;

/// All of it.
pub(crate) fn text(profiled: &Profiled) -> String {
    let mut text = format!("{}\n", headline(profiled));
    if profiled.profile.highest.is_empty() {
        text += "Nothing was measured to its end.\n";
    } else {
        text += &format!("\n{}\n{}", sizes(profiled), crate::output::text::rows(&costs(profiled), &[]));
    }
    let points = profiled.profile.points();
    if let Some(picture) = profiled.profile.fit.and_then(|fit| plot::plot(&points, &fit)) {
        text += &format!("\n{picture}\n");
    }
    let notes = notes(profiled);
    if !notes.is_empty() {
        text += &format!("\n{}", notes.iter().map(|note| format!("note: {note}\n")).collect::<String>());
    }
    if let Some(section) = section::section(profiled) {
        text += &match &profiled.written {
            Some(file) => format!("\nWritten to {}:\n\n{section}", file.display()),
            None => format!("\nTo paste:\n\n{section}"),
        };
    }
    text
}

/// What was loaded, for how long.
pub(crate) fn headline(profiled: &Profiled) -> String {
    let seconds = profiled.took.as_secs_f64();
    format!("{}: {} requests in {seconds:.0} s", profiled.servers, profiled.profile.requests)
}

/// How a profile ended, if not as planned.
pub(crate) fn early_end(profiled: &Profiled) -> Option<String> {
    let (done, all) = (profiled.profile.highest.len(), profiled.subjects.len());
    let kept = format!("{done} of {all} sizes were measured to their end");
    match &profiled.profile.ended {
        Ended::Complete => None,
        Ended::Interrupted => Some(format!("stopped: {kept}")),
        Ended::RequestsUsedUp => Some(format!(
            "all {} requests are used up: {kept}\nAllow more with `--requests`, or give each size less time with \
             `--seconds-per-size`.",
            profiled.profile.requests
        )),
        Ended::Died(subject, why) => Some(format!(
            "the server no longer answered {subject}: {why}\n{kept}. Look at the server; `--no-overload` and a lower \
             `--clients` are gentler."
        )),
    }
}

/// UC's Tables 1 to 3 in one.
fn sizes(profiled: &Profiled) -> String {
    let head = [
        "",
        "size",
        "highest rate",
        "+/-",
        "service time",
        "fit",
        "error",
        "clients",
        "sustained",
        "response",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (found, name) in profiled.profile.highest.iter().zip(&profiled.subjects) {
        let point = Point { bytes: found.bytes, seconds: found.service_seconds() };
        let fit = profiled.profile.fit.as_ref();
        let mut row = measured(name, found);
        row.insert(5, fit.map_or(String::new(), |fit| time(fit.seconds(found.bytes))));
        row.insert(6, fit.map_or(String::new(), |fit| percent(fit.error(point))));
        rows.push(row);
    }
    if let (Some(found), Some(name)) = (&profiled.profile.rejecting, &profiled.rejecting) {
        let mut row = measured(&format!("{name} (rejected)"), found);
        row.splice(5..5, [String::new(), String::new()]);
        rows.push(row);
    }
    crate::output::text::rows(&rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9])
}

fn measured(name: &str, found: &Highest) -> Vec<String> {
    vec![
        name.to_owned(),
        size(found.bytes),
        format!("{:.1}/s", found.rate),
        percent(found.uncertainty),
        time(found.service_seconds()),
        found.clients.to_string(),
        found.sustained.map_or("no".to_owned(), |share| format!("at {:.0} %", share * 100.0)),
        found.response_seconds.map_or("-".to_owned(), time),
    ]
}

/// The costs, a row each: symbol, value, what it is.
pub(crate) fn costs(profiled: &Profiled) -> Vec<Vec<String>> {
    let profile = &profiled.profile;
    let Some(fit) = profile.fit else { return Vec::new() };
    let row = |symbol: &str, value: String, what: String| vec![symbol.to_owned(), value, what];
    let mut rows = vec![
        row("a", time(fit.per_request_seconds), "a request, whatever its size".to_owned()),
        row(
            "b",
            time(fit.per_byte_seconds),
            format!("a byte; {} a KiB", time(fit.per_byte_seconds * 1024.0)),
        ),
    ];
    if let Some(link) = fit.link_per_byte_seconds {
        let from = fit.per_request_seconds / (link - fit.per_byte_seconds);
        let what = format!(
            "a byte on the second resource, the link: {}, what binds from {} on",
            rate(1.0 / link),
            size(from)
        );
        rows.push(row("b'", time(link), what));
    }
    if let Some(rejecting) = &profile.rejecting {
        rows.push(row("c", time(rejecting.service_seconds()), "a rejection".to_owned()));
    }
    if let Some(overload) = &profile.overload {
        let (value, what) = failure(overload);
        rows.push(row("T_f", value, what));
    }
    rows
}

fn failure(overload: &Overload) -> (String, String) {
    let Overload { offered, answered, failed, .. } = overload;
    let seen = format!("offered {offered:.0}/s, answered {answered:.0}/s, failed {failed:.0}/s");
    match (overload.per_failure_seconds, overload.per_failure_by_bytes_seconds) {
        (Some(own), Some(by_bytes)) => (
            time(own),
            format!(
                "a request that fails above the highest rate, give or take {}; {} by its lost bytes alone ({seen})",
                time(overload.per_failure_error_seconds.unwrap_or_default()),
                time(by_bytes)
            ),
        ),
        _ if overload.late_seconds > MOST_LATE => {
            ("-".to_owned(), format!("a request that fails: the client could not offer enough ({seen})"))
        }
        _ => ("-".to_owned(), format!("a request that fails: next to none did ({seen})")),
    }
}

/// What is to be known beside the figures, a sentence each.
pub(crate) fn notes(profiled: &Profiled) -> Vec<String> {
    let profile = &profiled.profile;
    let mut notes = Vec::new();
    let rejecting = profile.rejecting.as_ref().zip(profiled.rejecting.as_ref());
    let all = profile.highest.iter().zip(&profiled.subjects).chain(rejecting);
    let all = all.map(|(found, name)| (found, name.as_str()));
    notes.extend(limits(profiled, &all.clone().collect::<Vec<_>>()));
    let busiest = all.filter_map(|(found, _)| Some((found.machine_cpu?, found.client_cpu?)));
    let busiest = busiest.max_by(|one, other| one.0.total_cmp(&other.0));
    if let Some((machine, client)) =
        busiest.filter(|(machine, _)| profiled.loopback && *machine > BUSY_MACHINE)
    {
        notes.push(format!(
            "this machine's processors were busy to {:.0} %, and the client took {:.0} % of one of them: the server \
             alone may do more than is said here",
            machine * 100.0,
            client * 100.0
        ));
    }
    if let Some(fit) = profile.fit {
        if profile.highest.len() == 1 {
            notes.push("one size tells a and b not apart: all is counted as a; name more URLs".to_owned());
        }
        for (point, name) in profile.points().iter().zip(&profiled.subjects) {
            let error = fit.error(*point);
            if error.abs() > UNSURE {
                notes.push(format!(
                    "the fit misses {name} by {}: another kind of content, or a cost that is no line",
                    percent(error)
                ));
            }
        }
    }
    notes.extend(profiled.wrong_rejection.clone());
    notes
}

/// What limits the rates, each said once of all that it is true of.
fn limits(profiled: &Profiled, all: &[(&Highest, &str)]) -> Vec<String> {
    let most = profiled.most_clients;
    let own = |found: &Highest| found.client_cpu.is_some_and(|client| client > BUSY_CLIENT);
    let late = |found: &Highest| !own(found) && found.late_seconds > LATE;
    let mut notes = Vec::new();
    let mut note = |of: &dyn Fn(&Highest) -> bool, what: &str| {
        let names: Vec<&str> = all.iter().filter(|(found, _)| of(found)).map(|(_, name)| *name).collect();
        if !names.is_empty() {
            notes.push(format!("{}: {what}", names.join(", ")));
        }
    };
    note(
        &own,
        "the client's thread was busy to more than 85 %: the rate may be its own, not the server's, and its open loop \
         confirms nothing",
    );
    note(
        &|found| found.uncertainty > UNSURE,
        "the rate is unsure to more than 5 %: give it more `--seconds-per-size`, and the machine rest",
    );
    note(
        &|found| found.clients > most / 2 && found.busy_clients > most / 2,
        "the rate still rose with the last clients: allow more with `--clients`",
    );
    note(
        &|found| late(found) && found.sustained.is_none_or(|share| share < 0.9),
        "the client was late in the open loop: it confirms nothing; give the machine rest, or the client one of its own",
    );
    note(
        &|found| !own(found) && !late(found) && found.sustained.is_none(),
        "in the open loop not even 80 % of the rate was sustained: what arrives when it likes is served worse than \
         what waits its turn",
    );
    note(
        &|found| !own(found) && !late(found) && found.sustained.is_some_and(|share| share < 0.9),
        "in the open loop 80 % of the rate was sustained, 95 % was not",
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::profile::tests::profiled;

    #[test]
    fn the_tables_costs_notes_and_the_section_are_there() {
        let text = text(&profiled());
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

    #[test]
    fn a_late_client_blames_itself() {
        let mut profiled = profiled();
        let found = &mut profiled.profile.highest[0];
        (found.sustained, found.late_seconds) = (None, 0.2);
        let notes = notes(&profiled).join("\n");
        assert!(notes.contains("/1k: the client was late") && !notes.contains("not even"), "{notes}");
    }

    #[test]
    fn limits_of_the_client_are_told() {
        let mut profiled = profiled();
        let found = &mut profiled.profile.highest[1];
        (found.client_cpu, found.machine_cpu) = (Some(0.97), Some(0.99));
        (found.uncertainty, found.sustained) = (0.08, None);
        let found = &mut profiled.profile.highest[2];
        (found.uncertainty, found.sustained) = (0.08, None);
        let notes = notes(&profiled).join("\n");
        for part in [
            "/4k: the client's thread was busy to more",
            "busy to 99 %",
            "/4k, /16k: the rate is unsure",
            "/16k: in the open loop not even",
        ] {
            assert!(notes.contains(part), "no {part:?} in\n{notes}");
        }
    }

    #[test]
    fn an_early_end_says_what_is_kept() {
        let mut profiled = profiled();
        assert_eq!(early_end(&profiled), None);
        profiled.profile.ended = Ended::Died("/64k".into(), "connections are refused".into());
        profiled.profile.highest.pop();
        let text = early_end(&profiled).unwrap();
        assert!(text.contains("/64k: connections are refused\n4 of 5 sizes"), "{text}");
        profiled.profile.highest.clear();
        profiled.profile.fit = None;
        assert!(super::text(&profiled).contains("Nothing was measured"));
    }
}
