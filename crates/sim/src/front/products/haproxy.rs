//! HAProxy before one server: `maxconn` requests at the server, the others in a queue by priority and age.
//!
//! - `maxconn 64`, the server's: so many requests at once; one more waits.
//! - `timeout queue 5s`: the longest wait, then 503; without it as `timeout connect`, here 5 s.
//! - `set-priority-class`: `http-request set-priority-class`, set to the `priority` of the request's class in the configuration
//!   of this simulation: the lower is served first, and of equal ones the one that came first.
//!
//! `maxqueue` is left out: HAProxy sends what is beyond it to another server, and there is one (Configuration Manual 2.6, 5.2
//! `maxconn` and `maxqueue`, 4.2 `timeout queue`, and `http-request set-priority-class`; head of `src/queue.c`).

use super::directives::time;
use super::{Asked, Directives, Gone, MakeRules, Rules, Ruling};
use plimsoll_core::time::{Duration, Instant};

const WRITTEN: &str = "haproxy: maxconn 64; timeout queue 5s; set-priority-class";

/// A server's limit and its queue.
#[derive(Clone, Copy, Debug)]
struct HaProxy {
    most: u32,
    wait: Duration,
    by_priority: bool,
    in_flight: u32,
}

pub(super) fn read(directives: Directives<'_>) -> Result<MakeRules, String> {
    let mut rules = HaProxy { most: 0, wait: Duration::from_secs(5), by_priority: false, in_flight: 0 };
    directives.each(WRITTEN, |name, words| {
        match name {
            "maxconn" => rules.most = words.count("the number of requests")?,
            "timeout" if words.flag("queue") => rules.wait = time(words.word("the time")?, "ms")?,
            "set-priority-class" => rules.by_priority = true,
            _ => return Err(format!("there is no directive \"{name}\" here")),
        }
        Ok(())
    })?;
    if rules.most == 0 {
        return Err(format!("haproxy needs maxconn; it is written {WRITTEN}"));
    }
    Ok(Box::new(move |_, _| Box::new(rules)))
}

impl Rules for HaProxy {
    fn arrive(&mut self, now: Instant, asked: Asked<'_>) -> Ruling {
        if let Some(holds) = self.dequeue(now, asked.service) {
            return Ruling::Start(holds);
        }
        Ruling::Wait(if self.by_priority { asked.priority.into() } else { 0 })
    }

    fn dequeue(&mut self, _now: Instant, _service: Duration) -> Option<u32> {
        let has_room = self.in_flight < self.most;
        self.in_flight += u32::from(has_room);
        has_room.then_some(0)
    }

    fn released(&mut self, _now: Instant, _gone: Gone) {
        self.in_flight -= 1;
    }

    fn wait(&self) -> Duration {
        self.wait
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, request, rules, wrong};
    use super::*;
    use plimsoll_core::request::Outcome;

    #[test]
    fn one_more_than_maxconn_waits_by_its_priority() {
        let mut server = rules(WRITTEN.replace("64", "1").as_str());
        let one = request("/", 1);
        let mut arrive = |priority| server.arrive(Instant::ZERO, asked(&one, priority));
        assert_eq!([arrive(2), arrive(2), arrive(1)], [Ruling::Start(0), Ruling::Wait(2), Ruling::Wait(1)]);
        let next = |server: &mut dyn Rules| server.dequeue(Instant::ZERO, Duration::ZERO);
        assert_eq!(next(&mut *server), None);
        server.released(Instant::ZERO, Gone { holds: 0, started: Instant::ZERO, ended: Outcome::Completed });
        assert_eq!([next(&mut *server), next(&mut *server)], [Some(0), None]);
        let mut plain = rules("haproxy: maxconn 1; timeout queue 200");
        plain.arrive(Instant::ZERO, asked(&one, 1));
        assert_eq!(plain.arrive(Instant::ZERO, asked(&one, 9)), Ruling::Wait(0));
        assert_eq!(plain.wait(), Duration::from_millis(200));
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
        ] {
            assert!(wrong(text).ends_with(&format!("; it is written {WRITTEN}")), "{}", wrong(text));
        }
    }
}
