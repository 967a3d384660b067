//! Values that only the configuration has: what a client is, a range of shares, and words of fixed lists.

use crate::diagnostic::{Code, Complaint, quoted};
use crate::gateway::http::{CookieName, HeaderName};
use crate::syntax::{bad, texts, words};
use plimsoll_core::promises::{Admission, Choice, DelayParts, Identity, Mode, Prefer, Sense, Share};
use plimsoll_gateway::settings::{ForwardedFields, RealIpHeader, ReportMode};

texts! {
    /// What a client is: its address, or the value of a header or cookie.
    ClientIdentity(
        Identity, "`address`, `header:NAME` or `cookie:NAME`", "address", Some("^(address|header:.+|cookie:.+)$")
    ) = |text| match text.split_once(':') {
        None if text == "address" => Ok(Identity::Address),
        Some(("header", name)) => Ok(Identity::Header(HeaderName::parse(name)?.0)),
        Some(("cookie", name)) => Ok(Identity::Cookie(CookieName::parse(name)?.0)),
        _ => Err((Code::UnknownWord, Complaint::new(
            format!("`{}` does not say what a client is", quoted(text)),
            "write `\"address\"`, `\"header:x-user\"` or `\"cookie:session\"`, with the name you use",
        ))),
    }, show |identity| match identity {
        Identity::Address => "address".to_owned(),
        Identity::Header(name) => format!("header:{name}"),
        Identity::Cookie(name) => format!("cookie:{name}"),
    };
    /// A least and a most share.
    #[derive(Copy)]
    LeastToMost(
        Share, "a least and a most share", "0.2-1", Some("^(0|1|0?\\.[0-9]+)-(0|1|0?\\.[0-9]+)$")
    ) = |text| {
        let read = || {
            let (least, most) = text.split_once('-')?;
            let share = Share { least: least.trim().parse().ok()?, most: most.trim().parse().ok()? };
            (0.0 <= share.least && share.least <= share.most && share.most <= 1.0).then_some(share)
        };
        read().map_or_else(|| bad(
            format!("`{}` is not a least and a most share", quoted(text)),
            "write both from 0 to 1, the least first, such as `\"0.2-1\"`",
        ), Ok)
    }, show |share| format!("{}-{}", share.least, share.most);
}

words!(Mode {
    "control" => Control, "decisions are acted on";
    "observe" => Observe, "everything is decided, counted and logged, and every request passes at full quality";
    "off" => Off, "nothing is decided: no level, no rejection, no queue; for comparison";
});
words!(Choice {
    "client" => Client, "by a keyed hash of the client: a client keeps its level while the load stands still";
    "random" => Random, "at random, request by request";
});
words!(Prefer {
    "throughput" => Throughput, "no worker is left idle: a request that can be done just in time is admitted";
    "delay" => Delay, "short waits: no longer than a fifth of the deadline, though a worker may idle now and then for it";
});
words!(DelayParts {
    "both" => Both, "a queueing model's prediction, and feedback (PI) on what is left";
    "predictor-p" => PredictorP, "the prediction and a part of the error (P); for comparison";
    "predictor" => Predictor, "the prediction alone; for comparison";
    "feedback" => Feedback, "feedback (PI) alone, around what was predicted once; for comparison";
});
words!(Admission {
    "work" => Work, "the work that is unfinished";
    "budget" => Budget, "what is left of a period's budget, by rates predicted by the hour of day (ACES); a period is the shortest deadline";
    "synthetic" => Synthetic, "the instantaneous synthetic utilization, at most 0.58; shorter waits, for a part of the server";
});
words!(Sense {
    "gap" => Gap, "from the time that the workers have nothing to do, as the gateway sees it";
    "reported" => Reported, "from the upstream's own `endpoint-load-metrics` response header (ORCA)";
});
words!(RealIpHeader {
    "x-forwarded-for" => XForwardedFor, "`X-Forwarded-For`, with `X-Forwarded-Proto` and `X-Forwarded-Host`";
    "forwarded" => Forwarded, "`Forwarded`, RFC 7239";
});
words!(ForwardedFields {
    "x-forwarded" => XForwarded, "`X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`";
    "forwarded" => Forwarded, "`Forwarded`, RFC 7239";
    "both" => Both, "both of them";
    "none" => None, "neither";
});
words!(ReportMode {
    "rejections" => Rejections, "on rejections";
    "always" => Always, "on rejections, and on every response of an upstream or a folder";
    "never" => Off, "on none";
});
words! {
    /// The law's name; its numbers are keys of their own.
    enum LawName {
    "feed-forward" => FeedForward, "from the measured rate and costs, with feedback on what is left";
    "paper" => Paper, "the PI controller of the utilization control paper with its constants as printed, for one site of one priority; for comparison";
    }
}
