//! UC 7.5 and its Fig. 11: how many pages a saturated Apache still serves while it rejects others, inside by its module, by the
//! gateway before it on the same processor, and as it is, where those that find no room fail.
//!
//! A page is compressed for each request, so that the processor is what runs out. Server and gateway have one to themselves,
//! the clients another. Pages are asked for all the time by two clients, and rejections of another site at a rate that goes up
//! and down again; each has a connection of its own. What the server's own processes take of the processor is
//! `S pages + c rejections`, so that c / S is the slope at which the pages fall. A server that rejects nobody gets pages at up
//! to four times what it can serve, and T_f is had alike (eq. 11 and 12). All is for a second of these processes' CPU time, so
//! that other programs move it only by what they do to the caches. On the loopback interface the kernel handles a packet on
//! the processor of its sender: what it does for requests that come, above all for those that never reach the server, is not
//! in these figures.

use super::rejections::closed_and_open;
use plimsoll_e2e::flows::{End, Flow, drive};
use plimsoll_e2e::same_host::{children, cpu, pin};
use plimsoll_e2e::{Apache, Control, Folder, Plimsoll, Process, exchange, module, open_to_all};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Rejections that are asked for, per second.
const RATES: [f64; 7] = [0.0, 3000.0, 6000.0, 9000.0, 6000.0, 3000.0, 0.0];
const SETTLES: Duration = Duration::from_millis(500);
const STAGE: Duration = Duration::from_secs(3);
/// Clients of pages, and of rejections.
const PAGES: usize = 2;
const REJECTED: usize = 16;
/// What comes to the server as it is, of what it can serve.
const TIMES: [f64; 5] = [0.8, 1.25, 2.0, 3.0, 4.0];
/// How long a client of that server waits, and the listen queue, which is worked off sooner.
const PATIENCE: Duration = Duration::from_secs(1);
const QUEUE: u32 = 64;
/// The server's processes: one for each client.
const PROCESSES: u32 = (PAGES + REJECTED) as u32 + 2;

/// What a stage has shown, per second.
#[derive(Clone, Copy, Debug)]
struct Stage {
    pages: f64,
    /// Requests that were rejected or failed.
    others: f64,
    /// CPU time of the server's own processes.
    own: f64,
}

/// Asks for a path again and again until `ends`, at most so many times a second, and counts the answers with this status.
fn ask(
    server: SocketAddr,
    request: &str,
    rate: f64,
    status: u16,
    (ends, count): (&AtomicBool, &AtomicUsize),
) {
    let (started, mut asked) = (Instant::now(), 0_u32);
    while !ends.load(Relaxed) {
        let due = Duration::from_secs_f64(f64::from(asked) / rate);
        sleep(due.saturating_sub(started.elapsed()));
        count.fetch_add(usize::from(exchange(server, request).status == status), Relaxed);
        asked += 1;
    }
}

/// Pages and rejections of a server, of which these are the processes.
fn stage(server: SocketAddr, processes: &[&Process], rate: f64) -> Stage {
    let request = |host: &str| format!("GET /page.txt HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let [open, closed] = ["open.test", "closed.test"].map(request);
    let (ends, pages, rejected) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let look = || {
        let pids =
            processes.iter().flat_map(|process| children(process.pid()).into_iter().chain([process.pid()]));
        [pages.load(Relaxed) as f64, rejected.load(Relaxed) as f64, pids.map(cpu).sum()]
    };
    let [before, after] = scope(|scope| {
        for _ in 0..PAGES {
            scope.spawn(|| ask(server, &open, f64::INFINITY, 200, (&ends, &pages)));
        }
        for _ in 0..if rate > 0.0 { REJECTED } else { 0 } {
            scope.spawn(|| ask(server, &closed, rate / REJECTED as f64, 503, (&ends, &rejected)));
        }
        sleep(SETTLES);
        let before = look();
        sleep(STAGE);
        let after = look();
        ends.store(true, Relaxed);
        [before, after]
    });
    let [pages, rejected, own] = [0, 1, 2].map(|which| (after[which] - before[which]) / STAGE.as_secs_f64());
    Stage { pages, others: rejected, own }
}

/// S, and c or T_f, by least squares: `own = S pages + c others` of all stages (s).
fn costs(stages: &[Stage]) -> (f64, f64) {
    let sum = |of: fn(&Stage) -> f64| stages.iter().map(of).sum::<f64>();
    let (pages, both, others) =
        (sum(|one| one.pages.powi(2)), sum(|one| one.pages * one.others), sum(|one| one.others.powi(2)));
    let (by_pages, by_others) = (sum(|one| one.own * one.pages), sum(|one| one.own * one.others));
    let determinant = pages * others - both * both;
    let page = (by_pages * others - by_others * both) / determinant;
    (page, (by_others * pages - by_pages * both) / determinant)
}

fn show_stage(what: &str, stage: Stage) -> Stage {
    let [pages, others] = [stage.pages, stage.others].map(|count| count / stage.own);
    println!("    {others:>8.0} {what} {pages:>8.0} pages   ({:.2} s of a second)", stage.own);
    stage
}

/// Rejections at each rate, and what one takes.
fn show_rejections(what: &str, server: SocketAddr, processes: &[&Process]) {
    keep(processes);
    stage(server, processes, RATES[1]);
    let stages = RATES.map(|rate| stage(server, processes, rate));
    println!("  {what}: pages and rejections for a second of its processes' time");
    let stages = stages.map(|stage| show_stage("rejected", stage));
    let (page, rejection) = costs(&stages);
    println!(
        "    S {:.3} ms, c {:.1} us, so that a rejection takes {:.3} pages",
        1e3 * page,
        1e6 * rejection,
        rejection / page
    );
}

/// Keeps a server's processes on a processor of their own.
fn keep(processes: &[&Process]) {
    let pids =
        processes.iter().flat_map(|process| children(process.pid()).into_iter().chain([process.pid()]));
    pids.for_each(|pid| pin(pid, "0"));
}

/// What the server as it is serves of more than it can, and T_f.
fn show_failures(server: &Apache) {
    keep(&[&server.process]);
    let calm = stage(server.direct, &[&server.process], 0.0);
    println!("  Apache as it is: pages and failures for a second of its processes' time");
    let seconds = STAGE.as_secs_f64();
    let stages = TIMES.map(|times| {
        let flow = Flow::new("open.test", "/page.txt", &[(seconds, times * calm.pages / calm.own)]);
        let taken = || children(server.process.pid()).into_iter().map(cpu).sum::<f64>();
        let before = taken();
        let flown = drive(server.direct, &[flow], PATIENCE, || ());
        let (own, all) = (taken() - before, flown[0].all());
        let [pages, failed] =
            [End::Page { full: true }, End::Lost].map(|end| all.count(end) as f64 / seconds);
        show_stage("failed", Stage { pages, others: failed, own: own / seconds })
    });
    let (page, failure) = costs(&stages);
    println!("    S {:.3} ms, T_f {:.1} us", 1e3 * page, 1e6 * failure);
}

/// An Apache that compresses its page for each request.
fn compressing(more: &str) -> Apache {
    let folder = Folder::new();
    let words: String = (0..3_000_u32).map(|n| format!("{:x} ", n.wrapping_mul(2_654_435_761))).collect();
    folder.write("page.txt", words);
    open_to_all(folder.path());
    let root = folder.path().display().to_string();
    let content = format!(
        "DocumentRoot {root}\nSetEnv force-gzip 1\nSetOutputFilter DEFLATE\nDeflateCompressionLevel 9\n{more}"
    );
    Apache::with(folder, (PROCESSES, QUEUE), &["env", "filter", "deflate"], &content)
}

pub(super) fn show() {
    println!("the rate that is served while others are rejected or fail (UC 7.5, Fig. 11)");
    let own = std::process::id();
    pin(own, "1");
    let control = Control::start(&closed_and_open(([127, 0, 0, 1], 9).into()));
    let decides = compressing(&format!(
        "LoadModule plimsoll_module {}/mod_plimsoll.so\nPlimsollState {}\n",
        module().display(),
        control.state().display()
    ));
    show_rejections("the module", decides.direct, &[&decides.process]);
    drop(decides);
    let plain = compressing("");
    let gateway = Plimsoll::run(&closed_and_open(plain.upstream));
    show_rejections("the gateway before it", gateway.address, &[&plain.process, &gateway.process]);
    drop(gateway);
    show_failures(&plain);
    // As it was: what comes next has all processors.
    pin(own, "0-1023");
}
