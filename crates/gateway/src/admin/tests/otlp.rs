//! A collector gets the same figures as `/metrics` shows.

use super::*;
use crate::admin::metrics::otlp_request;
use serde_json::Value;

#[test]
fn a_collector_gets_the_metrics_of_the_page() {
    let page = render_metrics(&sample());
    let sent: Value = serde_json::from_slice(&otlp_request("shop", scrape(sample()))).unwrap();
    let metrics = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let types: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert!(metrics.len() > 50 && metrics.len() == types.len());
    for (metric, kind) in metrics.iter().zip(types) {
        let (name, kind) = kind.split_once(' ').unwrap();
        let data = &metric[match kind {
            "counter" => "sum",
            kind => kind,
        }];
        assert_eq!(metric["name"], name, "in the same order");
        let temporality = if kind == "gauge" { Value::Null } else { 2.into() };
        assert_eq!(data["aggregationTemporality"], temporality, "{metric:#}");
        let suffix = if kind == "histogram" { "_count" } else { "" };
        let samples = page.lines().filter(|line| {
            let rest = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(suffix));
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        let points = data["dataPoints"].as_array().unwrap();
        let mut numbers = 0;
        for (point, line) in points.iter().zip(samples) {
            let shown: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
            let number = |value: &Value| value.as_str().map_or(value.as_f64(), |text| text.parse().ok());
            let sent = ["asInt", "asDouble", "count"].iter().find_map(|form| number(&point[form])).unwrap();
            assert!((sent - shown).abs() <= 1e-9 * shown.abs() || sent == shown, "{line}: {point}");
            assert_eq!(point["startTimeUnixNano"], "1000000000");
            numbers += 1;
        }
        assert_eq!(numbers, points.len(), "{name}");
    }
    let times = metrics.iter().find(|metric| metric["name"] == "plimsoll_response_seconds").unwrap();
    let point = &times["histogram"]["dataPoints"][0];
    let (counts, bounds) =
        (point["bucketCounts"].as_array().unwrap(), point["explicitBounds"].as_array().unwrap());
    assert_eq!(counts.len(), bounds.len() + 1);
    let all: u64 = counts.iter().map(|count| count.as_str().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(point["count"], all.to_string());
}
