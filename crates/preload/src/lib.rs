//! `libplimsoll_preload.so`: a server that nobody changes decides by its socket calls (UC 6.1, CA 4.2.1).
//!
//! ```text
//!   the server            calls ──> watch ──> connection (what a stream of bytes means)
//!   read, write, close ──┘  │         │  └──> decide ──> plimsoll_ffi::Server, the three calls
//!                           v         v
//!                     the C library  table (connections by descriptor), socket (peek, discard, answer)
//! ```
//!
//! The kernel keeps what has come. Before the server reads a request, its head is looked at where it lies (`MSG_PEEK`) and
//! decided on; then the server gets the bytes, with the level's prefix before the path. As much stays in the kernel as the
//! server's buffer has no room for, so that `epoll` or `FIONREAD` tell the server the truth, and nothing has to be held over
//! here. A rejection is answered on the socket, and the server never sees its request.
//!
//! Rules:
//! - Whatever is not understood is passed on as it came, and the connection is not looked at again.
//! - A call on a descriptor that is no watched connection costs one load. No lock is held while a call waits, and none is
//!   waited for without bound: a child may have been forked while another thread held it.
//! - No panic leaves a call.
//!
//! - `calls`: the functions of the C library that are stood in for; with `io_buffers` and `socket` the only unsafe code
//! - `io_buffers`: memory of the server
//! - `watch`: what each kind of call does
//! - `connection`: a connection, without descriptors
//! - `answer_head`: the head of an answer as the client must see it
//! - `decide`: the shared state
//! - `table`, `socket`, `settings`, `tell`

mod answer_head;
// The symbols would stand in for those of the program of tests.
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
