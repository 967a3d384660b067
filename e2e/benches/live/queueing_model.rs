//! QM 3.2: how near a promised mean stays to what was promised with the prediction alone, with P, with PI, and with PI alone.
//!
//! A real nginx before an application of 8 workers with exponential times of 20 ms; a class with D_ref of two of these, whose rate steps up;
//! and best effort that takes whatever is left. Judged is the mean of the last 1,000 answers after every 10, by the client's clock, in
//! units in which D_ref is 2, so that its squared error stands beside that of the paper's section 2.3 in virtual time
//! (`cargo test -p plimsoll-sim --test queueing_model`).
//!
//! The paper's own figures of Apache are sums over a run of its length, of 128 processes that wait for the next request of a connection.
//! What can be compared is the order, and how much each part brings.

use super::PAGE;
use plimsoll_e2e::flows::{End, Flow, drive};
use plimsoll_e2e::{Nginx, Plimsoll, ServerModel};
use std::path::Path;
use std::time::Duration;

const SERVER: ServerModel = ServerModel::exponential(8, Duration::from_millis(20));
const WANTED: Duration = Duration::from_millis(40);
/// Seconds and requests per second of the class with the promise: 3 of the 8 workers, then 5.
const STEPS: [(f64, f64); 2] = [(34.0, 150.0), (26.0, 250.0)];
/// More than is left.
const BEST_EFFORT: f64 = 350.0;
/// While two windows fill.
const NOT_JUDGED: f64 = 14.0;
const WINDOW: usize = 1_000;
const EVERY: usize = 10;

/// Each `delay_law`, what it is, and the paper's aggregate error of its two experiments.
const LAWS: [(&str, &str, &str); 4] = [
    ("predictor", "predictor alone", "214.08"),
    ("predictor-p", "with P", "74.80"),
    ("both", "with PI", "30.32; 23.84"),
    ("feedback", "PI alone", "56.84"),
];

fn configuration(server: &Nginx, law: &str) -> String {
    let (workers, wanted) = (SERVER.workers, WANTED.as_millis());
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n[control]\ndelay_law = \"{law}\"\n\n\
         [upstream.server]\naddress = \"{}\"\ncapacity = {{ workers = {workers}, load_line = 1.0 }}\n\n\
         [[site]]\nname = \"shop\"\n\n[[site.class]]\nname = \"premium\"\nmatch = {{ path = \"/premium/*\" }}\n\
         delay = \"{wanted}ms\"\n",
        server.address
    )
}

/// The squared error, the mean over all, and how many were not answered.
fn run(law: &str) -> (f64, f64, usize) {
    let server = Nginx::pages(Path::new(PAGE), SERVER);
    let gateway = Plimsoll::run(&configuration(&server, law));
    let whole: f64 = STEPS.iter().map(|(seconds, _)| seconds).sum();
    let flows = [
        Flow::new("shop.test", "/premium/page", &STEPS),
        Flow::new("shop.test", "/page", &[(whole, BEST_EFFORT)]),
    ];
    let flown = drive(gateway.address, &flows, Duration::from_secs(4), || ());
    let unit = WANTED.as_secs_f64() / 2.0;
    let answers = flown[0].answers();
    let means: Vec<f64> = answers
        .windows(WINDOW)
        .step_by(EVERY)
        .filter(|window| window[WINDOW - 1].0 > NOT_JUDGED)
        .map(|window| window.iter().map(|(_, latency)| latency).sum::<f64>() / WINDOW as f64 / unit)
        .collect();
    let average = |values: &dyn Fn(&f64) -> f64| means.iter().map(values).sum::<f64>() / means.len() as f64;
    let all = flown[0].all();
    let unanswered = all.count(End::Rejected) + all.count(End::Lost);
    (average(&|mean| (mean - 2.0).powi(2)), average(&|mean| *mean), unanswered)
}

pub(super) fn show() {
    println!(
        "squared error of the last {WINDOW} answers' mean, D_ref = 2; beside it the paper's aggregate error, live:"
    );
    for (law, what, paper) in LAWS {
        let (error, mean, unanswered) = run(law);
        println!("{what:<16} {error:>8.4}   mean {mean:.2}, {unanswered} not answered   (paper: {paper})");
    }
}
