//! Remarks on a profile: how it ended, and a sentence for each thing that a reader of the figures must know.

use super::Profiled;
use crate::output::units::Unit;
use plimsoll_load::profile::{Ended, Highest};

/// If a client's thread takes more of a processor than this, the client may be what limited the rate.
const BUSY_CLIENT: f64 = 0.85;
/// If the machine is busier than this, the machine may be what limited the rate.
const BUSY_MACHINE: f64 = 0.95;
/// If a client in the open loop sends later than this (s), it sends requests in bunches.
const LATE: f64 = 0.02;
/// If a rate is less certain than this, or the fit misses a size by more, a remark says so.
const UNSURE: f64 = 0.05;

/// The reason why a profile ended early; `None` if it ended as planned.
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
            notes.push(
                "one size does not distinguish a and b: all is counted as a; name more URLs".to_owned(),
            );
        }
        for (point, name) in profile.points().iter().zip(&profiled.subjects) {
            let error = fit.error(*point);
            if error.abs() > UNSURE {
                notes.push(format!(
                    "the fit misses {name} by {}: another kind of content, or a cost that is no line",
                    Unit::Percent(1).show(error)
                ));
            }
        }
    }
    notes.extend(profiled.wrong_rejection.clone());
    notes
}

/// What limited the rates. Each limit gives one remark that names all sizes that it concerns.
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
    fn a_late_client_blames_itself() {
        let mut profiled = profiled();
        let found = &mut profiled.profile.highest[0];
        (found.sustained, found.late_seconds) = (None, 0.2);
        let notes = notes(&profiled).join("\n");
        assert!(notes.contains("/1k: the client was late") && !notes.contains("not even"), "{notes}");
    }

    #[test]
    fn limits_of_the_client_are_reported() {
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
        assert!(crate::commands::profile::text(&profiled).contains("Nothing was measured"));
    }
}
