//! A gateway that may open few files works, or ends with a sentence that says how many it needs.

use nix::sys::signal::Signal;
use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Folder, Process, binary, exchange, get, serving_each};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A server that answers every request with a page, one connection at a time each on a thread.
fn pages() -> SocketAddr {
    serving_each(|mut stream| -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            if line == "\r\n" {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage")?;
            }
            line.clear();
        }
        Ok(())
    })
}

/// The address after `label`, once the line is complete.
fn address(log: &str, label: &str) -> Option<SocketAddr> {
    log.lines().find_map(|line| line.split_once(label)?.1.parse().ok())
}

#[test]
fn with_any_few_descriptors_it_works_or_says_what_it_needs() {
    let folder = Folder::new();
    let file = folder.write("few.toml", before(pages(), &plain()));
    let (mut refused, mut served) = (0, 0);
    for limit in 8..=32 {
        let script = format!("ulimit -n {limit}; exec \"$0\" run \"$1\"");
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(binary()).arg(&file);
        let mut gateway =
            Process::spawn("plimsoll", &mut command, &folder.path().join(format!("log-{limit}")));
        let start = Instant::now();
        let listening = loop {
            let (ended, log) = (gateway.ended(), gateway.log());
            if let (Some(clients), Some(admin)) = (address(&log, "listening on "), address(&log, "admin on "))
            {
                break Some((clients, admin));
            }
            if let Some(status) = ended {
                assert_eq!(status.code(), Some(1), "{limit}: {log}");
                assert!(log.contains(&format!("may open {limit} files, and needs ")), "{limit}: {log}");
                break None;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{limit}: {log}");
            thread::sleep(Duration::from_millis(5));
        };
        let Some((clients, admin)) = listening else {
            refused += 1;
            continue;
        };
        served += 1;
        // More clients than there may be at once: those beyond wait for their turn.
        let asking = [0; 12].map(|_| thread::spawn(move || get(clients, "/page")));
        for answer in asking.map(|one| one.join().expect("an answer")) {
            assert_eq!((answer.status, answer.text().as_str()), (200, "page"), "{limit}: {}", gateway.log());
        }
        let status = exchange(admin, "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert_eq!(status.status, 200, "{limit}");
        gateway.signal(Signal::SIGTERM);
        assert_eq!(gateway.wait().code(), Some(0), "{limit}: {}", gateway.log());
    }
    assert!(refused > 0 && served > 0, "{refused} refused, {served} served");
}
