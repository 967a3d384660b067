//! What is decided of a connection when it comes, by its address alone: whether its client may have one more, and whether
//! each of its requests would be rejected.
//!
//! Behind a proxy that is believed the address is not the client's: such connections always pass. So do those of Unix sockets,
//! whose clients have none. Where the proxy's connection begins with a header of the PROXY protocol, the same is asked once
//! that has told the client's address.

use super::clients::TurnedAway;
use crate::client::response_fields::Requested;
use crate::request::answer::write_rejection;
use crate::request::entrance::Accepted;
use crate::request::peer::is_in;
use crate::runtime::worker::Worker;
use crate::settings::Settings;
use crate::transport::plain::DetachedSocket;
use std::net::IpAddr;

/// The connection, if it is to be served. `scratch` is for the answer to one that is not.
pub(super) fn admit(worker: &Worker, mut accepted: Accepted, scratch: &mut Vec<u8>) -> Option<Accepted> {
    let tables = worker.tables();
    let settings = &tables.settings;
    if !is_told_by_address(settings, &accepted) {
        return Some(accepted);
    }
    let clients = &worker.shared.clients;
    accepted.place = clients.enter(accepted.peer, settings.limits.connections_per_client).ok()?;
    if is_rejected(worker, accepted.peer, accepted.tls, scratch) {
        // The answer goes into the empty buffer of the socket at once; whether it arrives is not waited for.
        if !scratch.is_empty() {
            accepted.io.send_once(scratch);
        }
        return None;
    }
    Some(accepted)
}

/// Whether each request of a client would be rejected for the load. Then its connection counts as one, and `answer` is what
/// it is to be sent: nothing where it speaks TLS, since it could not read it.
pub(crate) fn is_rejected(worker: &Worker, client: IpAddr, tls: bool, answer: &mut Vec<u8>) -> bool {
    let tables = worker.tables();
    let settings = &tables.settings;
    if !settings.reject_at_accept || is_redirected(settings, tls) {
        return false;
    }
    let rejection = worker.lane.borrow_mut().reject_client(worker.now(), client);
    let Some(rejection) = rejection else { return false };
    worker.shared.clients.count(TurnedAway::Overload);
    answer.clear();
    if !tls {
        write_rejection(answer, settings, &worker.date.borrow(), rejection, Requested::default());
    }
    true
}

/// Whether the other end is the client itself.
fn is_told_by_address(settings: &Settings, accepted: &Accepted) -> bool {
    let peer = accepted.peer.to_canonical();
    matches!(accepted.io, DetachedSocket::Tcp(_))
        && !is_in(&settings.proxy_protocol, peer)
        && !is_in(&settings.trusted_proxies, peer)
}

/// Whether requests without TLS are redirected here, which is no arrival.
fn is_redirected(settings: &Settings, tls: bool) -> bool {
    !tls && settings.tls.as_ref().is_some_and(|tls| tls.redirect.is_some())
}
