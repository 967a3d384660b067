//! HAProxy before one server: `maxconn` requests at the server, the others in a queue by priority and age.
//!
//! - `maxconn 64` of the server: at most that many requests at once; further ones wait.
//! - `timeout queue 5s`: the longest wait, then 503; if it is left out, `timeout connect` counts, here 5 s.
//! - `set-priority-class`: `http-request set-priority-class`, set to the `priority` of the request's class in the configuration
//!   of this simulation: the lower is served first, and of equal ones the one that came first.
//! - `option abortonclose`: what waits is dropped when its client leaves, and what is at the server gives its place back.
//!   Without it HAProxy does not care who has left: it asks the server in turn, and keeps the place until that has answered.
//!
//! `maxqueue` is left out: HAProxy sends what is beyond it to another server, and there is one (Configuration Manual 2.6, 5.2
//! `maxconn` and `maxqueue`, 4.2 `timeout queue` and `option abortonclose`, and `http-request set-priority-class`; head of
//! `src/queue.c`).

use super::directives::{once, time};
use super::{Directives, MakeRules};
use crate::front::limit::{Limited, Queue, StaticLimit};
use plimsoll_core::time::Duration;

const WRITTEN: &str = "haproxy: maxconn 64; timeout queue 5s; set-priority-class";

pub(super) fn read(directives: Directives<'_>) -> Result<MakeRules, String> {
    let (mut most, mut wait, mut by_priority, mut drops) = (None, None, None, None);
    directives.each(WRITTEN, |name, words| match name {
        "maxconn" => once(&mut most, words.count("the number of requests")?, name),
        "timeout" if words.flag("queue") => {
            once(&mut wait, time(words.word("the time")?, "ms")?, "timeout queue")
        }
        "option" if words.flag("abortonclose") => once(&mut drops, (), "option abortonclose"),
        "set-priority-class" => once(&mut by_priority, (), name),
        _ => Err(format!("there is no directive \"{name}\" here")),
    })?;
    let most = most.ok_or_else(|| format!("haproxy needs maxconn; it is written {WRITTEN}"))?;
    let queue = Queue { most: u32::MAX, wait: wait.unwrap_or(Duration::from_secs(5)) };
    Ok(Box::new(move |_, _| {
        let limited = Limited::new(StaticLimit { most, queue }, by_priority.is_some());
        Box::new(if drops.is_some() { limited } else { limited.keeping_abandoned() })
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, request, rules, wrong};
    use super::super::{Gone, Rules, Ruling};
    use super::*;
    use plimsoll_core::request::Outcome;
    use plimsoll_core::time::Instant;

    #[test]
    fn one_more_than_maxconn_waits_by_its_priority() {
        let mut server = rules(WRITTEN.replace("64", "1").as_str());
        let one = request("/", 1);
        let mut arrive = |priority| server.arrive(Instant::ZERO, asked(&one, priority));
        assert_eq!([arrive(2), arrive(2), arrive(1)], [Ruling::Start(1), Ruling::Wait(2), Ruling::Wait(1)]);
        let next = |server: &mut dyn Rules| server.dequeue(Instant::ZERO, Duration::ZERO);
        assert_eq!(next(&mut *server), None);
        server.released(Instant::ZERO, Gone { holds: 0, started: Instant::ZERO, ended: Outcome::Completed });
        assert_eq!([next(&mut *server), next(&mut *server)], [Some(1), None]);
        let mut plain = rules("haproxy: maxconn 1; timeout queue 200");
        plain.arrive(Instant::ZERO, asked(&one, 1));
        assert_eq!(plain.arrive(Instant::ZERO, asked(&one, 9)), Ruling::Wait(0));
        assert_eq!(plain.wait(), Duration::from_millis(200));
        assert_eq!(rules("haproxy: maxconn 1; timeout queue 1m").wait(), Duration::from_secs(60));
    }

    #[test]
    fn errors_say_what_to_write() {
        assert_eq!(
            wrong("haproxy: timeout queue 5s"),
            format!("haproxy needs maxconn; it is written {WRITTEN}")
        );
        for text in [
            "haproxy:",
            "haproxy: maxconn",
            "haproxy: maxconn 0",
            "haproxy: timeout client 5s",
            "haproxy: maxconn 5 6",
            "haproxy: maxconn 5; maxconn 6",
            "haproxy: maxconn 5; timeout queue 1s; timeout queue 2s",
            "haproxy: maxconn 5; set-priority-class; set-priority-class",
            "haproxy: maxconn 5; option httplog",
        ] {
            assert!(wrong(text).ends_with(&format!("; it is written {WRITTEN}")), "{}", wrong(text));
        }
    }
}
