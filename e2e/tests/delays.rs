//! Promised response times live, before a real nginx and an application of which nothing was told: 8 workers, exponential times
//! of 40 ms, 200/s. Everybody was promised half a second, premium more surely. By the clients' own clocks; with control off
//! each fails.

use plimsoll_e2e::flows::{Flow, Flown, Waited, drive};
use plimsoll_e2e::{Nginx, Plimsoll, Varied};
use plimsoll_load::on_a_steady_machine;
use std::ops::RangeInclusive;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROMISED: Duration = Duration::from_millis(500);
const SERVER: Varied = Varied { workers: 8, mean: Duration::from_millis(40) };

type Checked = Result<(), String>;

fn between(value: f64, bounds: RangeInclusive<f64>, what: &str) -> Checked {
    if bounds.contains(&value) { Ok(()) } else { Err(format!("{what}: {value:.3}, not in {bounds:?}")) }
}

fn start(varied: Varied) -> Nginx {
    Nginx::varied(Path::new(env!("CARGO_BIN_EXE_page-scgi")), varied)
}

/// Says nothing of the server but where it is.
fn untold(nginx: &Nginx, mode: &str) -> String {
    let promised = PROMISED.as_millis();
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\nmode = \"{mode}\"\n\n\
         [upstream.server]\naddress = \"{}\"\n\n\
         [[site]]\nname = \"shop\"\ndelay = \"{promised}ms\"\npercentile = 95\ndefault_priority = 2\n\n\
         [[site.class]]\nname = \"premium\"\nmatch = {{ path = \"/premium/*\" }}\npriority = 1\n\
         delay = \"{promised}ms\"\npercentile = 99.9\n",
        nginx.address
    )
}

/// A flow of these rates: seconds and requests per second.
fn flow(path: &'static str, steps: &[(f64, f64)]) -> Flow {
    let steps = steps.iter().map(|(seconds, rate)| (Duration::from_secs_f64(*seconds), *rate));
    Flow { host: "shop.test", path, steps: steps.collect() }
}

fn run(gateway: &Plimsoll, flows: Vec<Flow>, meanwhile: impl FnOnce()) -> Vec<Flown> {
    let flown = drive(gateway.address, flows, meanwhile);
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    flown
}

/// Premium's part in time, the part of all pages that were in time, and pages per second.
fn say(when: &str, premium: &Waited, rest: &Waited) -> (f64, f64, f64) {
    let pages = premium.answered() + rest.answered();
    let in_time = (premium.within(PROMISED) + rest.within(PROMISED)) as f64 / pages.max(1) as f64;
    let (own, rate) = (premium.in_time(PROMISED), premium.rate() + rest.rate());
    eprintln!(
        "{when}: premium {own:.4} in time; of all pages {in_time:.4}; {rate:.0} pages/s; turned away {} and {}, lost {} and {}",
        premium.rejected, rest.rejected, premium.lost, rest.lost
    );
    (own, in_time, rate)
}

const CALM: f64 = 6.0;

/// Calm, then three times what the server can do, for so many seconds.
fn crowd(mode: &str, seconds: f64) -> Checked {
    let nginx = start(SERVER);
    let gateway = Plimsoll::run(&untold(&nginx, mode));
    let premium = flow("/premium/page", &[(CALM + seconds, 100.0)]);
    let flown = run(&gateway, vec![premium, flow("/page", &[(CALM, 40.0), (seconds, 500.0)])], || ());
    let [premium, rest] = flown.as_slice() else { return Err("two flows".to_owned()) };
    let limit = gateway.metric("plimsoll_in_service_limit");
    let calm = (premium.waited(0.0..CALM), rest.waited(0.0..CALM));
    let whole = CALM..CALM + seconds;
    say(&format!("{mode}, calm"), &calm.0, &calm.1);
    let (own, in_time, rate) =
        say(&format!("{mode}, crowd"), &premium.waited(whole.clone()), &rest.waited(whole));
    eprintln!("in service at most: {limit}");
    between((calm.0.rejected + calm.1.rejected) as f64, 0.0..=0.0, "turned away while calm")?;
    between(own, 0.97..=1.0, "premium in time")?;
    between(in_time, 0.9..=1.0, "of all pages in time")?;
    between(rate, 140.0..=240.0, "pages per second, of a server of 200")?;
    between(limit, 6.0..=24.0, "in service at most, of a server of 8 workers")
}

#[test]
fn without_any_tuning_a_crowd_is_answered_in_time_and_premium_first() {
    on_a_steady_machine(|| {
        assert_eq!(crowd("control", 14.0), Ok(()));
        let twin = crowd("off", 4.0);
        eprintln!("without control: {twin:?}");
        assert!(twin.is_err(), "the twin without control must fail");
    });
}

/// Where the server takes twice as long, from the first second to the second.
const SLOW: (f64, f64) = (6.0, 16.0);

fn slows_down(mode: &str, until: f64) -> Checked {
    let nginx = start(SERVER);
    let gateway = Plimsoll::run(&untold(&nginx, mode));
    let flows = vec![flow("/premium/page", &[(until, 50.0)]), flow("/page", &[(until, 90.0)])];
    let began = Instant::now();
    let at = |second: f64| sleep(Duration::from_secs_f64(second).saturating_sub(began.elapsed()));
    let flown = run(&gateway, flows, || {
        at(SLOW.0);
        nginx.slow_down(true);
        if until > SLOW.1 {
            at(SLOW.1);
            nginx.slow_down(false);
        }
    });
    let [premium, rest] = flown.as_slice() else { return Err("two flows".to_owned()) };
    let during = SLOW.0..SLOW.1.min(until);
    let (own, in_time, rate) =
        say(&format!("{mode}, slow"), &premium.waited(during.clone()), &rest.waited(during));
    between(own, 0.95..=1.0, "premium in time while slow")?;
    between(in_time, 0.85..=1.0, "of all pages in time while slow")?;
    between(rate, 70.0..=120.0, "pages per second, of a server of 100")?;
    // Three seconds after it is as it was, it is as if nothing had been.
    let after = SLOW.1 + 3.0..until;
    let (own, in_time, _) =
        say(&format!("{mode}, after"), &premium.waited(after.clone()), &rest.waited(after.clone()));
    between(own, 0.99..=1.0, "premium in time after it")?;
    between(in_time, 0.97..=1.0, "of all pages in time after it")?;
    between(rest.waited(after).rejected as f64, 0.0..=0.0, "turned away after it")
}

#[test]
fn without_any_tuning_a_server_that_slows_to_half_is_used_and_comes_back() {
    on_a_steady_machine(|| {
        assert_eq!(slows_down("control", 24.0), Ok(()));
        // It ends in the incident, so only what is judged there counts.
        let twin = slows_down("off", 14.0);
        eprintln!("without control: {twin:?}");
        assert!(twin.is_err_and(|what| what.contains("while slow")), "the twin without control must fail");
    });
}

/// Two workers of 15 ms, 133/s less what a real server adds, and some four fifths of it: there the ratios can be had without leaving work undone. In
/// virtual time the second class is at 1.5 to 2.05 and the third at 1.9 to 3.3 with 60 seeds, in as many seconds.
const PAIR: Varied = Varied { workers: 2, mean: Duration::from_millis(15) };
const SHARES: [(&str, f64); 3] = [("/first/page", 52.0), ("/second/page", 35.0), ("/page", 17.0)];

/// What the second and the third class waited, as multiples of the first.
fn ratios(ratios: bool) -> (f64, f64) {
    let nginx = start(PAIR);
    let mut text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n\
         [upstream.server]\naddress = \"{}\"\ncapacity = {{ workers = 2, load_line = 1.0 }}\n\n\
         [[site]]\nname = \"shop\"\ndefault_ratio = 3\n\n\
         [[site.class]]\nname = \"first\"\nmatch = {{ path = \"/first/*\" }}\nratio = 1\n\n\
         [[site.class]]\nname = \"second\"\nmatch = {{ path = \"/second/*\" }}\nratio = 2\n",
        nginx.address
    );
    if !ratios {
        text = text
            .lines()
            .filter(|line| !line.contains("ratio"))
            .fold(String::new(), |all, line| all + line + "\n");
    }
    let gateway = Plimsoll::run(&text);
    let seconds = if ratios { 26.0 } else { 12.0 };
    let flows = SHARES.iter().map(|(path, rate)| flow(path, &[(seconds, *rate)])).collect();
    let means: Vec<f64> = run(&gateway, flows, || ())
        .iter()
        .map(|flown| {
            let waited = flown.waited(4.0..seconds);
            eprintln!(
                "{:.1} ms, {} pages, {} turned away, {} lost",
                1e3 * waited.mean(),
                waited.answered(),
                waited.rejected,
                waited.lost
            );
            assert_eq!(waited.lost, 0);
            waited.mean()
        })
        .collect();
    (means[1] / means[0], means[2] / means[0])
}

#[test]
fn three_classes_wait_as_their_ratios_say() {
    on_a_steady_machine(|| {
        let (second, third) = ratios(true);
        eprintln!("1 : {second:.2} : {third:.2}");
        assert_eq!(
            between(second, 1.3..=3.2, "the second").and(between(third, 1.7..=5.0, "the third")),
            Ok(())
        );
        let (second, third) = ratios(false);
        eprintln!("without ratios 1 : {second:.2} : {third:.2}");
        assert!(second < 1.25 && third < 1.5, "the twin without ratios must fail");
    });
}
