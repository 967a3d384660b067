//! UC Fig. 12 with a real server: two sites inside their contracts, and best effort that overloads the machine. What
//! was promised is delivered, and neither site moves when the other does. With control off both fail. Fig. 13 is the
//! server alone: nobody is told from anybody.

use plimsoll_e2e::configuration::plain;
use plimsoll_e2e::overload::load_on;
use plimsoll_e2e::page::{FULL, LIGHT_TREE, WORKERS, capacity};
use plimsoll_e2e::{Nginx, Plimsoll};
use plimsoll_load::{Tally, on_a_steady_machine};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Of each contract, as a part of the server's capacity.
const PROMISED: f64 = 0.25;
/// Of best effort.
const CROWD: f64 = 4.0;

/// Two contracts of a quarter of the server each, and everybody else.
fn three_sites(upstream: SocketAddr, mode: &str) -> String {
    let cost = FULL.as_secs_f64() * 1e3 / WORKERS as f64;
    let costs = format!("capacity = {{ workers = {WORKERS}, costs = {{ request = \"{cost}ms\" }} }}");
    let plain = plain(upstream)
        .replacen("threads = 2", &format!("threads = 2\nmode = \"{mode}\""), 1)
        .replacen(&format!("capacity = {{ workers = {WORKERS} }}"), &costs, 1);
    let levels = format!(
        "\n[[site.level]]\nname = \"light\"\nprefix = \"{LIGHT_TREE}\"\n\n[[site.level]]\nname = \"full\"\n"
    );
    let rate = PROMISED * capacity();
    let site = |name: &str, more: &str| format!("\n[[site]]\nname = \"{name}\"\n{more}{levels}");
    let contract =
        |name: &str| site(name, &format!("host = \"{name}.test\"\nguarantee = {{ rate = \"{rate}/s\" }}\n"));
    plain + "\n[report]\nwhen = \"always\"\n" + &contract("v1") + &contract("v2") + &site("others", "")
}

/// What the three got: v1 constant just inside its contract, v2 from half of that up to it, the others a crowd.
fn run(upstream: SocketAddr, mode: &str, seconds: u64) -> [Tally; 3] {
    let gateway = Plimsoll::run(&three_sites(upstream, mode));
    let tallies = offer(gateway.address, mode, seconds);
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    tallies
}

/// The same load on whatever listens there.
fn offer(address: SocketAddr, mode: &str, seconds: u64) -> [Tally; 3] {
    // Just inside: a tenth below, so that chance is not what is tested.
    let rate = 0.9 * PROMISED * capacity();
    let third = Duration::from_secs(seconds / 3);
    let all = [
        load_on(address, "v1.test", 1, &[(3 * third, rate)]),
        load_on(address, "v2.test", 2, &[(third, 0.5 * rate), (2 * third, rate)]),
        load_on(address, "others.test", 3, &[(third, 0.2 * capacity()), (2 * third, CROWD * capacity())]),
    ];
    let tallies = all.map(|load| load.join());
    for (name, tally) in ["v1", "v2", "others"].iter().zip(&tallies) {
        eprintln!(
            "{mode}, {name}: {} requests, {:?} {:?}, levels {:?}, p99 {:?}",
            tally.requests,
            tally.by_status,
            tally.errors,
            tally.by_level,
            tally.latency.quantile(0.99)
        );
    }
    tallies
}

/// Answers at a level, whatever their status: the header tells what the gateway chose.
fn at_level(tally: &Tally, level: u8) -> u64 {
    tally.by_level.get(&Some(level)).map_or(0, |answers| answers.count)
}

/// Of what was offered: the part that was answered with the page at full quality.
fn full(tally: &Tally) -> f64 {
    (tally.status(200) - at_level(tally, 1)) as f64 / tally.requests as f64
}

#[test]
fn contracts_are_kept_before_a_real_server() {
    on_a_steady_machine(|| {
        let nginx = Nginx::start(Path::new(env!("CARGO_BIN_EXE_page-scgi")));
        let [v1, v2, others] = run(nginx.address, "control", 30);
        for (name, tally) in [("v1", &v1), ("v2", &v2)] {
            assert!(full(tally) >= 0.99, "{name}: {:.3} of what was offered at full quality", full(tally));
            // A page takes 200 ms; whoever is inside a contract waits for a worker, not behind the crowd.
            let p99 = tally.latency.quantile(0.99);
            assert!(p99 < Duration::from_secs(1), "{name}: {p99:?}");
        }
        // The others live of the rest, and there is one: degraded, and a part of them turned away.
        let served = at_level(&others, 1) as f64 / others.requests as f64;
        assert!((0.25..0.95).contains(&served), "{served:.3} of the others served light");
        assert!(others.status(503) > 0, "nobody of the others was turned away: no overload");

        let [v1, v2, _] = run(nginx.address, "off", 15);
        assert!(
            full(&v1) < 0.9 && full(&v2) < 0.9,
            "the twin without control must fail: {:.3} {:.3}",
            full(&v1),
            full(&v2)
        );
    });
}

/// UC Fig. 13.
#[test]
fn without_a_gateway_nobody_is_isolated() {
    on_a_steady_machine(|| {
        let nginx = Nginx::start(Path::new(env!("CARGO_BIN_EXE_page-scgi")));
        let shares = offer(nginx.address, "nginx alone", 15).map(|tally| full(&tally));
        // A third of the time there is room for everybody.
        for (name, share) in ["v1", "v2"].iter().zip(shares) {
            assert!(
                (0.15..0.85).contains(&share),
                "{name}: {share:.3} of what was offered, and a quarter was its own"
            );
        }
        // Then four times the capacity comes, of which a quarter and no more can be answered: of the others, too.
        assert!((0.1..0.5).contains(&shares[2]), "{:.3} of the others", shares[2]);
    });
}
