//! A request's exchanges, until one has an end: again where a kept connection turns out to be dead, and with the next
//! level's head where the upstream has nothing at one level. The request holds its place at the upstream throughout.

use super::exchange::{End, Exchange};
use super::header_variants::HeaderVariants;
use super::pool::{ConnectOptions, Lease, Upstream};
use crate::http1::Refusal;
use crate::request::client::Client;
use crate::runtime::worker::Worker;
use plimsoll_core::request::Outcome;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// Carries a request to its end, never [`End::Retry`] or [`End::Absent`].
pub(crate) async fn carry<'a>(exchange: &mut Exchange<'a>, variants: &'a HeaderVariants) -> End {
    let (mut fresh, mut variant) = (false, 0);
    loop {
        let lease = match connect(exchange.worker, exchange.client, exchange.pool, fresh).await {
            Ok(lease) => lease,
            Err(NotConnected::ClientLeft) => return End::Broken(Outcome::Abandoned),
            Err(NotConnected::Refused(refusal)) => return End::Failed(refusal),
        };
        if let Err(refusal) = exchange.attach(lease) {
            return End::Failed(refusal);
        }
        match poll_fn(|context| exchange.poll(context)).await {
            End::Retry => fresh = true,
            End::Absent => {
                (fresh, variant) = (false, variant + 1);
                exchange.request.replace_head(variants.get(variant).unwrap_or_default());
                exchange.response.begin_again(variants.get(variant + 1).is_some());
            }
            end => return end,
        }
    }
}

/// Why a request has no connection.
enum NotConnected {
    ClientLeft,
    Refused(Refusal),
}

/// A connection to the upstream: most often an idle one, at once.
async fn connect(
    worker: &Worker,
    client: &mut Client,
    pool: &Arc<Upstream>,
    fresh: bool,
) -> Result<Lease, NotConnected> {
    if !fresh && let Some(lease) = pool.take_idle(worker.index) {
        return Ok(lease);
    }
    let connect_timeout = worker.tables().settings.timeouts.connect;
    let options = ConnectOptions { thread: worker.index, clock: worker.shared.clock, connect_timeout, fresh };
    let mut acquiring = pin!(pool.acquire(options));
    poll_fn(|context| match acquiring.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(result.map_err(|error| NotConnected::Refused(error.refusal()))),
        Poll::Pending => client.poll_left(context).map(|()| Err(NotConnected::ClientLeft)),
    })
    .await
}
