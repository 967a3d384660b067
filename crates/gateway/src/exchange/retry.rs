//! When a request is tried again, all cases; those of a connection that is refused are in `upstream/failover.rs`.
//!
//! | what happened | what follows | how often |
//! |---|---|---|
//! | a server does not accept a connection | another server ([`acquire`]) | at two others, within a budget |
//! | a kept connection ends before the response ([`is_worth_another_connection`]) | anew | once; if sent, within that budget |
//! | a server of HTTP/2 says on one that it has not looked at the request (`REFUSED_STREAM`, `GOAWAY`) | the same | once |
//! | 404 at a level that falls back ([`may_fall_back`]) | the head of the next level | each level once |
//!
//! Nothing else is tried again: not a request of which bytes were sent, unless its repetition does no harm or the server says
//! that it was not looked at, and the gateway still has all of it; not a response that is wrong (502) or late (504), and not
//! one of which the client has a byte. The request holds its one place at the upstream throughout, so that tries never exceed
//! what the engine has admitted.
//!
//! [`acquire`]: crate::upstream::failover

use super::moves::{End, Exchange};
use super::request::{HeaderVariants, RequestSide};
use crate::client::wire::Wire;
use crate::http1::body::Framing;
use crate::http1::request::RequestHead;
use crate::upstream::failover::ConnectOptions;
use crate::upstream::pool::Lease;
use plimsoll_core::request::Outcome;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Carries a request through its exchanges to its end, which is never [`End::Retry`] or [`End::Absent`].
pub(crate) async fn carry<'a, W: Wire>(exchange: &mut Exchange<'a, W>, variants: &'a HeaderVariants) -> End {
    let (mut fresh, mut variant) = (false, 0);
    loop {
        let lease = match connect(exchange, fresh).await {
            Ok(lease) => lease,
            Err(end) => return end,
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

/// Whether a request is sent again after its connection ended without any byte of a response. A server may close an idle
/// connection at any time, so that this is likely only on a connection that was kept; on a new one it is a failure. A server
/// that got the request may have worked on it until its worker was killed, so that repeating it counts as a retry.
pub(super) fn is_worth_another_connection(
    connection: &Lease,
    request: &RequestSide<'_>,
    may_retry: impl FnOnce() -> bool,
) -> bool {
    let is_unseen = !request.is_touched() || (request.is_bodiless && connection.io.was_refused());
    connection.reused && (is_unseen || (request.is_repeatable && may_retry()))
}

/// Whether sending the request twice does no harm (RFC 9110 9.2.2), and the gateway has all of it: there is no body.
pub(crate) fn is_repeatable(method: &[u8], head: &RequestHead) -> bool {
    head.framing == Framing::None && matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"DELETE")
}

/// Whether a request may be sent again at the next level: it has no body and only reads.
pub(crate) fn may_fall_back(method: &[u8], head: &RequestHead) -> bool {
    matches!(method, b"GET" | b"HEAD")
        && head.framing == Framing::None
        && !head.upgrade
        && !head.expects_continue
}

/// A connection to the upstream, which is most often an idle one and comes at once; or the end of a request that gets none.
async fn connect<W: Wire>(exchange: &mut Exchange<'_, W>, fresh: bool) -> Result<Lease, End> {
    let Exchange { worker, client, upstream, permit, .. } = exchange;
    if !fresh
        && upstream.is_lone()
        && let Some(lease) = upstream.pool.take_idle((worker.index, worker.coarse()), None)
    {
        return Ok(lease);
    }
    let connect_timeout = worker.tables().settings.timeouts.connect;
    let options = ConnectOptions { thread: worker.index, clock: worker.shared.clock, connect_timeout, fresh };
    let permit = &**permit;
    let mut acquiring = pin!(upstream.acquire(options, |server| permit.tried(&server.address)));
    poll_fn(|context| match acquiring.as_mut().poll(context) {
        Poll::Ready(Ok(lease)) => Poll::Ready(Ok(lease)),
        Poll::Ready(Err(error)) => {
            if error.is_refusal() {
                permit.refused();
            }
            Poll::Ready(Err(End::Failed(error.refusal())))
        }
        Poll::Pending => client.poll_left(context).map(|()| Err(End::Broken(Outcome::Abandoned))),
    })
    .await
}
