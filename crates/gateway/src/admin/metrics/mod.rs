//! `/metrics`: one [`Scrape`] in Prometheus' text format, version 0.0.4; and the same pushed to a collector (`otlp`, `push`).
//!
//! Each metric is one row of the table [`METRICS`]: its name, its help, and where its value is read. A new metric is a new
//! row. Nothing is counted here: the rows read what was counted elsewhere, so that a request costs nothing for it.
//!
//! Names follow Prometheus' conventions: base units, the unit last (`_ratio` for a part of 1), `_total` for a value that only
//! grows, `_timestamp_seconds` for Unix time, and one meaning a metric: the sum over a label makes sense. What can be had of
//! a counter or a histogram by `rate` has no metric of its own. Labels are names of the configuration and words of closed
//! lists, so that clients cannot add series. A class is labelled by `site` and `class`, a plant by `upstream`. A value that is
//! not known yet is left out, never written as zero; a metric without any sample is left out whole.

mod otlp;
mod process;
mod push;
mod table;

use super::controller::ControllerFigures;
use super::document::{classes, plants};
use super::scrape::{GatewayFigures, Scrape};
use crate::upstream::ejection::{RosterStatus, ServerStatus};
use plimsoll_core::promises::plan::{DelayRow, PlantPlan};
use plimsoll_core::telemetry::status::{ClassStatus, DurationHistogram, PlantStatus, SiteStatus, TypeStatus};
pub(super) use process::ProcessFigures;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
pub(crate) use push::MetricsPusher;
use std::fmt;
use std::time::Duration;
use table::METRICS;

pub(super) fn render(scrape: Scrape) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(scrape));
    let mut page = Page(String::with_capacity(16 * 1024));
    // Writing to a string cannot fail.
    let _ = encode_registry(&mut page, &registry);
    page.0
}

/// The export request as a test reads it, in which counters count from one second after 1970.
#[cfg(test)]
pub(super) fn otlp_request(service: &str, scrape: Scrape) -> Vec<u8> {
    let at = |seconds| std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    otlp::export_request(service, otlp::CountingTime { start: at(1), now: at(2) }, &scrape)
}

/// Name, labels and help of all metrics.
#[cfg(test)]
pub(super) fn rows() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    METRICS.iter().map(|metric| (metric.name, metric.labels(), metric.help))
}

struct Metric {
    name: &'static str,
    help: &'static str,
    read: Read,
    /// The source text of the expression, which names the labels that a row adds.
    #[cfg(test)]
    source: &'static str,
}

/// Where a metric's samples come from: one item of the status, whose labels come before those of its samples.
enum Read {
    Whole(fn(&Scrape) -> Vec<Sample>),
    /// What only a gateway has.
    Gateway(fn(&GatewayFigures) -> Vec<Sample>),
    /// What only a controller has.
    Controller(fn(&ControllerFigures) -> Vec<Sample>),
    Plants(fn(&PlantStatus) -> Vec<Sample>),
    /// What only a gateway knows of a plant.
    GatewayPlants(fn(&PlantStatus) -> Vec<Sample>),
    /// By upstream; folders have no servers.
    Rosters(fn(&RosterStatus) -> Vec<Sample>),
    /// By upstream and server.
    Servers(fn(&ServerStatus) -> Vec<Sample>),
    Plans(fn(&PlantPlan) -> Vec<Sample>),
    Sites(fn(&SiteStatus) -> Vec<Sample>),
    /// By type and level.
    Types(fn(&TypeStatus) -> Vec<Sample>),
    Classes(fn(&ClassStatus) -> Vec<Sample>),
    /// What only a gateway counts of a class.
    GatewayClasses(fn(&ClassStatus) -> Vec<Sample>),
    /// By promised delay.
    Delays(fn(&DelayRow) -> Vec<Sample>),
}

/// The labels of a series, and its value.
type Sample = (Labels, Value);
type Labels = Vec<(&'static str, String)>;

enum Value {
    /// A whole number, exact beyond 2^53 too.
    Count(u64),
    Number(f64),
    Times(DurationHistogram),
}

/// The types that a row of the table may read: a value, a value that may be unknown, or values with labels of their own.
trait Sampled {
    fn samples(self) -> Vec<Sample>;
}

macro_rules! sampled {
    ($($from:ty: $own:ident => $value:expr;)+) => {
        $(impl Sampled for $from {
            fn samples(self) -> Vec<Sample> {
                let $own = self;
                vec![(Labels::new(), $value)]
            }
        })+
    };
}

sampled! {
    Value: value => value;
    u64: count => Value::Count(count);
    i32: number => Value::Number(number.into());
    u32: number => Value::Number(number.into());
    f64: number => Value::Number(number);
    bool: is => Value::Number(is.into());
    Duration: time => Value::Number(time.as_secs_f64());
    &DurationHistogram: times => Value::Times(*times);
}

impl<T: Sampled> Sampled for Option<T> {
    fn samples(self) -> Vec<Sample> {
        self.map_or_else(Vec::new, T::samples)
    }
}

impl<T: Sampled> Sampled for Vec<(Labels, T)> {
    fn samples(self) -> Vec<Sample> {
        let labelled = |(labels, value): (Labels, T)| {
            let samples = value.samples().into_iter();
            samples.map(move |(more, value)| ([labels.as_slice(), &more].concat(), value))
        };
        self.into_iter().flat_map(labelled).collect()
    }
}

impl<T: Sampled, const N: usize> Sampled for [(Labels, T); N] {
    fn samples(self) -> Vec<Sample> {
        Vec::from(self).samples()
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        METRICS.iter().try_for_each(|metric| metric.encode(self, &mut encoder))
    }
}

impl Metric {
    /// The labels of its samples, as the reference has them: those of what it is read from, and its own.
    #[cfg(test)]
    fn labels(&self) -> String {
        let written: String = self.source.split_whitespace().collect();
        let own = written.split("label(\"").skip(1).filter_map(|rest| rest.split('"').next());
        let by_level = written.contains("by_level(").then_some(["level", "level_name"]);
        let own = own.chain(by_level.into_iter().flatten()).map(|name| format!("`{name}`"));
        let common = Some(self.read.labels().to_owned()).filter(|labels| !labels.is_empty());
        common.into_iter().chain(own).collect::<Vec<_>>().join(", ")
    }

    fn encode(&self, scrape: &Scrape, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let samples = self.read.samples(scrape);
        if samples.is_empty() {
            return Ok(());
        }
        let kind = match samples[0].1 {
            Value::Times(_) => MetricType::Histogram,
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
    /// The labels of every sample, as the reference has them.
    #[cfg(test)]
    fn labels(&self) -> &'static str {
        match self {
            Read::Whole(_) | Read::Gateway(_) | Read::Controller(_) => "",
            Read::Plants(_) | Read::GatewayPlants(_) | Read::Plans(_) | Read::Rosters(_) => "`upstream`",
            Read::Servers(_) => "`upstream`, `server`",
            Read::Sites(_) => "`site`",
            Read::Types(_) => "`site`, `type`, `level_name`, `announced`",
            Read::Classes(_) | Read::GatewayClasses(_) | Read::Delays(_) => "`site`, `class`",
        }
    }

    fn samples(&self, scrape: &Scrape) -> Vec<Sample> {
        let status = &scrape.status;
        let whole = |samples| vec![(Labels::new(), samples)];
        let all: Vec<(Labels, Vec<Sample>)> = match self {
            // Figures that a controller does not count are left out.
            Read::GatewayPlants(_) | Read::GatewayClasses(_) if scrape.gateway().is_none() => {
                return Vec::new();
            }
            Read::Whole(read) => whole(read(scrape)),
            Read::Gateway(read) => scrape.gateway().map_or_else(Vec::new, |own| whole(read(own))),
            Read::Controller(read) => scrape.controller().map_or_else(Vec::new, |own| whole(read(own))),
            Read::Plants(read) | Read::GatewayPlants(read) => {
                plants(status).map(|(_, own)| (label("upstream", &own.name), read(own))).collect()
            }
            Read::Rosters(read) => rosters(scrape).map(|(labels, own)| (labels, read(own))).collect(),
            Read::Servers(read) => {
                let of = |(labels, own): (Labels, &RosterStatus)| {
                    let server = |own: &ServerStatus| (label("server", &own.address), read(own));
                    (labels, own.servers.iter().map(server).collect::<Vec<_>>().samples())
                };
                rosters(scrape).map(of).collect()
            }
            Read::Plans(read) => {
                status.plan.iter().map(|own| (label("upstream", &own.plant), read(own))).collect()
            }
            Read::Sites(read) => {
                status.sites.iter().map(|own| (label("site", &own.name), read(own))).collect()
            }
            Read::Types(read) => {
                let of = |site: &SiteStatus, own: &TypeStatus| {
                    let announced = if own.announced { "yes" } else { "no" };
                    let pairs = [("site", &*site.name), ("type", &own.name), ("level_name", &own.level)];
                    (labels(pairs.into_iter().chain([("announced", announced)])), read(own))
                };
                let all = status.sites.iter().flat_map(|site| site.types.iter().map(move |own| (site, own)));
                all.filter(|(_, own)| own.requests > 0).map(|(site, own)| of(site, own)).collect()
            }
            Read::Classes(read) | Read::GatewayClasses(read) => {
                let of = |own: &ClassStatus| labels([("site", &*own.site), ("class", &own.class)]);
                classes(status).map(|own| (of(own), read(own))).collect()
            }
            Read::Delays(read) => {
                let of = |own: &DelayRow| labels([("site", &*own.site), ("class", &own.class)]);
                status.plan.iter().flat_map(|plan| &plan.delays).map(|own| (of(own), read(own))).collect()
            }
        };
        all.samples()
    }
}

/// The upstreams that have servers.
fn rosters(scrape: &Scrape) -> impl Iterator<Item = (Labels, &RosterStatus)> {
    let all = plants(&scrape.status).filter_map(|(number, plant)| Some((plant, scrape.roster(number)?)));
    let all = all.filter(|(_, roster)| !roster.servers.is_empty());
    all.map(|(plant, roster)| (label("upstream", &plant.name), roster))
}

fn label(name: &'static str, text: &str) -> Labels {
    labels([(name, text)])
}

fn labels<'a>(all: impl IntoIterator<Item = (&'static str, &'a str)>) -> Labels {
    all.into_iter().map(|(name, text)| (name, text.to_owned())).collect()
}

struct Page(String);

impl fmt::Write for Page {
    /// The encoder writes a value in one piece after a blank, and an infinite value as `inf`, while the format wants `+Inf`.
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
