//! JSON lines: one object a line, whose field names differ from server to server.
//!
//! A name finds a field of the object, or with dots a field of an inner object (`request.uri`, as Caddy writes). If the user
//! gives no names, those of nginx examples, Caddy, Traefik, Logstash and Envoy are tried ([`fields`]).
//!
//! If neither the user nor the field's name tells the unit of a time, the first lines that have the field decide it for the
//! whole log ([`TimeNames::settle`]). Decided line by line, 900 us would be taken for 900 s.

use super::entry::{Entry, split_request};
use super::own_log::OwnFields;
use super::timestamp::Stamp;
use super::{FoundTimes, times};
use crate::workload::{FieldPlace, JsonFields, LogTimes, TimeUnit};
use serde_json::Value;
use std::collections::BTreeSet;

/// A line, for messages.
pub(super) const EXAMPLE: &str = concat!(
    r#"{"time": "1995-08-01T00:00:01-04:00", "client": "203.0.113.7", "#,
    r#""method": "GET", "path": "/index.html", "bytes": 1713}"#
);

/// The fields' names; those in common use where the user gives none. A client's request time is not among the service times,
/// because it includes waiting and the client's own slowness ([`TimeNames`]).
pub(super) fn fields(given: &JsonFields) -> JsonFields {
    let or = |given: &[String], known: &str| match given {
        [] => known.split(' ').map(str::to_owned).collect(),
        given => given.to_vec(),
    };
    JsonFields {
        time: or(
            &given.time,
            "time timestamp @timestamp ts time_iso8601 time_local msec start_time StartUTC datetime",
        ),
        client: or(
            &given.client,
            "client client_ip remote_addr remote_ip clientip ClientHost ip client_addr request.client_ip \
             request.remote_ip downstream_remote_address",
        ),
        request: or(&given.request, "request request_line"),
        method: or(&given.method, "method request_method verb RequestMethod request.method"),
        path: or(&given.path, "path uri request_uri url RequestPath request.uri"),
        host: or(&given.host, "host http_host server_name vhost RequestHost authority request.host"),
        bytes: or(
            &given.bytes,
            "bytes body_bytes_sent size bytes_sent response_size DownstreamContentSize response_bytes",
        ),
        status: or(&given.status, "status"),
        service: or(&given.service, "service_time upstream_response_time"),
    }
}

/// The fields that may hold a request's time; the first that a line has counts.
#[derive(Debug)]
pub(super) struct TimeNames(Vec<TimeName>);

#[derive(Debug)]
struct TimeName {
    name: String,
    /// The unit; `None` until a line has a value above zero.
    unit: Option<TimeUnit>,
    is_guessed: bool,
    own: bool,
    /// Whether the field counts only in lines of Envoy.
    is_envoy: bool,
}

/// Fields of Envoy's access log, whose `duration` is in milliseconds ("Access logging", `%DURATION%`).
const ENVOY: [&str; 3] = ["response_flags", "upstream_service_time", "downstream_remote_address"];

impl TimeNames {
    /// The fields that the user asks for.
    pub(super) fn of(fields: &JsonFields, wanted: &LogTimes) -> Self {
        let name = |name: &str, unit: Option<TimeUnit>, own| TimeName {
            name: name.to_owned(),
            unit,
            is_guessed: unit.is_none(),
            own,
            is_envoy: false,
        };
        let own = |own: &String| name(own, Some(TimeUnit::Seconds), true);
        let traefik = |traefik: &str, own| name(traefik, Some(TimeUnit::Nanoseconds), own);
        let bound = |bound: &str| name(bound, None, false);
        let mut all: Vec<TimeName> = match wanted {
            LogTimes::Ignored => Vec::new(),
            LogTimes::Field(field) => match &field.place {
                FieldPlace::Name(named) => vec![name(named, field.unit, true)],
                FieldPlace::Number(_) => Vec::new(),
            },
            LogTimes::Own | LogTimes::Bounds => fields.service.iter().map(own).collect(),
        };
        if *wanted == LogTimes::Bounds {
            all.push(traefik("OriginDuration", true));
            all.push(TimeName { is_envoy: true, ..name("duration", Some(TimeUnit::Milliseconds), false) });
            all.extend("request_time duration response_time time_taken".split(' ').map(bound));
            all.push(traefik("Duration", false));
        }
        TimeNames(all)
    }

    /// Decides each unit that is still unknown, for the whole log, from those of these lines that have the field. A zero says
    /// nothing about the unit.
    pub(super) fn settle(&mut self, objects: &[Value]) {
        for known in self.0.iter_mut().filter(|known| known.unit.is_none()) {
            let values: Vec<f64> = objects.iter().filter_map(|object| known.value(object)).collect();
            known.unit = (!values.is_empty()).then(|| times::unit_of_all(&values));
        }
    }

    /// The time in a line, if it hardly is in the unit that was guessed for the log.
    pub(super) fn contradiction(&self, object: &Value) -> Option<f64> {
        let guessed = self.0.iter().filter(|known| known.is_guessed);
        guessed.filter_map(|known| known.value(object).filter(|value| known.is_odd(*value))).next()
    }

    /// Where the time with this index stands, and its unit.
    pub(super) fn found(&self, number: usize) -> FoundTimes {
        let TimeName { name, unit, own, .. } = &self.0[number];
        let place = FieldPlace::Name(name.clone());
        FoundTimes { place, unit: unit.unwrap_or(TimeUnit::Seconds), own: *own }
    }
}

impl TimeName {
    /// The time's value in a line; `None` if it is missing or zero.
    fn value(&self, object: &Value) -> Option<f64> {
        self.number(object).filter(|value| *value > 0.0)
    }

    fn number(&self, object: &Value) -> Option<f64> {
        if self.is_envoy && !ENVOY.iter().any(|field| object.get(field).is_some()) {
            return None;
        }
        seconds(find(object, std::slice::from_ref(&self.name))?)
    }

    fn is_odd(&self, value: f64) -> bool {
        match self.unit {
            Some(TimeUnit::Seconds) => times::unit_of(value) != TimeUnit::Seconds,
            Some(_) => value.fract() != 0.0,
            None => false,
        }
    }
}

/// The object of a line that looks like a JSON object.
pub(super) fn object(line: &str) -> Option<Value> {
    let text = line.trim_start_matches('\u{feff}').trim();
    text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
}

/// The names of the fields in which these objects have a number.
pub(super) fn numbered(objects: &[Value]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (name, value) in objects.iter().filter_map(Value::as_object).flatten() {
        let inner = value.as_object().into_iter().flatten();
        let inner = inner.map(|(inner, value)| (format!("{name}.{inner}"), value));
        let with_number = inner.chain([(name.clone(), value)]).filter(|(_, value)| seconds(value).is_some());
        all.extend(with_number.map(|(name, _)| name));
    }
    all
}

/// Reads an object; also gives the index in `times` of the name that had its time.
pub(super) fn parse<'a>(
    object: &'a Value,
    fields: &JsonFields,
    times: &TimeNames,
) -> Result<(Entry<'a>, Option<usize>), String> {
    if !object.is_object() {
        return Err("not a JSON object".to_owned());
    }
    let stamp = match find(object, &fields.time) {
        Some(value) => stamp(value).ok_or_else(|| format!("its time is none that is known: {value}"))?,
        None => return Err(none("time", &fields.time)),
    };
    let (method, target) = request(object, fields)?;
    let bytes = find(object, &fields.bytes).and_then(number).unwrap_or(0.0);
    let time = |(number, known): (usize, &TimeName)| {
        let time = times::duration(known.number(object)?, known.unit.unwrap_or(TimeUnit::Seconds))?;
        Some((number, time))
    };
    let found = times.0.iter().enumerate().find_map(time);
    let entry = Entry {
        stamp,
        client: text(object, &fields.client).unwrap_or("-"),
        method,
        host: text(object, &fields.host).unwrap_or_default(),
        target,
        bytes: bytes as u64,
        service: found.map(|(_, time)| time),
        own: OwnFields::of(object),
    };
    Ok((entry, found.map(|(number, _)| number)))
}

/// Method and target: from the request line, or each from a field of its own.
fn request<'a>(object: &'a Value, fields: &JsonFields) -> Result<(&'a str, &'a str), String> {
    let line = text(object, &fields.request);
    let method = text(object, &fields.method);
    if let Some(target) = text(object, &fields.path) {
        let of_line = || line.and_then(split_request).map(|(method, _)| method);
        return Ok((method.or_else(of_line).unwrap_or("GET"), target));
    }
    let Some(line) = line else { return Err(none("path", &fields.path)) };
    let (of_line, target) = split_request(line).ok_or("no method and path in the request")?;
    // A request with a path and no method is taken as a `GET`.
    Ok((method.unwrap_or(of_line), target))
}

fn none(what: &str, names: &[String]) -> String {
    format!("no {what}: it has none of the fields {}", names.join(", "))
}

fn find<'a>(object: &'a Value, names: &[String]) -> Option<&'a Value> {
    names.iter().find_map(|name| {
        let nested = || {
            let (outer, inner) = name.split_once('.')?;
            object.get(outer)?.get(inner)
        };
        object.get(name).or_else(nested)
    })
}

fn text<'a>(object: &'a Value, names: &[String]) -> Option<&'a str> {
    find(object, names)?.as_str()
}

/// A number, or text that is one. A negative number gives `None`.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    (number >= 0.0).then_some(number)
}

/// A time in seconds: a number, or text in nginx's form `0.020, 0.005 : 0.100`, with one number for each server that was tried,
/// which are summed. A `-` stands for a server that did no work.
fn seconds(value: &Value) -> Option<f64> {
    number(value).or_else(|| times::seconds(value.as_str()?))
}

fn stamp(value: &Value) -> Option<Stamp> {
    match value {
        Value::String(text) => Stamp::parse(text),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| number.as_f64().and_then(Stamp::epoch_fraction), Stamp::epoch)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::time::Duration;

    fn read(line: &str, given: &JsonFields, check: impl Fn(Result<Entry<'_>, String>)) {
        let (fields, value) = (fields(given), serde_json::from_str(line).unwrap());
        let times = TimeNames::of(&fields, &LogTimes::Own);
        check(parse(&value, &fields, &times).map(|(entry, _)| entry));
    }

    #[test]
    fn names_in_common_use() {
        let expected = Entry {
            stamp: Stamp { micros: 807_249_601_000_000, whole: true },
            client: "203.0.113.7",
            method: "GET",
            host: "",
            target: "/index.html",
            bytes: 1713,
            service: None,
            own: None,
        };
        let with_host = Entry { host: "example.org", ..expected };
        let served = Entry { service: Some(Duration::from_millis(5)), ..expected };
        for (line, expected) in [
            (EXAMPLE, expected),
            // nginx, a usual log_format.
            (
                r#"{"time_local": "01/Aug/1995:00:00:01 -0400", "remote_addr": "203.0.113.7", "request": "GET /index.html HTTP/1.1", "status": "200", "body_bytes_sent": "1713", "request_time": "0.700", "upstream_response_time": "0.005"}"#,
                served,
            ),
            // Caddy.
            (
                r#"{"level": "info", "ts": 807249601, "request": {"remote_ip": "203.0.113.7", "method": "GET", "host": "example.org", "uri": "/index.html"}, "duration": 0.1, "size": 1713, "status": 200}"#,
                with_host,
            ),
            // Traefik.
            (
                r#"{"ClientHost": "203.0.113.7", "DownstreamContentSize": 1713, "Duration": 5000000, "RequestHost": "example.org", "RequestMethod": "GET", "RequestPath": "/index.html", "StartUTC": "1995-08-01T04:00:01Z"}"#,
                with_host,
            ),
            // Logstash's pattern for Apache.
            (
                r#"{"clientip": "203.0.113.7", "verb": "GET", "request": "/index.html", "bytes": "1713", "timestamp": "01/Aug/1995:00:00:01 -0400"}"#,
                expected,
            ),
        ] {
            read(line, &JsonFields::default(), |found| assert_eq!(found, Ok(expected), "{line}"));
        }
    }

    #[test]
    fn names_that_are_given_are_the_only_ones() {
        let given = JsonFields {
            time: vec!["when".to_owned(), "then".to_owned()],
            service: vec!["took.cpu".to_owned()],
            ..JsonFields::default()
        };
        let line =
            r#"{"time": 1, "then": 5.5, "path": "/", "took": {"cpu": 0.25}, "upstream_response_time": 9}"#;
        read(line, &given, |found| {
            let found = found.unwrap();
            assert_eq!(found.stamp, Stamp { micros: 5_500_000, whole: false });
            assert_eq!(found.service, Some(Duration::from_millis(250)));
            assert_eq!((found.method, found.client), ("GET", "-"));
        });
        read(r#"{"time": 1, "path": "/"}"#, &given, |found| {
            assert_eq!(found.unwrap_err(), "no time: it has none of the fields when, then");
        });
    }

    #[test]
    fn what_is_wrong() {
        for (line, why) in [
            ("[]", "not a JSON object"),
            ("{}", "no time: "),
            (r#"{"time": "soon", "path": "/"}"#, "its time is none that is known: \"soon\""),
            (r#"{"time": null, "path": "/"}"#, "its time"),
            (r#"{"time": 1}"#, "no path: "),
            (r#"{"time": 1, "request": "-"}"#, "no method and path"),
        ] {
            read(line, &JsonFields::default(), |found| {
                let found = found.unwrap_err();
                assert!(found.starts_with(why), "{line}: {found}");
            });
        }
    }

    #[test]
    fn a_bound_is_taken_where_there_is_nothing_better() {
        let fields = fields(&JsonFields::default());
        let of = |rest: &str, wanted: &LogTimes| {
            let value = serde_json::from_str(&format!("{{\"time\": 1, \"path\": \"/\", {rest}}}")).unwrap();
            let mut times = TimeNames::of(&fields, wanted);
            times.settle(std::slice::from_ref(&value));
            let (entry, which) = parse(&value, &fields, &times).unwrap();
            let own = which.map(|which| times.found(which).own);
            entry.service.map(|time| time.as_micros()).zip(own)
        };
        let both = r#""request_time": 0.5, "upstream_response_time": "0.25""#;
        assert_eq!(of(both, &LogTimes::Bounds), Some((250_000, true)));
        for (bound, micros) in [
            (r#""request_time": "0.5""#, 500_000),
            (r#""duration": 0.5"#, 500_000),
            (r#""duration": 20000"#, 20_000),
            (r#""Duration": 5000000"#, 5_000),
            // Envoy.
            (r#""response_flags": "-", "duration": 27"#, 27_000),
            (r#""downstream_remote_address": "10.0.0.1:3", "duration": 0"#, 0),
        ] {
            assert_eq!(of(bound, &LogTimes::Bounds), Some((micros, false)), "{bound}");
            assert_eq!(of(bound, &LogTimes::Own), None, "{bound}");
        }
        let field = crate::workload::TimeField {
            place: FieldPlace::Name("took.ms".into()),
            unit: Some(TimeUnit::Milliseconds),
        };
        assert_eq!(of(r#""took": {"ms": 8}"#, &LogTimes::Field(field)), Some((8_000, true)));
        assert_eq!(of(both, &LogTimes::Ignored), None);
    }

    #[test]
    fn a_time_has_one_unit_in_the_whole_log() {
        let of = |values: &[&str]| {
            let line = |value: &&str| format!("{{\"time\": 1, \"path\": \"/\", \"duration\": {value}}}");
            let objects: Vec<Value> = values.iter().filter_map(|value| object(&line(value))).collect();
            let fields = fields(&JsonFields::default());
            let mut times = TimeNames::of(&fields, &LogTimes::Bounds);
            times.settle(&objects);
            let micros =
                |object| parse(object, &fields, &times).unwrap().0.service.map(|time| time.as_micros());
            let odd: Vec<f64> = objects.iter().filter_map(|object| times.contradiction(object)).collect();
            (objects.iter().map(micros).collect::<Vec<_>>(), odd)
        };
        // Times in microseconds around the value from which a single one would be taken as microseconds.
        let micros = ["1100", "900", "0", "1300", "700", "2000"];
        assert_eq!(of(&micros), ([1100, 900, 0, 1300, 700, 2000].map(Some).to_vec(), vec![]));
        assert_eq!(of(&["1100", "2300", "0.25"]).1, [0.25]);
        let seconds = ["0.4", "12", "1.5", "1500", "90000"];
        let expected = vec![Some(400_000), Some(12_000_000), Some(1_500_000), Some(1_500_000_000), None];
        assert_eq!(of(&seconds), (expected, vec![1500.0, 90_000.0]));
        assert_eq!(of(&["0", "null"]), (vec![Some(0), None], vec![]));
    }

    #[test]
    fn fields_with_a_number_are_known() {
        let line = r#"{"took": {"ms": 8, "by": "me"}, "urt": "0.1, 0.2", "path": "/", "bytes": 5}"#;
        let known: Vec<String> = numbered(&[object(line).unwrap()]).into_iter().collect();
        assert_eq!(known, ["bytes", "took.ms", "urt"]);
    }

    #[test]
    fn odd_numbers_are_none() {
        let line = r#"{"time": 1, "path": "/", "bytes": -5, "service_time": "soon"}"#;
        read(line, &JsonFields::default(), |found| {
            let found = found.unwrap();
            assert_eq!((found.bytes, found.service), (0, None));
        });
        let line = r#"{"time": 1, "path": "/", "bytes": "-", "service_time": 1e300}"#;
        read(line, &JsonFields::default(), |found| assert_eq!(found.unwrap().service, None));
    }

    #[test]
    fn the_times_of_all_servers_that_were_tried_add_up() {
        for (text, ms) in [("0.020, 0.005 : 0.100", 125), ("-", 0), ("-, 0.030", 30), ("0.000", 0)] {
            let line = format!(r#"{{"time": 1, "path": "/", "upstream_response_time": "{text}"}}"#);
            read(&line, &JsonFields::default(), |found| {
                let took = found.unwrap().service.map(|time| (time.as_secs_f64() * 1e3).round() as u64);
                assert_eq!(took, Some(ms), "{text}");
            });
        }
    }
}
