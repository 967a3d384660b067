//! A page of a [`ServerModel`], as a CGI program for Apache or as an SCGI server for nginx.
//!
//! Without arguments the program is one CGI process: the variable `MODEL` holds the model, and the page is light if the program
//! lies in a folder `light` or was asked for under [`LIGHT_TREE`]. `page SOCKET MODEL SLOW` serves SCGI on a Unix socket: as
//! many workers as the model has accept from one queue, and while the file SLOW exists a page takes twice as long. When the
//! queue is full, nginx's connect fails at once, and its client gets 502. A path that ends in `/16K` is a page of 16 KiB,
//! and not of the model's own size.

use nix::sys::socket::{Backlog, listen};
use plimsoll_e2e::{LIGHT_PART, LIGHT_TREE, ServerModel};
use plimsoll_load::Random;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::{env, io, thread};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let wrong =
        || io::Error::other("usage: page SOCKET MODEL SLOW, or without arguments MODEL in the environment");
    let read =
        |text: Option<&String>| text.and_then(|text| ServerModel::from_argument(text)).ok_or_else(wrong);
    let [socket, model, slow] = &arguments[..] else {
        let model = read(env::var("MODEL").ok().as_ref())?;
        let program = env::current_exe()?;
        let is_light = program.parent().is_some_and(|folder| folder.ends_with("light"))
            || env::var("SCRIPT_NAME").is_ok_and(|name| name.starts_with(LIGHT_TREE));
        return io::stdout().write_all(&page(&model, is_light, 1.0));
    };
    let model = read(Some(model))?;
    let listener = UnixListener::bind(socket)?;
    // A second listen changes the length of the queue, which the standard library fixes.
    listen(&listener, Backlog::new(model.queue.cast_signed())?)?;
    println!("ready");
    thread::scope(|scope| {
        for worker in 0..model.workers {
            let (listener, slow) = (&listener, Path::new(slow));
            let mut random = Random::new(u64::from(worker) + 1);
            scope.spawn(move || {
                for connection in listener.incoming() {
                    let slower = if slow.exists() { 2.0 } else { 1.0 };
                    let times = slower * if model.exponential { random.exponential(1.0) } else { 1.0 };
                    // A client that has left is no concern of the application.
                    drop(connection.and_then(|connection| answer(connection, &model, times)));
                }
            });
        }
    });
    Ok(())
}

/// Reads the request's headers, a netstring of NUL-terminated names and values, and answers.
fn answer(mut connection: UnixStream, model: &ServerModel, times: f64) -> io::Result<()> {
    let mut reader = BufReader::new(&connection);
    let mut length = Vec::new();
    reader.read_until(b':', &mut length)?;
    let length = String::from_utf8_lossy(&length[..length.len().saturating_sub(1)]).parse().unwrap_or(0);
    let mut headers = vec![0; length];
    reader.read_exact(&mut headers)?;
    let mut words = headers.split(|byte| *byte == 0);
    let (mut is_light, mut model) = (false, *model);
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        // A server that decides itself has changed the path, which then is not the one that was sent.
        let is_path = name == b"REQUEST_URI" || name == b"SCRIPT_NAME";
        is_light |= is_path && value.starts_with(LIGHT_TREE.as_bytes());
        if let Some(kib) = size(value).filter(|_| is_path) {
            model.kib = kib;
        }
    }
    connection.write_all(&page(&model, is_light, times))
}

/// The size at the end of a path (KiB).
fn size(path: &[u8]) -> Option<usize> {
    std::str::from_utf8(path).ok()?.rsplit_once('/')?.1.strip_suffix('K')?.parse().ok()
}

/// Takes a page's time, and returns its CGI response.
fn page(model: &ServerModel, is_light: bool, times: f64) -> Vec<u8> {
    let bytes = model.bytes() / if is_light { LIGHT_PART } else { 1 };
    thread::sleep(model.time(bytes).mul_f64(times));
    let text = if is_light { "<p>light</p>\n" } else { "<p>full</p>\n" };
    let mut page = format!("Content-Type: text/html\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
    page.extend(text.bytes().cycle().take(bytes));
    page
}
