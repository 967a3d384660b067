//! Prints what a server does each second, from its packets: `watch INTERFACE PORT [WORKERS]`, as root.

use plimsoll_wire::Capture;
use std::thread;
use std::time::Duration;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [interface, port, more @ ..] = &arguments[..] else {
        return Err("watch INTERFACE PORT [WORKERS]".to_owned());
    };
    let number = |text: &String| text.parse::<u32>().map_err(|error| format!("{text}: {error}"));
    let port = u16::try_from(number(port)?).map_err(|error| error.to_string())?;
    let workers = more.first().map(number).transpose()?.unwrap_or(1);
    let capture = Capture::start(interface, port, workers)?;
    let mut sum = (0, 0);
    loop {
        thread::sleep(Duration::from_secs(1));
        let Some((seen, in_service)) = capture.look() else {
            return Err(capture.failure().unwrap_or_default());
        };
        sum = (sum.0 + seen.requests, sum.1 + seen.bytes);
        let response = seen.response.as_secs_f64() / (seen.requests.max(1) as f64);
        println!(
            "{} requests/s, {} byte/s, {:.3} ms, U {:.3}, {in_service} under way; in all {} requests, {} bytes, {} packets \
             lost, {} bytes unseen, {} requests given up",
            seen.requests,
            seen.bytes,
            response * 1e3,
            seen.busy.as_secs_f64() / f64::from(workers),
            sum.0,
            sum.1,
            capture.lost(),
            seen.unseen,
            seen.given_up
        );
    }
}
