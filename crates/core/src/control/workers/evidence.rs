//! The evidence of how many workers a plant has, from the traffic itself.
//!
//! While n requests are in service the plant does work at a rate `mu min(n, s)`: each worker adds one share until all are
//! busy. A request that departs counts as what requests of its class and level usually cost, not as one: then the rate does not
//! depend on which requests happen to be in service. A full page may take as long as seven light ones. If each counted as one,
//! a time of light pages with few in service would look like a server with few workers, and where full pages crowd the light
//! ones out, more in service would seem to do less.
//!
//! Time and work are counted by n, and each s is judged by the likelihood of Poisson counts,
//! `L(s) = sum D_n ln min(n, s) - D ln sum T_n min(n, s)`, where D is how many equal departures vary as much as the work does.
//! This L takes mu at its likeliest, so only the differences between the rates at different n are evidence of s, and only
//! within one short stretch of time: if the server becomes slower or faster, or costs are corrected, the rates at all n move
//! together from one stretch to the next, and that says nothing. Each stretch is judged together with the one before it, so
//! that the effect of a new limit counts: it adds `L(both) - L(the one before)`.
//!
//! What one stretch can say is bounded, because the speed may change within it. What all of them say is bounded too, as in
//! Page's test, so that evidence that no longer holds is soon outweighed. What is known about s is forgotten only as fast as
//! new departures are evidence on the same question: hours with few in service do not erase that eight workers are all.
//!
//! What requests that start together say (`simultaneous_starts.rs`) is added at the end.
//!
//! A departure says as much about a slow server as about a fast one, but comes later. So while requests wait, how many
//! departures a stretch has, and a limit before it moves, depends on their rate ([`Counted::pace`]); how much they must say
//! does not. While none waits nothing is urgent, and few that start and end together would be taken for few workers the sooner.

use super::crowded_starts::CrowdedStarts;
use super::simultaneous_starts::{Started, Together};
use crate::telemetry::counters::{LOADS, bin_loads, load_bin};
use alloc::vec::Vec;
use libm::log;

/// Departures of a stretch.
pub(super) const STRETCH: f64 = 100.0;
/// Departures a second below which they are rare.
const RARE: f64 = 100.0;
/// The most that a rare departure counts for. So a stretch has 25 departures at the least: fewer would distinguish two rates
/// only if one is several times the other.
const MOST_COUNTED: f64 = 4.0;
/// The fewest departures at a number in service for it to have been seen.
const SEEN: f64 = 5.0;
/// The evidence about s remembers as many departures on both sides of s, counted as `D D' / (D + D')`, as the larger of these
/// two says: a number, and a number for each of s workers, since one worker is a smaller part of many. A stretch of any length
/// replaces no more of what is known than it is evidence of.
const MEMORY: f64 = 400.0;
const MEMORY_OF_WORKER: f64 = 8.0;
/// A smaller difference in L is chance: half the square of three and a half deviations.
const EVIDENCE: f64 = 6.0;
/// The most that a stretch, and all of them, speak against a number.
pub(super) const MOST_OF_STRETCH: f64 = 3.0;
pub(super) const MOST: f64 = 12.0;

/// The counts since the last step.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    /// Seconds by bin of the number in service.
    pub(crate) seconds: [f64; LOADS],
    /// What the requests that departed cost, in any unit.
    pub(crate) work: [f64; LOADS],
    /// Their service times and the same cost, by bin of the number in service after their start.
    pub(crate) service: [f64; LOADS],
    pub(crate) work_started: [f64; LOADS],
    /// The sum of the squares of what they cost.
    pub(crate) squares: f64,
    /// Whether requests wait.
    pub(crate) waits: bool,
    /// Whether they wait, are served at a lighter level or are rejected, because of the load.
    pub(crate) held_back: bool,
    /// By how much service could take longer and still be within the guard (s); negative where it takes longer now.
    pub(crate) slack: f64,
    /// The same by the plant's `response_time_limit` alone.
    pub(crate) slack_of_plant: f64,
    /// Departures a second of late, so that a moment in which a fast server stands still makes them no rarer.
    pub(crate) rate: f64,
}

impl Counted {
    /// The number of departures; fewer where some cost much more than others, since these carry as much evidence as fewer that
    /// cost the same.
    pub(super) fn departures(&self) -> f64 {
        departures(self.work.iter().sum(), self.squares)
    }

    /// Whether requests wait, and so few depart that the time until they do counts.
    pub(super) fn departs_rarely(&self) -> bool {
        self.waits && self.rate < RARE
    }

    /// How many departures these count for where departures are waited for.
    pub(super) fn pace(&self) -> f64 {
        let departures = self.departures();
        let most = if self.departs_rarely() { MOST_COUNTED * departures } else { departures };
        (RARE * self.seconds.iter().sum::<f64>()).clamp(departures, most)
    }

    /// Whether most of the time as many were in service as the limit allows, or more.
    pub(super) fn is_at(&self, limit: u32) -> bool {
        let there: f64 = self.seconds[load_bin(limit)..].iter().sum();
        there > 0.5 * self.seconds.iter().sum::<f64>()
    }
}

/// Time and work of a stretch.
struct Stretch {
    seconds: Vec<f64>,
    work: Vec<f64>,
    service: Vec<f64>,
    work_started: Vec<f64>,
    squares: f64,
    pace: f64,
}

/// The evidence about one plant.
pub(super) struct Evidence {
    /// By bin: L of its number, less L of the number of the bin below.
    gains: Vec<f64>,
    together: Together,
    starts: CrowdedStarts,
    /// The present stretch and the one before it.
    now: Stretch,
    before: Stretch,
    /// The highest number in service that was seen in them; 0 before the first has ended.
    pub(super) highest: u32,
}

/// The fit: the likeliest s and the largest that the evidence allows.
pub(super) struct Fit {
    pub(super) best: u32,
    pub(super) upper: u32,
    /// What speaks against more workers than were ever tried.
    pub(super) against_more: f64,
    /// What speaks against as many as the limit.
    pub(super) against_limit: f64,
    /// Whether throughput was seen to rise, and to level off.
    pub(super) lower_seen: bool,
    pub(super) flat: bool,
}

impl Stretch {
    fn new() -> Self {
        let none = || alloc::vec![0.0; LOADS];
        Stretch {
            seconds: none(),
            work: none(),
            service: none(),
            work_started: none(),
            squares: 0.0,
            pace: 0.0,
        }
    }

    fn clear(&mut self) {
        self.seconds.fill(0.0);
        self.work.fill(0.0);
        self.service.fill(0.0);
        self.work_started.fill(0.0);
        (self.squares, self.pace) = (0.0, 0.0);
    }

    fn add(&mut self, counted: &Counted) {
        self.seconds.iter_mut().zip(&counted.seconds).for_each(|(sum, more)| *sum += more);
        self.work.iter_mut().zip(&counted.work).for_each(|(sum, more)| *sum += more);
        self.service.iter_mut().zip(&counted.service).for_each(|(sum, more)| *sum += more);
        self.work_started.iter_mut().zip(&counted.work_started).for_each(|(sum, more)| *sum += more);
        self.squares += counted.squares;
        self.pace += counted.pace();
    }

    fn sum(&self) -> f64 {
        self.work.iter().sum()
    }
}

/// L of some stretches as one, where s is the middle of a bin; a departure is worth `1 / unit` of work. `middles` are those of
/// the bins, with their logarithms.
fn likelihood(s: usize, middles: &[(f64, f64)], unit: f64, stretches: &[&Stretch]) -> f64 {
    let (mut sum, mut all, mut expected) = (0.0, 0.0, 0.0);
    for stretch in stretches {
        for (bin, (work, seconds)) in stretch.work.iter().zip(&stretch.seconds).enumerate() {
            if work + seconds > 0.0 {
                let (busy, logarithm) = middles[bin.min(s)];
                sum += work * unit * logarithm;
                all += work * unit;
                expected += seconds * busy;
            }
        }
    }
    sum - all * log(expected.max(1e-12))
}

/// How many departures of equal work vary as much as these.
fn departures(work: f64, squares: f64) -> f64 {
    if squares > 0.0 { work * work / squares } else { 0.0 }
}

impl Evidence {
    pub(super) fn new() -> Self {
        let none = || alloc::vec![0.0; LOADS];
        Evidence {
            gains: none(),
            together: Together::new(),
            starts: CrowdedStarts::new(),
            now: Stretch::new(),
            before: Stretch::new(),
            highest: 0,
        }
    }

    /// By bin: L of its number, less L of the number of the bin below, with what requests that start together say.
    pub(super) fn gains(&self) -> Vec<f64> {
        let mut below = 0.0;
        self.likelihoods().map(|(_, own)| own - core::mem::replace(&mut below, own)).collect()
    }

    /// Goes on from evidence that was kept; false if it is none.
    pub(super) fn restore(&mut self, gains: &[f64], highest: u32) -> bool {
        // What speaks against a number is bounded, so a difference beyond this was never written.
        let whole = gains.len() == LOADS && gains.iter().all(|gain| gain.abs() <= 1e9);
        if whole {
            self.gains.copy_from_slice(gains);
            (self.highest, self.now, self.before) = (highest, Stretch::new(), Stretch::new());
        }
        whole
    }

    pub(super) fn observe(&mut self, counted: &Counted) {
        self.now.add(counted);
        self.starts.add(&counted.service, &counted.work_started);
        if self.now.pace >= STRETCH {
            self.end_stretch();
        }
    }

    /// Ends a stretch: adds what it says given the one before it.
    pub(super) fn end_stretch(&mut self) {
        let (now, before) = (&self.now, &self.before);
        let (all, squares) = (now.sum() + before.sum(), now.squares + before.squares);
        if now.squares <= 0.0 {
            return;
        }
        let unit = all / squares;
        let both = |bin: usize| (now.work[bin] + before.work[bin], now.seconds[bin] + before.seconds[bin]);
        let seen: Vec<(usize, f64, f64)> = (0..LOADS)
            .map(|bin| (bin, both(bin).0 * unit, both(bin).1))
            .filter(|(_, departures, seconds)| departures + seconds > 0.0)
            .collect();
        let (Some(lowest), Some(highest)) = (seen.first(), seen.last()) else { return };
        let range = lowest.0..=highest.0;
        let known = seen.iter().rev().find(|(_, departures, _)| *departures >= SEEN);
        let middles: Vec<(f64, f64)> = (0..=highest.0).map(|bin| (middle(bin), log(middle(bin)))).collect();
        let likelihood = |s: usize| {
            likelihood(s, &middles, unit, &[now, before]) - likelihood(s, &middles, unit, &[before])
        };
        let likelihoods: Vec<f64> = range.clone().map(likelihood).collect();
        let best = likelihoods.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let bounded: Vec<f64> = likelihoods.iter().map(|own| (own - best).max(-MOST_OF_STRETCH)).collect();
        let (mut below, all) = (0.0, all * unit);
        let mut counted = seen.iter().peekable();
        for (bin, pair) in range.skip(1).zip(bounded.windows(2)) {
            while let Some((_, departures, _)) = counted.next_if(|(own, ..)| *own < bin) {
                below += departures;
            }
            let both_sides = 0.5 * below * (all - below) / all;
            let memory = MEMORY.max(MEMORY_OF_WORKER * middle(bin));
            self.gains[bin] *= 1.0 - (both_sides / memory).min(MOST_OF_STRETCH / MOST);
            self.gains[bin] += pair[1] - pair[0];
        }
        self.highest = known.map_or(self.highest, |(bin, ..)| middle(*bin) as u32);
        self.bound_evidence();
        self.together.judge(&Started { service: &self.now.service, work: &self.now.work_started }, unit);
        self.starts.end_stretch();
        core::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
    }

    /// Keeps what speaks against each number below [`MOST`].
    fn bound_evidence(&mut self) {
        let sums = self.gains.iter().scan(0.0, |sum, gain| {
            *sum += gain;
            Some(*sum)
        });
        let best = sums.fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut kept) = (0.0, 0.0);
        for (bin, gain) in self.gains.iter_mut().enumerate() {
            sum += *gain;
            let own = f64::max(sum, best - MOST);
            // The first bin has no gain; what is kept of it is the beginning of the sum.
            *gain = if bin == 0 { own } else { own - kept };
            kept = own;
        }
    }

    /// The fit, with a limit.
    pub(super) fn fit(&self, limit: u32) -> Fit {
        let (mut best, mut last, mut at_limit) = ((0, f64::NEG_INFINITY), 0.0, 0.0);
        for (bin, own) in self.likelihoods() {
            if bin == load_bin(limit) {
                at_limit = own;
            }
            if own >= best.1 - 1e-9 {
                best = (bin, best.1.max(own));
            }
            last = own;
        }
        let allowed = self.likelihoods().filter(|(_, own)| best.1 - own <= EVIDENCE).last();
        let upper = allowed.map_or(best.0, |(bin, _)| bin);
        Fit {
            best: middle(best.0) as u32,
            upper: middle(upper) as u32,
            against_more: best.1 - last,
            against_limit: best.1 - at_limit,
            lower_seen: best.1 - self.gains[0] - self.together.against[0] > EVIDENCE,
            // Unless the evidence rejects the highest number tried, throughput may still rise.
            flat: best.1 - last > EVIDENCE,
        }
    }

    /// What speaks for a number against half of it.
    pub(super) fn against_half_of(&self, n: u32) -> f64 {
        let at = |n: u32| self.likelihoods().nth(load_bin(n)).map_or(0.0, |(_, own)| own);
        at(n) - at(n / 2)
    }

    /// What the times that requests took speak for at most half as many workers as the limit.
    pub(super) fn starts_speak_for_half(&self, limit: u32) -> f64 {
        let squares = self.now.squares + self.before.squares;
        let unit = if squares > 0.0 { (self.now.sum() + self.before.sum()) / squares } else { 0.0 };
        self.starts.speaks_for_half(limit, unit)
    }

    /// L by bin, up to a constant.
    fn likelihoods(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.gains.iter().zip(&self.together.against).enumerate().scan(0.0, |sum, (bin, (gain, together))| {
            *sum += gain;
            Some((bin, *sum + together))
        })
    }
}

/// The middle of a bin.
pub(super) fn middle(bin: usize) -> f64 {
    let (least, most) = bin_loads(bin);
    f64::from(least + most) * 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_count_for_up_to_four_while_requests_wait_before_a_slow_server() {
        let pace = |waits, departures| {
            let (mut seconds, mut work) = ([0.0; LOADS], [0.0; LOADS]);
            (seconds[3], work[3]) = (0.25, departures);
            let (service, work_started, squares) = ([0.0; LOADS], [0.0; LOADS], departures);
            let (held_back, slack, rate) = (waits, f64::INFINITY, 4.0 * departures);
            let slack_of_plant = slack;
            Counted {
                seconds,
                work,
                service,
                work_started,
                squares,
                waits,
                held_back,
                slack,
                slack_of_plant,
                rate,
            }
            .pace()
        };
        assert_eq!([50.0, 10.0, 2.0, 0.0].map(|departures| pace(true, departures)), [50.0, 25.0, 8.0, 0.0]);
        assert_eq!([50.0, 10.0, 2.0, 0.0].map(|departures| pace(false, departures)), [50.0, 10.0, 2.0, 0.0]);
    }

    /// Without what they say a gateway that starts anew would take the server for one with few workers.
    #[test]
    fn evidence_that_is_kept_has_what_requests_that_start_together_say() {
        let mut evidence = Evidence::new();
        evidence.together.against[load_bin(1)] = -9.0;
        evidence.gains[load_bin(3)] = -2.0;
        let mut restored = Evidence::new();
        assert!(restored.restore(&evidence.gains(), 3));
        assert!(restored.likelihoods().eq(evidence.likelihoods()));
    }
}
