//! `[control]`: the law, its period, and the file of rate forecasts.

use super::deadlines;
use crate::diagnostic::{Code, Complaint, Findings};
use crate::gateway::keys::{ControlKeys, GatewayKeys};
use crate::gateway::values::LawName;
use plimsoll_core::promises::{Control, UtilizationLaw};
use plimsoll_core::time::Duration;
use std::path::{Path, PathBuf};

/// The paper's gain margin where none is given.
const GAIN_MARGIN: f64 = 4.0;

pub(super) fn control(keys: &ControlKeys, gateway: &GatewayKeys, findings: &mut Findings) -> Control {
    if let (LawName::FeedForward, Some(margin)) = (keys.law.value, &keys.gain_margin) {
        let complaint = Complaint::new(
            "`gain_margin` belongs to `law = \"paper\"`",
            "leave it out: the feed-forward law has its margin built in",
        );
        findings.add(Code::Conflict, &margin.span, complaint);
    }
    let period = &keys.period;
    if !(Duration::from_millis(10)..=Duration::from_secs(60)).contains(&period.value) {
        let complaint = Complaint::new(
            "a control period this short or long does not work",
            "write something from `\"10ms\"` to `\"60s\"`; `\"1s\"` is what the loops were tuned with",
        );
        findings.add(Code::OutOfRange, &period.span, complaint);
    }
    if keys.retry_after.value.subsec_nanos() != 0 {
        let complaint = Complaint::new(
            "`Retry-After` counts whole seconds",
            format!("write `\"{}s\"`", keys.retry_after.value.as_secs() + 1),
        );
        findings.add(Code::BadValue, &keys.retry_after.span, complaint);
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
        retry_after: keys.retry_after.value,
        delay_law: keys.delay_law.value,
        admission: keys.admission.value,
        shares: deadlines::shares(keys, findings),
    }
}

/// The file of rate forecasts.
pub(super) fn trends(keys: &ControlKeys, name: &str, findings: &mut Findings) -> Option<PathBuf> {
    let trends = keys.trends.as_ref()?;
    deadlines::belongs_to_budget("trends", &trends.span, keys, findings);
    if trends.value.0.is_empty() {
        let complaint =
            Complaint::new("a file without a name", "write one, such as `trends = \"trends.txt\"`");
        findings.add(Code::BadValue, &trends.span, complaint);
    }
    Some(Path::new(name).parent().unwrap_or(Path::new("")).join(&trends.value.0))
}
