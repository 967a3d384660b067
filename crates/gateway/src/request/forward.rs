//! A request that has started: served by its plant, an upstream or a folder, until it departs, and whether its response carries
//! the level report.

use super::answer::report;
use super::head::Outgoing;
use super::lifecycle::{Next, Way};
use super::tunnel;
use crate::accounting::permit_guard::PermitGuard;
use crate::client::awaited_clients::AwaitedClient;
use crate::client::buffers::Buffer;
use crate::client::response_fields::{LevelReport, Requested};
use crate::client::wire::Wire;
use crate::exchange::moves::{End, Exchange};
use crate::exchange::progress::Progress;
use crate::exchange::request::RequestSide;
use crate::exchange::response::{NOT_SWITCHED, ResponseSide, ResponseTerms};
use crate::exchange::retry;
use crate::http1::body::Framing;
use crate::settings::{HeaderRules, ReportMode, Rewrite, Settings, SiteHeaders};
use crate::upstream::servers::Upstream;
use crate::worker::tables::ThreadTables;
use plimsoll_core::request::{Outcome, Permit, Reason, Service, Target};

/// A started request, and how it is served.
pub(super) struct Started<'a> {
    pub permit: PermitGuard,
    pub tables: &'a ThreadTables,
    pub plant: usize,
    /// The rewrites of the request's level and of the levels above.
    pub rewrites: &'a [Rewrite],
    pub report: Option<LevelReport<'a>>,
    pub requested: Requested,
    pub headers: &'a SiteHeaders,
}

/// The results of an exchange.
struct After {
    /// Whether all of the request was sent. Unsent bytes still lie in the inbox, before the next request.
    complete: bool,
    /// The status that was sent to the client, if any was.
    status: Option<u16>,
    keeps_client: bool,
    ends_with_connection: bool,
    /// The bytes that came behind a switch of protocols.
    rest: Option<(Buffer, usize, usize)>,
}

impl After {
    fn of<W: Wire>(exchange: &mut Exchange<'_, W>) -> Self {
        After {
            complete: exchange.request.is_sent(),
            status: exchange.response.status().filter(|_| !exchange.is_abandoned),
            keeps_client: exchange.response.keeps_client(),
            ends_with_connection: exchange.response.ends_with_connection(),
            rest: exchange.response.take_rest(),
        }
    }
}

/// Whether the plant's own processes decide on levels, so that their reports pass to the client.
fn decides_itself(tables: &ThreadTables, plant: usize) -> bool {
    tables.plants.get(plant).is_some_and(|row| row.decides_itself)
}

/// The header that the plant may not use.
fn reserved_name(tables: &ThreadTables, plant: usize) -> &str {
    if decides_itself(tables, plant) { "" } else { tables.settings.report.reserved_name() }
}

impl<W: Wire> Way<W> {
    pub(super) async fn forward(&mut self, target: Target, permit: Permit, requested: Requested) -> Next {
        // A reload may have come while the request waited.
        self.worker.renew();
        let tables = self.worker.tables();
        let settings = &tables.settings;
        let started = Started {
            tables: &tables,
            plant: permit.plant(),
            // An exempt request is not changed by levels: it may be a health check of the server itself.
            rewrites: match permit.reason() {
                Reason::Exempt => &[],
                _ => rewrites(settings, target, permit.level()),
            },
            report: (settings.report.mode == ReportMode::Always && !decides_itself(&tables, permit.plant()))
                .then(|| report(settings, permit.level(), permit.reason())),
            permit: PermitGuard::new(&self.worker, permit, self.entry.take()),
            requested,
            headers: settings.headers_of(target.site),
        };
        match tables.plants.get(started.plant).and_then(|row| row.upstream.as_ref()) {
            Some(upstream) => self.proxy(upstream, started).await,
            None if requested.is_extended_connect() => {
                self.fail(NOT_SWITCHED, requested, started.permit).await
            }
            None => self.serve_file(started).await,
        }
    }

    async fn proxy(&mut self, upstream: &Upstream, started: Started<'_>) -> Next {
        let Started { mut permit, tables, plant, rewrites, report, requested, headers } = started;
        self.write_variants(rewrites, &headers.request, tables, (upstream, plant));
        self.note_besides();
        let streams = self.head.framing != Framing::None && self.streams();
        let is_repeatable = retry::is_repeatable(self.head.method.of(self.client.inbox.bytes()), &self.head);
        self.client.inbox.consume(self.head.length);
        let reserved = rewrites.first().map_or(&[][..], |rewrite| &rewrite.headers);
        let (dropped, own) = (headers.request.dropped(), tables.settings.client_header());
        let body = self.early.decoder(self.head.framing).of_request(reserved).without(dropped, own);
        let variants = &self.variants;
        let mut request = RequestSide::new(variants.get(0).unwrap_or_default(), body, self.body_limit());
        (request.awaits_continue, request.is_repeatable) = (self.head.expects_continue, is_repeatable);
        request.begin_with(std::mem::take(&mut self.early));
        if let Err(refusal) = request.check(&mut self.client.inbox) {
            return self.fail(refusal, requested, permit).await;
        }
        // The rest of the body may have come while the request waited.
        if request.is_complete() {
            permit.end_stream();
        }
        let terms = ResponseTerms {
            requested,
            report,
            report_name: reserved_name(tables, plant),
            reports: tables.plants[plant].reported.then_some(&upstream.pool.reports),
            cost_header: tables.plants[plant].cost_header.as_deref(),
            rules: &headers.response,
            date: &self.worker.date,
            falls_back: variants.get(1).is_some(),
            rewrites,
            sent: variants.get(0).unwrap_or_default(),
            addresses: upstream.addresses(),
            own_host: upstream.host.as_deref(),
        };
        let response = ResponseSide::new(terms, &mut self.reply, &mut self.scratch);
        let (worker, client) = (&self.worker, &mut self.client);
        let progress = Progress::start(worker.coarse(), &tables.settings.timeouts, streams);
        // The exchange has a scope of its own, so that the connection's task needs no room for it afterwards.
        let (end, after) = {
            let mut exchange = Exchange {
                worker,
                client,
                request,
                response,
                permit: &mut permit,
                upstream,
                lease: None,
                progress,
                cut_short: false,
                storage_failed: false,
                streams_events: false,
                stops_when_abandoned: tables.plants[plant].stops_when_abandoned,
                is_abandoned: false,
                waited_since: None,
                awaited: AwaitedClient::default(),
            };
            let end = retry::carry(&mut exchange, variants).await;
            (end, After::of(&mut exchange))
        };
        self.conclude(end, after, requested, permit).await
    }

    /// Departs the request; the connection then goes on or ends.
    async fn conclude(
        &mut self,
        end: End,
        after: After,
        requested: Requested,
        mut permit: PermitGuard,
    ) -> Next {
        // A failed exchange gets an answer of the gateway, so its status does not count here.
        if let Some(status) = after.status
            && !matches!(end, End::Failed(_))
        {
            permit.answered(status);
        }
        match end {
            End::Done => {
                permit.depart(after.status.map_or(Outcome::Completed, Outcome::of_answer));
                match (after.complete, after.keeps_client) {
                    (true, true) => Next::Request,
                    (true, false) => Next::Close,
                    (false, _) => Next::Linger,
                }
            }
            End::Switched(lease) => {
                let (server, _counted) = lease.into_tunnel(permit.holds_place());
                tunnel::run(&self.worker, &mut self.client, server, after.rest, &permit).await;
                permit.depart(Outcome::Completed);
                Next::Close
            }
            End::Failed(refusal) => self.fail(refusal, requested, permit).await,
            End::Broken(mut outcome) => {
                permit.release(Service::default());
                if outcome == Outcome::Failed {
                    permit.failed("the upstream's answer ended before its end", 0);
                }
                if after.ends_with_connection || !W::IN_ORDER {
                    // The client would take a plain close for the end of the body.
                    outcome = self.client.abort(&self.worker, outcome).await;
                }
                permit.depart(outcome);
                Next::Close
            }
            // `retry::carry` never returns these two.
            End::Retry | End::Absent => Next::Close,
        }
    }

    /// Writes the heads that the upstream may get: that of the request's level, and those of the levels above, as long as each
    /// level falls back.
    fn write_variants(
        &mut self,
        rewrites: &[Rewrite],
        rules: &HeaderRules,
        tables: &ThreadTables,
        (upstream, plant): (&Upstream, usize),
    ) {
        let settings = &tables.settings;
        let places = decides_itself(tables, plant).then(|| self.worker.lane.borrow().place_load(plant));
        let (bytes, head, peer) = (self.client.inbox.bytes(), &self.head, &self.peer);
        let (mark, trace) = (&self.worker.shared.mark, self.trace.as_ref());
        let (fallback_host, own_host) = (upstream.name.as_str(), upstream.host.as_deref());
        let outgoing = |level| Outgoing {
            bytes,
            head,
            rewrite: rewrites.get(level),
            is_lighter: level + 1 < rewrites.len(),
            peer,
            settings,
            fallback_host,
            own_host,
            rules,
            mark,
            trace,
            places,
        };
        self.variants.begin(|out| outgoing(0).write(out));
        let may_fall_back = retry::may_fall_back(head.method.of(bytes), head);
        let above = rewrites.windows(2).take_while(|pair| may_fall_back && pair[0].falls_back).count();
        (1..=above).for_each(|level| self.variants.then(|out| outgoing(level).write(out)));
    }
}

fn rewrites(settings: &Settings, target: Target, level: u8) -> &[Rewrite] {
    let levels = settings.rewrites.get(usize::from(target.site));
    levels.and_then(|levels| levels.get(usize::from(level).saturating_sub(1)..)).unwrap_or_default()
}
