//! HAProxy's own log of requests (`option httplog`), behind whatever a log server writes before it.
//!
//! ```text
//! client:port [06/Feb/2009:12:14:14.655] frontend backend/server TR/Tw/Tc/Tr/Ta 200 2750 - - ---- 1/1/1/1/0 0/0
//!     {} {} "GET / HTTP/1.1"
//! ```
//!
//! All of it is one line. The stamp is the time of the request's first byte, without a zone, and is taken as UTC. Tr is the
//! server's response time in milliseconds, from the connection to the head of the answer, without queue and client; -1 if no
//! server answered. The bytes count head and body. A `+` before a number (`option logasap`) says that more came after the line
//! was written.

use super::FoundTimes;
use super::entry::{Entry, split_request};
use super::times;
use super::timestamp::Stamp;
use crate::workload::{FieldPlace, LogTimes, TimeUnit};
use plimsoll_core::time::Duration;

/// A line, for messages.
pub(super) const EXAMPLE: &str = "10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- \
                                  1/1/1/1/0 0/0 \"GET /index.html HTTP/1.1\"";

/// The timers, as HAProxy's documents name them.
pub(super) const TIMERS: [&str; 5] = ["TR", "Tw", "Tc", "Tr", "Ta"];
/// The index in `TIMERS` of the server's response time, Tr.
const OWN: usize = 3;

/// A line that was read.
pub(super) struct HaproxyLine<'a> {
    pub(super) entry: Entry<'a>,
    /// Whether HAProxy answered the request itself, with a redirect or a page of its own, so that the request was no load.
    pub(super) is_local: bool,
    pub(super) status: u16,
    timers: &'a str,
}

/// Reads a line.
pub(super) fn parse(line: &str) -> Result<HaproxyLine<'_>, &'static str> {
    let (before, stamp, after) = split_time(line).ok_or("no time in brackets behind a client")?;
    let peer = before.rsplit(' ').next().unwrap_or_default();
    let (client, _port) = peer.rsplit_once(':').ok_or("no client with a port before the time")?;
    let (fields, quoted) = after.split_once('"').ok_or("no request in quotes: `option httplog` writes it")?;
    let mut words = fields.split_ascii_whitespace();
    let mut next = || words.next().ok_or("fewer fields than `option httplog` writes");
    let [_frontend, server, timers, status, bytes, _, _, ended] =
        [next()?, next()?, next()?, next()?, next()?, next()?, next()?, next()?];
    if !server.contains('/') || timers.split('/').filter_map(number).count() != TIMERS.len() {
        return Err("no times TR/Tw/Tc/Tr/Ta behind the server");
    }
    let status = number(status).ok_or("its status is no number")?;
    let bytes = number(bytes).ok_or("its bytes are no number")?;
    let request = quoted.split('"').next().unwrap_or_default();
    let (method, target) = split_request(request).ok_or("no method and path in the request")?;
    let bytes = bytes.max(0).unsigned_abs();
    let entry = Entry { stamp, client, method, host: "", target, bytes, service: None, own: None };
    let status = u16::try_from(status).unwrap_or(0);
    Ok(HaproxyLine { entry, is_local: LOCAL.iter().any(|own| ended.starts_with(own)), status, timers })
}

/// The first letters of the termination state if HAProxy answered a request itself: with a redirect or a page of its own, with
/// a denial, or after a tarpit.
const LOCAL: [&str; 3] = ["L", "PR", "PT"];

/// Splits at the first brackets behind a space that hold a time: the log server's prefix may have a process in brackets.
fn split_time(line: &str) -> Option<(&str, Stamp, &str)> {
    line.match_indices(" [").find_map(|(at, open)| {
        let (time, after) = line[at + open.len()..].split_once("] ")?;
        Some((&line[..at], Stamp::common(time)?, after))
    })
}

/// A number, which may be negative, or have a `+` before it.
fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

impl HaproxyLine<'_> {
    /// Whether a server answered.
    pub(super) fn is_answered(&self) -> bool {
        self.timer(OWN).is_some_and(|time| time >= 0)
    }

    /// The value of the chosen timer.
    pub(super) fn time(&self, found: &HaproxyTimer) -> Option<Duration> {
        let number = self.timer(found.0).filter(|number| *number >= 0)?;
        times::duration(number as f64, TimeUnit::Milliseconds)
    }

    fn timer(&self, place: usize) -> Option<i64> {
        number(self.timers.split('/').nth(place)?)
    }
}

/// The index of the timer that is taken as a request's service time.
#[derive(Clone, Copy, Debug)]
pub(super) struct HaproxyTimer(usize);

impl HaproxyTimer {
    /// The timer that the user names, else the server's response time.
    pub(super) fn of(wanted: &LogTimes) -> Option<Self> {
        Some(HaproxyTimer(match wanted {
            LogTimes::Ignored => return None,
            LogTimes::Own | LogTimes::Bounds => OWN,
            LogTimes::Field(field) => match &field.place {
                FieldPlace::Name(name) => TIMERS.iter().position(|timer| timer == name)?,
                FieldPlace::Number(_) => return None,
            },
        }))
    }

    pub(super) fn found(self) -> FoundTimes {
        let place = FieldPlace::Name(TIMERS[self.0].to_owned());
        FoundTimes { place, unit: TimeUnit::Milliseconds, own: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::TimeField;

    /// Client, method, target, bytes, whether a server answered, what it took (ms).
    type Read<'a> = (&'a str, &'a str, &'a str, u64, bool, Option<u128>);

    fn read(line: &str) -> Result<Read<'_>, &'static str> {
        let own = HaproxyTimer::of(&LogTimes::Own).expect("its own");
        parse(line).map(|line| {
            let time = line.time(&own).map(|time| time.as_millis());
            let Entry { client, method, target, bytes, .. } = line.entry;
            (client, method, target, bytes, line.is_answered(), time)
        })
    }

    /// Example lines of HAProxy's documentation 2.6, sections 8.2.3, 8.2.4, 8.8 and 8.9.
    #[test]
    fn the_lines_of_its_documents() {
        for (line, expected) in [
            (
                r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#,
                Ok(("10.0.1.2", "GET", "/index.html", 2750, true, Some(69))),
            ),
            (
                r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] https-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1" 0/0/0/0/0 1wt.eu/TLSv1.3/TLS_AES_256_GCM_SHA384"#,
                Ok(("10.0.1.2", "GET", "/index.html", 2750, true, Some(69))),
            ),
            (
                r#"Aug  9 20:26:09 localhost haproxy[2022]: 127.0.0.1:34014 [09/Aug/2004:20:26:09] proxy-out proxy-out/cache1 0/0/0/162/+162 200 +350 - - ---- 0/0/0/0/0 0/0 {fr.adserver.yahoo.co||http://fr.f416.mail.} {|864|private||} "GET http://fr.adserver.yahoo.com/""#,
                Ok(("127.0.0.1", "GET", "http://fr.adserver.yahoo.com/", 350, true, Some(162))),
            ),
            (
                r#"haproxy[18989]: 10.0.0.1:34552 [15/Oct/2003:15:26:31.462] px-http px-http/srv1 3183/-1/-1/-1/11215 503 0 - - SC-- 205/202/202/115/3 0/0 "HEAD / HTTP/1.0""#,
                Ok(("10.0.0.1", "HEAD", "/", 0, false, None)),
            ),
            (
                r#"haproxy[18113]: 127.0.0.1:34548 [15/Oct/2003:15:18:55.798] px-http px-http/<NOSRV> -1/-1/-1/-1/8490 -1 0 - - CR-- 2/2/2/0/0 0/0 """#,
                Err("no method and path in the request"),
            ),
            (
                "haproxy[18989]: 127.0.0.1:34550 [15/Oct/2003:15:24:28.312] px-tcp px-tcp/srv1 0/0/5007 0 cD 0/0/0/0/0 0/0",
                Err("no request in quotes: `option httplog` writes it"),
            ),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn clients_stamps_and_what_it_answers_itself() {
        let line = |client: &str, ended: &str| EXAMPLE.replace("10.0.1.2", client).replace("----", ended);
        for client in ["10.0.1.2", "2001:db8::1", "::1", "unix"] {
            assert_eq!(parse(&line(client, "----")).unwrap().entry.client, client);
        }
        let redirect = line("::1", "LR--");
        let redirect = parse(&redirect).unwrap();
        assert!(redirect.is_local && redirect.status == 200);
        for (ended, is_local) in [("PR--", true), ("PT--", true), ("PH--", false), ("CD--", false)] {
            assert_eq!(parse(&line("::1", ended)).unwrap().is_local, is_local, "{ended}");
        }
        let stamp = redirect.entry.stamp;
        assert_eq!((stamp.micros, stamp.whole), (1_233_922_454_655_000, false));
        let queued = line("::1", "sQ--").replace("10/0/30/69/109 200", "0/5001/-1/-1/5001 503");
        let queued = parse(&queued).unwrap();
        assert!(!queued.is_local && !queued.is_answered() && queued.status == 503);
    }

    #[test]
    fn another_timer_may_be_named() {
        let line = parse(EXAMPLE).unwrap();
        let named = |name: &str| {
            let place = FieldPlace::Name(name.to_owned());
            HaproxyTimer::of(&LogTimes::Field(TimeField { place, unit: None }))
        };
        assert_eq!(line.time(&named("Ta").unwrap()).map(|time| time.as_millis()), Some(109));
        assert!(named("urt").is_none() && HaproxyTimer::of(&LogTimes::Ignored).is_none());
        let found = HaproxyTimer::of(&LogTimes::Bounds).unwrap().found();
        assert_eq!((found.place, found.own), (FieldPlace::Name("Tr".to_owned()), true));
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            r#"192.0.2.1 - - [01/Aug/1995:00:00:01 -0400] "GET / HTTP/1.0" 200 1"#,
            r#"h:80 192.0.2.1:1 [01/Aug/1995:00:00:01 -0400] a b c d e f g h "GET / HTTP/1.0" 200 1"#,
            "{\"ts\": 1}",
            "",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
