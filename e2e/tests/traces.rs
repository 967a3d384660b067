//! A collector of OpenTelemetry beside the binary: it gets the spans of a request, whose trace the access log has, and metrics.

use plimsoll_e2e::configuration::{before, two_levels};
use plimsoll_e2e::{Plimsoll, SLOW_PAGES, exchange, serving};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A collector, and what it gets.
fn collector() -> (SocketAddr, Receiver<Value>) {
    let (sender, receiver) = channel();
    let address = serving(1, move |stream| {
        while let Ok(body) = take(&stream) {
            let Ok(()) = sender.send(serde_json::from_slice(&body).expect("JSON")) else { return };
        }
    });
    (address, receiver)
}

fn take(mut stream: &TcpStream) -> std::io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 0 && line != "\r\n" {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")?;
    if body.is_empty() { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(body) }
}

#[test]
fn a_collector_gets_a_requests_spans_and_the_log_has_its_trace() {
    let (collector, collected) = collector();
    let origin = SLOW_PAGES.origin(&[]);
    let traces =
        format!("[traces]\nendpoint = \"http://{collector}/v1/traces\"\nsample = 0\nservice = \"front\"\n");
    let file =
        before(origin.address(), &two_levels()) + "\n[access_log]\nfile = \"access.log\"\n\n" + &traces;
    let mut gateway = Plimsoll::run(&file);
    let ask = |field: &str| {
        let head = format!("GET /page HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\n{field}\r\n");
        assert_eq!(exchange(gateway.address, head).status, 200);
    };
    ask("");
    ask(&format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"));
    let sent = collected.recv_timeout(PATIENCE).expect("spans");
    let spans = &sent["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let names: Vec<&str> =
        spans.as_array().expect("a list").iter().filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names, ["GET", "service", "delivery"], "of the second request alone: {sent:#}");
    assert_eq!(
        (&spans[0]["traceId"], &spans[0]["parentSpanId"]),
        (&TRACE.into(), &"00f067aa0ba902b7".into())
    );
    assert!(sent["resourceSpans"][0]["resource"].to_string().contains("\"front\""), "{sent:#}");
    gateway.wait_for_metric("plimsoll_traced_requests_total", 1.0);
    let log = gateway.file().with_file_name("access.log");
    assert!(gateway.stop().success());
    let lines = fs::read_to_string(log).expect("the log");
    assert_eq!((lines.lines().count(), lines.matches(TRACE).count()), (2, 1), "{lines}");
    assert_eq!(lines.matches("\"trace_id\"").count(), 2, "{lines}");
}

/// The sum of a metric's points.
fn sum(sent: &Value, name: &str) -> u64 {
    let metrics = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("a list");
    let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    let points = metric["sum"]["dataPoints"].as_array().expect("points of a counter");
    points
        .iter()
        .map(|point| point["asInt"].as_str().and_then(|n| n.parse::<u64>().ok()).expect("a number"))
        .sum()
}

#[test]
fn a_collector_gets_metrics_at_intervals_and_the_last_ones_at_the_end() {
    let (collector, collected) = collector();
    let origin = SLOW_PAGES.origin(&[]);
    let metrics = format!("[metrics]\nendpoint = \"http://{collector}/v1/metrics\"\ninterval = \"1s\"\n");
    let mut gateway = Plimsoll::run(&(before(origin.address(), &two_levels()) + "\n" + &metrics));
    let first = collected.recv_timeout(PATIENCE).expect("metrics");
    assert_eq!(sum(&first, "plimsoll_requests_total"), 0);
    for _ in 0..3 {
        let head = "GET /page HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\n\r\n";
        assert_eq!(exchange(gateway.address, head).status, 200);
    }
    assert!(gateway.stop().success());
    let last = collected.try_iter().last().expect("metrics at the end");
    assert_eq!(sum(&last, "plimsoll_requests_total"), 3);
    assert!(last["resourceMetrics"][0]["resource"].to_string().contains("\"plimsoll\""), "{last:#}");
}
