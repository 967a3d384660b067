//! Inside the server: the C library by its example, and Apache with mod_plimsoll, whose processes share one controller.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_e2e::{
    Accounts, Apache, Control, Folder, Response, free_port, get, get_from, module, open_to_all, program,
};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Every host, with a light tree, on a server of four processes.
pub(crate) fn configuration() -> String {
    "[gateway]\nlisten = \"127.0.0.1:0\"\nseed = 7\n\
     [upstream.server]\naddress = \"127.0.0.1:1\"\n[upstream.server.capacity]\nworkers = 4\n\
     [[site]]\nname = \"www\"\nupstream = \"server\"\nexempt = [{ path = \"/healthz\" }, { path = \"/server-status\" }]\n\
     [[site.level]]\nname = \"light\"\nprefix = \"/light\"\n[[site.level]]\nname = \"full\"\n"
        .to_owned()
}

/// The server may let requests wait for half a second, in which it serves half of what two dozen clients have under way.
/// Clients that wait for their answers bring no more than the server does, and it would let all of them wait for as long as
/// they go on, if they might wait for ten seconds.
pub(crate) fn impatient() -> String {
    configuration().replace("[upstream.server]\n", "[upstream.server]\nmax_wait = \"500ms\"\n")
}

/// A page takes a fifth of a second of its process, so that two clients for each are an overload.
pub(crate) fn slow() -> String {
    "<Location ~ \"page.html$\">\nSetOutputFilter RATE_LIMIT\nSetEnv rate-limit 256\n</Location>\n".to_owned()
}

/// The bytes of `/page.html` in the two trees.
pub(crate) const FULL: usize = 100_000;
pub(crate) const LIGHT: usize = 95_000;

/// Apache with the module, and a page in two trees.
pub(crate) fn apache(control: &Control, processes: u32, more: &str) -> Apache {
    apache_of(control, processes, &[], more)
}

/// The same with more of Apache's modules.
pub(crate) fn apache_of(control: &Control, workers: u32, modules: &[&str], more: &str) -> Apache {
    let (folder, library) = (Folder::new(), module().display());
    open_to_all(folder.path());
    fs::create_dir(folder.path().join("light")).expect("a folder");
    open_to_all(&folder.path().join("light"));
    folder.write("page.html", "full".repeat(FULL / 4));
    folder.write("healthz", "well\n");
    folder.write("light/page.html", "light".repeat(LIGHT / 5));
    let content = format!(
        "LoadModule plimsoll_module {library}/mod_plimsoll.so\nPlimsollState {}\nDocumentRoot {}\n\
         <Location /server-status>\nSetHandler server-status\nRequire local\n</Location>\n{more}",
        control.state().display(),
        folder.path().display()
    );
    let modules: Vec<&str> = modules.iter().chain(&["status", "env", "ratelimit"]).copied().collect();
    Apache::with(folder, (workers, 64), &modules, &content)
}

/// Waits for a condition of the server.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never comes that {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Builds the example in C; `more` goes to the compiler.
pub(crate) fn example(folder: &Path, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/ffi/examples/three_calls.c");
    let (built, library) = (folder.join("three_calls"), module().display().to_string());
    let mut compiler = Command::new(program("cc"));
    compiler
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g"])
        .args(more)
        .arg("-o")
        .arg(&built)
        .arg(source);
    compiler
        .args([format!("-I{library}"), format!("-L{library}"), format!("-Wl,-rpath,{library}")])
        .arg("-lplimsoll");
    let said = compiler.output().expect("cc runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    built
}

fn said(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_example_in_c_makes_no_mistake_with_memory() {
    let (control, folder) = (Control::start(&configuration()), Folder::new());
    let plain = example(folder.path(), &[]);
    let mut valgrind = Command::new(program("valgrind"));
    valgrind
        .args(["-q", "--error-exitcode=9", "--leak-check=full"])
        .arg(&plain)
        .arg(control.state())
        .arg("300");
    let first = said(&mut valgrind);
    assert!(first.contains("served 300, rejected 0"), "{first}");
    assert!(first.contains("in all 300 arrived, 300 ended, 0 in service"), "{first}");
    let checked = example(folder.path(), &["-fsanitize=address,undefined", "-fno-sanitize-recover"]);
    let second = said(Command::new(checked).arg(control.state()).arg("2000"));
    assert!(second.contains("in all 2300 arrived, 2300 ended, 0 in service"), "{second}");
}

/// What the program asks of the kernel does not depend on how many requests it has: it is all of the start, the attachment and
/// the end.
#[test]
fn the_three_calls_ask_nothing_of_the_kernel() {
    let (control, folder) = (Control::start(&configuration()), Folder::new());
    let (plain, trace) = (example(folder.path(), &[]), folder.path().join("trace"));
    let calls = |requests: &str| {
        let mut traced = Command::new(program("strace"));
        traced.arg("-f").arg("-o").arg(&trace).arg(&plain).arg(control.state()).arg(requests);
        let told = said(&mut traced);
        assert!(told.contains(&format!("served {requests}, rejected 0")), "{told}");
        fs::read_to_string(&trace).expect("the trace").lines().count()
    };
    let (few, many) = (calls("10"), calls("20000"));
    assert!(few > 20, "the start is seen: {few}");
    assert_eq!(many, few);
}

#[test]
fn what_is_no_state_is_told_from_one() {
    let folder = Folder::new();
    let plain = example(folder.path(), &[]);
    let file = folder.write("file", "x".repeat(100_000));
    let refused = |state: &Path| {
        let output = Command::new(&plain).arg(state).arg("1").output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&file).contains("no shared state"), "{}", refused(&file));
    assert!(refused(&folder.path().join("none")).contains("start `plimsoll control`"));
}

/// Asks for the page as a client of this number.
fn page(apache: SocketAddr, client: u8) -> std::io::Result<Response> {
    get_from(Ipv4Addr::new(127, 0, 1, client), apache, "/page.html")
}

/// What clients that ask again and again have got.
#[derive(Default)]
struct Got {
    sent: AtomicU64,
    full: AtomicU64,
    light: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
}

impl Got {
    /// Asks once.
    fn ask(&self, apache: SocketAddr, client: u8) {
        self.sent.fetch_add(1, Relaxed);
        let kind = match page(apache, client) {
            Ok(page) if page.status == 503 => {
                let after = page.header("retry-after").and_then(|after| after.parse::<u32>().ok());
                let limit = after.map(|after| format!("\"overload\";r=0;t={after}"));
                assert!(limit.is_some() && page.header("ratelimit") == limit.as_deref(), "{page:?}");
                assert_eq!(page.header("x-plimsoll"), Some("level=0; reason=overload"));
                &self.rejected
            }
            // A page whose process died in its middle is cut short.
            Ok(page) if page.status == 200 && page.text().starts_with("full") && page.body.len() == FULL => {
                &self.full
            }
            // No cache may keep a lighter page, nor take it by its date for the full one.
            Ok(page)
                if page.status == 200
                    && page.text().starts_with("light")
                    && page.body.len() == LIGHT
                    && page.header("cache-control") == Some("private, no-cache")
                    && page.header("last-modified").is_none() =>
            {
                &self.light
            }
            _ => &self.failed,
        };
        kind.fetch_add(1, Relaxed);
    }

    fn all(&self) -> [u64; 5] {
        [&self.sent, &self.full, &self.light, &self.rejected, &self.failed].map(|count| count.load(Relaxed))
    }
}

/// Runs `act` while so many clients ask again and again.
fn under_load(apache: SocketAddr, clients: u8, got: &Got, act: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for client in 1..=clients {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    got.ask(apache, client);
                }
            });
        }
        // The clients end too if this panics.
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
        is_over.store(true, Relaxed);
        acted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn decisions_show_in_responses_and_every_request_is_accounted_once() {
    let control = Control::start(&impatient());
    let apache = apache(&control, 4, &slow());
    assert!(
        page(apache.direct, 1).expect("an answer").text().starts_with("full"),
        "nothing is overloaded yet"
    );
    let got = Got::default();
    under_load(apache.direct, 24, &got, || {
        wait_until("some are served light pages, and some are rejected", || {
            let [_, _, light, rejected, _] = got.all();
            light > 0 && rejected > 0
        });
        assert_eq!(
            get(apache.direct, "/healthz").text(),
            "well\n",
            "what is exempt is served whatever comes"
        );
    });
    let [sent, full, light, rejected, failed] = got.all();
    assert_eq!((failed, full + light + rejected), (0, sent));
    let told = Accounts::at_rest(apache.direct);
    // One more page at the beginning, and one that is exempt; what tells is exempt too.
    assert_eq!((told.arrived - told.asked, told.rejected), (sent + 2, rejected));
}

/// A process tries once a second to open it.
#[test]
fn a_process_tells_once_that_its_state_cannot_be_opened() {
    let control = Control::start(&configuration());
    fs::remove_file(control.state()).expect("its state");
    let apache = apache(&control, 2, "");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3) {
        assert!(get(apache.direct, "/page.html").text().starts_with("full"));
        thread::sleep(Duration::from_millis(50));
    }
    let log = apache.process.log();
    assert_eq!(log.matches("requests go as they came").count(), 2, "each of two processes: {log}");
}

/// Apache has decoded a path once. What it serves as `/%68ealthz` is another page than `/healthz`.
#[test]
fn a_path_is_decoded_once() {
    let control = Control::start(&configuration());
    let more = "Header always set X-Reason \"%{PLIMSOLL_REASON}e\"\n";
    let apache = apache_of(&control, 4, &["headers"], more);
    for (path, is_exempt) in [
        ("/healthz", true),
        ("/%68ealthz", true),
        ("/x/../healthz", true),
        ("/%2568ealthz", false),
        ("/100%25/healthz", false),
    ] {
        let answer = get(apache.direct, path);
        let reason = answer.header("x-reason").unwrap_or_default();
        assert_eq!((reason == "exempt", answer.status == 200), (is_exempt, is_exempt), "{path}: {reason}");
    }
    let told = Accounts::at_rest(apache.direct);
    assert_eq!((told.arrived - told.asked, told.rejected), (5, 0));
}

#[test]
fn a_stream_of_events_gives_its_place_back_with_its_head() {
    let control = Control::start(&configuration());
    let slowly = "SetOutputFilter RATE_LIMIT\nSetEnv rate-limit 8\n";
    let events =
        format!("<Location /page.html>\nForceType text/event-stream;charset=utf-8\n{slowly}</Location>\n");
    let other = format!("<Location /light/page.html>\n{slowly}</Location>\n");
    let apache = apache(&control, 4, &(events + &other));
    let in_service = |path: &str| {
        let mut open = TcpStream::connect(apache.direct).expect("a connection");
        open.write_all(format!("GET {path} HTTP/1.1\r\nHost: www.test\r\n\r\n").as_bytes()).expect("sent");
        open.read_exact(&mut [0; 12]).expect("the beginning of its answer");
        let told = get(apache.direct, "/server-status?auto").text();
        let figure = told.lines().find_map(|line| line.strip_prefix("PlimsollInService: "));
        figure.and_then(|figure| figure.parse::<u32>().ok()).unwrap_or_else(|| panic!("{told}"))
    };
    // The page that tells is one of them.
    assert_eq!([in_service("/page.html"), in_service("/light/page.html")], [1, 2]);
    let told = Accounts::at_rest(apache.direct);
    assert_eq!((told.arrived - told.asked, told.rejected), (4, 0));
}

/// Each page takes a fifth of a second of its process, every process has one, and others wait for the next: a process that has
/// a connection is killed with the request that it holds.
///
/// What clients see does not tell all. A request whose client got no answer had arrived, unless its process died between the
/// connection and the decision; and a process may die between the last byte of an answer and the request's end, so that it was
/// answered and failed. Both are counted here, and printed. Everything else is exact. What a process leaves that dies at any
/// one instruction is judged in `crates/ffi/src/deaths.rs`.
#[test]
fn what_killed_processes_held_is_returned_and_accounted_once() {
    const PROCESSES: u32 = 8;
    let kills = kills();
    // So many workers that nothing is overloaded.
    let configuration = configuration().replace("workers = 4", "workers = 16");
    let options = ["--admin", &format!("127.0.0.1:{}", free_port())];
    let mut control = Control::start_with(&configuration, &options);
    let apache = apache(&control, PROCESSES, &slow());
    let (got, mut has_killed) = (Got::default(), 0);
    // A process that ends its request in the moment of its death held none, so that there are as many kills as it takes.
    let is_enough = |control: &Control, kills_so_far: u64| {
        assert!(kills_so_far < 20 * kills, "the dead have held {}", held_by_the_dead(control));
        kills_so_far >= kills && 2 * held_by_the_dead(control) > kills
    };
    under_load(apache.direct, PROCESSES as u8 + 4, &got, || {
        while !is_enough(&control, has_killed) {
            if has_killed == 25 && !control.process.log().contains("taken over") {
                control.process.signal(Signal::SIGKILL);
                control.process.wait();
                let before = got.all()[0];
                wait_until("requests are answered without a controller", || got.all()[0] > before + 20);
                wait_until("the server says so", || apache.process.log().contains("no controller is awake"));
                control.again();
                control.wait_for_line("taken over");
            }
            // Apache replaces the dead once a second.
            let mut at_work = Vec::new();
            wait_until("a process has a connection", || {
                at_work = with_connection(apache.process.pid());
                !at_work.is_empty()
            });
            let child = at_work[has_killed as usize * 7 % at_work.len()];
            has_killed += u64::from(kill(Pid::from_raw(child), Signal::SIGKILL).is_ok());
            thread::sleep(Duration::from_millis(150));
        }
    });
    let answered = || got.all()[1..4].iter().sum::<u64>();
    let before = answered();
    wait_until("a child is there again", || {
        got.ask(apache.direct, 1);
        answered() > before
    });
    let [sent, full, light, rejected, failed] = got.all();
    assert_eq!(full + light + rejected + failed, sent);
    // All that has arrived has ended, and nothing is in service.
    let told = Accounts::at_rest(apache.direct);
    let arrived = told.arrived - told.asked;
    println!("{has_killed} kills: {:?} sent, full, light, rejected, failed; {told:?}", got.all());
    let (undecided, answered_and_returned) =
        (sent.checked_sub(arrived), (sent - failed + told.returned).checked_sub(arrived));
    let (Some(undecided), Some(answered_and_returned)) = (undecided, answered_and_returned) else {
        panic!("more have arrived than there are: {arrived} of {:?}; {told:?}", got.all());
    };
    assert_eq!(told.rejected, rejected);
    assert!(failed <= has_killed, "a process has one connection at a time");
    assert!(told.returned <= told.deaths && told.deaths <= has_killed, "{told:?}");
    println!("{undecided} had not arrived, and {answered_and_returned} were answered and failed");
    assert!(undecided <= failed, "{undecided} of {failed} that failed had not arrived");
    assert!(answered_and_returned <= told.returned, "{answered_and_returned}: {told:?}");
    assert_eq!(held_by_the_dead(&control), told.returned, "what failed is what the dead held");
    assert!(told.attached <= u64::from(PROCESSES), "{told:?}");
}

/// The requests that failed since processes died with them, as the controller has it.
fn held_by_the_dead(control: &Control) -> u64 {
    let page = control.ask("GET /metrics").text();
    let failed = page
        .lines()
        .filter(|line| line.starts_with("plimsoll_departures_total{") && line.contains("outcome=\"failed\""));
    failed.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
}

/// The children of this process that have a connection beside the sockets that they have from it.
fn with_connection(parent: u32) -> Vec<i32> {
    let sockets = |number: u32| {
        let files = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten();
        files
            .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
            .filter(|file| file.to_string_lossy().starts_with("socket:"))
            .count()
    };
    let own = sockets(parent);
    children(parent).into_iter().filter(|child| sockets(child.cast_unsigned()) > own).collect()
}

#[test]
fn processes_that_are_killed_in_the_middle_of_calls_leave_nothing_behind() {
    let kills = kills();
    let (control, folder) = (Control::start(&configuration()), Folder::new());
    let plain = example(folder.path(), &[]);
    let start = || {
        let mut command = Command::new(&plain);
        command.arg(control.state()).arg("1000000000").stdout(Stdio::null());
        command.spawn().expect("it runs")
    };
    let mut running = [start(), start()];
    for killed in 0_u64..kills {
        // So long that it has attached, and is somewhere in its calls.
        thread::sleep(Duration::from_micros(20_000 + killed * 997 % 5000));
        let one = &mut running[killed as usize % 2];
        assert_eq!(one.try_wait().expect("its state"), None, "it calls until it is killed");
        one.kill().expect("it is killed");
        one.wait().expect("its end");
        *one = start();
    }
    running.iter_mut().for_each(|one| {
        one.kill().expect("it is killed");
        one.wait().expect("its end");
    });
    let mut last = String::new();
    wait_until("nothing is in service, and all that has arrived has ended", || {
        last = said(Command::new(&plain).arg(control.state()).arg("1"));
        let figure = |name: &str| -> u64 {
            let before = last.split(name).next().unwrap_or_default().trim_end();
            before
                .rsplit(' ')
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or_else(|| panic!("{last}"))
        };
        figure("in service") == 0 && figure("arrived") == figure("ended")
    });
    println!("{kills} kills: {last}{}", control.process.log().lines().last().unwrap_or_default());
}

/// How many processes are killed; more by hand: `PLIMSOLL_KILLS=1000`.
fn kills() -> u64 {
    std::env::var("PLIMSOLL_KILLS").map_or(50, |number| number.parse().expect("a number"))
}

/// The processes that this one has started and that live.
fn children(parent: u32) -> Vec<i32> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    let lives = |number: &i32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    };
    listed.split_whitespace().filter_map(|number| number.parse().ok()).filter(lives).collect()
}

/// A connection that is kept holds one of prefork's processes while its client is silent, and those that wait to be accepted
/// starve: twice as many clients as processes, of which each asks for its next page over the same connection if it may.
#[test]
fn clients_that_keep_their_connections_starve_nobody() {
    const CLIENTS: usize = 8;
    let control = Control::start(&configuration());
    let apache = apache(&control, 4, "");
    let (served, closed) = ([const { AtomicU64::new(0) }; CLIENTS], AtomicU64::new(0));
    let all_have = |pages: u64| served.iter().all(|own| own.load(Relaxed) >= pages);
    let start = Instant::now();
    let goes_on = || !all_have(3) && start.elapsed() < Duration::from_secs(20);
    thread::scope(|scope| {
        for own in &served {
            let (closed, goes_on) = (&closed, &goes_on);
            scope.spawn(move || {
                while goes_on() {
                    let Ok(mut connection) = TcpStream::connect(apache.upstream) else { continue };
                    let wait = connection.set_read_timeout(Some(Duration::from_secs(20)));
                    wait.expect("a read may end");
                    while kept_page(&mut connection).is_some_and(|keeps| {
                        own.fetch_add(1, Relaxed);
                        closed.fetch_add(u64::from(!keeps), Relaxed);
                        thread::sleep(Duration::from_millis(50));
                        keeps && goes_on()
                    }) {}
                }
            });
        }
    });
    assert!(all_have(3), "{served:?} pages of each client");
    assert!(closed.into_inner() > 0, "connections ended for those that waited");
    // Nobody waits any more: a connection is kept.
    let mut connection = TcpStream::connect(apache.upstream).expect("it accepts");
    assert_eq!([0; 2].map(|_| kept_page(&mut connection)), [Some(true); 2]);
}

/// Asks for the small page, and whether the connection goes on; `None` if no answer came.
fn kept_page(connection: &mut TcpStream) -> Option<bool> {
    connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: any\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nwell\n") {
        let mut part = [0; 1024];
        let count = connection.read(&mut part).ok().filter(|count| *count > 0)?;
        answer.extend_from_slice(&part[..count]);
    }
    Some(!String::from_utf8_lossy(&answer).to_ascii_lowercase().contains("\r\nconnection: close\r\n"))
}

/// Apache serves an ErrorDocument as a request of its own, whose variables its log has.
#[test]
fn a_rejection_with_a_page_of_its_own_is_logged_with_its_level() {
    let tight = "share_excess = false\nguarantee = { rate = \"0.01/s\", burst = \"1s\" }\n[[site.level]]\n";
    let control = Control::start(&configuration().replacen("[[site.level]]\n", tight, 1));
    let log = "ErrorDocument 503 /busy.html\n\
               LogFormat \"%>s %{PLIMSOLL_LEVEL}e %{PLIMSOLL_REASON}e\" levels\nCustomLog levels.log levels\n";
    let apache = apache(&control, 4, log);
    apache.folder.write("busy.html", "busy\n");
    wait_until("a request is rejected", || {
        let answer = get(apache.direct, "/page.html");
        assert_eq!(answer.status == 503, answer.text() == "busy\n", "{}", answer.status);
        answer.status == 503
    });
    let logged = || fs::read_to_string(apache.folder.path().join("levels.log")).unwrap_or_default();
    wait_until("it is logged", || logged().contains("503 "));
    let rejected: Vec<String> =
        logged().lines().filter(|line| line.starts_with("503 ")).map(str::to_owned).collect();
    assert!(
        rejected.iter().all(|line| line.starts_with("503 0 ") && line.len() > "503 0 ".len() + 1),
        "{rejected:?}"
    );
}
