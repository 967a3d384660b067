//! One [`Scrape`] as OTLP sends it: `opentelemetry/proto/metrics/v1/metrics.proto`. Metrics and attributes have the names of
//! `/metrics`, so that what was built on those names reads either.

use super::table::METRICS;
use super::{Metric, Sample, Scrape, Value};
use crate::otlp::{self, Attribute, unix_nanoseconds};
use plimsoll_core::telemetry::status::DurationHistogram;
use serde::{Serialize, Serializer};
use std::time::SystemTime;

#[derive(Serialize)]
struct MetricOut {
    name: &'static str,
    description: &'static str,
    #[serde(flatten)]
    data: Data,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Data {
    Gauge(Points),
    Sum(Points),
    Histogram(Points),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Points {
    data_points: Vec<Point>,
    /// 2: The aggregation temporality; 2 stands for sums since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregation_temporality: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_monotonic: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Point {
    attributes: Vec<Attribute>,
    #[serde(serialize_with = "unix_nanoseconds")]
    start_time_unix_nano: SystemTime,
    #[serde(serialize_with = "unix_nanoseconds")]
    time_unix_nano: SystemTime,
    #[serde(flatten)]
    value: PointValue,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PointValue {
    #[serde(rename_all = "camelCase")]
    Whole {
        #[serde(serialize_with = "as_text")]
        as_int: u64,
    },
    #[serde(rename_all = "camelCase")]
    Double {
        #[serde(serialize_with = "double")]
        as_double: f64,
    },
    #[serde(rename_all = "camelCase")]
    Histogram {
        #[serde(serialize_with = "as_text")]
        count: u64,
        sum: f64,
        bucket_counts: Vec<String>,
        explicit_bounds: Vec<f64>,
    },
}

/// A number of 64 bits is a text in the JSON of protocol buffers.
fn as_text<S: Serializer>(number: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// A number that JSON cannot write, such as infinity, is written as text.
fn double<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match *number {
        number if number.is_finite() => serializer.serialize_f64(number),
        number if number.is_nan() => serializer.serialize_str("NaN"),
        number => serializer.serialize_str(if number > 0.0 { "Infinity" } else { "-Infinity" }),
    }
}

/// From when the counters count, and when they were read.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountingTime {
    pub(super) start: SystemTime,
    pub(super) now: SystemTime,
}

/// The body of an export request with all metrics of the service of this name.
pub(super) fn export_request(service: &str, span: CountingTime, scrape: &Scrape) -> Vec<u8> {
    let metrics = METRICS.iter().filter_map(|metric| metric.out(span, scrape)).collect();
    otlp::export_request(["resourceMetrics", "scopeMetrics", "metrics"], service, metrics)
}

impl Metric {
    /// The metric; `None` if it has no sample.
    fn out(&self, span: CountingTime, scrape: &Scrape) -> Option<MetricOut> {
        let samples = self.read.samples(scrape);
        let is_histogram = matches!(samples.first()?.1, Value::Times(_));
        let is_total = self.name.ends_with("_total");
        let points = Points {
            data_points: samples.into_iter().map(|sample| point(span, sample)).collect(),
            aggregation_temporality: (is_histogram || is_total).then_some(2),
            is_monotonic: is_total.then_some(true),
        };
        let data = match (is_histogram, is_total) {
            (true, _) => Data::Histogram(points),
            (false, true) => Data::Sum(points),
            (false, false) => Data::Gauge(points),
        };
        Some(MetricOut { name: self.name, description: self.help, data })
    }
}

fn point(span: CountingTime, (labels, value): Sample) -> Point {
    let value = match value {
        Value::Count(count) => PointValue::Whole { as_int: count },
        Value::Number(number) => PointValue::Double { as_double: number },
        Value::Times(times) => PointValue::Histogram {
            count: times.count(),
            sum: times.sum_ns as f64 / 1e9,
            bucket_counts: times.buckets.iter().map(ToString::to_string).collect(),
            explicit_bounds: DurationHistogram::bounds().map(|bound| bound.as_secs_f64()).collect(),
        },
    };
    Point {
        attributes: labels.into_iter().map(|(name, text)| Attribute::text(name, text)).collect(),
        start_time_unix_nano: span.start,
        time_unix_nano: span.now,
        value,
    }
}
