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
//! The sockets go over a Unix socket that the new process has as its standard input ([`passing`]): no file, no name that
//! another user could take, no descriptor numbers to agree on. If the new process ends before it is ready, or takes too long,
//! the old one says so and goes on as if nothing had been asked. A connection is accepted by either process meanwhile.
//!
//! systemd hands sockets over in its own way, which [`Start::find`] knows too.

mod hand_over;
mod passing;
mod take_over;

pub(crate) use hand_over::Upgrade;
pub(crate) use take_over::Start;

/// The variable that says to a process which one has started it to hand over: the number of that process.
const PREDECESSOR: &str = "PLIMSOLL_TAKES_OVER_FROM";
/// What the new process writes once it serves.
const READY: &[u8] = b"ready\n";
