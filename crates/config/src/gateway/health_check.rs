//! Health checks of an upstream's servers: their keys, and the combinations that are refused.

use super::http::HostName;
use crate::diagnostic::{Findings, quoted, refuse};
use crate::syntax::{Located, Table, Whole, bad, section, texts};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::HealthCheck;
use std::ops::RangeInclusive;

section! { "[upstream.NAME.health_check]"
    /// Each server is asked for a page at intervals. One that does not answer well is out of use until it does; if all are out,
    /// all are used. A check is no request: it holds no place and is not counted.
    HealthCheckKeys {
        /// The path of the page that is asked for by `GET`, on a connection of its own.
        path: CheckedPath, required("write what to ask for: `path = \"/healthz\"`");
        /// The host that is asked for. Absent: the upstream's `host`, the server's name under TLS, or its address.
        host: HostName, optional;
        /// The statuses of a good answer: one, or a first and a last.
        status: StatusRange, default(StatusRange(HealthCheck::default().statuses));
        /// The time from one check of a server to the next; each is drawn at random from within a tenth of this.
        interval: Duration, default(HealthCheck::default().interval);
        /// How long a check may take, from its connection to the head of its answer.
        timeout: Duration, default(HealthCheck::default().timeout);
        /// After how many failures in a row the server is out of use.
        failures: Whole<1, 1000>, default(Whole(HealthCheck::default().failures.into()));
        /// After how many successes in a row it is in use again.
        successes: Whole<1, 1000>, default(Whole(HealthCheck::default().successes.into()));
    }
}

texts! {
    /// A path to ask for, with its query.
    CheckedPath(String, "a path", "/healthz", Some("^/[!-~]*$")) = |text| {
        if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.contains('#') {
            return Ok(text.to_owned());
        }
        bad(
            format!("`{}` is no path to ask for", quoted(text)),
            "write a path, such as `\"/healthz\"`: it begins with `/` and has no spaces",
        )
    };
    /// A status, or a first and a last.
    StatusRange(
        RangeInclusive<u16>, "a status, or a first and a last", "200-399", Some("^[2-5][0-9][0-9](-[2-5][0-9][0-9])?$")
    ) = |text| {
        let status = |text: &str| text.trim().parse().ok().filter(|status| (200..=599).contains(status));
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (status(first), status(last)) {
            (Some(first), Some(last)) if first <= last => Ok(first..=last),
            _ => bad(
                format!("`{}` is no range of statuses", quoted(text)),
                "write one from 200 to 599, or a first and a last, such as `\"200-399\"`",
            ),
        }
    }, show |range| match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
}

/// The shortest interval: checks that come faster would be a load of their own.
const SHORTEST: Duration = Duration::from_millis(100);

pub(super) fn health_check(
    keys: &Located<Table<HealthCheckKeys>>,
    findings: &mut Findings,
) -> Option<HealthCheck> {
    let keys = &keys.value.0;
    for (what, time) in [("interval", &keys.interval), ("timeout", &keys.timeout)] {
        if time.value < SHORTEST {
            refuse!(findings, OutOfRange at &time.span,
                format!("this `{what}` of health checks is too short"), help: "write at least `\"100ms\"`");
        }
    }
    Some(HealthCheck {
        path: keys.path.as_ref()?.value.0.clone(),
        host: keys.host.as_ref().map(|host| host.value.0.clone()),
        statuses: keys.status.value.0.clone(),
        interval: keys.interval.value,
        timeout: keys.timeout.value,
        failures: keys.failures.value.0 as u32,
        successes: keys.successes.value.0 as u32,
    })
}
