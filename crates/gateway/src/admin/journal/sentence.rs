//! Words for the fate of requests; the dashboard and `plimsoll top` show the same words.

use super::recent::Recent;
use plimsoll_core::promises::Mode;
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::status::ClassStatus;
use std::collections::BTreeMap;

/// What has become of the requests of these classes lately: `38 % on light, nobody rejected`.
pub(super) fn fate(classes: &[(&ClassStatus, &Recent)], mode: Mode) -> String {
    let mut lower: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut all, mut top, mut rejected, mut reasons) = (0, 0, 0, [0; Reason::ALL.len()]);
    for (class, recent) in classes {
        let levels = class.levels.len();
        for (level, count) in recent.served.iter().enumerate().skip(1) {
            all += count;
            if level == levels {
                top += count;
            } else {
                *lower.entry(class.levels[level - 1].as_str()).or_default() += count;
            }
        }
        rejected += recent.rejected();
        reasons.iter_mut().zip(recent.reasons).for_each(|(all, count)| *all += count);
    }
    all += rejected;
    if all == 0 {
        return "no requests lately".to_owned();
    }
    let would = if mode == Mode::Observe { "would be " } else { "" };
    let share = |count: u64| percent(count as f64 / all as f64);
    let mut parts: Vec<String> = lower
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} of requests {would}on {name}", share(count)))
        .collect();
    if top == all {
        parts.push("everybody at full quality".to_owned());
    } else if rejected == 0 {
        parts.push("nobody rejected".to_owned());
    } else {
        let most = Reason::ALL.into_iter().filter(|reason| reason.is_rejection());
        let most = most.max_by_key(|reason| reasons[*reason as usize]).map_or("", Reason::as_str);
        parts.push(format!("{} {would}rejected, mostly for {most}", share(rejected)));
    }
    parts.join(", ")
}

/// A share as a percentage; a share above zero is never written as zero.
pub(super) fn percent(part: f64) -> String {
    match part {
        part if part > 0.0 && part < 0.001 => "under 0.1 %".to_owned(),
        part if part > 0.999 && part < 1.0 => "over 99.9 %".to_owned(),
        part if (0.001..0.1).contains(&part) || (0.9..1.0).contains(&part) => {
            format!("{:.1} %", 100.0 * part)
        }
        part => format!("{:.0} %", 100.0 * part),
    }
}

/// A time, with three digits.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 10.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s => format!("{:.1} ms", s * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class() -> ClassStatus {
        ClassStatus { levels: vec!["light".to_owned(), "full".to_owned()], ..ClassStatus::default() }
    }

    #[test]
    fn a_fate_says_what_a_reader_would_ask() {
        let class = class();
        let said = |served: [u64; 3], overload: u64, mode| {
            let mut recent = Recent { served: served.to_vec(), ..Recent::default() };
            recent.reasons[Reason::Overload as usize] = overload;
            fate(&[(&class, &recent)], mode)
        };
        assert_eq!(said([0, 38, 62], 0, Mode::Control), "38 % of requests on light, nobody rejected");
        assert_eq!(said([0, 0, 62], 0, Mode::Control), "everybody at full quality");
        assert_eq!(
            said([0, 97, 0], 3, Mode::Control),
            "97.0 % of requests on light, 3.0 % rejected, mostly for overload"
        );
        assert_eq!(
            said([0, 50, 50], 0, Mode::Observe),
            "50 % of requests would be on light, nobody rejected"
        );
        assert_eq!(said([0, 0, 0], 0, Mode::Control), "no requests lately");
    }

    #[test]
    fn what_is_more_than_nothing_is_not_nothing() {
        let shown = [0.0, 1e-5, 0.034, 0.38, 0.953, 0.9999, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "under 0.1 %", "3.4 %", "38 %", "95.3 %", "over 99.9 %", "100 %"]);
        assert_eq!([0.0042, 0.24, 1.25, 30.0].map(time), ["4.2 ms", "240 ms", "1.2 s", "30 s"]);
    }
}
