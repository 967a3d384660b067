//! The page as an SCGI server on a Unix socket, for nginx: `page-scgi SOCKET BACKLOG`.
//!
//! With `WORKERS MEAN_US SLOW` behind them: so many workers, pages of exponential times with this mean, and twice as long while
//! the file SLOW is there.
//!
//! Its workers accept from one queue of `BACKLOG` connections, as those of an application server do. When the queue is
//! full, nginx's connect fails at once, and its client gets 502.

use nix::sys::socket::{Backlog, listen};
use plimsoll_e2e::page::{WORKERS, make, make_for};
use plimsoll_load::Random;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;
use std::{env, io, thread};

/// Pages whose times vary.
#[derive(Clone)]
struct Varied {
    mean: Duration,
    slow: PathBuf,
    random: Random,
}

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let wrong = || io::Error::other("usage: page-scgi SOCKET BACKLOG");
    let socket = arguments.next().ok_or_else(wrong)?;
    let backlog = arguments.next().and_then(|text| text.parse::<i32>().ok()).ok_or_else(wrong)?;
    let mut workers = WORKERS;
    let mut varied = None;
    if let Some(text) = arguments.next() {
        let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok()).ok_or_else(wrong);
        workers = number(Some(text))? as usize;
        let mean = Duration::from_micros(number(arguments.next())?);
        let slow = PathBuf::from(arguments.next().ok_or_else(wrong)?);
        varied = Some(Varied { mean, slow, random: Random::new(0) });
    }
    let listener = UnixListener::bind(socket)?;
    // A second listen changes the length of the queue; the standard library fixes its own.
    listen(&listener, Backlog::new(backlog)?)?;
    println!("ready");
    thread::scope(|scope| {
        for worker in 0..workers {
            let mut varied = varied.clone();
            if let Some(varied) = &mut varied {
                varied.random = Random::new(worker as u64 + 1);
            }
            let listener = &listener;
            scope.spawn(move || {
                for connection in listener.incoming() {
                    // A client that left is no concern of the application.
                    drop(connection.and_then(|connection| answer(connection, varied.as_mut())));
                }
            });
        }
    });
    Ok(())
}

/// Reads the request's headers, a netstring of NUL-terminated names and values, and answers.
fn answer(connection: UnixStream, varied: Option<&mut Varied>) -> io::Result<()> {
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
    let page = varied.map_or_else(
        || make(&path),
        |varied| {
            let slower = if varied.slow.exists() { 2.0 } else { 1.0 };
            make_for(Duration::from_secs_f64(slower * varied.random.exponential(varied.mean.as_secs_f64())))
        },
    );
    (&connection).write_all(&page)
}
