//! Clients that make a gateway hold memory for them, in five ways, and a server whose pages they ask for.

use crate::{Plimsoll, serving};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn, setsockopt, sockopt};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// How long a head is, as close to the longest that is read as can be.
const HEAD: usize = 31_000;
/// How much of a body is sent before it stalls.
const BODY: usize = 35_000;
/// How large the page is that is asked for and not read.
const LARGE: usize = 400_000;
/// How many streams a client of HTTP/2 may have at once.
const STREAMS: u32 = 128;
/// How much a client's kernel takes of it.
const RECEIVED: usize = 4_096;

/// What a client does to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hostile {
    /// It sends a head without its end.
    UnfinishedHead,
    /// It announces one byte of a body, and does not send it.
    HeadWithoutByte,
    /// It sends a part of a body.
    StalledBody,
    /// It asks for a large page, and reads none of it.
    StandingReader,
    /// It asks for a page, reads it, and does nothing more.
    Idle,
    /// It speaks HTTP/2, and begins as many requests as it may, each of which lacks its body.
    Streams,
}

impl Hostile {
    /// All of HTTP/1.1.
    pub const ALL: [Hostile; 5] = [
        Hostile::UnfinishedHead,
        Hostile::HeadWithoutByte,
        Hostile::StalledBody,
        Hostile::StandingReader,
        Hostile::Idle,
    ];

    /// Connects and does it. The connection is what keeps it up.
    ///
    /// # Errors
    /// The gateway does not let it come so far.
    pub fn begin(self, gateway: SocketAddr) -> io::Result<TcpStream> {
        let mut stream = connect(gateway)?;
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        if self == Hostile::Streams {
            stream.write_all(&streams())?;
            return Ok(stream);
        }
        let (request, fields) = match self {
            Hostile::UnfinishedHead | Hostile::Idle | Hostile::Streams => ("GET /", ""),
            Hostile::HeadWithoutByte => ("POST /", "Content-Length: 1\r\n"),
            Hostile::StalledBody => ("POST /", "Content-Length: 1000000\r\n"),
            Hostile::StandingReader => ("GET /large", ""),
        };
        let mut bytes = format!("{request} HTTP/1.1\r\nHost: e2e.test\r\n{fields}Cookie: ").into_bytes();
        bytes.resize(HEAD, b'x');
        if self != Hostile::UnfinishedHead {
            bytes.extend_from_slice(b"\r\n\r\n");
        }
        if self == Hostile::StalledBody {
            bytes.resize(bytes.len() + BODY, b'x');
        }
        stream.write_all(&bytes)?;
        if self == Hostile::Idle && stream.read(&mut [0; 4096])? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(stream)
    }
}

/// The beginning of a connection of HTTP/2 that gives no window, and heads of requests on as many streams as there may be.
fn streams() -> Vec<u8> {
    /// `POST http://e2e.test/`, in fields that are told in full but for the names that HPACK knows.
    const FIELDS: &[u8] = b"\x83\x86\x84\x01\x08e2e.test";
    let frame = |kind, flags, stream: u32, payload: &[u8]| {
        let head = [0, 0, payload.len() as u8, kind, flags];
        [&head, &stream.to_be_bytes()[..], payload].concat()
    };
    let window = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let heads = (0..STREAMS).flat_map(|number| frame(1, 4, 2 * number + 1, FIELDS));
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".iter().copied().chain(window).chain(heads).collect()
}

/// A connection whose client's kernel takes little.
///
/// # Errors
/// There is no connection.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let SocketAddr::V4(address) = address else { return Err(io::ErrorKind::Unsupported.into()) };
    let stream = socket::socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&stream, sockopt::RcvBuf, &RECEIVED)?;
    socket::connect(stream.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(*address.ip(), address.port())))?;
    Ok(stream.into())
}

/// Lets this process, and those that it starts, open as many files as the system lets it.
///
/// # Panics
/// The system does not say how many.
pub fn open_many_files() -> u64 {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit of descriptors");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("more descriptors");
    most
}

/// The memory that a gateway has now, in bytes.
///
/// # Panics
/// It is gone.
pub fn resident(gateway: &Plimsoll) -> u64 {
    memory(gateway, "VmRSS:")
}

/// The most memory that it ever had at once, in bytes.
///
/// # Panics
/// It is gone.
pub fn peak(gateway: &Plimsoll) -> u64 {
    memory(gateway, "VmHWM:")
}

fn memory(gateway: &Plimsoll, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.process.pid())).expect("its memory");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    let kib: u64 = line.trim_end_matches("kB").trim().parse().expect("a number");
    kib * 1024
}

/// Starts a server of some workers, which answers `/large` with a large page and every other path with `page`.
///
/// # Panics
/// There is no port for it.
pub fn server(workers: usize) -> SocketAddr {
    let large = vec![b'x'; LARGE];
    serving(workers, move |stream| serve(stream, &large))
}

fn serve(stream: TcpStream, large: &[u8]) -> io::Result<()> {
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let body = if line.starts_with(b"GET /large ") { large } else { b"page" };
        while line != b"\r\n" {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
        }
        line.clear();
        write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())?;
        writer.write_all(body)?;
    }
    Ok(())
}
