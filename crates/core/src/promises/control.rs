//! How the loops run.

use crate::time::Duration;
use alloc::vec::Vec;

/// How the loops run.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// Whether decisions are acted on.
    pub mode: Mode,
    /// T, the control period.
    pub period: Duration,
    /// The law that moves m.
    pub law: UtilizationLaw,
    /// The time in which the choice of clients turns once round, so that each has its share of the better level; `None`:
    /// always the same clients.
    pub rekey: Option<Duration>,
    /// The time that every rejected request is told in `Retry-After`. `None`: each request is told a time of its own, by the
    /// loop's forecast of room.
    pub retry_after: Option<Duration>,
    /// Which parts of the delay law run.
    pub delay_law: DelayParts,
    /// The rule of admission by deadline.
    pub admission: Admission,
    /// For admission by budget: least and most shares of the priorities that classes have, the highest first. A priority
    /// without an entry has [`Share::ANY`].
    pub shares: Vec<Share>,
}

impl Default for Control {
    fn default() -> Self {
        Control {
            mode: Mode::Control,
            period: Duration::from_secs(1),
            law: UtilizationLaw::FeedForward,
            rekey: None,
            retry_after: None,
            delay_law: DelayParts::default(),
            admission: Admission::default(),
            shares: Vec::new(),
        }
    }
}

/// Which parts of the delay law run: the paper's comparison (QM 3.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DelayParts {
    /// The model's prediction, and PI on the residual.
    #[default]
    Both,
    /// The prediction, and P.
    PredictorP,
    /// The prediction alone, without feedback.
    Predictor,
    /// PI alone, around what was predicted once the first window was full.
    Feedback,
}

/// Whether decisions are acted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Decisions are acted on.
    #[default]
    Control,
    /// Everything is decided, counted and logged, and every request passes at full quality.
    Observe,
    /// Nothing is decided: no level, no rejection, no queue. Each scenario is also run so, as its twin.
    Off,
}

/// The law that moves m.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum UtilizationLaw {
    /// Feed-forward from the measured rate and costs, PI on the residual. The default.
    #[default]
    FeedForward,
    /// The PI controller of UC 4.4 with its constants as printed, for this gain margin. For comparison.
    Paper {
        /// G_m, above 1.
        gain_margin: f64,
    },
}

/// The rule of admission by deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// The unfinished work. The default.
    #[default]
    Work,
    /// The instantaneous synthetic utilization, at most 0.58 (UC 3). For comparison.
    Synthetic,
    /// AC's budget of work for each period and priority, from predicted rates. For comparison.
    Budget,
}

/// Least and most share of a plant's capacity that a priority has: AC's WFA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The least share of a priority, in [0, 1]; those of all priorities add up to at most 1.
    pub least: f64,
    /// The greatest share of the priority, in [least, 1].
    pub most: f64,
}

impl Share {
    /// The share of every priority under AC's PRA.
    pub const ANY: Share = Share { least: 0.0, most: 1.0 };

    /// Whether all shares can be given at once.
    pub fn fit(shares: &[Share]) -> bool {
        let fits = |share: &Share| 0.0 <= share.least && share.least <= share.most && share.most <= 1.0;
        shares.iter().all(fits) && shares.iter().map(|share| share.least).sum::<f64>() <= 1.0 + 1e-9
    }
}
