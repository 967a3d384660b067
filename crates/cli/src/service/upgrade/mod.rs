//! An upgrade without a lost request: on SIGUSR2 the gateway starts its own program again, hands it the sockets that listen,
//! and ends once the new process serves.
//!
//! ```text
//! old                                        new
//! SIGUSR2: start the program again  ──────>  reads its configuration
//! sockets and what was learned      ──────>  accepts from the same sockets
//! stops accepting, drains, ends     <──────  "ready"
//! ```
//!
//! The sockets go over a Unix socket that is the new process's standard input ([`passing`]). So there is no file, no name that
//! another user could take, and no descriptor numbers to agree on. If the new process ends before it is ready, or takes too
//! long, the old one logs it and goes on. Until then either process may accept a connection.
//!
//! [`Start::find`] also takes sockets that systemd hands over in its own way.

mod hand_over;
mod passing;
mod take_over;

pub(crate) use hand_over::Upgrade;
pub(crate) use take_over::Start;

/// The variable that tells a new process the id of the process that started it to take over.
const PREDECESSOR: &str = "PLIMSOLL_TAKES_OVER_FROM";
/// What the new process writes when it serves.
const READY: &[u8] = b"ready\n";
