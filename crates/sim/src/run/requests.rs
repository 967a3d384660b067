//! A request's way through the front and its plant: arrival, start, rejection, end, and its client's retry.

use super::clients::Again;
use super::connecting::Connection;
use super::flight::{EndedFlight, FlightStage};
use super::{Event, Simulation, Visit};
use crate::degraded_paths::Fate;
use crate::front::{Arriving, Decision, Order, Start};
use crate::request::Request;
use crate::service::FullService;
use crate::workload::FullQueue;
use plimsoll_core::request::{Outcome, Reason, Service, Target, Token};
use plimsoll_core::time::Duration;

impl Simulation<'_> {
    pub(super) fn arrive(&mut self, request: &Request, visit: Visit) {
        self.requests += 1;
        self.arrivals.count(self.now);
        let Some(target) = self.front.classify(request) else {
            self.unmatched += 1;
            if request.files_left.is_some() {
                self.ask_for_more(visit.stream, Box::new(request.clone()));
            }
            self.unmatched_host.get_or_insert_with(|| request.host.clone());
            return;
        };
        self.recorder.row.classes[usize::from(target.class)].arrivals += 1;
        let token = self.begin(request, visit, target);
        let arriving = Arriving { request, target, token };
        let decision = self.front.arrive(self.now, arriving, &mut self.orders);
        self.watch.event(self.now, &Event::Arrived { token, request, class: target.class, decision });
        match decision {
            Decision::Start(start) => {
                if self.plan.is_degraded(target.site, start.level) {
                    self.heavy.note(&request.path, Fate::Degraded);
                }
                self.start(token, start);
            }
            Decision::Wait => {
                if let Some(flight) = self.flights.get(token) {
                    request.path.clone_into(&mut flight.path);
                }
            }
            Decision::Reject(reason) => {
                self.heavy.note(&request.path, Fate::Rejected);
                self.refuse(token, reason);
            }
        }
        if self.flights.get(token).is_some() {
            let stream = &self.setup.workload.streams[visit.stream];
            if let Some(patience) = stream.patience {
                self.clients.waits(token, self.now + patience);
            }
        }
        self.obey();
    }

    /// Keeps what is known of a request at its arrival.
    fn begin(&mut self, request: &Request, visit: Visit, target: Target) -> Token {
        let stream = &self.setup.workload.streams[visit.stream];
        // The factor is drawn for every request in order of arrival, whatever is decided, so that two fronts meet the same
        // work.
        let work = request.work.unwrap_or_else(|| self.plan.draw(target.site, &mut self.work));
        let (token, flight) = self.flights.begin();
        flight.class = target.class;
        flight.site = target.site;
        flight.client = target.client;
        flight.stream = visit.stream as u16;
        flight.attempt = visit.attempt;
        flight.arrived = self.now;
        flight.full = FullService::of(request, work);
        let may_return = stream.retry.is_some_and(|retry| visit.attempt < retry.most);
        let may_return = may_return || request.files_left.is_some();
        // A retry has the same work, so that the draws for later requests are the same before every front.
        flight.again = may_return.then(|| Box::new(Request { work: Some(work), ..request.clone() }));
        token
    }

    /// Hands a request to its plant. The caller carries out what the front decides if the plant refuses it.
    fn start(&mut self, token: Token, start: Start) {
        let Some(flight) = self.flights.get(token) else {
            unreachable!("a request that is not there was started")
        };
        let is_awaited = u64::from(!flight.is_abandoned);
        self.recorder.row.classes[usize::from(flight.class)].reasons[start.reason as usize] += is_awaited;
        flight.level = start.level;
        let work = self.plan.work(flight.site, start, flight.full);
        flight.bytes = work.bytes;
        self.connect(Connection::begin(self.now, token, start.plant, work));
    }

    /// Offers a request to its plant. The caller carries out what the front decides if the plant refuses it.
    fn connect(&mut self, connection: Connection) {
        let Connection { token, plant, work, .. } = connection;
        let Some(flight) = self.flights.get(token) else { return };
        if self.servers[plant].offer(self.now, token.0, work).is_ok() {
            flight.stage = FlightStage::Served(plant);
            return;
        }
        match self.setup.workload.plants[plant].full_queue {
            FullQueue::Drops(patience) => {
                flight.stage = FlightStage::Connecting;
                self.connecting.wait(connection, patience);
            }
            FullQueue::Refuses => self.lose(token, plant),
        }
    }

    /// Ends a request that the plant does not take.
    fn lose(&mut self, token: Token, plant: usize) {
        self.recorder.row.plants[plant].lost += 1;
        self.front.refused(token);
        self.conclude(token, Outcome::Failed);
    }

    /// Tries a connection again that its plant did not answer, or gives it up.
    pub(super) fn connect_again(&mut self, connection: Connection) {
        // The client may have left meanwhile.
        if self.flights.get(connection.token).is_none() {
            return;
        }
        if connection.is_given_up(self.now) {
            self.lose(connection.token, connection.plant);
        } else {
            self.connect(connection);
        }
        self.obey();
    }

    /// Rejects a request that arrives or waits.
    fn refuse(&mut self, token: Token, reason: Reason) {
        let retry_after = self.front.retry_after(token);
        let Some(flight) = self.flights.end(token).filter(|flight| !flight.is_abandoned) else { return };
        let row = &mut self.recorder.row.classes[usize::from(flight.class)];
        row.reasons[reason as usize] += 1;
        row.rejected += 1;
        let plant = self.setup.promises.sites[usize::from(flight.site)].plant;
        let cost = self.setup.workload.plants[plant].rejection;
        let takes = self.setup.workload.plants[plant].processor >= 1.0;
        if !cost.is_zero() && takes && self.setup.promises.plants[plant].same_host {
            self.servers[plant].charge(self.now, cost);
        }
        self.come_again(flight, retry_after);
    }

    /// Lets a client come again that may; `retry_after` is when, if it was told. A user that waited and may not asks for more
    /// instead.
    fn come_again(&mut self, flight: EndedFlight, retry_after: Option<Duration>) {
        let Some(request) = flight.again else { return };
        let stream = usize::from(flight.stream);
        let retry = self.setup.workload.streams[stream].retry;
        let Some(retry) = retry.filter(|retry| flight.attempt < retry.most) else {
            return self.ask_for_more(stream, request);
        };
        let again = Again { request, stream, attempt: flight.attempt + 1 };
        match retry_after.filter(|_| retry.obeys) {
            Some(after) => self.clients.returns_at(self.now + after, again),
            None => self.clients.returns(self.now, retry.after, again),
        }
    }

    /// Lets a user that waited for the end of a request ask for its next one.
    fn ask_for_more(&mut self, stream: usize, mut request: Box<Request>) {
        if let Some(at) = self.streams[stream].source.after_answer(self.now, &mut request) {
            self.clients.returns_at(at, Again { request, stream, attempt: 0 });
        }
    }

    /// Lets a client leave because its patience has ended.
    pub(super) fn leave(&mut self, token: Token) {
        let Some(flight) = self.flights.get(token) else { return };
        let row = &mut self.recorder.row.classes[usize::from(flight.class)];
        *row.left.entry(self.now.since(flight.arrived)).or_default() += 1;
        match flight.stage {
            FlightStage::Waiting => {
                row.reasons[Reason::ClientLeft as usize] += 1;
                if self.front.abandon_waiting(token) {
                    return self.leave_behind(token);
                }
                self.front.depart(self.now, token, Outcome::Abandoned, &mut self.orders);
                self.watch.event(self.now, &Event::Ended { token, outcome: Outcome::Abandoned });
                if let Some(flight) = self.flights.end(token) {
                    self.come_again(flight, None);
                }
                self.obey();
            }
            FlightStage::Connecting => self.end(token, Outcome::Abandoned),
            FlightStage::Served(plant) => {
                if self.front.abandon(self.now, token) {
                    row.outcomes[Outcome::Abandoned as usize] += 1;
                    self.leave_behind(token);
                } else {
                    self.servers[plant].abandon(token.0);
                    self.end(token, Outcome::Abandoned);
                }
            }
        }
    }

    /// A request's client has left, and the front asks the plant all the same, or keeps the connection to it, so that it never
    /// knows.
    fn leave_behind(&mut self, token: Token) {
        let Some(flight) = self.flights.get(token) else { return };
        let left = flight.abandon();
        self.watch.event(self.now, &Event::Ended { token, outcome: Outcome::Abandoned });
        self.come_again(left, None);
    }

    /// The plant has finished a request whose client had left.
    pub(super) fn finish_abandoned(&mut self, token: Token, service: Service) {
        self.flights.end(token);
        self.front.release(self.now, token, service, &mut self.orders);
        self.front.depart(self.now, token, Outcome::Abandoned, &mut self.orders);
        self.obey();
    }

    /// Ends a started request, and carries out what the front then decides.
    pub(super) fn end(&mut self, token: Token, outcome: Outcome) {
        self.conclude(token, outcome);
        self.obey();
    }

    /// Ends a request; the caller carries out what the front then decides. Otherwise a plant that refuses a whole queue would
    /// make the calls as deep as the queue.
    fn conclude(&mut self, token: Token, outcome: Outcome) {
        let Some(flight) = self.flights.end(token) else { return };
        self.front.depart(self.now, token, outcome, &mut self.orders);
        if flight.is_abandoned {
            return;
        }
        self.recorder.row.classes[usize::from(flight.class)].outcomes[outcome as usize] += 1;
        self.watch.event(self.now, &Event::Ended { token, outcome });
        if outcome != Outcome::Completed {
            self.come_again(flight, None);
        } else if let Some(request) = flight.again {
            self.ask_for_more(usize::from(flight.stream), request);
        }
    }

    /// Carries out what the front decided about waiting requests, and what follows from their starts.
    pub(super) fn obey(&mut self) {
        while !self.orders.is_empty() {
            let mut orders = std::mem::replace(&mut self.orders, std::mem::take(&mut self.obeyed));
            for order in orders.drain(..) {
                let (Order::Start(token, _) | Order::Drop(token, _)) = order;
                // The end of one whose client has left was told.
                if self.flights.get(token).is_none_or(|flight| !flight.is_abandoned) {
                    self.watch.event(self.now, &Event::Ordered(order));
                }
                match order {
                    Order::Start(token, start) => self.start_waiting(token, start),
                    Order::Drop(token, reason) => {
                        if let Some(flight) = self.flights.get(token).filter(|flight| !flight.is_abandoned) {
                            self.heavy.note(&flight.path, Fate::Rejected);
                        }
                        self.refuse(token, reason);
                    }
                }
            }
            self.obeyed = orders;
        }
    }

    fn start_waiting(&mut self, token: Token, start: Start) {
        let Some(flight) = self.flights.get(token) else {
            // The client left in the instant in which its request started.
            return self.front.depart(self.now, token, Outcome::Abandoned, &mut self.orders);
        };
        if self.plan.is_degraded(flight.site, start.level) {
            self.heavy.note(&flight.path, Fate::Degraded);
        }
        self.start(token, start);
    }
}
