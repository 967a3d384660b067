//! The client behind a connection that a trusted proxy has made, by the header of the PROXY protocol before its first bytes.
//!
//! The header is no request. It has the time limit of a request's head, and holds no memory while it comes.

use super::entrance::SlotGuard;
use crate::transport::plain::PlainSocket;
use crate::transport::proxy_header::{Header, LONGEST};
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Reads the header, and returns the address of the client, or the proxy's own; `None` if none came.
pub(super) async fn source(guard: &SlotGuard, io: &mut PlainSocket, proxy: IpAddr) -> Option<IpAddr> {
    let (worker, slot) = (&guard.worker, &guard.slot);
    slot.idle_from(worker.coarse());
    slot.arm(Some(worker.after(worker.tables().settings.timeouts.head)));
    let mut before = Vec::new();
    let header = poll_fn(|context| match poll_header(io, &mut before, context) {
        Poll::Ready(header) => Poll::Ready(header.ok()),
        Poll::Pending if slot.expired() || worker.ends_idle() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await;
    slot.arm(None);
    header.map(|source| source.unwrap_or(proxy))
}

/// Takes the header's bytes and none behind them, since a handshake may follow.
fn poll_header(
    io: &mut PlainSocket,
    before: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<IpAddr>>> {
    loop {
        let mut seen = [0; LONGEST];
        let length = before.len();
        seen[..length].copy_from_slice(before);
        let count = ready!(io.poll_peek(context, &mut seen[length..]))?;
        let (taken, whole) = match Header::read(&seen[..length + count]) {
            Header::Begun(taken) if count > 0 && taken < LONGEST => (taken, None),
            Header::Whole(taken, source) => (taken, Some(source)),
            _ => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
        };
        let mut gone = [0; LONGEST];
        let mut gone = ReadBuf::new(&mut gone[..taken - length]);
        ready!(Pin::new(&mut *io).poll_read(context, &mut gone))?;
        if gone.remaining() > 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        if let Some(source) = whole {
            return Poll::Ready(Ok(source));
        }
        before.extend_from_slice(&seen[length..taken]);
    }
}
