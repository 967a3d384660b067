//! The decision on a connection when it comes, by its address alone: whether its client may have one more, and whether each of
//! its requests would be rejected.
//!
//! Behind a proxy that is believed the address is not the client's: such connections always pass. So do those of Unix sockets,
//! whose clients have none. Where the proxy's connection begins with a header of the PROXY protocol, the same is asked once
//! that has given the client's address.

use super::answer::write_rejection;
use super::peer::is_in;
use crate::client::response_fields::Requested;
use crate::listen::accepted::Accepted;
use crate::listen::clients::TurnedAway;
use crate::settings::Settings;
use crate::transport::plain::DetachedSocket;
use crate::worker::Worker;
use std::net::IpAddr;
use std::time::Duration;

/// Returns the connection if it is to be served. `scratch` holds the answer to a connection that is not.
pub(crate) fn admit(worker: &Worker, mut accepted: Accepted, scratch: &mut Vec<u8>) -> Option<Accepted> {
    let tables = worker.tables();
    let settings = &tables.settings;
    if !is_known_by_address(settings, &accepted) {
        return Some(accepted);
    }
    let clients = &worker.shared.clients;
    accepted.place = clients.enter(accepted.peer, settings.limits.connections_per_client).ok()?;
    if let Some(wait) = rejected_for(worker, accepted.peer, accepted.tls, scratch) {
        if settings.kernel_shed {
            worker.shared.shed.note(accepted.peer, worker.after(wait));
        }
        // The answer goes into the socket's empty buffer at once; nobody waits until it arrives.
        if !scratch.is_empty() {
            accepted.io.send_last(scratch);
        }
        return None;
    }
    Some(accepted)
}

/// How long a client must stay away if each of its requests would be rejected for the load; `None` if that is not so. The
/// connection then counts as one request, and `answer` gets the bytes to send: none if the connection speaks TLS, since its
/// client could not read them.
pub(super) fn rejected_for(
    worker: &Worker,
    client: IpAddr,
    tls: bool,
    answer: &mut Vec<u8>,
) -> Option<Duration> {
    let tables = worker.tables();
    let settings = &tables.settings;
    if !settings.reject_at_accept || is_redirected(settings, tls) {
        return None;
    }
    let rejection = worker.lane.borrow_mut().reject_client(worker.now(), client)?;
    worker.shared.clients.count(TurnedAway::Overload);
    answer.clear();
    if !tls {
        write_rejection(answer, settings, &worker.date.borrow(), rejection, Requested::default());
    }
    Some(rejection.retry_after)
}

/// Whether the other end is the client itself.
fn is_known_by_address(settings: &Settings, accepted: &Accepted) -> bool {
    let peer = accepted.peer.to_canonical();
    matches!(accepted.io, DetachedSocket::Tcp(_))
        && !is_in(&settings.proxy_protocol, peer)
        && !is_in(&settings.trusted_proxies, peer)
}

/// Whether requests without TLS are redirected here; a redirected request does not arrive at the engine.
fn is_redirected(settings: &Settings, tls: bool) -> bool {
    !tls && settings.tls.as_ref().is_some_and(|tls| tls.redirect.is_some())
}
