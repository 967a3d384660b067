//! Packets of the loopback interface and of a file, by libpcap.

use plimsoll_wire::{Capture, read_file};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Answers so many requests of each of two connections with 1,000 bytes in chunks.
fn serve(listener: &TcpListener, requests: usize) {
    thread::scope(|scope| {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("a connection");
            scope.spawn(move || {
                for _ in 0..requests {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).expect("a byte");
                        head.push(byte[0]);
                    }
                    let body = "x".repeat(1000);
                    write!(
                        stream,
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n{body}\r\n0\r\n\r\n"
                    )
                    .expect("it is sent");
                }
            });
        }
    });
}

#[test]
fn a_trickle_is_counted_as_the_server_counts_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let capture = Capture::start("lo", address.port(), 2);
    let capture = match capture {
        Ok(capture) => capture,
        // Without the right, what to do is said; the rest of this test needs it.
        Err(why) => return assert!(why.contains("CAP_NET_RAW"), "{why}"),
    };
    let requests = 50;
    thread::scope(|scope| {
        scope.spawn(|| serve(&listener, requests));
        for _ in 0..2 {
            scope.spawn(|| {
                let mut stream = TcpStream::connect(address).expect("a connection");
                let mut answer = [0; 2000];
                for _ in 0..requests {
                    stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").expect("it is sent");
                    let mut read = 0;
                    while !answer[..read].ends_with(b"\r\n0\r\n\r\n") {
                        read += stream.read(&mut answer[read..]).expect("an answer");
                    }
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
    });
    let (mut all, mut bytes, start) = (0, 0, Instant::now());
    while all < 2 * requests as u64 && start.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(50));
        let (seen, _) = capture.look().expect("it captures");
        (all, bytes) = (all + seen.requests, bytes + seen.bytes);
    }
    let chunks = 5 + 1000 + 2 + 5;
    assert_eq!((all, bytes, capture.lost()), (100, 100 * chunks, 0));
    assert_eq!(capture.look().map(|(_, in_service)| in_service), Some(0));
}

#[test]
fn an_interface_that_is_not_there_is_refused_with_what_to_do() {
    let refused = Capture::start("no-such-interface", 80, 1).map(drop);
    assert!(
        refused.as_ref().is_err_and(|why| why.contains("such as `eth0`") || why.contains("CAP_NET_RAW")),
        "{refused:?}"
    );
}

#[test]
fn a_file_of_packets_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("packets.pcap");
    // The file's head: its number, version 2.4, frames of up to 65,535 bytes, IP itself.
    let mut file: Vec<u8> = Vec::new();
    for number in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(number.to_le_bytes());
    }
    let (request, answer) =
        (&b"GET / HTTP/1.1\r\n\r\n"[..], &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"[..]);
    for (micros, (from, to), bytes) in [
        (100_000_u32, (4000_u16, 80_u16), request),
        (125_000, (80, 4000), answer),
        (126_000, (80, 4000), answer),
    ] {
        let mut packet = vec![0x45, 0];
        packet.extend(((40 + bytes.len()) as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        packet.extend(if from == 80 { [10, 0, 0, 2, 10, 0, 0, 1] } else { [10, 0, 0, 1, 10, 0, 0, 2] });
        packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        packet.extend([0, 0, 0, 7, 0, 0, 0, 0, 0x50, 0x18, 0, 0, 0, 0, 0, 0]);
        packet.extend(bytes);
        for number in [1_700_000_000, micros, packet.len() as u32, packet.len() as u32] {
            file.extend(number.to_le_bytes());
        }
        file.extend(packet);
    }
    std::fs::write(&path, &file).expect("it is written");
    let seen = read_file(&path, 80, 1).expect("it is read");
    assert_eq!((seen.requests, seen.bytes), (1, 2), "what was sent twice counts once");
    assert_eq!(seen.response, Duration::from_millis(25));
    std::fs::write(&path, "no packets").expect("it is written");
    assert!(read_file(&path, 80, 1).is_err_and(|why| why.contains("cannot read")));
}
