//! The gateway's tests on loopback, in one program: built once, they share their helpers and all cores of the machine.
//!
//! One file alone: `cargo test -p plimsoll-gateway --test loopback http2::`. `descriptors.rs`, `idle.rs` and `waiting.rs` judge
//! their own process, its open files or its memory, so each is a program of its own.

mod abandoned;
mod accept;
mod access_log;
mod buffers;
mod clients;
mod corpus;
mod faults;
mod floods;
mod http1;
mod http2;
mod http2_upstreams;
mod kernel_shed;
mod levels;
mod loops;
mod proxy;
mod readdress;
mod reload;
mod servers;
mod stopped;
mod support;
mod tls_records;
mod traces;
mod websockets;
