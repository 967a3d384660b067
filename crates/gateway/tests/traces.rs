//! Traces: what the server gets of a client's trace, and what a collector gets of the gateway's spans.

use crate::support::http2::{Connection, request};
use crate::support::*;
use plimsoll_core::promises::Promises;
use plimsoll_gateway::settings::TraceSettings;
use plimsoll_gateway::{Gateway, Settings};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A server that answers with the head that it got.
fn mirror() -> Origin {
    Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            peer.rest_of(&head);
            let status = if head.contains(" /broken") { 500 } else { 200 };
            let answer = format!("HTTP/1.1 {status} S\r\nContent-Length: {}\r\n\r\n{head}", head.len());
            if peer.send(answer).is_err() {
                return;
            }
        }
    })
}

/// What collectors got.
type Collected = Arc<Mutex<Vec<Value>>>;

/// A collector of traces that answers with each status in turn, and with the last from then on.
fn collector(statuses: &'static [u16]) -> (Origin, Collected) {
    let collected = Collected::default();
    let own = collected.clone();
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
            assert_eq!(field(&head, "content-type"), Some("application/json"));
            let body = serde_json::from_slice(&peer.body(&head)).expect("JSON");
            let mut all = own.lock().expect("no panic");
            let status = statuses.get(all.len()).or(statuses.last()).copied().unwrap_or(200);
            all.push(body);
            drop(all);
            if peer.send(format!("HTTP/1.1 {status} S\r\nContent-Length: 2\r\n\r\n{{}}")).is_err() {
                return;
            }
        }
    });
    (origin, collected)
}

fn traced(origin: &Origin, collector: SocketAddr, ratio: f64) -> Settings {
    let endpoint = format!("http://{collector}/v1/traces");
    let traces = Some(TraceSettings { endpoint, ratio, service: "shop-front".to_owned() });
    Settings { traces, h2c: true, ..settings(&[origin.address]) }
}

fn start(settings: Settings, promises: &Promises) -> Gateway {
    Gateway::start(settings, promises).expect("a gateway")
}

/// The head that the server got of a request with these lines.
fn got(gateway: &Gateway, lines: &str) -> String {
    let (_, body) = client(gateway).ask(format!("GET /a HTTP/1.1\r\nHost: test\r\n{lines}\r\n"));
    String::from_utf8(body).expect("text")
}

fn parent(head: &str) -> Vec<&str> {
    let all: Vec<&str> =
        head.lines().filter(|line| line.to_lowercase().starts_with("traceparent:")).collect();
    assert_eq!(all.len(), 1, "{head}");
    field(head, "traceparent").expect("a parent").split('-').collect()
}

/// The spans of a request's trace, by name, once all that are wanted are there.
fn spans(collected: &Collected, trace: &str, wanted: usize) -> BTreeMap<String, Value> {
    let all = || -> Vec<Value> {
        let bodies = collected.lock().expect("no panic");
        let spans = bodies.iter().flat_map(|body| {
            body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
        });
        spans.filter(|span| span["traceId"] == trace).collect()
    };
    eventually("the spans come", || all().len() >= wanted);
    let spans: BTreeMap<String, Value> =
        all().into_iter().map(|span| (span["name"].as_str().expect("a name").to_owned(), span)).collect();
    assert_eq!(spans.len(), wanted, "{spans:#?}");
    spans
}

fn attributes(span: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let pair = |attribute: &Value| {
        let value = attribute["value"].as_object().expect("a value").values().next().expect("one");
        (text(&attribute["key"]), text(value))
    };
    span["attributes"].as_array().expect("attributes").iter().map(pair).collect()
}

fn nanoseconds(span: &Value, name: &str) -> u64 {
    span[name].as_str().expect("a text").parse().expect("a number")
}

#[test]
fn without_traces_a_clients_context_passes_as_it_is() {
    let origin = mirror();
    let gateway = start(Settings { h2c: true, ..settings(&[origin.address]) }, &promises(8));
    // No word of it is judged, and no line joined.
    let (good, wrong) = (format!("00-{TRACE}-{CALLER}-01"), "99-anything");
    let lines =
        format!("TraceParent: {good}\r\ntraceparent: {wrong}\r\nTracestate: a=1\r\ntracestate: b=2\r\n");
    let head = got(&gateway, &lines);
    assert!(head.contains(&lines), "{head}");
    let mut stream = Connection::new(address(&gateway));
    let asked = request("GET", "/a").header("traceparent", &good).header("tracestate", "a=1");
    let head = stream.ask(asked.header("tracestate", "b=2")).text();
    assert!(
        head.contains(&format!("traceparent: {good}\r\ntracestate: a=1\r\ntracestate: b=2\r\n")),
        "{head}"
    );
    assert!(!got(&gateway, "").to_lowercase().contains("traceparent"));
}

#[test]
fn a_trace_goes_on_through_the_gateway_and_to_the_collector() {
    let (origin, (collector, collected)) = (mirror(), collector(&[200]));
    let gateway = start(traced(&origin, collector.address, 0.0), &promises(8));
    let head = got(&gateway, &format!("Traceparent: 00-{TRACE}-{CALLER}-01\r\nTracestate: a=1\r\n"));
    assert_eq!(field(&head, "tracestate"), Some("a=1"));
    let sent = parent(&head);
    assert_eq!((sent[0], sent[1], sent[3]), ("00", TRACE, "01"));
    let spans = spans(&collected, TRACE, 3);
    let (server, service, delivery) = (&spans["GET"], &spans["service"], &spans["delivery"]);
    assert_eq!(server["parentSpanId"], CALLER);
    assert_eq!(service["spanId"], sent[2], "the server's work is below the service");
    assert_eq!((&service["parentSpanId"], &delivery["parentSpanId"]), (&server["spanId"], &server["spanId"]));
    assert_eq!((&server["kind"], &service["kind"]), (&Value::from(2), &Value::from(3)));
    let [start, end] = ["startTimeUnixNano", "endTimeUnixNano"];
    let order = [(server, start), (service, start), (service, end), (delivery, end)];
    assert!(order.is_sorted_by_key(|(span, moment)| nanoseconds(span, moment)), "{spans:#?}");
    assert_eq!(nanoseconds(service, end), nanoseconds(delivery, start));
    let told = attributes(server);
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("url.scheme", "http"),
        ("url.path", "/a"),
        ("server.address", "test"),
        ("network.protocol.version", "1.1"),
        ("plimsoll.site", "site"),
        ("plimsoll.class", "default"),
        ("plimsoll.level", "full"),
    ] {
        assert_eq!(told.get(name).map(String::as_str), Some(value), "{name}: {told:?}");
    }
    assert!(told.contains_key("plimsoll.reason") && !told.contains_key("error.type"));
    let resource = &collected.lock().expect("no panic")[0]["resourceSpans"][0]["resource"];
    assert_eq!(attributes(resource).get("service.name").map(String::as_str), Some("shop-front"));
}

#[test]
fn the_callers_decision_counts_and_who_brings_none_is_sampled() {
    let (origin, (collector, collected)) = (mirror(), collector(&[200]));
    let gateway = start(traced(&origin, collector.address, 1.0), &promises(8));
    // The caller records nothing: its trace goes on unrecorded.
    let head = got(&gateway, &format!("traceparent: 00-{TRACE}-{CALLER}-00\r\n"));
    let sent = parent(&head);
    assert_eq!((sent[1], sent[3]), (TRACE, "00"));
    assert_ne!(sent[2], CALLER);
    // What is malformed begins a trace anew, without what belonged to the old one.
    let head = got(&gateway, &format!("traceparent: 00-{TRACE}-{CALLER}\r\ntracestate: a=1\r\n"));
    let sent = parent(&head);
    assert_ne!(sent[1], TRACE);
    assert_eq!(field(&head, "tracestate"), None);
    assert!(spans(&collected, sent[1], 3)["GET"].get("parentSpanId").is_none());
    // A stream's request is as any.
    let mut stream = Connection::new(address(&gateway));
    let asked = request("POST", "/broken?q=1&sig=secret");
    let answer = stream.post(asked, &[b"body"]);
    let head = answer.text();
    let spans = spans(&collected, parent(&head)[1], 3);
    let told = attributes(&spans["POST"]);
    assert_eq!(spans["POST"]["status"]["code"], 2);
    assert_eq!(told.get("error.type").map(String::as_str), Some("500"));
    assert_eq!(told.get("url.query").map(String::as_str), Some("q=1&sig=REDACTED"));
    assert_eq!(told.get("network.protocol.version").map(String::as_str), Some("2"));
    drop(gateway);
    let bodies = format!("{:?}", collected.lock().expect("no panic"));
    assert!(!bodies.contains(TRACE), "what nobody records is not sent");
}

#[test]
fn what_only_proxies_may_say_is_not_believed_from_others() {
    let (origin, (collector, _)) = (mirror(), collector(&[200]));
    let settings = traced(&origin, collector.address, 0.0);
    let gateway =
        start(Settings { trusted_headers: vec!["traceparent".to_owned()], ..settings }, &promises(8));
    let head = got(&gateway, &format!("traceparent: 00-{TRACE}-{CALLER}-01\r\ntracestate: a=1\r\n"));
    let sent = parent(&head);
    assert!(sent[1] != TRACE && sent[3].ends_with(['0', '2']), "{head}");
    assert_eq!(field(&head, "tracestate"), None);
}

#[test]
fn a_request_that_waits_or_is_turned_away_has_spans_too() {
    let (collector, collected) = collector(&[200]);
    let go = Arc::new(AtomicBool::new(false));
    let may = go.clone();
    let origin = Origin::answering(move |head, _| {
        eventually("the test lets it go", || may.load(SeqCst));
        head.to_owned()
    });
    let mut promises = promises(1);
    promises.sites[0].hosts = vec!["test".to_owned()];
    let gateway = start(traced(&origin, collector.address, 1.0), &promises);
    let mut clients = [client(&gateway), client(&gateway)];
    clients.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent"));
    eventually("one waits", || gateway.status().plants[0].waiting == 1);
    go.store(true, SeqCst);
    let heads = clients.each_mut().map(|client| String::from_utf8(client.answer().1).expect("text"));
    let waited = heads.iter().map(|head| parent(head)[1]).filter(|trace| {
        eventually("its spans come", || format!("{:?}", collected.lock().expect("no panic")).contains(trace));
        format!("{:?}", collected.lock().expect("no panic")).matches(trace).count() == 4
    });
    assert_eq!(waited.count(), 1, "one of two waited for the only place");
    let trace = "7".repeat(32);
    let lost = format!("GET / HTTP/1.1\r\nHost: elsewhere\r\ntraceparent: 00-{trace}-{CALLER}-01\r\n\r\n");
    assert_eq!(client(&gateway).ask(lost).0, 421);
    let spans = spans(&collected, &trace, 1);
    assert_eq!(attributes(&spans["GET"]).get("http.response.status_code").map(String::as_str), Some("421"));
}

#[test]
fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let (origin, (busy, collected)) = (mirror(), collector(&[503, 200]));
    let gateway = start(traced(&origin, busy.address, 1.0), &promises(8));
    got(&gateway, "");
    eventually("it is sent again", || collected.lock().expect("no panic").len() == 2);
    let both = collected.lock().expect("no panic").clone();
    assert_eq!(both[0], both[1]);
    let (refusing, refused) = collector(&[400]);
    let gateway = start(traced(&origin, refusing.address, 1.0), &promises(8));
    got(&gateway, "");
    eventually("that it is refused is news", || {
        gateway
            .faults()
            .iter()
            .any(|fault| fault.text.contains("traces are lost") && fault.text.contains("400"))
    });
    assert_eq!(refused.lock().expect("no panic").len(), 1);
    assert_eq!(gateway.faults(), [], "once");
}

#[test]
fn a_gateway_that_stops_sends_what_it_has_and_one_without_a_collector_serves() {
    let (origin, (collector, collected)) = (mirror(), collector(&[200]));
    let gateway = start(traced(&origin, collector.address, 1.0), &promises(8));
    let head = got(&gateway, "");
    assert!(gateway.drain(PATIENCE));
    spans(&collected, parent(&head)[1], 3);
    // Nobody listens there.
    let gone = Origin::serving(b"").address;
    let gateway = start(traced(&origin, gone, 1.0), &promises(8));
    (0..100).for_each(|_| drop(got(&gateway, "")));
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [100, 0, 0]);
}
