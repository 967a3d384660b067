//! The bound on a response time (AC 4.2, with what it leaves out): with s workers and nothing preempted, a request is
//! done no later than its own service after
//!
//! ```text
//! (unfinished work of its own and higher classes + what is left of lower ones in service + higher work that comes
//!  while it waits) / s
//! ```

use crate::scene::{Answer, Flow, Kind, Scene, ms};
use plimsoll_sim::workload::Law;

/// Exactly so many milliseconds, so that the work is known.
const KINDS: [(&str, u64, f64); 3] = [("/a*.html", 5, 20.0), ("/b*", 40, 5.0), ("/c*.mp4", 150, 1.0)];

fn kinds() -> Vec<Kind> {
    KINDS.map(|(path, service, weight)| Kind::new(path, weight, ms(service), Law::Deterministic)).to_vec()
}

fn service(answer: &Answer) -> f64 {
    KINDS.iter().find(|(path, ..)| *path == answer.path).map_or(0.0, |(_, service, _)| *service as f64 * 1e-3)
}

/// What is left of a request at an instant.
fn left(answer: &Answer, at: f64) -> f64 {
    if answer.reason.is_some() { 0.0 } else { (service(answer) - (at - answer.started).max(0.0)).max(0.0) }
}

#[test]
fn a_response_is_bounded_by_unfinished_work_of_its_own_and_higher_classes() {
    for (workers, load, seed) in [(1, 0.7, 1), (1, 1.6, 2), (4, 0.9, 3), (4, 2.0, 4)] {
        let mean = crate::scene::mean_service(&kinds());
        let rate = load / mean * f64::from(workers) / 3.0;
        let flow = |name, priority| Flow::new(name, rate, kinds()).priority(priority);
        let flows = vec![flow("first", 1), flow("second", 2), flow("third", 3)];
        let heard = Scene::new(workers, flows, 40.0, seed).run();
        let served: Vec<&Answer> = heard.answers.iter().filter(|answer| answer.reason.is_none()).collect();
        let mut tight = 0.0_f64;
        // The last requests are left out: not all that stood before them have ended.
        for one in served.iter().filter(|one| one.arrived < 37.0) {
            let nearby =
                served.iter().filter(|other| other.ended > one.arrived && other.arrived < one.started);
            let ahead: f64 = nearby
                .map(|other| match other.class.cmp(&one.class) {
                    _ if other.arrived > one.arrived && other.class >= one.class => 0.0,
                    _ if other.arrived > one.arrived => service(other),
                    std::cmp::Ordering::Greater if other.started >= one.arrived => 0.0,
                    _ if std::ptr::eq(*other, *one) => 0.0,
                    _ => left(other, one.arrived),
                })
                .sum();
            let bound = ahead / f64::from(workers) + service(one);
            assert!(one.response() <= bound + 1e-6, "{one:?}: {} > {bound}", one.response());
            tight = tight.max(one.response() / bound);
        }
        println!(
            "{workers} workers at {load}: {} responses, the nearest at {tight:.3} of its bound",
            served.len()
        );
        assert!(served.len() > 500 && tight > 0.95);
        let missed = served.iter().filter(|answer| answer.response() > 1.0).count();
        assert!(missed * 500 <= served.len(), "{missed}");
    }
}
