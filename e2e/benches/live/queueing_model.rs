//! QM 3.2 live: how near a promised mean stays to what was promised with the prediction alone, with P, with PI, and with PI
//! alone.
//!
//! A real Apache of 128 processes, as many as the paper's, each held by its request for an exponential time; a class with D_ref
//! of 1.2 of these, whose rate steps up; and best effort that asks for more than is left. Judged is the mean of each sampling
//! period of 600 answers, by the client's clock, in units in which D_ref is 2, as in virtual time
//! (`cargo test -p plimsoll-sim --test scenes apache_processes::`), where the order is asserted.

use super::PAGE;
use plimsoll_e2e::flows::{End, Flow, drive};
use plimsoll_e2e::{Apache, Plimsoll, ServerModel};
use std::path::Path;
use std::time::Duration;

const SERVER: ServerModel = ServerModel::exponential(128, Duration::from_millis(500));
const WANTED: Duration = Duration::from_millis(600);
/// Seconds and requests per second of the class with the promise: 50 of the processes, then 80.
const STEPS: [(f64, f64); 2] = [(70.0, 100.0), (50.0, 160.0)];
/// More than is left.
const BEST_EFFORT: f64 = 200.0;
/// While two windows fill.
const NOT_JUDGED: f64 = 20.0;
const PERIOD: usize = 600;
/// The paper's sums are over some sixty periods.
const PERIODS: f64 = 60.0;

/// Each `delay_law`, what it is, the aggregate error in virtual time with self-similar arrivals, and the paper's of its two
/// experiments.
const LAWS: [(&str, &str, &str, &str); 4] = [
    ("predictor", "predictor alone", "8.1", "214.08"),
    ("predictor-p", "with P", "3.1", "74.80"),
    ("both", "with PI", "3.1", "30.32; 23.84"),
    ("feedback", "PI alone", "7.4", "56.84"),
];

fn configuration(server: &Apache, law: &str) -> String {
    let (workers, wanted) = (SERVER.workers, WANTED.as_millis());
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n[control]\ndelay_law = \"{law}\"\n\n\
         [upstream.server]\naddress = \"{}\"\ncapacity = {{ workers = {workers}, load_line = 1.0 }}\n\n\
         [[site]]\nname = \"shop\"\n\n[[site.class]]\nname = \"premium\"\nmatch = {{ path = \"/premium/*\" }}\n\
         delay = \"{wanted}ms\"\n",
        server.upstream
    )
}

/// The aggregate error, the mean over all, and how many were not answered.
fn run(law: &str) -> (f64, f64, usize) {
    let server = Apache::holding(Path::new(PAGE), SERVER);
    let gateway = Plimsoll::run(&configuration(&server, law));
    let whole: f64 = STEPS.iter().map(|(seconds, _)| seconds).sum();
    let flows = [
        Flow::new("shop.test", "/premium/page", &STEPS),
        Flow::new("shop.test", "/page", &[(whole, BEST_EFFORT)]),
    ];
    let flown = drive(gateway.address, &flows, Duration::from_secs(8), || ());
    let answers: Vec<f64> = flown[0]
        .answers()
        .into_iter()
        .filter(|(at, _)| (NOT_JUDGED..whole).contains(at))
        .map(|(_, latency)| latency)
        .collect();
    let delay = |period: &[f64]| 2.0 * period.iter().sum::<f64>() / PERIOD as f64 / WANTED.as_secs_f64();
    let delays: Vec<f64> = answers.chunks_exact(PERIOD).map(delay).collect();
    let average = |value: &dyn Fn(&f64) -> f64| delays.iter().map(value).sum::<f64>() / delays.len() as f64;
    let all = flown[0].all();
    let unanswered = all.count(End::Rejected) + all.count(End::Lost);
    (PERIODS * average(&|delay| (delay - 2.0).powi(2)), average(&|delay| *delay), unanswered)
}

pub(super) fn show() {
    println!(
        "aggregate squared error over {PERIODS} periods of {PERIOD} answers, D_ref = 2, before an Apache of {} processes:",
        SERVER.workers
    );
    for (law, what, simulated, paper) in LAWS {
        let (error, mean, unanswered) = run(law);
        println!(
            "{what:<16} {error:>8.2}   mean {mean:.2}, {unanswered} not answered   (virtual: {simulated}; paper: {paper})"
        );
    }
}
