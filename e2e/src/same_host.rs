//! UC 7.5 live: what a rejection costs a gateway that shares one processor with a saturated server, and whether the loop's own
//! figure says so.
//!
//! A real nginx compresses a page for each request, so that the processor is what runs out. It has one processor together with
//! the gateway; the clients have another, where there is one. First the pages that fit are asked for: what nginx, the gateway
//! and the interrupts of the kernel take of the processor is the cost S of a page. Then many more are asked for. What they take
//! beyond S times the pages is what rejections take, with the kernel's work on their connections (the paper's eq. 11 and 12).
//! The gateway's own c is from the CPU time of its process. A page is cheaper in a crowd than in calm, since less is cold, so
//! that all of these differences come out too low; what the process took in all for each rejection is the most that c can be.
//! The busy time of the whole processor would do only where nothing else runs on it.

use crate::configuration::GATEWAY;
use crate::flows::{Flow, drive};
use crate::{Folder, Nginx, Plimsoll, open_to_all};
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Requests per second that fit.
const CALM: f64 = 20.0;
/// What a stage is not judged by: the loop finds its level, and c is learned.
const SETTLES: Duration = Duration::from_secs(3);
/// How long a client waits.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was measured. Costs are seconds of the processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct RejectionFigures {
    /// S, of a page.
    pub page: f64,
    /// c by what nginx, the gateway and the kernel's interrupts take.
    pub by_processor: f64,
    /// c by the CPU time of the gateway's process alone.
    pub by_process: f64,
    /// The most that c can be: all that the gateway's process took in the second stage, for each rejection.
    pub at_most: f64,
    /// c as the gateway learned it.
    pub learned: f64,
    /// Rejections per second in the second stage.
    pub rejected: f64,
    /// Pages per second in the second stage.
    pub pages: f64,
    /// How busy the processor was in the second stage, of 1.
    pub busy: f64,
    /// U as the loop measured it then.
    pub measured: f64,
    /// Requests that were neither answered with a page nor turned away.
    pub lost: usize,
    /// Arrivals that the gateway counted, less the requests that were sent.
    pub unaccounted: f64,
}

/// What has passed so far.
#[derive(Clone, Copy, Debug)]
struct Passed {
    /// The processor's busy time (s).
    busy: f64,
    /// What nginx, the gateway and the kernel's interrupts took of it (s).
    taken: f64,
    /// What the gateway's process took (s).
    gateway: f64,
    pages: f64,
    rejected: f64,
    /// On the clock (s), by the processor's own ticks.
    clock: f64,
    measured: f64,
}

/// Measures it with stages of this length, and so many times the requests that fit in the second one.
pub fn rejections(stage: Duration, times: f64) -> RejectionFigures {
    let folder = Folder::new();
    let words: String = (0..40_000_u32).map(|n| format!("{:x} ", n.wrapping_mul(2_654_435_761))).collect();
    folder.write("page.txt", words);
    open_to_all(folder.path());
    let nginx = Nginx::compressing(folder.path());
    let gateway = Plimsoll::run(&format!(
        "{GATEWAY}\n[upstream.server]\naddress = \"{}\"\nmax_connections = 1\n\
         capacity = {{ workers = 1, same_host = true }}\n\n[[site]]\nname = \"site\"\n\n\
         [[site.level]]\nname = \"compressed\"\nheaders = {{ accept-encoding = \"gzip\" }}\n",
        nginx.address
    ));
    let servers =
        children(nginx.process.pid()).into_iter().chain([nginx.process.pid(), gateway.process.pid()]);
    servers.for_each(|pid| pin(pid, "0"));
    pin(std::process::id(), "1");
    // What is taken without requests is no cost of theirs; the gateway learns it too.
    let begun = look(&nginx, &gateway);
    sleep(SETTLES);
    let idle = [begun, look(&nginx, &gateway)];
    let seconds = stage.as_secs_f64();
    let flow = Flow::new("site.test", "/page.txt", &[(seconds, CALM), (seconds, times * CALM)]);
    let mut looks = Vec::new();
    let flown = drive(gateway.address, &[flow], PATIENCE, || {
        for wait in [SETTLES, stage - SETTLES, SETTLES, stage - SETTLES] {
            sleep(wait);
            looks.push(look(&nginx, &gateway));
        }
    });
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    let (calm, crowd) = ([looks[0], looks[1]], [looks[2], looks[3]]);
    let between = |[from, until]: [Passed; 2], of: fn(&Passed) -> f64| of(&until) - of(&from);
    let time = |stage| between(stage, |passed| passed.clock);
    let taken = |stage| {
        between(stage, |passed| passed.taken)
            - between(idle, |passed| passed.taken) / time(idle) * time(stage)
    };
    let own = |stage| {
        between(stage, |passed| passed.gateway)
            - between(idle, |passed| passed.gateway) / time(idle) * time(stage)
    };
    let served = between(calm, |passed| passed.pages).max(1.0);
    let (page, forwarding) = (taken(calm) / served, own(calm) / served);
    let (busy, pages) = (between(crowd, |passed| passed.busy), between(crowd, |passed| passed.pages));
    let (rejected, clock) = (between(crowd, |passed| passed.rejected), between(crowd, |passed| passed.clock));
    let all = flown[0].all();
    RejectionFigures {
        page,
        by_processor: (taken(crowd) - page * pages) / rejected.max(1.0),
        at_most: own(crowd) / rejected.max(1.0),
        by_process: (own(crowd) - forwarding * pages) / rejected.max(1.0),
        learned: status(&gateway)["rejection_cost_seconds"].as_f64().unwrap_or(0.0) * processors(),
        rejected: rejected / clock,
        pages: pages / clock,
        busy: busy / clock,
        measured: crowd[1].measured,
        lost: all.count(crate::flows::End::Lost),
        unaccounted: gateway.metric("plimsoll_arrivals_total") - all.requests() as f64,
    }
}

fn look(nginx: &Nginx, gateway: &Plimsoll) -> Passed {
    let (busy, interrupts, clock) = processor_times();
    let own = cpu(gateway.process.pid());
    let pids = children(nginx.process.pid());
    let taken = interrupts + own + pids.into_iter().map(cpu).sum::<f64>();
    let status = status(gateway);
    let class = &status["classes"][0];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no figure in {status}"));
    Passed {
        busy,
        taken,
        gateway: own,
        clock,
        pages: number(&class["levels"][0]["served"]),
        rejected: number(&class["rejected"]),
        measured: number(&status["upstreams"][0]["utilization"]["measured"]),
    }
}

fn status(gateway: &Plimsoll) -> Value {
    let text = gateway.ask_admin("/status").text();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The CPU time of a process (s), in ticks of 10 ms.
pub fn cpu(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name, which may hold anything but ends with the last parenthesis.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The first processor's busy time, that of its interrupts, and all of its time so far (s), in ticks of 10 ms.
fn processor_times() -> (f64, f64, f64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("cpu0 ")).unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    assert!(ticks.len() >= 8, "no times of a processor in /proc/stat");
    // User, nice, system, idle, waiting for I/O, interrupts, soft interrupts, stolen; guests are in the first.
    let all: f64 = ticks[..8].iter().sum();
    ((all - ticks[3] - ticks[4]) / 100.0, (ticks[5] + ticks[6]) / 100.0, all / 100.0)
}

/// How many processors the gateway divides its CPU time by.
fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |processors| processors.get() as f64)
}

/// The processes that a process has started.
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Keeps all threads of a process on these processors, as taskset names them. Where there are none of these numbers they stay
/// where they are.
pub fn pin(pid: u32, processors: &str) {
    let mut command = Command::new("taskset");
    command.args(["-acp", processors, &pid.to_string()]);
    drop(command.stdout(Stdio::null()).stderr(Stdio::null()).status());
}
