//! Requests whose end the plant does not decide: bodies that stream, upgraded connections, and streams of events.
//!
//! Each plant has a bound of bodies that stream, which hold places, and one of upgraded connections and event streams, which
//! hold no places unless the operator says so. Both bounds leave room for other requests.

use super::Lane;
use super::start::places;
use crate::admission::stream_limits::most_streams;
use crate::promises::Tunnels;
use crate::request::{Permit, Service, Verdicts};
use crate::time::Instant;

impl Lane {
    /// Takes a right to stream for a request that has none.
    pub(super) fn take_stream(&self, permit: &mut Permit) -> bool {
        let plant = &self.published.plants[permit.plant()];
        let most = most_streams(places(&self.published, permit.plant()).1, plant.stream_share);
        permit.streams = plant.streams.enter(most);
        permit.streams
    }

    /// Whether a request in service, whose response turned out to be an upgraded connection or a stream of events, may stay
    /// open for as long as its client likes. If so, it counts as a tunnel until it departs, and gives its place back unless the
    /// plant's tunnels keep theirs.
    pub fn stay_open(&mut self, now: Instant, permit: &mut Permit, verdicts: &mut Verdicts) -> bool {
        if permit.tunnel {
            return true;
        }
        self.follow_permit(permit);
        let plant = &self.published.plants[permit.plant()];
        let Tunnels { most, keep_places } = plant.tunnel_terms;
        if !plant.tunnels.enter(most) {
            return false;
        }
        if keep_places && !permit.streams && !self.take_stream(permit) {
            plant.tunnels.leave();
            return false;
        }
        permit.tunnel = true;
        if !keep_places {
            self.release(now, permit, Service::default(), verdicts);
        }
        true
    }

    /// Gives the right to stream back, if the request holds one: the last byte of its body came.
    pub fn end_stream(&self, permit: &mut Permit) {
        if core::mem::take(&mut permit.streams) {
            self.published.plants[permit.plant()].streams.leave();
        }
    }
}
