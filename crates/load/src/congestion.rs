//! Congestion control for loopback.
//!
//! Where the machine's default is BBR, every socket paces its segments by a kernel timer, also over loopback: that is
//! processor time and delay which belong to no web server. Reno is in every kernel and allowed to everyone.

use nix::sys::socket::{setsockopt, sockopt};
use std::os::fd::AsFd;

/// Gives `socket` (and what a listening socket accepts) Reno; where that is refused, it keeps the default.
pub(crate) fn plain_congestion_control(socket: &impl AsFd) {
    let _ = setsockopt(socket, sockopt::TcpCongestion, &"reno".into());
}
