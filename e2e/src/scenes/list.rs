//! The scenes, each with the figure of its paper that it follows.

use super::{Figure, Scene};
use crate::configuration::{GATEWAY, contract, plain, priced, site, two_levels};
use crate::flows::{End, Flow, Flown, Window};
use crate::model::{SLOW_PAGES, ServerModel};
use std::ops::Range;
use std::time::Duration;

/// All of them.
pub fn all() -> Vec<Scene> {
    vec![
        overload(),
        contracts(),
        priorities(),
        excess(),
        bandwidth(),
        deadlines(),
        untuned(),
        slow_server(),
        ratios(),
    ]
}

/// What the gateway holds by itself.
const LOAD_LINE: f64 = 0.85;
/// How long a client of an overloaded server waits.
const PATIENCE: Duration = Duration::from_secs(4);
const LIGHT: End = End::Page { full: false };

/// A scene to which its flows and figures are to be added.
fn scene(name: &'static str, configuration: String, model: ServerModel) -> Scene {
    let (flows, figures, patience) = (vec![], vec![], Some(PATIENCE));
    Scene { name, configuration, without: None, model, nginx: false, slow: None, flows, patience, figures }
}

/// The least of a figure over windows of so many seconds.
fn least(flown: &Flown, seconds: u32, windows: u32, of: fn(&Window<'_>) -> f64) -> f64 {
    let window = |place: u32| flown.during(f64::from(place * seconds)..f64::from((place + 1) * seconds));
    (0..windows).map(|place| of(&window(place))).fold(f64::INFINITY, f64::min)
}

/// UC Fig. 6: at two and a half times the capacity no request fails, and quality is not thrown away either.
pub fn overload() -> Scene {
    const CALM: f64 = 4.0;
    const MULTIPLE: f64 = 2.5;
    let capacity = SLOW_PAGES.capacity();
    let light = SLOW_PAGES.light_cost();
    let allowed = (LOAD_LINE / MULTIPLE - light) / (1.0 - light);
    Scene {
        nginx: true,
        flows: vec![Flow::new("e2e.test", "/page", &[(CALM, 0.5 * capacity), (20.0, MULTIPLE * capacity)])],
        figures: vec![
            Figure::new("failed", 0.0..=0.0, |flown| flown[0].all().failed()).twin(0.2..=1.0),
            Figure::new("at full quality", allowed / 3.0..=1.3 * allowed + 0.05, |flown| {
                flown[0].during(CALM..24.0).full()
            }),
        ],
        ..scene("2.5 times the capacity (UC Fig. 6)", two_levels(), SLOW_PAGES)
    }
}

/// UC Fig. 12: V1 and V2 were promised a quarter of the server each, and best effort brings four times the capacity.
pub fn contracts() -> Scene {
    const PROMISED: f64 = 0.25;
    let capacity = SLOW_PAGES.capacity();
    // A tenth below the contract, so that chance is not what is tested.
    let rate = 0.9 * PROMISED * capacity;
    let sites =
        contract("v1", PROMISED, SLOW_PAGES) + &contract("v2", PROMISED, SLOW_PAGES) + &site("others", "");
    Scene {
        nginx: true,
        flows: vec![
            Flow::new("v1.test", "/page", &[(30.0, rate)]),
            Flow::new("v2.test", "/page", &[(10.0, 0.5 * rate), (20.0, rate)]),
            Flow::new("others.test", "/page", &[(10.0, 0.2 * capacity), (20.0, 4.0 * capacity)]),
        ],
        figures: vec![
            Figure::new("V1 at full quality", 0.99..=1.0, |flown| flown[0].all().full()).twin(0.0..=0.9),
            Figure::new("V2 at full quality", 0.99..=1.0, |flown| flown[1].all().full()).twin(0.0..=0.9),
            Figure::new("V1's p99 (s)", 0.2..=1.0, |flown| flown[0].all().quantile(0.99)),
            Figure::new("V2's p99 (s)", 0.2..=1.0, |flown| flown[1].all().quantile(0.99)),
            Figure::new("best effort served light", 0.25..=0.95, |flown| flown[2].all().part(LIGHT)),
            Figure::new("best effort rejected", 0.01..=0.75, |flown| flown[2].all().part(End::Rejected)),
        ],
        ..scene("two contracts of a quarter (UC Fig. 12)", priced(SLOW_PAGES) + &sites, SLOW_PAGES)
    }
}

/// Half of what a page costs is not in its bytes, so a light page takes 0.56 of a full one's time.
const SHARED: ServerModel = ServerModel {
    workers: 32,
    queue: 511,
    fixed: Duration::from_millis(50),
    per_kib: Duration::from_nanos(1_562_500),
    kib: 32,
    exponential: false,
};

/// What a stretch used of the shared server.
fn used(window: &Window<'_>) -> f64 {
    window.rate(SHARED.light_cost()) / SHARED.capacity()
}

/// UC Fig. 14: premium constant; basic that fits, then can be degraded, then is too much even so.
pub fn priorities() -> Scene {
    let premium = "[[site.class]]\nname = \"premium\"\nmatch = { path = \"/premium/*\" }\npriority = 1\n";
    let capacity = SHARED.capacity();
    let basic = [(4.0, 0.3 * capacity), (5.0, 0.7 * capacity), (5.0, 1.6 * capacity)];
    Scene {
        flows: vec![
            Flow::new("shop.test", "/premium/page", &[(14.0, 0.35 * capacity)]),
            Flow::new("shop.test", "/page", &basic),
        ],
        figures: vec![
            Figure::new("premium at full quality, least", 0.97..=1.0, |flown| {
                [0.0..4.0, 4.0..9.0, 9.0..11.5, 11.5..14.0]
                    .map(|seconds| flown[0].during(seconds).full())
                    .into_iter()
                    .fold(1.0, f64::min)
            }),
            Figure::new("premium's slowest (s)", 0.1..=2.5, |flown| flown[0].all().quantile(1.0)),
            Figure::new("basic full while there is room", 0.9..=1.0, |flown| {
                flown[1].during(1.0..4.0).full()
            }),
            Figure::new("basic full when degraded", 0.05..=0.75, |flown| flown[1].during(6.0..9.0).full()),
            Figure::new("basic rejected when degraded", 0.0..=0.03, |flown| {
                flown[1].during(6.0..9.0).part(End::Rejected)
            }),
            Figure::new("basic rejected", 0.25..=0.65, |flown| {
                flown[1].during(11.5..14.0).part(End::Rejected)
            }),
            Figure::new("basic full while rejected", 0.0..=0.05, |flown| flown[1].during(11.5..14.0).full())
                .twin(0.06..=1.0),
        ],
        ..scene("basic degraded, then rejected (UC Fig. 14)", priced(SHARED) + &site("shop", premium), SHARED)
    }
}

/// What V1 and V2 were promised. V2's is more than its even share of what V1 leaves, so that best effort holds it to its
/// contract.
const V1: f64 = 0.25;
const V2: f64 = 0.35;

/// UC Fig. 15 and 16, and the moment between: V2 takes what is left, then best effort overloads the server.
pub fn excess() -> Scene {
    /// When best effort comes (s), and the seconds in which V2 is judged after that.
    const OTHERS: f64 = 20.0;
    const AFTER: Range<f64> = 23.0..63.0;
    let capacity = SHARED.capacity();
    let flow = |host, steps: &[(f64, f64)]| {
        let steps: Vec<_> = steps.iter().map(|(seconds, part)| (*seconds, part * capacity)).collect();
        Flow::new(host, "/page", &steps)
    };
    Scene {
        flows: vec![
            flow("v1.test", &[(63.0, 0.9 * V1)]),
            flow("v2.test", &[(2.0, 0.5 * V2), (61.0, 2.5 * V2)]),
            flow("others.test", &[(OTHERS, 0.005), (63.0 - OTHERS, 1.5)]),
        ],
        figures: vec![
            Figure::new("V1 at full quality, least of 7 s", 0.97..=1.0, |flown| {
                least(&flown[0], 7, 9, |window| window.full())
            })
            .twin(0.0..=0.9),
            Figure::new("V1's slowest (s)", 0.1..=2.5, |flown| flown[0].all().quantile(1.0)),
            Figure::new("V2's share of the excess", 0.8..=1.2, |flown| {
                let [v1, v2] = [0, 1].map(|site| used(&flown[site].during(4.0..OTHERS)));
                (v2 - V2) / (LOAD_LINE - v1 - V2)
            }),
            // Then best effort comes, and V2 loses what was never its own, and nothing else.
            Figure::new("V2, of its U* when others come", 0.8..=2.2, |flown| {
                used(&flown[1].during(OTHERS..OTHERS + 2.0)) / V2
            }),
            Figure::new("V2, of its U* after", 0.95..=1.05, |flown| used(&flown[1].during(AFTER)) / V2),
            Figure::new("V2, of its bandwidth after", 0.1..=0.5, |flown| {
                flown[1].during(AFTER).rate(0.125) / SHARED.capacity() / V2
            }),
            Figure::new("V2 rejected: a R alone exceeds U*", 0.1..=0.45, |flown| {
                flown[1].during(AFTER).part(End::Rejected)
            }),
        ],
        ..scene(
            "the excess of a contract (UC Fig. 15, 16)",
            priced(SHARED) + &contract("v1", V1, SHARED) + &contract("v2", V2, SHARED) + &site("others", ""),
            SHARED,
        )
    }
}

/// UC 7.8's contract: 100 requests a second, and 13 Mb/s for pages of 32 KiB, which are the bytes of 50. More is delivered
/// while the rate is low, exactly that at the promised rate, and less beyond it: what is held is `a R + b W`.
pub fn bandwidth() -> Scene {
    const RATE: f64 = 100.0;
    const PAGES: f64 = 50.0;
    /// V2 leaves less to V1 and best effort together than two of what V1 was promised.
    const V2_PART: f64 = 0.45;
    /// Bytes of a light page, of a full one's.
    const LIGHT_BYTES: f64 = 0.125;
    let bytes = PAGES * SHARED.bytes() as f64;
    let promised = format!(
        "host = \"v1.test\"\nguarantee = {{ rate = \"{RATE}/s\", bandwidth = \"{} kbit/s\" }}\n",
        bytes * 8.0 / 1e3
    );
    Scene {
        flows: vec![
            Flow::new("v1.test", "/page", &[(10.0, 0.6 * RATE), (60.0, RATE)]),
            Flow::new("v2.test", "/page", &[(70.0, 0.9 * V2_PART * SHARED.capacity())]),
            Flow::new("others.test", "/page", &[(70.0, 3.0 * RATE)]),
        ],
        figures: vec![
            Figure::new("V1 at full quality while its rate is low", 0.97..=1.0, |flown| {
                flown[0].during(2.0..10.0).full()
            }),
            Figure::new("V1, of its bandwidth then", 1.05..=1.4, |flown| {
                flown[0].during(2.0..10.0).rate(LIGHT_BYTES) / PAGES
            }),
            // It is policed at once, but it takes half a minute to learn how much the clients of a fraction ask for, who are
            // unequal: the longer scenario of `crates/sim/tests/contracts/main.rs` has the bounds of the promise.
            Figure::new("V1, of its bandwidth at its rate", 0.8..=1.45, |flown| {
                flown[0].during(14.0..70.0).rate(LIGHT_BYTES) / PAGES
            }),
            Figure::new("V2 at full quality", 0.98..=1.0, |flown| flown[1].all().full()).twin(0.0..=0.9),
            Figure::new("V1 rejected", 0.0..=0.01, |flown| flown[0].during(14.0..70.0).part(End::Rejected)),
        ],
        ..scene(
            "a bandwidth is exceeded first (UC 7.8)",
            priced(SHARED) + &site("v1", &promised) + &contract("v2", V2_PART, SHARED) + &site("others", ""),
            SHARED,
        )
    }
}

/// What a client waits (s); the gateway promises a little less, since both clocks are real.
const DEADLINE: f64 = 0.5;
/// Requests per second of premium, others and reports that take ten times as long.
const ASKED: [f64; 3] = [60.0, 120.0, 12.0];

/// Cheap and dear pages before a server of 200 pages a second, with a deadline of half a second.
fn deadlines() -> Scene {
    const SECONDS: f64 = 14.0;
    let site = "\n[[site]]\nname = \"shop\"\ndeadline = \"480ms\"\ndefault_priority = 2\n\
        [[site.type]]\nname = \"report\"\nmatch.path = \"/reports/*\"\ncost = 100\n\
        [[site.class]]\nname = \"premium\"\nmatch.path = \"/premium/*\"\npriority = 1\n";
    let model = ServerModel {
        workers: 8,
        queue: 511,
        fixed: Duration::ZERO,
        per_kib: Duration::from_millis(40),
        kib: 1,
        exponential: true,
    };
    let [premium, basic, reports] = ASKED.map(|rate| [(SECONDS, rate)]);
    Scene {
        flows: vec![
            Flow::new("shop.test", "/premium/page", &premium),
            Flow::new("shop.test", "/page", &basic),
            Flow { bytes: Some(10 << 10), ..Flow::new("shop.test", "/reports/1", &reports) },
        ],
        patience: None,
        // Costs are known after two seconds.
        figures: vec![
            Figure::new("in time, of the pages asked for", 0.85..=1.05, |flown| {
                let in_time: usize =
                    flown.iter().map(|flown| flown.during(2.0..SECONDS).within(DEADLINE)).sum();
                let pages: usize = flown[..2].iter().map(|flown| flown.during(2.0..SECONDS).requests()).sum();
                in_time as f64 / pages as f64
            })
            .twin(0.0..=0.6),
            Figure::new("premium in time", 0.98..=1.0, |flown| {
                flown[0].during(2.0..SECONDS).in_time(DEADLINE)
            })
            .twin(0.0..=0.7),
            Figure::new("admitted and late", 0.0..=0.05, |flown| {
                let windows = || flown.iter().map(|flown| flown.during(2.0..SECONDS));
                let late = |window: Window<'_>| {
                    window.requests() - window.within(DEADLINE) - window.count(End::Rejected)
                };
                windows().map(late).sum::<usize>() as f64
                    / windows().map(|window| window.requests()).sum::<usize>() as f64
            }),
        ],
        ..scene("deadlines of half a second", plain() + site, model)
    }
}

/// Everybody was promised half a second, premium more surely (s).
const PROMISED: f64 = 0.5;

/// A gateway's file that says where the server is and what was promised, and nothing of what pages cost.
fn unpriced() -> String {
    let promised = "delay = \"500ms\"\npercentile";
    format!(
        "{GATEWAY}mode = \"{{mode}}\"\n\n[upstream.server]\naddress = \"{{upstream}}\"\n\n\
         [[site]]\nname = \"shop\"\n{promised} = 95\ndefault_priority = 2\n\n\
         [[site.class]]\nname = \"premium\"\nmatch = {{ path = \"/premium/*\" }}\npriority = 1\n{promised} = 99.9\n"
    )
}

/// The part of all pages of premium and the others that were in time.
fn pages_in_time(flown: &[Flown], from: f64, until: f64) -> f64 {
    let windows = [0, 1].map(|flow| flown[flow].during(from..until));
    let pages: usize = windows.iter().map(|window| window.latencies().len()).sum();
    windows.iter().map(|window| window.within(PROMISED)).sum::<usize>() as f64 / pages.max(1) as f64
}

/// Pages per second of premium and the others.
fn pages(flown: &[Flown], from: f64, until: f64) -> f64 {
    [0, 1].map(|flow| flown[flow].during(from..until).rate(1.0)).iter().sum()
}

/// Requests of premium and the others that were turned away.
fn turned_away(flown: &[Flown], from: f64, until: f64) -> f64 {
    [0, 1].map(|flow| flown[flow].during(from..until).count(End::Rejected)).iter().sum::<usize>() as f64
}

/// Response times without any tuning: calm at 0.78 of what a server of 200 pages a second can do, then three times that.
fn untuned() -> Scene {
    Scene {
        nginx: true,
        flows: vec![
            Flow::new("shop.test", "/premium/page", &[(20.0, 100.0)]),
            Flow::new("shop.test", "/page", &[(6.0, 56.0), (14.0, 500.0)]),
        ],
        figures: vec![
            Figure::new("turned away while calm", 0.0..=0.0, |flown| turned_away(flown, 0.0, 6.0)),
            Figure::new("premium in time", 0.97..=1.0, |flown| flown[0].during(6.0..20.0).in_time(PROMISED))
                .mean(0.999)
                .twin(0.0..=0.7),
            Figure::new("of all pages in time", 0.9..=1.0, |flown| pages_in_time(flown, 6.0, 20.0)),
            Figure::new("pages per second, of 200", 140.0..=240.0, |flown| pages(flown, 6.0, 20.0)),
        ],
        ..scene(
            "response times without tuning, a crowd",
            unpriced(),
            ServerModel::exponential(8, Duration::from_millis(40)),
        )
    }
}

/// The same server takes twice as long for ten seconds.
fn slow_server() -> Scene {
    Scene {
        name: "response times, a server at half its speed",
        slow: Some((6.0, 16.0)),
        flows: vec![
            Flow::new("shop.test", "/premium/page", &[(24.0, 50.0)]),
            Flow::new("shop.test", "/page", &[(24.0, 90.0)]),
        ],
        figures: vec![
            Figure::new("premium in time while slow", 0.95..=1.0, |flown| {
                flown[0].during(6.0..16.0).in_time(PROMISED)
            })
            .mean(0.993)
            .twin(0.0..=0.7),
            Figure::new("of all pages in time while slow", 0.85..=1.0, |flown| {
                pages_in_time(flown, 6.0, 16.0)
            }),
            Figure::new("pages per second, of 100", 70.0..=120.0, |flown| pages(flown, 6.0, 16.0)),
            Figure::new("premium in time after it", 0.99..=1.0, |flown| {
                flown[0].during(19.0..24.0).in_time(PROMISED)
            }),
            Figure::new("of all pages in time after it", 0.97..=1.0, |flown| {
                pages_in_time(flown, 19.0, 24.0)
            }),
            Figure::new("turned away after it", 0.0..=0.0, |flown| turned_away(flown, 19.0, 24.0)),
        ],
        ..untuned()
    }
}

/// Three classes wait as 1 : 2 : 3 before two workers of 15 ms at some four fifths of their capacity, where the ratios can be
/// had without leaving work undone.
fn ratios() -> Scene {
    const SECONDS: f64 = 26.0;
    let promises = "\n[upstream.server]\naddress = \"{upstream}\"\ncapacity = { workers = 2, load_line = 1.0 }\n\n\
         [[site]]\nname = \"shop\"\ndefault_ratio = 3\n\n\
         [[site.class]]\nname = \"first\"\nmatch = { path = \"/first/*\" }\nratio = 1\n\n\
         [[site.class]]\nname = \"second\"\nmatch = { path = \"/second/*\" }\nratio = 2\n";
    let flow = |path, rate| Flow::new("shop.test", path, &[(SECONDS, rate)]);
    Scene {
        without: Some("ratio"),
        nginx: true,
        flows: vec![flow("/first/page", 52.0), flow("/second/page", 35.0), flow("/page", 17.0)],
        figures: vec![
            Figure::new("the second of the first", 1.3..=3.2, |flown| {
                flown[1].during(4.0..SECONDS).mean() / flown[0].during(4.0..SECONDS).mean()
            })
            .twin(0.5..=1.25),
            Figure::new("the third of the first", 1.7..=5.0, |flown| {
                flown[2].during(4.0..SECONDS).mean() / flown[0].during(4.0..SECONDS).mean()
            })
            .twin(0.5..=1.5),
        ],
        ..scene(
            "waits at 1 : 2 : 3",
            GATEWAY.to_owned() + promises,
            ServerModel::exponential(2, Duration::from_millis(15)),
        )
    }
}
