//! `libplimsoll_preload.so`: an unmodified server is controlled through its socket calls (UC 6.1, CA 4.2.1).
//!
//! ```text
//!   the server            calls ──> watch ──> connection (what a stream of bytes means)
//!   read, write, close ──┘  │         │  └──> decide ──> plimsoll_ffi::Server, the three calls
//!                           v         v
//!                     the C library  table (connections by descriptor), socket (peek, discard, answer)
//! ```
//!
//! The kernel keeps the bytes that have come. Before the server reads a request, this library peeks at the head in the kernel
//! (`MSG_PEEK`) and decides on it; then the server gets the bytes, with the level's prefix before the path. Bytes for which the
//! server's buffer has no room stay in the kernel, so that `epoll` and `FIONREAD` stay correct, and nothing needs to be kept
//! here. A rejection is sent on the socket, and the server never sees its request.
//!
//! Rules:
//! - Bytes that are not understood are passed on unchanged, and the connection is not looked at again.
//! - A call on a descriptor that is no watched connection costs one load. No lock is held while a call blocks. Each lock is
//!   tried only a bounded number of times, since a child may have been forked while another thread held it.
//! - No panic leaves a function of this library.
//!
//! - `calls`: the functions of the C library that are replaced; with `io_buffers` and `socket` the only unsafe code
//! - `io_buffers`: memory of the server
//! - `watch`: what each kind of call does besides the real function
//! - `connection`: the meaning of a connection's bytes, without its descriptor
//! - `answer_head`: the head of an answer as the client must see it
//! - `decide`: the shared state
//! - `table`, `socket`, `settings`, `tell`

mod answer_head;
// In the program of the unit tests the symbols would replace the C library's own.
#[cfg(not(test))]
pub mod calls;
mod connection;
mod decide;
mod io_buffers;
mod settings;
mod socket;
mod table;
mod tell;
mod watch;

pub use io_buffers::IoBuffers;
pub use watch::{
    Reads, accepted, before_read, before_write, closing, got, sent, sent_by_kernel, shut, start,
};
