//! Values that are written as text of a certain form: addresses, names, patterns, quantities.

use crate::diagnostic::{Code, Complaint, Findings, quoted};
use crate::field::wrong_type;
use crate::http::*;
use crate::quantity;
use crate::shape::TextShape;
use plimsoll_core::promises::Share;
use plimsoll_core::promises::{Identity, Network};
use plimsoll_core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use toml::Spanned;
use toml::de::DeValue;

/// A value written as text.
pub(crate) trait TextField: Sized {
    const SHAPE: TextShape;
    /// The unit to propose where somebody wrote a bare number.
    const UNIT: Option<&'static str> = None;
    fn parse(text: &str) -> Result<Self, (Code, Complaint)>;
    fn show(&self) -> String;
}

macro_rules! text_fields {
    ($($name:ty),+) => { $(
        impl crate::field::Field for $name {
            fn shape() -> crate::shape::Shape {
                crate::shape::Shape::Text(<$name as crate::text::TextField>::SHAPE)
            }

            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                findings: &mut crate::diagnostic::Findings,
            ) -> Option<Self> {
                crate::text::read_text(value, findings)
            }

            fn show(&self) -> String {
                format!("\"{}\"", crate::text::TextField::show(self).escape_debug())
            }
        }
    )+ };
}
pub(crate) use text_fields;

text_fields!(
    Text,
    Name,
    Duration,
    Seconds,
    Size,
    Rate,
    RequestRate,
    SocketAddr,
    Admin,
    HostPort,
    Network,
    Pattern
);
text_fields!(PathPattern, HostPattern, HeaderName, SetHeaderName, CookieName, HeaderValue, Method, Prefix);
text_fields!(ClientIdentity, ContentType, LeastToMost);

pub(crate) fn read_text<T: TextField>(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<T> {
    let shape = T::SHAPE;
    let (code, complaint) = match value.get_ref() {
        DeValue::String(text) => match T::parse(text) {
            Ok(read) => return Some(read),
            Err(error) => error,
        },
        other => {
            let number = match other {
                DeValue::Integer(number) => Some(number.to_string()),
                DeValue::Float(number) => Some(number.to_string()),
                _ => None,
            };
            let help = match (number, T::UNIT) {
                (Some(number), Some(unit)) => format!("write it with its unit, such as `\"{number}{unit}\"`"),
                _ => format!("write text, such as `\"{}\"`", shape.example),
            };
            wrong_type(value, shape.what, help, findings);
            return None;
        }
    };
    findings.add(code, &value.span(), complaint);
    None
}

pub(crate) fn bad(message: impl Into<String>, help: impl Into<String>) -> (Code, Complaint) {
    (Code::BadValue, Complaint::new(message, help))
}

pub(crate) fn out_of_range(message: impl Into<String>, help: impl Into<String>) -> (Code, Complaint) {
    (Code::OutOfRange, Complaint::new(message, help))
}

/// Any text.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) String);

impl TextField for Text {
    const SHAPE: TextShape = TextShape { what: "text", example: "text", pattern: None };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        Ok(Text(text.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A name that metrics, headers and logs can carry as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

/// Whether `name` is one.
pub(crate) fn check_name(name: &str) -> Result<(), Complaint> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let message = format!("`{}` cannot be a name", quoted(name));
    Err(Complaint::new(
        message,
        "use 1 to 64 letters, digits, `-`, `_` or `.`: it appears in metrics and headers",
    ))
}

impl TextField for Name {
    const SHAPE: TextShape =
        TextShape { what: "a name", example: "shop", pattern: Some("^[A-Za-z0-9_.-]{1,64}$") };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        check_name(text).map(|()| Name(text.to_owned())).map_err(|complaint| (Code::BadValue, complaint))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A least and a most share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeastToMost(pub(crate) Share);

impl TextField for LeastToMost {
    const SHAPE: TextShape = TextShape {
        what: "a least and a most share",
        example: "0.2-1",
        pattern: Some("^(0|1|0?\\.[0-9]+)-(0|1|0?\\.[0-9]+)$"),
    };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        let read = || {
            let (least, most) = text.split_once('-')?;
            let share = Share { least: least.trim().parse().ok()?, most: most.trim().parse().ok()? };
            (0.0 <= share.least && share.least <= share.most && share.most <= 1.0)
                .then_some(LeastToMost(share))
        };
        read().ok_or_else(|| {
            let message = format!("`{}` is not a least and a most share", crate::diagnostic::quoted(text));
            bad(message, "write both from 0 to 1, the least first, such as `\"0.2-1\"`".to_owned())
        })
    }

    fn show(&self) -> String {
        format!("{}-{}", self.0.least, self.0.most)
    }
}

const TIME_UNITS: &str = "write a number and a unit, such as `\"10s\"`: ns, us, ms, s, min, h, d";

pub(crate) fn parse_seconds(text: &str) -> Result<f64, (Code, Complaint)> {
    quantity::seconds(text).map_err(|fault| {
        let (message, help) = fault.words("duration", TIME_UNITS);
        bad(message, help)
    })
}

/// A span of time above zero, up to a year.
impl TextField for Duration {
    const SHAPE: TextShape = TextShape { what: "a duration", example: "10s", pattern: Some(DURATION) };
    const UNIT: Option<&'static str> = Some("s");

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        let seconds = parse_seconds(text)?;
        // Rounded, so that what is printed as 0.1 s is 100,000,000 ns.
        match Duration::from_nanos((seconds * 1e9).round().min(1e18) as u64) {
            Duration::ZERO => Err(out_of_range("a duration of nothing", "write at least `\"1ns\"`")),
            duration if duration > Duration::from_secs(366 * 86_400) => {
                Err(out_of_range("longer than a year", "write at most `\"366d\"`"))
            }
            duration => Ok(duration),
        }
    }

    fn show(&self) -> String {
        quantity::show_duration(*self)
    }
}

pub(crate) const DURATION: &str = "^[0-9][0-9_.]* ?(ns|us|µs|ms|s|m|min|h|d)$";

/// A cost in time, which may be a fraction of a nanosecond, or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(pub(crate) f64);

impl TextField for Seconds {
    const SHAPE: TextShape = TextShape { what: "a duration", example: "1.6ms", pattern: Some(DURATION) };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        match parse_seconds(text)? {
            seconds if seconds <= 3600.0 => Ok(Seconds(seconds)),
            _ => {
                Err(out_of_range("a cost of more than an hour", "write what one request takes of the server"))
            }
        }
    }

    fn show(&self) -> String {
        if self.0 == 0.0 { "0s".to_owned() } else { format!("{}ns", self.0 * 1e9) }
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size(pub(crate) u64);

impl TextField for Size {
    const SHAPE: TextShape =
        TextShape { what: "a size", example: "64 KiB", pattern: Some("^[0-9][0-9_.]* ?([kKMGT]i?)?B$") };
    const UNIT: Option<&'static str> = Some(" B");

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        let units = "write a number and a unit, such as `\"64 KiB\"`: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB";
        let bytes = quantity::bytes(text).map_err(|fault| {
            let (message, help) = fault.words("size", units);
            bad(message, help)
        })?;
        match bytes {
            bytes if bytes < 1.0 => Err(out_of_range("a size of nothing", "write at least `\"1 B\"`")),
            bytes if bytes > 1e18 => Err(out_of_range("too large a size", "write at most `\"1000000 TB\"`")),
            bytes => Ok(Size(bytes.round() as u64)),
        }
    }

    fn show(&self) -> String {
        quantity::show_bytes(self.0)
    }
}

/// Bytes per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(pub(crate) f64);

impl TextField for Rate {
    const SHAPE: TextShape = TextShape {
        what: "a rate",
        example: "100 Mbit/s",
        pattern: Some("^[0-9][0-9_.]* ?([kMG]?bit|([kMG]|[KMG]i)?B)/s$"),
    };
    const UNIT: Option<&'static str> = Some(" Mbit/s");

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        let units = "write a number and a unit, such as `\"100 Mbit/s\"`: bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, \
                     MB/s, GB/s, KiB/s, MiB/s, GiB/s";
        let rate = quantity::bytes_per_second(text).map_err(|fault| {
            let (message, help) = fault.words("rate", units);
            bad(message, help)
        })?;
        if !(1.0..=1e15).contains(&rate) {
            return Err(out_of_range(
                "not a rate of a link",
                "write what the link carries, such as `\"1 Gbit/s\"`",
            ));
        }
        Ok(Rate(rate))
    }

    fn show(&self) -> String {
        format!("{} B/s", self.0)
    }
}

/// Requests per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestRate(pub(crate) f64);

impl TextField for RequestRate {
    const SHAPE: TextShape = TextShape {
        what: "a rate of requests",
        example: "500/s",
        pattern: Some("^[0-9][0-9_.]* ?/(s|min|h|d)$"),
    };
    const UNIT: Option<&'static str> = Some("/s");

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        let units = "write a number and per what, such as `\"500/s\"`: /s, /min, /h, /d";
        let rate = quantity::per_second(text).map_err(|fault| {
            let (message, help) = fault.words("rate of requests", units);
            bad(message, help)
        })?;
        if rate > 1e9 {
            return Err(out_of_range(
                "more than a billion requests a second",
                "write at most `\"1000000000/s\"`",
            ));
        }
        Ok(RequestRate(rate))
    }

    fn show(&self) -> String {
        format!("{}/s", self.0)
    }
}

/// An address to listen on.
impl TextField for SocketAddr {
    const SHAPE: TextShape =
        TextShape { what: "an address with port", example: "127.0.0.1:8080", pattern: None };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let message = format!("`{}` is no address to listen on", quoted(text));
        let help = if let Ok(ip) = text.parse::<IpAddr>() {
            format!("add a port: `\"{}\"`", SocketAddr::new(ip, 8080))
        } else if let Some(port) =
            text.trim_start_matches('*').strip_prefix(':').and_then(|p| p.parse::<u16>().ok())
        {
            format!("write `\"0.0.0.0:{port}\"` for every IPv4 address, `\"[::]:{port}\"` for IPv6 too")
        } else if let Some(port) = text.strip_prefix("localhost:").and_then(|p| p.parse::<u16>().ok()) {
            format!("write `\"127.0.0.1:{port}\"`: names are not looked up here")
        } else {
            "write an address and a port, such as `\"127.0.0.1:8080\"` or `\"[::]:8080\"`".to_owned()
        };
        Err(bad(message, help))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// The admin listener, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admin(pub(crate) Option<SocketAddr>);

impl TextField for Admin {
    const SHAPE: TextShape =
        TextShape { what: "an address with port, or `off`", example: "127.0.0.1:9090", pattern: None };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        if text == "off" {
            Ok(Admin(None))
        } else {
            <SocketAddr as TextField>::parse(text).map(|a| Admin(Some(a)))
        }
    }

    fn show(&self) -> String {
        self.0.map_or("off".to_owned(), |address| address.to_string())
    }
}

/// Host and port to connect to; the host is looked up later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort(pub(crate) String);

impl TextField for HostPort {
    const SHAPE: TextShape = TextShape { what: "a host with port", example: "127.0.0.1:8000", pattern: None };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        if let Some((scheme, rest)) = text.split_once("://") {
            let rest = rest.split('/').next().unwrap_or(rest);
            let message = format!("`{}` is a URL; this takes host and port", quoted(text));
            let help = match scheme {
                "https" => "TLS to upstreams is not spoken: name the server's plain HTTP port".to_owned(),
                _ if rest.contains(':') => format!("write `\"{}\"`", quoted(rest)),
                _ => format!("write `\"{}:80\"`", quoted(rest)),
            };
            return Err(bad(message, help));
        }
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host_fits = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)),
        };
        if host_fits && port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Ok(HostPort(text.to_owned()));
        }
        let help = match text.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("write `\"[{address}]:8000\"`, with the port it listens on"),
            _ if port.is_empty() && !text.contains(['/', ' ']) => {
                format!("add the port it listens on: `\"{}:8000\"`", quoted(host))
            }
            _ => "write host and port, such as `\"127.0.0.1:8000\"` or `\"app.internal:8000\"`".to_owned(),
        };
        Err(bad(format!("`{}` is no host with port", quoted(text)), help))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A network in CIDR form; an address alone is a network of one.
impl TextField for Network {
    const SHAPE: TextShape = TextShape { what: "a network", example: "10.0.0.0/8", pattern: None };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let help =
            "write an address or a network, such as `\"192.0.2.7\"`, `\"10.0.0.0/8\"` or `\"2001:db8::/32\"`";
        let Ok(address) = address.parse::<IpAddr>() else {
            return Err(bad(format!("`{}` is no network", quoted(text)), help));
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(|| {
                bad(
                    format!("`/{}` is no prefix length of {address}", quoted(bits)),
                    format!("use /0 to /{most}"),
                )
            })?,
        };
        Ok(Network { address, prefix_bits })
    }

    fn show(&self) -> String {
        format!("{}/{}", self.address, self.prefix_bits)
    }
}

/// What makes two requests the same client.
#[derive(Clone, Debug)]
pub(crate) struct ClientIdentity(pub(crate) Identity);

impl TextField for ClientIdentity {
    const SHAPE: TextShape = TextShape {
        what: "`address`, `header:NAME` or `cookie:NAME`",
        example: "address",
        pattern: Some("^(address|header:.+|cookie:.+)$"),
    };

    fn parse(text: &str) -> Result<Self, (Code, Complaint)> {
        let identity = match text.split_once(':') {
            None if text == "address" => Identity::Address,
            Some(("header", name)) => Identity::Header(HeaderName::parse(name)?.0),
            Some(("cookie", name)) => Identity::Cookie(CookieName::parse(name)?.0),
            _ => {
                let message = format!("`{}` does not say what a client is", quoted(text));
                let help =
                    "write `\"address\"`, `\"header:x-user\"` or `\"cookie:session\"`, with the name you use";
                return Err((Code::UnknownWord, Complaint::new(message, help)));
            }
        };
        Ok(ClientIdentity(identity))
    }

    fn show(&self) -> String {
        match &self.0 {
            Identity::Address => "address".to_owned(),
            Identity::Header(name) => format!("header:{name}"),
            Identity::Cookie(name) => format!("cookie:{name}"),
        }
    }
}
