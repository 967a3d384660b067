//! `[control]`: the law, its period, and the file of rate forecasts.

use super::StatePlace;
use super::addresses::in_folder_of;
use super::classes::MatchKeys;
use super::deadlines;
use super::file::{ConfigurationKeys, GatewayKeys};
use super::values::{LawName, LeastToMost};
use crate::diagnostic::{Findings, quoted, refuse};
use crate::syntax::{GainMargin, Located, OneOrMany, Text, listed, section};
use plimsoll_core::promises::{
    Admission, Choice, Control, DelayParts, Identity, LEAST_REKEY_PERIODS, Promises, UtilizationLaw,
};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::Signed;
use std::path::PathBuf;

section! { "[control]"
    /// How the loops run. For experts: the defaults are meant to be kept.
    ControlKeys {
        /// The control period, T.
        period: Duration, default(Control::default().period);
        /// The law that sets the service level m.
        law: LawName, default(LawName::FeedForward);
        /// The gain margin of `law = "paper"`; 4 where absent.
        gain_margin: GainMargin, optional;
        /// The time, in whole seconds, that every rejected client is told in `Retry-After`. Default: when there will be
        /// room by the loop's forecast, for each client another time, so that they do not come all at once; two minutes at
        /// the most, also after a short burst, because it may come again. With `"5s"` all of them come back after five
        /// seconds, at once. A request that no shorter wait puts in time for its `deadline` is told a longer one.
        retry_after: Duration, optional;
        /// The parts of the law of a `delay` that run: prediction, feedback, or both.
        delay_law: DelayParts, default(DelayParts::default());
        /// The rule that admits requests with a `deadline`.
        admission: Admission, default(Admission::default());
        /// With `admission = "budget"`: the least and the most share of each priority, the highest first, such as
        /// `["0.2-1", "0-0.5"]`. Absent: the highest may have all, and each other one what is predicted to remain.
        shares: OneOrMany<LeastToMost>, optional;
        /// With `admission = "budget"`: the file that keeps the forecast of rates by the hour of day. It is read at the
        /// start if it is there, and written at the end of each hour, at a reload and at the end; a simulation only reads
        /// it. A relative path is taken from the folder of this file.
        rate_forecast: Text, optional;
    }
}

/// The paper's gain margin if none is configured.
const GAIN_MARGIN: f64 = 4.0;

pub(super) fn control(keys: &ControlKeys, gateway: &GatewayKeys, findings: &mut Findings) -> Control {
    if let (LawName::FeedForward, Some(margin)) = (keys.law.value, &keys.gain_margin) {
        refuse!(findings, Conflict at &margin.span,
            "`gain_margin` belongs to `law = \"paper\"`",
            help: "leave it out: the feed-forward law has its margin built in");
    }
    let period = &keys.period;
    if !(Duration::from_millis(10)..=Duration::from_secs(60)).contains(&period.value) {
        refuse!(findings, OutOfRange at &period.span,
            "a control period this short or long does not work",
            help: "write something from `\"10ms\"` to `\"60s\"`; `\"1s\"` is what the loops were tuned with");
    }
    if let Some(asked) = keys.retry_after.as_ref().filter(|asked| asked.value.subsec_nanos() != 0) {
        refuse!(findings, BadValue at &asked.span,
            "`Retry-After` counts whole seconds",
            help: format!("write `\"{}s\"`", asked.value.as_secs() + 1));
    }
    let law = match keys.law.value {
        LawName::FeedForward => UtilizationLaw::FeedForward,
        LawName::Paper => UtilizationLaw::Paper {
            gain_margin: keys.gain_margin.as_ref().map_or(GAIN_MARGIN, |margin| margin.value.0),
        },
    };
    Control {
        mode: gateway.mode.value,
        period: period.value,
        law,
        rekey: rekey(gateway, period.value, findings),
        retry_after: keys.retry_after.as_ref().map(|asked| asked.value),
        delay_law: keys.delay_law.value,
        admission: keys.admission.value,
        shares: deadlines::shares(keys, findings),
    }
}

/// Where the state is kept.
pub(super) fn state(keys: &GatewayKeys, name: &str, findings: &mut Findings) -> StatePlace {
    let Some(file) = &keys.state else { return StatePlace::BesideFile };
    match file.value.0.as_str() {
        "off" => StatePlace::Nowhere,
        _ => {
            let help = "write one, such as `state = \"plimsoll.state\"`, or `\"off\"`";
            StatePlace::At(in_folder_of(name, file, help, findings))
        }
    }
}

/// The names of headers and cookies that count only if they are signed; the keys are read later.
pub(super) fn signed(keys: &GatewayKeys) -> Signed {
    let cookies = listed(&keys.signed_cookies, |name| name.0.clone());
    Signed::new(cookies, listed(&keys.signed_headers, |name| name.0.clone()))
}

/// Whether connections are closed at once if all their requests would be rejected. Refuses the key if that could never be
/// known.
pub(super) fn reject_at_accept(file: &ConfigurationKeys, findings: &mut Findings) -> bool {
    let Located { value: wanted, span, .. } = &file.gateway.value.reject_at_accept;
    let Some(site) = file.site.value.0.first().filter(|_| *wanted) else { return *wanted };
    let keys = &site.value;
    // Only the first class can be known from the client alone.
    let first = keys.class.value.0.first().and_then(|class| class.value.condition.as_ref());
    let asks_for_more = |rule: &MatchKeys| rule.client.is_none();
    let (what, place) = if let Some(host) = &keys.host {
        ("which site a request belongs to is known only by its host", &host.span)
    } else if keys.client.value.0 != Identity::Address {
        ("its client is known only by the request", &keys.client.span)
    } else if keys.choice.value != Choice::Client {
        ("the choice is made anew for each request", &keys.choice.span)
    } else if let Some(guarantee) = &keys.guarantee {
        ("whether a request is inside the guarantee is known only when it arrives", &guarantee.span)
    } else if let Some(rule) = keys.exempt.value.0.iter().find(|rule| asks_for_more(&rule.value)) {
        ("any client may send an exempt request", &rule.span)
    } else if let Some(rule) = first.filter(|rule| asks_for_more(&rule.value.0)) {
        ("its class is known only by the request", &rule.span)
    } else {
        return true;
    };
    refuse!(findings, Conflict at span,
        format!("no connection could be closed when it comes: {what}"),
        help: "leave `reject_at_accept` out, or choose classes of the first site by `client` alone",
        beside place => "that is");
    true
}

/// The file of the keys that verify signed headers and cookies.
pub(super) fn signing_keys(keys: &GatewayKeys, name: &str, findings: &mut Findings) -> Option<PathBuf> {
    let cookies = keys.signed_cookies.as_ref().map(|names| &names.span);
    let signed = cookies.or(keys.signed_headers.as_ref().map(|names| &names.span));
    match (&keys.signing_key_file, signed) {
        (None, Some(span)) => refuse!(findings, MissingKey at span,
            "no key says which signatures are right",
            help: "add `signing_key_file = \"signing.key\"`, a file with a line of at least 32 characters"),
        (Some(file), None) => refuse!(findings, Conflict at &file.span,
            "nothing is signed with these keys",
            help: "name what is, such as `signed_cookies = \"plan\"`, or leave this out"),
        _ => {}
    }
    if let (Some(headers), None) = (&keys.trusted_headers, &keys.trusted_proxies) {
        refuse!(findings, MissingKey at &headers.span,
            "no proxy is trusted, so that these headers never count",
            help: "add `trusted_proxies`, or leave this out");
    }
    let help = "write one, such as `signing_key_file = \"signing.key\"`";
    keys.signing_key_file.as_ref().map(|file| in_folder_of(name, file, help, findings))
}

/// The file of the admin listener's tokens; without it, the listener may only be on this machine.
pub(super) fn admin_tokens(keys: &GatewayKeys, name: &str, findings: &mut Findings) -> Option<PathBuf> {
    let admin = keys.admin.value.0;
    let is_remote = admin.is_some_and(|admin| !admin.ip().to_canonical().is_loopback());
    match &keys.admin_token_file {
        None if is_remote => refuse!(findings, MissingKey at &keys.admin.span,
            "whoever reaches this address could read all figures and order a reload",
            help: "add `admin_token_file = \"admin.token\"`, a file with a line of at least 32 characters, or listen on 127.0.0.1"),
        Some(file) if admin.is_none() => refuse!(findings, Conflict at &file.span,
            "there is no admin listener that would ask for these tokens", help: "set `admin`, or leave this out"),
        _ => {}
    }
    let help = "write one, such as `admin_token_file = \"admin.token\"`";
    keys.admin_token_file.as_ref().map(|file| in_folder_of(name, file, help, findings))
}

/// The time in which the choice of clients turns once round.
fn rekey(keys: &GatewayKeys, period: Duration, findings: &mut Findings) -> Option<Duration> {
    let rekey = keys.rekey.as_ref()?;
    let least = LEAST_REKEY_PERIODS * period;
    if rekey.value < least {
        refuse!(findings, OutOfRange at &rekey.span,
            "more than 1 % of the clients would change level in each control period",
            help: format!("write at least `\"{}s\"`; `\"1d\"` is usual", least.as_secs_f64().ceil()));
    }
    Some(rekey.value)
}

/// Refuses the paper's law if it cannot keep what is promised.
pub(super) fn suits(keys: &ControlKeys, promises: &Promises, findings: &mut Findings) {
    if keys.law.value != LawName::Paper {
        return;
    }
    for (number, plant) in promises.plants.iter().enumerate() {
        if let Some(why) = promises.what_divides(number) {
            refuse!(findings, Conflict at &keys.law.span,
                format!("`law = \"paper\"` moves one level for all of `{}`, but {why} needs several", quoted(&plant.name)),
                help: "leave it out: the default law shares a server by guarantee, priority and weight; or take away \
                    what shares it: the paper's law is for comparison on one site whose requests are all alike");
        }
    }
}

/// The file of rate forecasts.
pub(super) fn rate_forecast(keys: &ControlKeys, name: &str, findings: &mut Findings) -> Option<PathBuf> {
    let rate_forecast = keys.rate_forecast.as_ref()?;
    deadlines::belongs_to_budget("rate_forecast", &rate_forecast.span, keys, findings);
    Some(in_folder_of(name, rate_forecast, "write one, such as `rate_forecast = \"forecast.txt\"`", findings))
}
