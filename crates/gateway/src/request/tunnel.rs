//! An upgraded connection: bytes both ways until both sides are done.
//!
//! The place at the plant was given back at the switch, unless the upstream's tunnels keep theirs. Bytes to the client
//! count either way.

use crate::accounting::permit_guard::PermitGuard;
use crate::client::awaited_clients::AwaitedClient;
use crate::client::buffers::{self, Buffer};
use crate::client::inbox::Inbox;
use crate::client::outbox::Bytes;
use crate::client::socket::Client;
use crate::client::wire::Wire;
use crate::transport::socket::Socket;
use crate::worker::Worker;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Open,
    /// The source has ended; bytes that were already read are still delivered.
    Ended,
    Closed,
}

struct Tunnel<'a, W> {
    client: &'a mut Client<W>,
    server: Socket,
    from_server: Inbox,
    permit: &'a PermitGuard,
    up: Flow,
    down: Flow,
    /// The client's place among the clients that are waited for.
    awaited: AwaitedClient,
}

/// Copies until both directions have ended, one direction fails, or nothing moves for too long.
pub(crate) async fn run<W: Wire>(
    worker: &Rc<Worker>,
    client: &mut Client<W>,
    server: Socket,
    rest: Option<(Buffer, usize, usize)>,
    permit: &PermitGuard,
) {
    if let Some((buffer, start, end)) = rest {
        client.outbox.push(Bytes::Pooled(buffer), start..end, 0);
    }
    let timeout = worker.tables().settings.timeouts.tunnel_idle;
    let from_server = Inbox::default();
    let (awaited, up, down) = (AwaitedClient::default(), Flow::Open, Flow::Open);
    let mut tunnel = Tunnel { client, server, from_server, permit, up, down, awaited };
    tunnel.client.slot.arm(Some(worker.after(timeout)));
    poll_fn(|context| {
        loop {
            let mut moved = false;
            // The direction to the client goes first: a stream of HTTP/2 becomes a tunnel with the head of its response, and
            // brings plain bytes only then.
            if tunnel.down(context, &mut moved).is_err() || tunnel.up(context, &mut moved).is_err() {
                return Poll::Ready(());
            }
            if tunnel.up == Flow::Closed && tunnel.down == Flow::Closed {
                return Poll::Ready(());
            }
            // The drain does not wait for a tunnel, which need not end.
            if worker.is_draining() {
                return Poll::Ready(());
            }
            if moved {
                tunnel.awaited.end();
                tunnel.client.slot.arm(Some(worker.after(timeout)));
            } else if tunnel.client.slot.expired() {
                return Poll::Ready(());
            } else {
                tunnel.stand(worker);
                return Poll::Pending;
            }
        }
    })
    .await;
}

impl<W: Wire> Tunnel<'_, W> {
    /// Counts the memory of bytes that wait for either side; most tunnels hold none.
    fn stand(&mut self, worker: &Worker) {
        if buffers::exceed(worker.buffer_memory()) {
            self.client.pack();
            self.from_server.pack();
        }
        let held = self.client.inbox.held() + self.client.outbox.held() + self.from_server.held();
        if held > 0 {
            self.awaited.hold(&worker.slow, &self.client.slot, held, worker.standing_memory());
        }
    }

    fn up(&mut self, context: &mut Context<'_>, moved: &mut bool) -> std::io::Result<()> {
        let Client { io, inbox, .. } = &mut *self.client;
        copy(inbox, io, &mut self.server, &mut self.up, context).map(|count| *moved |= count.is_some())
    }

    fn down(&mut self, context: &mut Context<'_>, moved: &mut bool) -> std::io::Result<()> {
        if let Poll::Ready(written) = self.client.poll_write(context) {
            let written = written?;
            self.permit.sent(written.body);
            *moved |= written.bytes > 0;
        }
        if !self.client.outbox.is_empty() {
            return Ok(());
        }
        let io = &mut self.client.io;
        let count = copy(&mut self.from_server, &mut self.server, io, &mut self.down, context)?;
        *moved |= count.is_some();
        self.permit.sent(count.unwrap_or(0));
        Ok(())
    }
}

/// Reads once and writes once, as far as both are possible. Returns the number of bytes written if anything moved.
fn copy(
    inbox: &mut Inbox,
    from: &mut impl Wire,
    to: &mut impl Wire,
    flow: &mut Flow,
    context: &mut Context<'_>,
) -> std::io::Result<Option<u64>> {
    let (mut moved, mut written) = (false, 0);
    if *flow == Flow::Open
        && inbox.has_room()
        && let Poll::Ready(count) = from.poll_fill(inbox, context, true)
    {
        moved = true;
        if count? == 0 {
            *flow = Flow::Ended;
        }
    }
    if !inbox.is_empty()
        && let Poll::Ready(count) = to.poll_send(inbox.bytes(), context)
    {
        moved = true;
        written = count?;
        inbox.consume(written);
    }
    if *flow == Flow::Ended && inbox.is_empty() && to.poll_end(context).is_ready() {
        moved = true;
        *flow = Flow::Closed;
    }
    Ok(moved.then_some(written as u64))
}
