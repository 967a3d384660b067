//! One class of the delay loop: predicts the workers that its delay takes, and corrects the prediction by the law.

use super::contention::{Contended, ContendedWindow};
use super::law::{DelayLaw, Feedback, Residual, gain};
use super::long_queue::LongQueue;
use super::lower_service::{LowerService, keeps_out};
use super::rare::RareDepartures;
use super::recent_departures::RecentDepartures;
use super::reduction::{ClassState, SetPointReduction};
use super::{DelayPromise, LEAST, RankClaims, WaitBounds};
use crate::control::departures::{DepartureInput, UPDATE};
use crate::model::Traffic;
use crate::promises::{Delay, DelayParts};
use crate::scheduling::ArrivalGaps;
use crate::scheduling::rank::Rank;
use crate::telemetry::counters::{ClassCounters, Counter};
use crate::telemetry::departure_window::{DepartureCounts, DepartureWindow, Seen};
use crate::telemetry::snapshot::sum_over;
use crate::telemetry::status::{DelayTerms, ResponseStatus};
use crate::time::{Duration, Instant};
use libm::{exp, log};

/// The fewest departures whose mean is evidence of a miss.
pub(super) const EVIDENCE: f64 = 100.0;
/// Lower classes yield only to an error above this part of the one at which a promise counts as missed; less may be chance.
const CHANCE: f64 = 0.5;
/// Where the recent mean response time is above this part of a percentile's target, late requests are on their way.
const NEARLY_LATE: f64 = 0.75;
/// The least quota, as a multiple of the class's load.
const LEAST_SPARE: f64 = 1.03;
/// In a long queue requests wait as long as they may; then this part of the share that may be late is late.
const LATE_OF_LONG: f64 = 0.5;
/// The law aims at this part of the share that may be late: if all workers are used, nothing makes up for a burst of late ones.
const AIM: f64 = 0.9;
/// The largest relative error that counts; a response time that exceeds the promise by more is a transient.
const MOST_ERROR: f64 = 8.0;
/// g and r of the law, per window, where a percentile was promised. They are below the law's own, since lateness comes in
/// bursts and lent workers make the real slope smaller than the model's at D_ref.
const SHARE_GAIN: f64 = 2.0;
const SHARE_ZERO: f64 = 0.5;
/// A request is dropped for its wait only if its chance to be in time is below this: the part of exponential service times
/// that are within three deviations of their mean.
const LIKELY: f64 = 0.98;
/// If service alone breaks the promise, the class aims at this multiple of the response time that all workers would give. A
/// prediction of a mean alone sees no queue that is left over, and asks for all, as in the paper.
const NEAR_ALL: f64 = 1.05;
/// A class that was given less than this part of what it asked for is short of workers.
const SHORT: f64 = 0.9;
/// A lower class with less than this part of the class's rate has nothing to yield.
const SILENT: f64 = 0.01;
/// A class has no traffic when none of it waits, and nothing came or ended for the time of so many requests.
const SILENT_REQUESTS: f64 = 200.0;

/// The state of one class.
pub(super) struct DelayClass {
    pub(super) promise: DelayPromise,
    parts: DelayParts,
    /// The prediction and its gain when the first window was full, where feedback runs alone.
    offset: Option<(f64, f64)>,
    law: DelayLaw,
    window: DepartureWindow,
    contended: ContendedWindow,
    /// Whether it was given far fewer workers than it asked for.
    is_short: bool,
    /// Workers that the law asks for, what it made them of, and the least it may ask for.
    wanted: f64,
    terms: Option<DelayTerms>,
    least: f64,
    waits: Option<WaitBounds>,
    queue: LongQueue,
    /// Arrivals per second in busy times and with pauses.
    rate: f64,
    mean_rate: f64,
    /// The share of the workers that its work takes, and that all requests of the classes would take that do not yield to it.
    taken: f64,
    /// Whether all workers could keep the promise; if it is missed then, other classes are in the way.
    possible: bool,
    /// Requests of lower classes, and whether a worker is free of them too late for the promise, whatever the quota.
    lower: LowerService,
    is_kept_out: bool,
    reduction: SetPointReduction,
    latest: RecentDepartures,
    rare: RareDepartures,
    /// The time of the last update.
    updated: Instant,
    /// When a request of the class arrived or waited last, and how many had arrived then. A server that stands still ends
    /// none for a while, which is no silence of the class.
    present: Instant,
    arrived: u64,
    /// Whether the class has no traffic: none was seen yet, or none for the time of [`SILENT_REQUESTS`].
    silent: bool,
    /// Whether no lower class could yield. Then late requests of the class are rejected instead of started.
    lowest: bool,
    pub(super) status: ResponseStatus,
}

/// What a class was given in a step, and at what plant.
pub(super) struct Given {
    /// Workers of the class.
    pub(super) quota: f64,
    /// Workers of the plant.
    pub(super) workers: f64,
    /// U*, as promised.
    pub(super) set_point: f64,
}

impl DelayClass {
    pub(super) fn new(promise: DelayPromise, parts: DelayParts) -> Self {
        let feedback = match parts {
            DelayParts::Both | DelayParts::Feedback => Feedback::PI,
            DelayParts::PredictorP => Feedback::P,
            DelayParts::Predictor => Feedback::None,
        };
        let law = match promise.delay.percentile {
            None => DelayLaw::new(feedback),
            Some(_) => DelayLaw::with_gains(feedback, (SHARE_GAIN, 0.0), SHARE_ZERO),
        };
        DelayClass {
            parts,
            offset: None,
            law,
            window: DepartureWindow::new(promise.delay.window() as u64, UPDATE).within(promise.delay.target),
            contended: ContendedWindow::default(),
            is_short: false,
            wanted: f64::INFINITY,
            terms: None,
            least: LEAST,
            waits: None,
            queue: LongQueue::default(),
            rate: 0.0,
            mean_rate: 0.0,
            taken: 0.0,
            possible: false,
            lower: LowerService::default(),
            is_kept_out: false,
            reduction: SetPointReduction::default(),
            latest: RecentDepartures::default(),
            rare: RareDepartures::default(),
            updated: Instant::default(),
            present: Instant::default(),
            arrived: 0,
            silent: true,
            lowest: false,
            status: ResponseStatus::default(),
            promise,
        }
    }

    /// Whether it is the class of this promise, at the same plant: another one has other service times.
    pub(super) fn is_of(&self, promise: &DelayPromise, parts: DelayParts) -> bool {
        let class_and_plant = |of: &DelayPromise| (of.class, of.plant);
        (class_and_plant(&self.promise), self.parts) == (class_and_plant(promise), parts)
    }

    /// The same class, whose rank, delay, or classes below it may have changed. With another delay it begins a new window, and
    /// goes on from its workers and from what is known of its traffic; its law goes on if what it corrects is still a mean, or
    /// a share that is late.
    pub(super) fn with(self, promise: DelayPromise) -> Self {
        let before = self.promise.delay;
        if before == promise.delay {
            let lower = self.lower.of(self.promise.below == promise.below);
            return DelayClass { promise, lower, ..self };
        }
        let new = DelayClass::new(promise, self.parts);
        let delay = new.promise.delay;
        let is_alike = delay.percentile.is_some() == before.percentile.is_some();
        DelayClass {
            law: if is_alike { self.law } else { new.law },
            window: self.window.begun_again(delay.window() as u64, delay.target),
            wanted: self.wanted,
            least: self.least,
            rate: self.rate,
            taken: self.taken,
            possible: self.possible,
            updated: self.updated,
            present: self.present,
            arrived: self.arrived,
            silent: self.silent,
            lowest: self.lowest,
            ..new
        }
    }

    /// The plant, and the rank there.
    pub(super) fn plant_and_rank(&self) -> (usize, Rank) {
        (self.promise.plant, self.promise.rank)
    }

    /// The workers that the promise takes, which others leave to the class: next to none while it has no traffic.
    pub(super) fn claimed(&self) -> f64 {
        if self.silent { LEAST } else { self.wanted }
    }

    /// The part of them that the class's work takes alone.
    pub(super) fn least_claimed(&self) -> f64 {
        if self.silent { LEAST } else { self.least }
    }

    /// Its workers. A class without traffic keeps a quota for its return, of workers that others are given too.
    pub(super) fn quota(&self, claims: &RankClaims) -> f64 {
        if self.silent { self.wanted.min(claims.spare) } else { claims.quota(self.wanted, self.least) }
    }

    pub(super) fn waits(&self) -> Option<WaitBounds> {
        self.waits
    }

    pub(super) fn set_point_reduction(&self) -> f64 {
        self.reduction.value
    }

    /// Whether the queue rejects late requests of the class.
    pub(super) fn sheds(&self) -> bool {
        self.lowest && self.promise.delay.percentile.is_some()
    }

    /// Renews the window and what the law asks for, if an update is due.
    pub(super) fn update(&mut self, now: Instant, input: &DepartureInput<'_>, workers: f64) -> Option<Seen> {
        let class = self.promise.class;
        self.look_for_traffic(now, input);
        let seen = self.window.observe(DepartureCounts::of(now, input.lanes, class))?;
        let rate = |class: usize| input.monitors.rate(class);
        self.lowest = self.promise.below.iter().all(|other| rate(*other) <= SILENT * rate(class));
        let known = self.window.traffic();
        let busy =
            Traffic { rate: known.rate.max(1e-9), service_seconds: known.service_seconds.max(1e-9), ..known };
        let load = busy.load().min(self.window.load());
        (self.rate, self.mean_rate) = (busy.rate, load / busy.service_seconds);
        let kept = self.promise.kept.iter().map(|other| rate(*other) * (input.service_seconds)(*other));
        self.taken = (load + kept.sum::<f64>()) / workers;
        let wait = (self.promise.delay.target.as_secs_f64() - busy.service_seconds).max(0.0);
        let rate = (busy.rate * self.window.coming_share(wait)).max(self.mean_rate);
        let traffic = Traffic { rate: rate.min(busy.rate), ..busy };
        self.least = (LEAST_SPARE * load).clamp(LEAST, workers);
        let first_free = self.lower.observe(input.lanes, &self.promise.below) / workers;
        self.is_kept_out = keeps_out(self.promise.delay, traffic.service_seconds, first_free);
        let waits = (input.contended)(self.promise.plant, class);
        let contended = self.contended.observe(now, waits, &seen, self.promise.delay.window());
        // What others take from it is no effect of its quota.
        let binding = contended && !self.is_short;
        let residual = Residual { binding, ..self.residual(&seen, &traffic, workers) };
        self.wanted = self.law.next(&residual);
        self.terms = Some(self.law.terms(&residual));
        self.silent = false;
        self.waits = Some(self.wait_bounds(&seen, &traffic));
        Some(seen)
    }

    fn look_for_traffic(&mut self, now: Instant, input: &DepartureInput<'_>) {
        let sum = |of: fn(&ClassCounters) -> &Counter| sum_over(input.lanes, self.promise.class, of);
        let (arrived, begun) = (sum(|class| &class.arrivals), sum(|class| &class.started));
        let is_waiting = arrived != begun.wrapping_add(sum(|class| &class.unserved));
        if is_waiting || arrived != self.arrived {
            (self.present, self.arrived) = (now, arrived);
        }
    }

    /// What the law sees: the prediction for this traffic, in workers, and the relative errors of the window.
    fn residual(&mut self, seen: &Seen, traffic: &Traffic, workers: f64) -> Residual {
        let target = self.promise.delay.target.as_secs_f64();
        let contended = self.contended.seen();
        let error = |reached: fn(&Contended) -> f64, promised: f64| {
            contended.map_or(0.0, |known| reached(&known) / promised - 1.0)
        };
        let (feed_forward, gain, error, recent_error) = match self.late() {
            None => {
                let least = traffic.response_seconds(workers);
                self.possible = least <= target;
                let in_vain = traffic.service_seconds >= target && self.parts != DelayParts::Predictor;
                let target = if in_vain && least.is_finite() { NEAR_ALL * least } else { target };
                let servers = traffic.servers_for_mean(target, workers);
                (
                    servers,
                    gain(servers, |s| traffic.response_seconds(s) / target),
                    // Where requests are dropped, the mean of the others says too little.
                    error(|known| known.response, target).max(error(|known| known.dropped, Delay::MOST_LOST)),
                    error(|known| known.recent_response, target),
                )
            }
            Some(late) => {
                let by_service = self.window.service_shares().late();
                let least = traffic.late_share(workers, target).max(by_service);
                self.possible = least <= late;
                let near = NEAR_ALL * least;
                let (aim, late) = if by_service > late { (near, near) } else { (late, AIM * late) };
                let servers = traffic.servers_for_share(target, aim, workers);
                // Not a logarithm: the mean share was promised. The recent departures hold too few late ones to count.
                let gain = gain(servers, |s| traffic.late_share(s, target) / late);
                (servers, gain, error(|known| known.late, late), 0.0)
            }
        };
        let predicted = self.long_queue(traffic).unwrap_or((feed_forward, gain));
        let (feed_forward, gain) = self.around(seen, predicted);
        Residual {
            feed_forward,
            gain,
            wanted: 1.0,
            error: error.clamp(-1.0, MOST_ERROR),
            recent_error: recent_error.clamp(-1.0, MOST_ERROR),
            fresh: seen.fresh / self.promise.delay.window(),
            least: self.least,
            most: workers,
            binding: true,
        }
    }

    /// The workers, and the gain, where the promise allows a long queue.
    fn long_queue(&mut self, traffic: &Traffic) -> Option<(f64, f64)> {
        let service = match self.late() {
            None => traffic.service_seconds,
            Some(late) => self.window.service_shares().quantile(1.0 - LATE_OF_LONG * late),
        };
        let wait = self.promise.delay.target.as_secs_f64() - service;
        let quota = self.queue.step(wait, self.least / LEAST_SPARE, traffic.service_seconds)?;
        self.least = quota.least.max(LEAST);
        Some((quota.workers, quota.gain))
    }

    /// The prediction; where feedback runs alone, the one of the first full window.
    fn around(&mut self, seen: &Seen, predicted: (f64, f64)) -> (f64, f64) {
        if self.parts == DelayParts::Feedback
            && self.offset.is_none()
            && seen.departures >= self.promise.delay.window()
        {
            self.offset = Some(predicted);
        }
        self.offset.unwrap_or(predicted)
    }

    /// Under a percentile target a request becomes urgent when its slack falls to the service-time allowance. In the lowest
    /// class, while more are late than may be or soon will be, a request is dropped instead of started once its chance to be in
    /// time is below the promised share, or below [`LIKELY`] if more was promised. Both allowances are quantiles of the service
    /// times that were seen, given that service alone is in time: a plain quantile would lie beyond the target wherever a few
    /// requests take long. A drop needs the present services to say so too:
    /// the window holds a slow time for a thousand departures after it, in which a server that is fast again dropped
    /// requests that had waited a tenth of their time.
    fn wait_bounds(&self, seen: &Seen, traffic: &Traffic) -> WaitBounds {
        let target = self.promise.delay.target.as_secs_f64();
        let shares = self.window.service_shares();
        let left = |service: f64| {
            let wait = (target - service).max(0.1 * target);
            let known = self.promise.delay.percentile.filter(|_| traffic.service_seconds > 1e-9);
            known.map(|_| Duration::from_secs_f64(wait))
        };
        let late = self.late().unwrap_or(1.0);
        // The rarer a request may be late, the sooner it becomes urgent. This is the part of exponential service times
        // within their mean at one in twenty, and within more deviations the rarer it is.
        let urgent = 1.0 - exp(-1.0 - (1.5 * (log(1.0 / late) - 3.0)).max(0.0));
        let likely = (1.0 - late).min(LIKELY);
        let present = self.window.present_service_shares(Delay::LATE_EVIDENCE / (1.0 - likely));
        let service = shares.quantile(likely).min(present.quantile(likely));
        let is_overloaded = self.error(seen) > 0.0 || seen.recent_response > NEARLY_LATE * target;
        WaitBounds {
            longest_gap: Duration::from_secs_f64((ArrivalGaps::LONGEST / self.rate).min(1e6)),
            urgent: self.queue.longest_wait().or_else(|| left(shares.quantile(urgent))),
            bound: left(service).filter(|_| self.lowest && is_overloaded),
            longest_service: self.window.service_clip(),
        }
    }

    /// The share that may be late.
    fn late(&self) -> Option<f64> {
        self.promise.delay.percentile.map(|percentile| 1.0 - percentile / 100.0)
    }

    /// Says whether the promise is kept with what the class was given, and moves the set-point reduction; `seen` is the
    /// window if it was renewed.
    pub(super) fn judge(&mut self, now: Instant, seen: Option<&Seen>, given: &Given) {
        let has_all = given.quota >= given.workers || given.quota < self.wanted || !self.possible;
        self.is_short = given.quota < SHORT * self.wanted.min(given.workers);
        let kept = match seen {
            Some(seen) => self.judge_window(now, seen, given, has_all || self.is_kept_out),
            None => self.judge_pause(now),
        };
        let at_limit = given.quota <= self.least || has_all;
        self.status = ResponseStatus { quota: Some(given.quota), at_limit, ..kept };
    }

    /// How the promise is kept by a window that was renewed.
    fn judge_window(&mut self, now: Instant, seen: &Seen, given: &Given, has_all: bool) -> ResponseStatus {
        let (error, is_evidence) = (self.error(seen), self.is_evidence(seen));
        let most =
            if self.promise.delay.percentile.is_none() { Delay::MISSED_MEAN } else { Delay::MISSED_SHARE };
        self.latest.observe(seen);
        let rarely_kept = self.rare.miss(seen, self.promise.delay);
        let latest_error = self.latest.error(seen, self.promise.delay);
        self.reduction.step(&ClassState {
            fresh: seen.fresh,
            window: self.promise.delay.window(),
            rate: self.rate,
            error: match error {
                _ if error <= 0.0 => error,
                _ if latest_error > 0.0 => (error - CHANCE * (most - 1.0)).max(0.0),
                _ => RecentDepartures::well_within(latest_error),
            },
            idle: (!has_all).then_some(1.0 - self.wanted / given.workers),
            others_can_yield: self.possible && !self.lowest && is_evidence,
            taken: self.taken,
            set_point: given.set_point,
        });
        self.updated = now;
        ResponseStatus {
            response: seen.response,
            late: seen.late,
            lost: seen.lost,
            missed: (1.0 + error > most && is_evidence) || rarely_kept || self.loses(seen),
            law: self.terms,
            ..ResponseStatus::default()
        }
    }

    /// How the promise is kept while the window stays as it is: as before, and after a while nothing is said.
    fn judge_pause(&mut self, now: Instant) -> ResponseStatus {
        let seconds = now.since(self.updated.max(self.present)).as_secs_f64();
        // A pause between bursts leaves the class's workers to others, but does not end what these yield to it.
        self.silent |= seconds * self.rate > SILENT_REQUESTS;
        if seconds * self.mean_rate > SILENT_REQUESTS || now.since(self.updated) > Delay::EXPIRY {
            self.reduction = SetPointReduction::default();
        }
        if now.since(self.updated) > Delay::EXPIRY { ResponseStatus::default() } else { self.status }
    }

    /// Whether the window distinguishes a miss from chance: it holds a hundred departures, and for a percentile ten that were
    /// late, or as many as ten may be late of.
    fn is_evidence(&self, seen: &Seen) -> bool {
        let has_late = |late: f64| seen.departures * late.max(seen.late) >= Delay::LATE_EVIDENCE;
        seen.departures >= EVIDENCE && self.late().is_none_or(has_late)
    }

    /// Whether more of the class's requests fail or are turned away than may be: a hundredth, and of a percentile as many as
    /// may be late.
    fn loses(&self, seen: &Seen) -> bool {
        let may = self.late().unwrap_or(0.0).max(Delay::MOST_LOST);
        let (served, lost) = (1.0 - seen.lost, seen.lost);
        let count = if served > 0.0 { seen.departures * lost / served } else { f64::INFINITY };
        lost > Delay::MISSED_SHARE * may && count >= Delay::LATE_EVIDENCE
    }

    /// The part of the promise by which it is missed.
    fn error(&self, seen: &Seen) -> f64 {
        let by_mean = || seen.response / self.promise.delay.target.as_secs_f64();
        self.late().map_or_else(by_mean, |late| seen.late / late) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::counters::LaneCounters;
    use crate::telemetry::monitor::Monitors;
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    /// A class that was promised 100 ms, with no class below.
    fn promised(parts: DelayParts) -> DelayClass {
        let delay = Delay { target: Duration::from_millis(100), percentile: None };
        let rank = Rank::ordinary(1, None);
        DelayClass::new(
            DelayPromise { class: 0, plant: 0, rank, delay, below: Vec::new(), kept: Vec::new() },
            parts,
        )
    }

    /// The prediction used while predictions grow, before the first window is full and after it.
    fn around(parts: DelayParts) -> [(f64, f64); 3] {
        let mut one = promised(parts);
        let mut at = |departures: u64, predicted| {
            one.around(&Seen { departures: departures as f64, ..Seen::default() }, (predicted, 0.1))
        };
        [at(999, 3.0), at(1000, 4.0), at(1000, 6.0)]
    }

    #[test]
    fn feedback_alone_goes_around_what_was_predicted_once() {
        assert_eq!(around(DelayParts::Feedback), [(3.0, 0.1), (4.0, 0.1), (4.0, 0.1)]);
        for parts in [DelayParts::Both, DelayParts::PredictorP, DelayParts::Predictor] {
            assert_eq!(around(parts), [(3.0, 0.1), (4.0, 0.1), (6.0, 0.1)]);
        }
    }

    #[test]
    fn a_miss_is_said_on_evidence_and_a_class_without_traffic_reduces_nothing() {
        let mut one = promised(DelayParts::Both);
        (one.rate, one.mean_rate, one.taken, one.possible) = (200.0, 200.0, 0.5, true);
        let given = Given { quota: 4.0, workers: 4.0, set_point: 0.85 };
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        let few =
            Seen { departures: 99.0, fresh: 10.0, response: 0.2, recent_response: 0.2, ..Seen::default() };
        one.judge(at(1), Some(&few), &given);
        assert!(!one.status.missed && one.set_point_reduction() == 0.0);
        let many = Seen { departures: 1000.0, ..few };
        one.judge(at(2), Some(&many), &given);
        assert!(one.status.missed && one.status.at_limit && one.set_point_reduction() > 0.0);
        let before = one.set_point_reduction();
        one.judge(at(2), Some(&Seen { recent_response: 0.09, ..many }), &given);
        assert!(one.status.missed && one.set_point_reduction() <= before, "what was late is over");
        one.judge(at(3), None, &given);
        assert!(one.set_point_reduction() > 0.0, "a second without departures is a pause");
        one.judge(at(12), None, &given);
        assert_eq!(one.set_point_reduction(), 0.0);
    }

    /// A request every ten seconds: the window of ten minutes holds sixty.
    #[test]
    fn a_mean_of_few_requests_is_missed_by_the_last_hundred_of_them() {
        let missed_after = |response: f64| {
            let mut one = promised(DelayParts::Both);
            (one.rate, one.taken, one.possible) = (0.1, 0.01, true);
            let given = Given { quota: 4.0, workers: 4.0, set_point: 0.85 };
            let mut window = DepartureWindow::new(1000, UPDATE).within(one.promise.delay.target);
            let mut counts = DepartureCounts::default();
            window.observe(counts);
            (1..=300_u64).position(|request| {
                (counts.at, counts.answered) = (Instant::ZERO + Duration::from_secs(10 * request), request);
                (counts.released, counts.late) = (request, if response > 0.1 { request } else { 0 });
                counts.response_ns += (1e9 * response) as u64;
                counts.answered_in[0] = request - counts.late;
                counts.response_in_ns[0] = if response > 0.1 { 0 } else { counts.response_ns };
                let seen = window.observe(counts);
                one.judge(counts.at, seen.as_ref(), &given);
                one.status.missed
            })
        };
        assert_eq!((missed_after(0.2), missed_after(0.09)), (Some(99), None));
    }

    #[test]
    fn a_class_is_the_same_only_at_the_same_plant_and_another_delay_goes_on_from_its_workers() {
        let mut one = promised(DelayParts::Both);
        let same = one.promise.clone();
        assert!(one.is_of(&same, DelayParts::Both));
        assert!(!one.is_of(&DelayPromise { plant: 1, ..same.clone() }, DelayParts::Both));
        (one.wanted, one.least, one.silent) = (3.0, 1.0, false);
        one.status.missed = true;
        let other = Delay { target: Duration::from_millis(101), ..same.delay };
        let one = one.with(DelayPromise { delay: other, ..same });
        assert_eq!((one.wanted, one.claimed(), one.least_claimed()), (3.0, 3.0, 1.0));
        assert!(!one.status.missed && one.promise.delay == other);
    }

    #[test]
    fn a_class_whose_server_stands_still_is_not_silent() {
        let lane = Arc::new(LaneCounters::default().grown(1, 1));
        let mut monitors = Monitors::default();
        monitors.push(1);
        let input = DepartureInput {
            lanes: core::slice::from_ref(&lane),
            monitors: &monitors,
            workers: &|_| 4,
            service_seconds: &|_| 0.0,
            set_point: &|_| 0.85,
            contended: &|_, _| true,
        };
        let mut one = promised(DelayParts::Both);
        (one.rate, one.silent) = (1000.0, false);
        let given = Given { quota: 4.0, workers: 4.0, set_point: 0.85 };
        let mut look = |ms: u64| {
            let now = Instant::ZERO + Duration::from_millis(ms);
            let seen = one.update(now, &input, 4.0);
            one.judge(now, seen.as_ref(), &given);
            one.silent
        };
        lane.classes[0].arrivals.add(8);
        assert!(!look(500) && !look(3_000), "eight wait");
        lane.classes[0].started.add(8);
        assert!(!look(3_100), "they waited a tenth of a second ago");
        assert!(look(3_300), "nothing has come for the time of two hundred requests");
        lane.classes[0].arrivals.add(1);
        assert!(look(3_400), "and a class comes back with its answers");
    }
}
