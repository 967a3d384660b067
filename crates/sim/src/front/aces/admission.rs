//! Admission at one plant: requests in service and in the queues, and the accounts of the period.

use super::quanta::Quanta;
use super::queues::{Place, Queues, Waiter};
use super::settings::{AcesSettings, BudgetReading};
use crate::request::Request;
use plimsoll_core::admission::aces::{Account, HOURS, RateForecast, RateForecasts, RequestedWork, left};
use plimsoll_core::promises::Share;
use plimsoll_core::request::{Reason, Token};
use plimsoll_core::time::{Duration, Instant};

/// Relative tolerance: a thousand quanta of a millisecond must fit into one second despite rounding.
const ROUNDING: f64 = 1e-9;
/// Rate forecasts are stored for the first plant only, under an empty name.
const PLANT: &str = "";

/// The admission state of one plant.
pub(super) struct PlantAdmission {
    servers: u32,
    period_ns: u64,
    hour_ns: u64,
    quanta: Quanta,
    shares: Vec<Share>,
    budget: BudgetReading,
    /// The number of the present period.
    period: u64,
    /// One account for each rank of priority; `demands` likewise.
    accounts: Vec<Account>,
    demands: Vec<Demand>,
    queues: Queues,
    in_service: Vec<InService>,
}

/// The load of one priority: counted in this period, and predicted for the next.
#[derive(Clone, Debug, Default)]
struct Demand {
    forecast: RateForecast,
    asked: RequestedWork,
}

struct InService {
    place: usize,
    waiter: Waiter,
    started: Instant,
}

/// What becomes of an admitted request.
#[derive(Debug, PartialEq)]
pub(super) enum Admitted {
    Starts,
    /// The request waits; these requests are dropped from the backup queue to make room.
    Waits(Vec<Waiter>),
}

impl PlantAdmission {
    pub(super) fn new(settings: &AcesSettings, unit: Duration, servers: u32, priorities: usize) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        PlantAdmission {
            servers,
            period_ns: ns(settings.period),
            hour_ns: ns(settings.hour),
            quanta: Quanta { unit_seconds: unit.as_secs_f64(), processes: settings.processes },
            shares: settings.shares.clone(),
            budget: settings.budget,
            period: 0,
            accounts: vec![Account::default(); priorities],
            demands: vec![Demand::default(); priorities],
            queues: Queues::new(settings.queue as usize, settings.drop),
            in_service: Vec::new(),
        }
    }

    /// Takes over rate forecasts from an earlier run.
    pub(super) fn remember(&mut self, rate_forecast: &RateForecasts) {
        for (rank, demand) in (0..).zip(&mut self.demands) {
            demand.forecast =
                rate_forecast.get(PLANT, rank).cloned().map_or_else(RateForecast::default, RateForecast::of);
        }
    }

    pub(super) fn rate_forecast(&self) -> RateForecasts {
        let mut rate_forecast = RateForecasts::default();
        for (rank, demand) in (0..).zip(&self.demands) {
            rate_forecast.set(PLANT, rank, demand.forecast.day().clone());
        }
        rate_forecast
    }

    pub(super) fn next_period(&self) -> Instant {
        Instant::from_nanos(self.period_ns.saturating_mul(self.period + 1))
    }

    /// Begins every period up to now.
    pub(super) fn advance(&mut self, now: Instant) {
        while now >= self.next_period() {
            self.turn();
        }
    }

    fn hour(&self) -> usize {
        (self.period.saturating_mul(self.period_ns) / self.hour_ns % HOURS as u64) as usize
    }

    fn period_seconds(&self) -> f64 {
        self.period_ns as f64 / 1e9
    }

    /// The service-seconds that may still be admitted of a priority.
    fn left(&self, place: usize) -> f64 {
        let capacity = f64::from(self.servers) * self.period_seconds();
        let accounts = self.accounts.iter().enumerate().map(|(rank, account)| match self.budget {
            BudgetReading::Corrected => *account,
            BudgetReading::Printed => {
                let used = if rank == place { account.used } else { 0.0 };
                Account { predicted: account.predicted, used, carried: 0.0 }
            }
        });
        left(capacity, accounts, &self.shares, place) + ROUNDING
    }

    /// Ends the present period and begins the next.
    fn turn(&mut self) {
        let ended = self.hour();
        self.period += 1;
        let (begun, seconds) = (self.hour(), self.period_seconds());
        self.queues.turn();
        for (account, demand) in self.accounts.iter_mut().zip(&mut self.demands) {
            let asked = std::mem::take(&mut demand.asked);
            let predicted = demand.forecast.turn(&asked, seconds, (ended, begun));
            *account = Account { predicted, used: 0.0, carried: 0.0 };
        }
        let start = Instant::from_nanos(self.period.saturating_mul(self.period_ns));
        for (place, waiter) in self.queues.waiting() {
            self.accounts[place.0].carried += waiter.estimate;
        }
        for serving in &self.in_service {
            let spent = start.since(serving.started).as_secs_f64();
            self.accounts[serving.place].carried += (serving.waiter.estimate - spent).max(0.0);
        }
    }

    /// Admits a request, or says why not.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        request: &Request,
        place: Place,
        (token, level): (Token, u8),
    ) -> Result<Admitted, Reason> {
        let estimate = self.quanta.estimate(request);
        let asked = &mut self.demands[place.0].asked;
        *asked = RequestedWork { requests: asked.requests + 1, seconds: asked.seconds + estimate };
        if estimate > self.left(place.0) {
            return Err(Reason::Overload);
        }
        let waiter = Waiter { token, level, estimate, period: self.period };
        if self.in_service.len() < self.servers as usize && self.queues.is_empty() {
            self.accounts[place.0].used += estimate;
            self.in_service.push(InService { place: place.0, waiter, started: now });
            return Ok(Admitted::Starts);
        }
        let dropped = self.queues.push(place, waiter).ok_or(Reason::QueueFull)?;
        self.accounts[place.0].used += estimate;
        Ok(Admitted::Waits(dropped))
    }

    /// Starts the next waiting request, if a worker is free.
    pub(super) fn start_next(&mut self, now: Instant) -> Option<Waiter> {
        if self.in_service.len() >= self.servers as usize {
            return None;
        }
        let (place, waiter) = self.queues.pop()?;
        self.in_service.push(InService { place: place.0, waiter, started: now });
        Some(waiter)
    }

    /// Frees a worker. By the corrected reading, the request's true service time replaces its estimate in the account, if this
    /// period is charged for it.
    pub(super) fn end(&mut self, now: Instant, token: Token) {
        let Some(found) = self.in_service.iter().position(|serving| serving.waiter.token == token) else {
            return;
        };
        let InService { place, waiter, started } = self.in_service.swap_remove(found);
        if self.budget == BudgetReading::Corrected && waiter.period == self.period {
            let used = &mut self.accounts[place].used;
            *used = (*used + now.since(started).as_secs_f64() - waiter.estimate).max(0.0);
        }
    }

    /// Removes a waiting request whose client has left. By the corrected reading its estimate, charged when the request was
    /// admitted or when the period began, is taken back. A request that is dropped for another stays charged, because the one
    /// that came in its stead would wait behind a queue that was full just now.
    pub(super) fn forget(&mut self, place: Place) {
        if let Some(waiter) = self.queues.remove(place).filter(|_| self.budget == BudgetReading::Corrected) {
            let Account { used, carried, .. } = &mut self.accounts[place.0];
            let charged = if waiter.period == self.period { used } else { carried };
            *charged = (*charged - waiter.estimate).max(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::limit::tests::at;

    fn admission(settings: &AcesSettings, priorities: usize) -> PlantAdmission {
        PlantAdmission::new(settings, Duration::from_millis(10), 1, priorities)
    }

    fn page(path: &str) -> Request {
        Request { path: path.into(), ..Request::default() }
    }

    /// Offers a request of a priority for each of these tokens; returns how many were admitted.
    fn offer(admission: &mut PlantAdmission, now: f64, place: usize, tokens: std::ops::Range<u64>) -> usize {
        let admitted =
            |token: &u64| admission.admit(at(now), &page("/"), (place, *token), (Token(*token), 1)).is_ok();
        tokens.filter(admitted).count()
    }

    /// Serves `count` requests one after another from `now` on, `each` seconds each.
    fn serve(admission: &mut PlantAdmission, mut now: f64, each: f64, count: usize) -> f64 {
        for _ in 0..count {
            let token = admission.in_service[0].waiter.token;
            now += each;
            admission.end(at(now), token);
            admission.start_next(at(now));
        }
        now
    }

    #[test]
    fn a_period_admits_its_work_and_not_more() {
        let mut admission = admission(&AcesSettings::default(), 1);
        assert_eq!(offer(&mut admission, 0.0, 0, 0..500), 100);
        admission.advance(at(1.0));
        // All was carried over but what the one in service has done.
        assert_eq!(offer(&mut admission, 1.0, 0, 500..600), 1);
        serve(&mut admission, 1.0, 0.01, 60);
        admission.advance(at(2.0));
        assert!((admission.accounts[0].carried - 0.4).abs() < 1e-9);
        // A request of a hundred quanta does not fit in what is left, sixty of a single one do.
        assert!(admission.admit(at(2.0), &page("/v.mpg"), (0, 700), (Token(700), 1)).is_err());
        assert_eq!(offer(&mut admission, 2.0, 0, 701..900), 60);
    }

    #[test]
    fn what_it_truly_took_is_counted() {
        let mut admission = admission(&AcesSettings::default(), 1);
        assert_eq!(offer(&mut admission, 0.0, 0, 0..50), 50);
        // Each takes half of its estimate: what was saved may be used.
        serve(&mut admission, 0.0, 0.005, 50);
        assert_eq!(offer(&mut admission, 0.3, 0, 50..500), 75);
    }

    #[test]
    fn lower_priorities_get_what_is_predicted_to_remain() {
        let mut admission = admission(&AcesSettings::default(), 2);
        assert_eq!(offer(&mut admission, 0.0, 0, 0..70), 70);
        serve(&mut admission, 0.0, 0.01, 70);
        admission.advance(at(1.0));
        assert_eq!(offer(&mut admission, 1.0, 1, 100..500), 30);
        // The highest has the whole, whatever the others were given.
        assert_eq!(offer(&mut admission, 1.0, 0, 500..900), 100);
        // And is served first: behind the one in service.
        admission.end(at(1.1), Token(100));
        assert_eq!(admission.start_next(at(1.1)).map(|waiter| waiter.token), Some(Token(500)));
    }

    #[test]
    fn a_full_queue_turns_away_and_a_full_backup_is_cleared() {
        let settings = AcesSettings { queue: 20, ..AcesSettings::default() };
        let mut admission = admission(&settings, 1);
        // One in service, twenty wait.
        assert_eq!(offer(&mut admission, 0.0, 0, 0..50), 21);
        let one = |admission: &mut PlantAdmission, now, token| {
            admission.admit(at(now), &page("/"), (0, token), (Token(token), 1))
        };
        assert_eq!(one(&mut admission, 0.5, 60), Err(Reason::QueueFull));
        admission.advance(at(1.0));
        let Ok(Admitted::Waits(dropped)) = one(&mut admission, 1.0, 100) else { panic!() };
        assert_eq!(dropped.len(), 20);
        assert_eq!(offer(&mut admission, 1.0, 0, 101..150), 19);
    }

    #[test]
    fn as_printed_every_period_begins_with_all() {
        let settings = AcesSettings { budget: BudgetReading::Printed, ..AcesSettings::default() };
        let mut admission = admission(&settings, 2);
        assert_eq!(offer(&mut admission, 0.0, 0, 0..70), 70);
        // Each takes half of its estimate, which changes nothing.
        serve(&mut admission, 0.0, 0.005, 20);
        assert_eq!(offer(&mut admission, 0.3, 0, 100..500), 30);
        admission.advance(at(1.0));
        // A higher priority that used more than was predicted takes no more than that.
        admission.accounts[0].predicted = 0.4;
        assert_eq!(offer(&mut admission, 1.0, 0, 500..900), 100);
        assert_eq!(offer(&mut admission, 1.0, 1, 900..999), 60);
    }

    #[test]
    fn a_client_that_left_is_no_longer_carried() {
        let mut admission = admission(&AcesSettings::default(), 1);
        assert_eq!(offer(&mut admission, 0.0, 0, 0..3), 3);
        admission.forget((0, 1));
        admission.advance(at(1.0));
        // The one in service has used up its estimate.
        assert!((admission.accounts[0].carried - 0.01).abs() < 1e-12);
    }

    #[test]
    fn a_period_is_not_charged_for_a_client_that_left() {
        let settings = AcesSettings { queue: 20, ..AcesSettings::default() };
        let mut own = admission(&settings, 1);
        assert_eq!(offer(&mut own, 0.0, 0, 0..21), 21);
        // Admitted in this period, and gone in it.
        own.forget((0, 1));
        assert!((own.accounts[0].used - 0.2).abs() < 1e-12, "{:?}", own.accounts);
        own.advance(at(1.0));
        assert!((own.accounts[0].carried - 0.19).abs() < 1e-12);
        // Admitted in the period before.
        own.forget((0, 2));
        assert!((own.accounts[0].carried - 0.18).abs() < 1e-12 && own.accounts[0].used == 0.0);
        // As printed nothing is taken back.
        let printed = AcesSettings { budget: BudgetReading::Printed, ..settings };
        let mut own = admission(&printed, 1);
        assert_eq!(offer(&mut own, 0.0, 0, 0..21), 21);
        own.forget((0, 1));
        assert!((own.accounts[0].used - 0.21).abs() < 1e-12);
    }
}
