//! `/metrics`: one [`Scrape`] in Prometheus' text format, version 0.0.4.
//!
//! Each metric is one row of the table [`METRICS`]: its name, its help, and where its value is read. A new metric is a new
//! row. Nothing is counted here: the rows read what was counted elsewhere, so that a request costs nothing for it.
//!
//! Names follow Prometheus' conventions: base units, the unit last, `_total` for a value that only grows. A class is
//! labelled by `site` and `class`, a plant by `upstream`. A value that is not known yet is left out, never written as
//! zero; a metric without any sample is left out whole.

mod table;

use super::document::{classes, plants};
use plimsoll_core::promises::plan::DelayRow;
use plimsoll_core::telemetry::status::{ClassStatus, DurationHistogram, PlantStatus, TypeStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use table::METRICS;
pub(super) use table::Scrape;

/// All metrics.
pub(super) fn render(scrape: Scrape) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(scrape));
    let mut page = Page(String::with_capacity(16 * 1024));
    // Writing to a string cannot fail.
    let _ = encode_registry(&mut page, &registry);
    page.0
}

/// One row of the table.
struct Metric {
    name: &'static str,
    help: &'static str,
    read: Read,
}

/// Where a metric's samples come from.
enum Read {
    /// One sample without labels.
    Gateway(fn(&Scrape) -> Option<f64>),
    /// A sample of each plant.
    Plants(fn(&PlantStatus) -> Option<f64>),
    /// A sample of each class.
    Classes(fn(&ClassStatus) -> Option<f64>),
    /// A count of each class: exact beyond 2^53 too.
    ClassCounts(fn(&ClassStatus) -> Option<u64>),
    /// A histogram of each class.
    Times(fn(&ClassStatus) -> &DurationHistogram),
    /// A sample of each delay that was promised.
    Delays(fn(&DelayRow) -> Option<f64>),
    /// A sample of each type at each level.
    Types(fn(&TypeStatus) -> f64),
    /// Samples with labels of their own.
    Labelled(fn(&Scrape) -> Vec<Sample>),
}

/// The labels of a series and its value.
type Sample = (Labels, Value);
type Labels = Vec<(&'static str, String)>;

enum Value {
    Count(u64),
    Number(f64),
    Times(DurationHistogram),
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        METRICS.iter().try_for_each(|metric| metric.encode(self, &mut encoder))
    }
}

impl Metric {
    fn encode(&self, scrape: &Scrape, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let samples = self.read.samples(scrape);
        if samples.is_empty() {
            return Ok(());
        }
        let kind = match self.read {
            Read::Times(_) => MetricType::Histogram,
            _ if self.name.ends_with("_total") => MetricType::Counter,
            _ => MetricType::Gauge,
        };
        let mut family = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        samples.into_iter().try_for_each(|(labels, value)| match labels.is_empty() {
            true => value.encode(&mut family),
            false => value.encode(&mut family.encode_family(&labels)?),
        })
    }
}

impl Value {
    /// Counters are written as gauges are, because the encoder of counters would append a second `_total` to the name.
    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => encoder.encode_gauge(count),
            Value::Number(number) => encoder.encode_gauge(number),
            Value::Times(times) => {
                let bounds = DurationHistogram::bounds().map(|bound| bound.as_secs_f64());
                let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(times.buckets).collect();
                encoder.encode_histogram::<NoLabelSet>(
                    times.sum_ns as f64 / 1e9,
                    times.count(),
                    &buckets,
                    None,
                )
            }
        }
    }
}

impl Read {
    fn samples(&self, scrape: &Scrape) -> Vec<Sample> {
        let status = &scrape.status;
        let number = |labels, value: Option<f64>| Some((labels, Value::Number(value?)));
        match self {
            Read::Gateway(read) => number(Vec::new(), read(scrape)).into_iter().collect(),
            Read::Plants(read) => plants(status).filter_map(|own| number(of_plant(own), read(own))).collect(),
            Read::Classes(read) => {
                classes(status).filter_map(|own| number(of_class(own), read(own))).collect()
            }
            Read::ClassCounts(read) => {
                classes(status).filter_map(|own| Some((of_class(own), Value::Count(read(own)?)))).collect()
            }
            Read::Times(read) => {
                classes(status).map(|own| (of_class(own), Value::Times(*read(own)))).collect()
            }
            Read::Delays(read) => {
                let rows = status.plan.iter().flat_map(|plan| &plan.delays);
                rows.filter_map(|row| number(of_site_and_class(&row.site, &row.class), read(row))).collect()
            }
            Read::Types(read) => {
                let sites = status.sites.iter();
                let types = sites.flat_map(|site| site.types.iter().map(move |own| (&site.name, own)));
                types.map(|(site, own)| (of_type(site, own), Value::Number(read(own)))).collect()
            }
            Read::Labelled(read) => read(scrape),
        }
    }
}

fn of_plant(plant: &PlantStatus) -> Labels {
    vec![("upstream", plant.name.clone())]
}

fn of_class(class: &ClassStatus) -> Labels {
    of_site_and_class(&class.site, &class.class)
}

fn of_site_and_class(site: &str, class: &str) -> Labels {
    vec![("site", site.to_owned()), ("class", class.to_owned())]
}

fn of_type(site: &str, own: &TypeStatus) -> Labels {
    let announced = if own.announced { "yes" } else { "no" };
    vec![
        ("site", site.to_owned()),
        ("type", own.name.clone()),
        ("level_name", own.level.clone()),
        ("announced", announced.to_owned()),
    ]
}

/// The level's number and its name.
fn of_level(class: &ClassStatus, level: usize) -> Labels {
    let name = class.levels.get(level - 1).map_or("", String::as_str);
    with(with(of_class(class), "level", &level.to_string()), "level_name", name)
}

fn with(mut labels: Labels, name: &'static str, value: &str) -> Labels {
    labels.push((name, value.to_owned()));
    labels
}

/// The text under construction.
struct Page(String);

impl fmt::Write for Page {
    /// The encoder writes a value in one piece, after a blank. It writes an infinite one as Rust does, `inf`; the format
    /// says `+Inf`.
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let is_value = self.0.ends_with(' ');
        self.0.push_str(match piece {
            "inf" if is_value => "+Inf",
            "-inf" if is_value => "-Inf",
            piece => piece,
        });
        Ok(())
    }
}
