//! How long to run, and what a run says: batch means.
//!
//! Responses that follow each other depend on each other, so their own spread says nothing of the mean's error.
//! Batches much longer than the dependence (at rho 0.8 some hundred responses) are nearly independent: the means of n
//! batches have a standard error of their deviation / sqrt(n) (Law and Kelton, Simulation Modeling and Analysis, 9.5).

use std::process::Command;

/// Responses in a batch.
pub(crate) const BATCH: usize = 20_000;
/// Fewer batches say too little of their own spread.
const FEWEST: usize = 40;
/// Then somebody has to look.
const MOST: usize = 4_000;
/// Student's 97.5 % point for 39 degrees of freedom and more.
const T: f64 = 2.03;
/// The interval is to be that much narrower than the bound: a true figure then fails for one seed in 10,000. A third
/// would take more than twice as long.
const FINER: f64 = 2.0;

/// A figure and half its 95 % interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) half: f64,
}

impl Estimate {
    pub(crate) fn of(batches: impl Iterator<Item = f64> + Clone) -> Self {
        let n = batches.clone().count() as f64;
        let value = batches.clone().sum::<f64>() / n;
        let variance = batches.map(|x| (x - value).powi(2)).sum::<f64>() / (n - 1.0);
        Estimate { value, half: T * (variance / n).sqrt() }
    }
}

/// What is claimed: the figure, and how far off it may be, relative to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) what: &'static str,
    pub(crate) theory: f64,
    pub(crate) bound: f64,
    pub(crate) of: fn(&[Batch]) -> Estimate,
}

impl Claim {
    fn is_narrow(&self, estimate: Estimate) -> bool {
        estimate.half <= self.theory * self.bound / FINER
    }

    fn judge(&self, batches: &[Batch]) -> Result<(), String> {
        let Claim { what, theory, bound, of } = self;
        let estimate = of(batches);
        let off = (estimate.value - theory) / theory;
        if self.is_narrow(estimate) && off.abs() <= *bound {
            return Ok(());
        }
        let Estimate { value, half } = estimate;
        let (n, off) = (batches.len(), 100.0 * off);
        Err(format!(
            "{what}: {value:.4e} +- {half:.1e} ({n} batches), off theory's {theory:.4e} by {off:.2} %; "
        ))
    }
}

/// Sums of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) sum: f64,
    pub(crate) squares: f64,
    pub(crate) count: usize,
}

impl Batch {
    pub(crate) fn add(&mut self, x: f64) {
        self.sum += x;
        self.squares += x * x;
        self.count += 1;
    }
}

/// The mean over all batches.
pub(crate) fn mean(batches: &[Batch]) -> Estimate {
    Estimate::of(batches.iter().map(|batch| batch.sum / batch.count as f64))
}

/// The variance over all batches: of each the mean square around the common mean.
pub(crate) fn variance(batches: &[Batch]) -> Estimate {
    let Estimate { value: centre, .. } = mean(batches);
    Estimate::of(batches.iter().map(|batch| {
        let n = batch.count as f64;
        batch.squares / n - 2.0 * centre * batch.sum / n + centre * centre
    }))
}

/// Takes batches until all claims can be judged, then judges them. How many it took.
pub(crate) fn judge(claims: &[Claim], mut next: impl FnMut() -> Batch) -> Result<usize, String> {
    next(); // The beginning, when the server was empty.
    let mut batches: Vec<Batch> = (0..FEWEST).map(|_| next()).collect();
    while batches.len() < MOST && !claims.iter().all(|claim| claim.is_narrow((claim.of)(&batches))) {
        batches.extend((0..FEWEST / 4).map(|_| next()));
    }
    let wrong: String = claims.iter().filter_map(|claim| claim.judge(&batches).err()).collect();
    if wrong.is_empty() { Ok(batches.len()) } else { Err(wrong) }
}

/// Where to find a failure again.
pub(crate) fn replay(seed: u64) -> String {
    let git = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let commit = git.ok().filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
    format!("seed {seed}, commit {}", commit.as_deref().map_or("unknown", str::trim))
}
