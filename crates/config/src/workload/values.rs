//! Values that only a workload has: numbers, moments, paths and hosts that requests name, and words.

use crate::diagnostic::{Findings, quoted};
use crate::gateway::http::{HostPattern, PathPattern};
use crate::syntax::{
    DURATION, Field, Refusal, Shape, TextField, TextShape, bad, numbers, parse_seconds, texts, words,
};
use plimsoll_core::time::Duration;
use std::net::Ipv4Addr;
use toml::Spanned;
use toml::de::DeValue;

numbers! {
    /// A rate as a multiple of what the plant carries.
    Load: Included(0.0), to 1000.0;
    /// How many times as fast, or as many.
    Multiple: Excluded(0.0), to 1_000_000.0;
    /// The rate of one state relative to another.
    StateRatio: Excluded(1.0), to 1_000_000_000.0;
    /// A distribution's shape or variation.
    ShapeNumber: Included(0.01), to 1000.0;
    /// The shape of intervals that have a mean.
    TailShape: Excluded(1.0), to 100.0;
    /// The Hurst parameter, below 1.
    Hurst: Excluded(0.5), to 0.99;
    /// How unevenly clients share.
    Skew: Included(1.0), to 10.0;
    /// A value of a distribution.
    Sample: Included(0.0), to 1_000_000_000_000.0;
    /// Bytes of a level as a multiple of those of the level above.
    BytesRatio: Excluded(0.0), to 1000.0;
}

/// The end of the simulation, if the file gives one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End(pub(crate) Option<Duration>);

impl Field for End {
    fn shape() -> Shape {
        <Duration as Field>::shape()
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        <Duration as Field>::read(value, findings).map(|duration| End(Some(duration)))
    }
}

texts! {
    /// A time from the beginning, which may be the beginning itself.
    #[derive(Copy)]
    Moment(Duration, "a time", "30s", Some(DURATION), unit "s") = |text| match parse_seconds(text)? {
        0.0 => Ok(Duration::ZERO),
        _ => <Duration as TextField>::parse(text),
    }, show |time| if time.is_zero() { "0s".to_owned() } else { TextField::show(time) };
    /// The path of a page, with at most one `*`.
    PagePath(String, "a path", "/page/*", Some("^/[^*?#]*[*]?[^*?#]*$")) = |text| {
        if !text.starts_with('/') {
            let message = format!("`{}` is no path: paths begin with `/`", quoted(text));
            return bad(message, format!("write `\"/{}\"`", quoted(text)));
        }
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let message = format!("`{}` is no path: no request could carry it", quoted(text));
            return bad(message, "percent-encode what is not printable");
        }
        PathPattern::parse(text).map(|pattern| pattern.0)
    };
    /// A host that a request names.
    Host(String, "a host", "shop.example", Some("^[^*]+$")) = |text| {
        let host = HostPattern::parse(text)?.0;
        if host.contains('*') {
            let message = format!("`{}` is a pattern: a request names one host", quoted(text));
            return bad(message, format!("write one, such as `\"{}\"`", quoted(&host_matching(&host))));
        }
        Ok(host)
    };
}

/// A host that the pattern matches.
pub(crate) fn host_matching(pattern: &str) -> String {
    match pattern.split_once('*') {
        Some(("", "")) => "www.example".to_owned(),
        Some((before, "")) => format!("{before}example"),
        Some((before, after)) => format!("{before}www{after}"),
        None => pattern.to_owned(),
    }
}

/// The address of a stream's first client.
impl TextField for Ipv4Addr {
    const SHAPE: TextShape =
        TextShape { what: "an IPv4 address", example: "10.0.0.0", pattern: None, unit: None };

    fn parse(text: &str) -> Result<Self, Refusal> {
        let message = format!("`{}` is no IPv4 address", quoted(text));
        text.parse().or_else(|_| bad(message, "write one, such as `\"10.0.0.0\"`"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

words! {
    /// How arrivals vary, by name.
    enum ProcessKind {
        "poisson" => Poisson, "independent of each other";
        "deterministic" => Deterministic, "at equal distances";
        "pareto" => Pareto, "independent intervals with a heavy tail; needs `shape`";
        "self-similar" => SelfSimilar, "the sum of many sources that are on and off for times with heavy tails; takes `hurst` and `sources`";
        "surge" => Surge, "the users of SURGE (Barford and Crovella, SIGMETRICS 1998), pages of several files, Weibull's and Pareto's times between requests, scaled to the rate; takes `sources` and `waits`";
        "modulated" => Modulated, "bursts and calm in turn, each Poisson, the rate being the mean over both; needs `ratio`, `burst` and `calm`";
    }
}

words! {
    /// A distribution's form, by name.
    enum LawKind {
        "deterministic" => Deterministic, "always the mean";
        "exponential" => Exponential, "exponential";
        "pareto" => Pareto, "Pareto's between two bounds; needs `shape` and `ratio`";
        "lognormal" => Lognormal, "lognormal; needs `variation`";
        "empirical" => Empirical, "one of `values`, each as likely, scaled to the mean";
    }
}

words! {
    /// A log's format, by name.
    enum FormatKind {
        "auto" => Auto, "what the first lines look like";
        "common" => Common, "Common or Combined Log Format, as Apache and nginx write by default";
        "haproxy" => Haproxy, "HAProxy's own, by `option httplog`";
        "json" => Json, "a JSON object a line";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_filled_with_a_host_that_they_match() {
        assert_eq!(host_matching("shop.example"), "shop.example");
        assert_eq!(host_matching("*.shop.example"), "www.shop.example");
        assert_eq!(host_matching("api.*"), "api.example");
        assert_eq!(host_matching("*"), "www.example");
    }

    #[test]
    fn the_beginning_is_a_moment() {
        assert_eq!(Moment::parse("0s").unwrap().0, Duration::ZERO);
        assert_eq!(Moment::parse("0.5 min").unwrap().0, Duration::from_secs(30));
        assert!(Moment::parse("soon").is_err());
    }
}
