//! The page as an SCGI server on a Unix socket, for nginx: `page-scgi SOCKET BACKLOG`.
//!
//! Its workers accept from one queue of `BACKLOG` connections, as those of an application server do. When the queue is
//! full, nginx's connect fails at once, and its client gets 502.

use nix::sys::socket::{Backlog, listen};
use plimsoll_e2e::page::{WORKERS, make};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::{env, io, thread};

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let wrong = || io::Error::other("usage: page-scgi SOCKET BACKLOG");
    let socket = arguments.next().ok_or_else(wrong)?;
    let backlog = arguments.next().and_then(|text| text.parse::<i32>().ok()).ok_or_else(wrong)?;
    let listener = UnixListener::bind(socket)?;
    // A second listen changes the length of the queue; the standard library fixes its own.
    listen(&listener, Backlog::new(backlog)?)?;
    println!("ready");
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                for connection in listener.incoming() {
                    // A client that left is no concern of the application.
                    drop(connection.and_then(answer));
                }
            });
        }
    });
    Ok(())
}

/// Reads the request's headers, a netstring of NUL-terminated names and values, and answers.
fn answer(connection: UnixStream) -> io::Result<()> {
    let mut reader = BufReader::new(&connection);
    let mut length = Vec::new();
    reader.read_until(b':', &mut length)?;
    let length = String::from_utf8_lossy(&length[..length.len().saturating_sub(1)]).parse().unwrap_or(0);
    let mut headers = vec![0; length];
    reader.read_exact(&mut headers)?;
    let mut words = headers.split(|byte| *byte == 0);
    let mut path = String::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        if name == b"REQUEST_URI" {
            path = String::from_utf8_lossy(value).into_owned();
        }
    }
    (&connection).write_all(&make(&path))
}
