//! What is decided of a connection when it comes, by its address alone: whether its client may have one more, and whether
//! each of its requests would be rejected.
//!
//! Behind a proxy that is believed the address is not the client's: such connections always pass. So do those of Unix sockets,
//! whose clients have none.

use super::clients::TurnedAway;
use crate::client::response_fields::Requested;
use crate::request::answer::write_rejection;
use crate::request::entrance::Accepted;
use crate::request::peer::is_in;
use crate::runtime::worker::Worker;
use crate::settings::Settings;
use crate::transport::plain::DetachedSocket;
use plimsoll_core::request::Rejection;

/// The connection, if it is to be served. `scratch` is for the answer to one that is not.
pub(super) fn admit(worker: &Worker, mut accepted: Accepted, scratch: &mut Vec<u8>) -> Option<Accepted> {
    let tables = worker.tables();
    let settings = &tables.settings;
    if !is_told_by_address(settings, &accepted) {
        return Some(accepted);
    }
    let clients = &worker.shared.clients;
    accepted.place = clients.enter(accepted.peer, settings.limits.connections_per_client).ok()?;
    if settings.reject_at_accept && !is_redirected(settings, &accepted) {
        let rejection = worker.lane.borrow_mut().reject_client(worker.now(), accepted.peer);
        if let Some(rejection) = rejection {
            clients.count(TurnedAway::Overload);
            reject(worker, settings, &accepted, rejection, scratch);
            return None;
        }
    }
    Some(accepted)
}

/// Whether the other end is the client itself.
fn is_told_by_address(settings: &Settings, accepted: &Accepted) -> bool {
    let peer = accepted.peer.to_canonical();
    matches!(accepted.io, DetachedSocket::Tcp(_))
        && !is_in(&settings.proxy_protocol, peer)
        && !is_in(&settings.trusted_proxies, peer)
}

/// Whether requests without TLS are redirected here, which is no arrival.
fn is_redirected(settings: &Settings, accepted: &Accepted) -> bool {
    !accepted.tls && settings.tls.as_ref().is_some_and(|tls| tls.redirect.is_some())
}

/// Answers a client without TLS, which has not been read, with the answer to a rejected request. A client with TLS could not
/// read it. The answer goes into the empty buffer of the socket at once; whether it arrives is not waited for.
fn reject(
    worker: &Worker,
    settings: &Settings,
    accepted: &Accepted,
    rejection: Rejection,
    scratch: &mut Vec<u8>,
) {
    if accepted.tls {
        return;
    }
    scratch.clear();
    write_rejection(scratch, settings, &worker.date.borrow(), rejection, Requested::default());
    accepted.io.send_once(scratch);
}
