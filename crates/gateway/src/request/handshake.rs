//! The handshake of a connection that speaks TLS.
//!
//! A client that does not finish its handshake is treated like one that does not finish a request's head: it has the same time,
//! and counts with such clients for the memory that it holds. Until its first byte its connection is idle, and may be ended to
//! make room for another.

use super::entrance::SlotGuard;
use crate::client::awaited_clients::AwaitedClient;
use crate::transport::plain::PlainSocket;
use crate::transport::protocol::Protocol;
use crate::transport::tls::certificate::client_name;
use crate::transport::tls::reason;
use crate::transport::tls::session::TlsSocket;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Poll;

/// The approximate memory of an unfinished handshake besides the bytes that came.
const UNFINISHED: usize = 6 * 1024;

/// The result of a handshake.
pub(super) struct Agreed {
    pub io: Box<TlsSocket>,
    pub protocol: Protocol,
    /// The name in the client's certificate, which was verified.
    pub certificate: Option<Rc<str>>,
}

/// Carries a client's handshake to its end; `None` if it fails.
pub(super) async fn agree(guard: &SlotGuard, io: PlainSocket, client: IpAddr) -> Option<Agreed> {
    let (worker, slot) = (&guard.worker, &guard.slot);
    let server = &worker.shared.tls;
    let mut io = TlsSocket::accept(io, server.current()?).ok()?;
    slot.idle_from(worker.coarse());
    slot.arm(Some(worker.after(worker.tables().settings.timeouts.head)));
    let mut awaited = AwaitedClient::default();
    let agreed = poll_fn(|context| match io.poll_handshake(context) {
        Poll::Ready(result) => Poll::Ready(result),
        Poll::Pending if slot.expired() || worker.ends_idle() => {
            Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
        }
        Poll::Pending => {
            if io.received() > 0 {
                slot.busy();
                awaited.hold(&worker.heads, slot, UNFINISHED + io.received(), worker.head_memory());
            }
            Poll::Pending
        }
    })
    .await;
    slot.arm(None);
    if let Err(error) = agreed {
        // If no byte has come, the client has not begun a handshake.
        if io.received() > 0 {
            server.handshakes.count(None);
            let why = reason::of_handshake(&error);
            tracing::debug!(%client, "a TLS handshake with {client} failed: {why}");
        }
        return None;
    }
    server.handshakes.count(io.kind());
    let certificate = io.peer_certificate().and_then(client_name).map(Rc::from);
    Some(Agreed { protocol: io.protocol(), certificate, io })
}
