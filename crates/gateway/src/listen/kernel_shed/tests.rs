use super::table::packets;
use super::*;
use std::net::SocketAddr;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// No client.
const NOBODY: [IpAddr; 0] = [];
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_client_stands_in_the_set_for_as_long_as_it_was_told_and_no_longer() {
    let mut held = Held::default();
    let told =
        vec![(ip("10.0.0.1"), at(6)), (ip("::ffff:10.0.0.1"), at(6)), (ip("10.0.0.2"), at(1) + INTERVAL)];
    let five = Duration::from_secs(5);
    assert_eq!(held.add(at(1), told), [(ip("10.0.0.1"), five)], "once, and none that may come again at once");
    let told = vec![(ip("2001:db8::7"), at(3600))];
    assert_eq!(held.add(at(1), told), [(ip("2001:db8::"), MINUTE)], "a household, for a minute at most");
    assert_eq!(held.lift(at(5), |_| true), NOBODY);
    assert_eq!(held.until.len(), 2);
    assert_eq!(held.lift(at(6), |_| true), NOBODY);
    assert_eq!(held.until.len(), 1, "the first one's time is over");
    assert_eq!(held.lift(at(7), |_| false), [ip("2001:db8::")], "it would be served again");
    assert!(held.until.is_empty());
    assert_eq!(held.clients, [ip("2001:db8::")], "what it began until now is still to be counted");
    assert_eq!(held.lift(at(7), |_| false), NOBODY);
    assert!(held.clients.is_empty());
}

#[test]
fn resets_are_counted_over_all_clients_of_the_set() {
    let mut held = Held::default();
    let told = (1..=3).map(|last| (ip(&format!("10.0.0.{last}")), at(60))).collect();
    held.add(at(0), told);
    held.lift(at(0), |_| true);
    let mut counts = HashMap::<IpAddr, u32>::new();
    for resets in [1, 0, 4, 4] {
        held.turns(resets).for_each(|client| *counts.entry(client).or_default() += 1);
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(Held::default().turns(0).count(), 0);
}

#[test]
fn a_set_has_no_more_clients_than_it_holds() {
    let mut held = Held::default();
    let told =
        (0..2 * MOST as u32).map(|bits| (std::net::Ipv4Addr::from_bits(bits).into(), at(60))).collect();
    assert_eq!(held.add(at(0), told).len(), MOST);
}

#[test]
fn what_is_printed_of_a_counter_is_understood() {
    let page = "table inet plimsoll_80 {\n\tcounter turned_away {\n\t\tpackets 12 bytes 720\n\t}\n}\n";
    assert_eq!((packets(page), packets("")), (12, 0));
}

#[test]
fn gateways_that_listen_elsewhere_never_share_a_table_and_those_that_listen_there_do() {
    let name = |addresses: &[&str]| {
        let parsed: Vec<SocketAddr> =
            addresses.iter().map(|text| text.parse().expect("an address")).collect();
        ShedTable::of(parsed).map(|table| table.name)
    };
    let lists: [&[&str]; 6] = [
        &["127.0.0.1:8080"],
        &["127.0.0.2:8080"],
        &["0.0.0.0:8080"],
        &["[::]:8080"],
        &["127.0.0.1:8080", "127.0.0.1:8443"],
        &["127.0.0.1:8080", "127.0.0.2:8443"],
    ];
    let names: std::collections::BTreeSet<_> = lists.iter().filter_map(|list| name(list)).collect();
    assert_eq!(names.len(), lists.len(), "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("plimsoll_8080_")), "{names:?}");
    assert_eq!(name(&["[::1]:81", "127.0.0.1:80"]), name(&["127.0.0.1:80", "[::1]:81"]), "in any order");
    assert_eq!(name(&[]), None);
}

#[test]
fn the_kernel_says_whether_there_is_a_table_without_nft() {
    use nix::sched::{CloneFlags, unshare};
    let asked = std::thread::spawn(|| {
        // Only root may have a network namespace of its own.
        unshare(CloneFlags::CLONE_NEWNET).ok()?;
        let [own, other] = ["127.0.0.1:80", "127.0.0.1:81"].map(|address| {
            ShedTable::of(vec![address.parse().expect("an address")]).expect("it has an address")
        });
        let mut asked = vec![own.is_there()];
        own.make().expect("nft makes it");
        asked.extend([own.is_there(), other.is_there()]);
        own.remove_own();
        asked.push(own.is_there());
        Some(asked)
    });
    let asked = asked.join().expect("no panic");
    assert!(asked.is_none_or(|asked| asked == [false, true, false, false]));
}
