//! The simulator's models of other products beside the products themselves. What they do is judged here by what no busy machine
//! changes; the models are judged in virtual time, by the unit tests of `crates/sim/src/front/products`.

use plimsoll_e2e::{Folder, Nginx, Process, free_port, get, program};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The model lets one and the burst pass at once, and then as many as the rate says.
#[test]
fn nginx_lets_one_and_the_burst_pass() {
    let folder = Folder::new();
    let page = folder.write("index.html", "hello");
    let root = page.parent().unwrap_or_else(|| panic!("{} has no folder", page.display()));
    let zone = "limit_req_zone $server_name zone=all:1m rate=1r/s;";
    // A request whose key is empty is not counted, so the server needs a name.
    let server = "server_name e2e.test;\nlimit_req zone=all burst=5 nodelay;";
    let nginx = Nginx::logging(root, None, (zone, server));
    let start = Instant::now();
    let answers: Vec<u16> = (0..20).map(|_| get(nginx.address, "/index.html").status).collect();
    let seconds = start.elapsed().as_secs_f64();
    let passed = answers.iter().filter(|status| **status == 200).count();
    println!("nginx: {passed} of 20 in {seconds:.2} s; the model: 6 at once");
    assert!(answers.iter().all(|status| [200, 503].contains(status)), "{answers:?}");
    assert!(passed >= 6 && passed as f64 <= 7.0 + seconds, "{passed} in {seconds} s");
}

/// An origin that tells of each path, and answers one request when it is told to.
fn origin() -> (SocketAddr, Receiver<String>, std::sync::mpsc::Sender<()>) {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap_or_else(|error| panic!("no origin: {error}"));
    let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
    let ((came, paths), (go, gone)) = (channel(), channel::<()>());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|length| length > 2) {}
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            if came.send(path).is_err() || gone.recv().is_err() {
                return;
            }
            drop(
                reader
                    .get_mut()
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            );
        }
    });
    (address, paths, go)
}

/// The model turns away what comes while as many as the limit are there, at once, and nothing afterwards.
#[test]
fn nginx_turns_away_what_comes_beside_its_limit_of_connections() {
    let (origin, paths, go) = origin();
    let folder = Folder::new();
    let zone = "limit_conn_zone $server_name zone=all:1m;";
    let server =
        format!("server_name e2e.test;\nlimit_conn all 1;\nlocation / {{ proxy_pass http://{origin}; }}");
    let nginx = Nginx::logging(folder.path(), None, (zone, &server));
    let address = nginx.address;
    let get = |path: &str| get(address, path).status;
    thread::scope(|scope| {
        let first = scope.spawn(|| get("/first"));
        assert_eq!(paths.recv().as_deref(), Ok("/first"));
        assert_eq!([get("/second"), get("/third")], [503, 503], "the limit is one");
        let _ = go.send(());
        assert_eq!(first.join().ok(), Some(200));
        let _ = go.send(());
        // nginx counts a connection until the request is logged, which its client does not see.
        let start = Instant::now();
        while get("/fourth") != 200 {
            assert!(start.elapsed() < Duration::from_secs(60), "the place is never free");
        }
    });
}

/// How many wait before HAProxy's server, by its own statistics.
fn waiting(proxy: SocketAddr) -> usize {
    let page = get(proxy, "/statistics;csv").text();
    // Those that have a server already are in its row, the others in that of all servers.
    let rows = page.lines().filter(|line| line.starts_with("all,"));
    let queued: Vec<usize> = rows.filter_map(|row| row.split(',').nth(2)?.parse().ok()).collect();
    assert_eq!(queued.len(), 2, "no statistics in\n{page}");
    queued.iter().sum()
}

/// The model serves the lower priority class first, and of one class the request that came first.
#[test]
fn haproxy_serves_its_queue_by_priority() {
    let (origin, paths, go) = origin();
    let (folder, port) = (Folder::new(), free_port());
    let configuration = folder.write(
        "haproxy.cfg",
        format!(
            "defaults\nmode http\ntimeout client 60s\ntimeout server 60s\ntimeout connect 5s\ntimeout queue 60s\n\
             frontend in\nbind 127.0.0.1:{port}\nstats enable\nstats uri /statistics\ndefault_backend all\n\
             backend all\nhttp-request set-priority-class int(1) if {{ path_beg /high }}\n\
             http-request set-priority-class int(2) if {{ path_beg /low }}\nserver one {origin} maxconn 1\n"
        ),
    );
    let mut command = Command::new(program("haproxy"));
    command.arg("-db").arg("-f").arg(configuration);
    let _proxy = Process::spawn("haproxy", &mut command, &folder.path().join("haproxy.log"));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let until = |what: &str, is: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !is() {
            assert!(start.elapsed() < Duration::from_secs(60), "{what} never comes");
            thread::sleep(Duration::from_millis(10));
        }
    };
    until("HAProxy", &|| std::net::TcpStream::connect(address).is_ok());
    thread::scope(|scope| {
        let mut seen = Vec::new();
        for (number, path) in ["/first", "/low1", "/low2", "/high"].into_iter().enumerate() {
            scope.spawn(move || assert_eq!(get(address, path).status, 200, "{path}"));
            if number == 0 {
                seen.extend(paths.recv());
            } else {
                until(path, &|| waiting(address) == number);
            }
        }
        for _ in 0..3 {
            let _ = go.send(());
            seen.extend(paths.recv());
        }
        let _ = go.send(());
        println!("HAProxy serves {seen:?}");
        assert_eq!(seen, ["/first", "/high", "/low1", "/low2"]);
    });
}
