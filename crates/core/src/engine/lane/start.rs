//! What is accounted when a request starts, and the busy time in the interval that a change of the gate ends.

use crate::engine::published_state::{PublishedPlant, PublishedState};
use crate::promises::Mode;
use crate::request::{Permit, Reason, Stage};
use crate::scheduling::gate::{GateChange, MOST_IN_SERVICE};
use crate::scheduling::rank::Standing;
use crate::telemetry::counters::{LaneCounters, PlantCounters, load_bin};
use crate::time::Instant;

/// A start, after its change of the gate has succeeded.
pub(super) struct Start {
    pub(super) now: Instant,
    /// The level that was decided, whatever the mode.
    pub(super) decided: u8,
    pub(super) change: GateChange,
}

/// The most requests in service at once, and the number of places of which exempt requests and streams may hold a share.
/// Without control both are the largest count of the gate.
pub(super) fn places(published: &PublishedState, plant: usize) -> (u32, u32) {
    let capacity = &published.plants[plant].capacity;
    if published.mode == Mode::Control {
        (capacity.limit(), capacity.shared())
    } else {
        (MOST_IN_SERVICE, MOST_IN_SERVICE)
    }
}

/// Accounts the start of a request.
pub(super) fn start(published: &PublishedState, counters: &LaneCounters, permit: &mut Permit, start: Start) {
    permit.stage = Stage::InService;
    permit.started = start.now;
    permit.in_service_at_start = start.change.after;
    let plant = &published.plants[permit.plant()];
    account_busy_time(plant, &counters.plants[permit.plant()], start.change);
    if let Some(work) = &mut permit.work {
        if start.change.after > plant.capacity.workers() {
            work.queued_us = plant.unfinished.queued_us(work, &plant.workers(Some(start.now)));
        }
        plant.unfinished.start(start.now, work);
    }
    if permit.reason == Reason::Exempt {
        plant.gate.enter_exempt();
    }
    if permit.has_quota
        && let Some(quota) = &published.classes[usize::from(permit.class)].quota
    {
        quota.enter();
    }
    let class = &counters.classes[usize::from(permit.class)];
    class.served[usize::from(start.decided)].add(1);
    class.reasons[permit.reason as usize].add(1);
    class.started.add(1);
    class.queue_delay_ns.add(start.now.nanos_since(permit.arrived));
}

/// Accounts the interval that a change of the gate ended: min(in service, s) workers were busy in it.
pub(in crate::engine) fn account_busy_time(
    plant: &PublishedPlant,
    counters: &PlantCounters,
    change: GateChange,
) {
    let capacity = &plant.capacity;
    let busy_servers = u64::from(change.before.min(capacity.workers()));
    counters.busy_ns.add(busy_servers * change.elapsed_ns);
    if capacity.is_searched && change.before > 0 {
        counters.by_load.time_ns[load_bin(change.before)].add(change.elapsed_ns);
    }
}

/// The reason that goes with the decided level.
pub(super) fn reason(decided: u8, top_level: u8, standing: Standing) -> Reason {
    match decided {
        _ if standing == Standing::Exempt => Reason::Exempt,
        0 => Reason::Overload,
        level if level < top_level => Reason::Degraded,
        _ if standing == Standing::Guaranteed => Reason::Guaranteed,
        _ => Reason::Full,
    }
}
