use super::super::choice::{Tried, choose};
use super::*;
use plimsoll_core::random::Random;
use std::net::SocketAddr;

const SLOW_START: Duration = Duration::from_secs(10);

fn at(milliseconds: u64) -> Instant {
    Instant::from_nanos(milliseconds * 1_000_000)
}

fn servers(count: u16) -> (Roster, Vec<Arc<Server>>) {
    let new = |port| Arc::new(Server::new(SocketAddr::from(([127, 0, 0, 1], port)).into(), None));
    let servers: Vec<_> = (1..=count).map(new).collect();
    let mut roster = Roster::default();
    roster.follow(at(0), &servers, SLOW_START);
    (roster, servers)
}

fn states(roster: &Roster, now: Instant) -> Vec<&'static str> {
    roster.status(now).servers.iter().map(|status| status.state).collect()
}

/// A request at a server that answers with this status.
fn answer(roster: &mut Roster, now: Instant, server: &Arc<Server>, status: u16) {
    let began = server.ejections();
    if status >= 500 {
        let in_row = server.count_error(began);
        if in_row >= FEWEST_ERRORS {
            roster.erred(now, server, in_row);
        }
    } else if server.count_served(began) {
        roster.answered(now, server);
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_out_for_longer_and_longer() {
    let (mut roster, servers) = servers(2);
    let server = &servers[0];
    let mut now = at(60_000);
    for out_ms in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
        roster.unreachable(now, server, Trouble::Refused, true);
        // Requests that are under way together fail together, and count as one failure.
        (0..100).for_each(|_| roster.unreachable(now, server, Trouble::Refused, false));
        let end = now + Duration::from_millis(out_ms);
        assert!(!server.claim_trial(Instant::from_nanos(end.as_nanos() - 1), SLOW_START));
        assert!(server.claim_trial(end, SLOW_START), "{out_ms} ms");
        assert!(!server.claim_trial(end, SLOW_START), "one request tries it");
        now = end;
    }
    assert_eq!(states(&roster, now), ["ejected", "healthy"]);
    roster.reached(now, server, true);
    assert_eq!(states(&roster, now), ["starting", "healthy"]);
    let soon = now + Duration::from_secs(29);
    roster.unreachable(soon, server, Trouble::Refused, false);
    assert!(!server.claim_trial(soon + Duration::from_secs(29), SLOW_START), "it was out for longer than in");
    roster.reached(soon, server, true);
    let later = soon + Duration::from_secs(30);
    roster.unreachable(later, server, Trouble::Refused, false);
    assert!(server.claim_trial(later + FIRST_EJECTION, SLOW_START), "it was in use for as long");
}

#[test]
fn a_server_is_an_outlier_only_beside_others_that_are_better() {
    let (mut roster, servers) = servers(4);
    (0..1000).for_each(|turn| answer(&mut roster, at(1000), &servers[turn % 4], 200));
    (0..4).for_each(|_| answer(&mut roster, at(1000), &servers[0], 503));
    answer(&mut roster, at(1000), &servers[0], 200);
    (0..4).for_each(|_| answer(&mut roster, at(1000), &servers[0], 503));
    assert_eq!(states(&roster, at(1000)), ["healthy"; 4], "never five in a row");
    answer(&mut roster, at(1000), &servers[0], 500);
    assert_eq!(states(&roster, at(1000))[0], "ejected");
    assert_eq!(roster.status(at(1000)).servers[0].why.as_deref(), Some("errors"));
    // A connection alone does not show that errors are over.
    roster.reached(at(1100), &servers[0], false);
    assert_eq!(states(&roster, at(1100))[0], "ejected");
}

/// An application that fails at half of its requests, whatever the server.
#[test]
fn an_application_that_fails_everywhere_ejects_nobody() {
    let (mut roster, servers) = servers(4);
    let (mut random, mut at_first) = (Random::new(1), 0);
    let ejections =
        |roster: &Roster| roster.status(at(0)).servers.iter().map(|server| server.ejections).sum::<u32>();
    (0..1000).for_each(|turn| answer(&mut roster, at(0), &servers[turn % 4], 200));
    for millisecond in 20_000..1_020_000 {
        if millisecond == 25_000 {
            at_first = ejections(&roster);
        }
        roster.look(at(millisecond));
        let status = if random.uniform() < 0.5 { 500 } else { 200 };
        answer(&mut roster, at(millisecond), &servers[random.below(4) as usize], status);
    }
    assert!(at_first < 10, "{at_first} ejections before it is known that the others are no better");
    let later = ejections(&roster) - at_first;
    assert!(later <= 2, "{later} ejections in a million requests, half of which fail");
    (0..200).for_each(|_| answer(&mut roster, at(1_020_000), &servers[2], 500));
    assert_eq!(
        states(&roster, at(1_020_000))[2],
        "ejected",
        "beside them one that fails always is an outlier"
    );
}

#[test]
fn errors_leave_half_of_the_servers_in_use_and_dead_servers_do_not() {
    let (mut roster, servers) = servers(5);
    (0..5000).for_each(|turn| answer(&mut roster, at(1000), &servers[turn % 5], 200));
    for server in &servers {
        (0..10).for_each(|_| answer(&mut roster, at(1000), server, 500));
    }
    assert_eq!(roster.in_use(), (5, 3));
    servers[2..].iter().for_each(|server| roster.unreachable(at(1001), server, Trouble::Refused, false));
    assert_eq!(roster.in_use(), (5, 0));
    // All are out, so all are used.
    let tried = Tried::default();
    let mut chosen: Vec<usize> = (0..50)
        .filter_map(|turn| choose(&servers, at(1002), &tried, turn, SLOW_START))
        .map(|choice| choice.number)
        .collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert_eq!(chosen, [0, 1, 2, 3, 4]);
    // The first that answers is used alone.
    answer(&mut roster, at(1003), &servers[4], 200);
    let used = |turn| choose(&servers, at(1004), &tried, turn, SLOW_START).map(|choice| choice.number);
    assert!((0..50).all(|turn| used(turn) == Some(4)));
}

/// What began before an ejection says nothing new, whenever it ends.
#[test]
fn requests_that_began_before_an_ejection_neither_end_nor_lengthen_it() {
    let (mut roster, servers) = servers(2);
    let began = servers[0].ejections();
    roster.unreachable(at(1000), &servers[0], Trouble::Refused, false);
    assert!(!servers[0].count_served(began));
    assert!((0..100).all(|_| servers[0].count_error(began) == 0));
    assert!(servers[0].count_served(servers[0].ejections()), "one that began since then does");
}

/// The result of a check.
fn found(is_good: bool) -> Result<(), CheckFault> {
    is_good.then_some(()).ok_or(CheckFault::Status(503))
}

#[test]
fn checks_and_requests_feed_one_set() {
    let (mut roster, servers) = servers(3);
    let rule = HealthCheck { failures: 3, successes: 2, ..HealthCheck::default() };
    let check = |roster: &mut Roster, second: u64, number: usize, is_good| {
        roster.checked(at(second * 1000), &servers[number], found(is_good), &rule)
    };
    check(&mut roster, 1, 0, false);
    check(&mut roster, 2, 0, false);
    check(&mut roster, 3, 0, true);
    check(&mut roster, 4, 0, false);
    check(&mut roster, 5, 0, false);
    assert_eq!(states(&roster, at(5000))[0], "healthy", "never three in a row");
    check(&mut roster, 6, 0, false);
    let why = |roster: &Roster| roster.status(at(6000)).servers[0].why.clone();
    assert_eq!(why(&roster).as_deref(), Some("health checks: status 503"));
    roster.checked(
        at(6000),
        &servers[0],
        Err(CheckFault::of(&std::io::ErrorKind::ConnectionRefused.into())),
        &rule,
    );
    assert_eq!(why(&roster).as_deref(), Some("health checks: connections refused"), "what the last one met");
    assert!(!servers[0].claim_trial(at(1_000_000), SLOW_START), "no request tries it");
    check(&mut roster, 7, 0, true);
    assert_eq!(states(&roster, at(7000))[0], "down");
    check(&mut roster, 8, 0, true);
    assert_eq!(states(&roster, at(8000))[0], "starting");
    // Good checks also end the ejection of a server that could not be reached, but not that of an outlier.
    roster.unreachable(at(9000), &servers[1], Trouble::ConnectTimeout, false);
    check(&mut roster, 9, 1, true);
    check(&mut roster, 9, 1, true);
    assert_eq!(states(&roster, at(9000))[1], "healthy", "it was out for no time, and starts in none");
    (0..20).for_each(|_| answer(&mut roster, at(10_000), &servers[2], 500));
    (0..9).for_each(|_| roster.checked(at(10_000), &servers[2], Ok(()), &rule));
    assert_eq!(states(&roster, at(10_000))[2], "ejected");
    // When checks end, no server is down any more.
    (0..3).for_each(|_| roster.checked(at(11_000), &servers[0], found(false), &rule));
    roster.end_checks(at(12_000), &servers[0]);
    assert_eq!(states(&roster, at(12_000))[0], "starting");
}

#[test]
fn a_server_that_stays_keeps_what_is_known_of_it_and_a_new_one_starts_slowly() {
    let (mut roster, mut servers) = servers(2);
    assert!(
        servers.iter().all(|server| server.weight(at(0)) == 1.0),
        "all were new, and none is passed over"
    );
    roster.unreachable(at(1000), &servers[0], Trouble::Refused, false);
    let left = servers.pop().expect("two");
    servers.push(Arc::new(Server::new(SocketAddr::from(([127, 0, 0, 1], 9)).into(), None)));
    roster.follow(at(1100), &servers, SLOW_START);
    assert!(left.is_gone() && !servers[0].is_gone());
    assert_eq!(states(&roster, at(1100)), ["ejected", "starting"]);
    assert!((servers[1].weight(at(6100)) - 0.5).abs() < 1e-6);
    assert!(servers[1].weight(at(11_100)) >= 1.0);
    roster.unreachable(at(1200), &left, Trouble::Refused, false);
    assert_eq!(roster.in_use(), (2, 1), "what becomes of one that has left is nothing to the others");
}

/// Whatever happens, in any order: some server is chosen; a server that is out is chosen only for a trial, at most once in its
/// time, or if all are out; and ejections for errors leave half in use.
#[test]
fn whatever_happens_requests_find_a_server() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let count = 1 + random.below(6) as u16;
        let (mut roster, servers) = servers(count);
        let rule = HealthCheck::default();
        let mut now = at(0);
        for turn in 0..500 {
            now += Duration::from_millis(random.below(300));
            let server = &servers[random.below(count.into()) as usize];
            let before = roster.in_use().1;
            match random.below(6) {
                0 => roster.unreachable(now, server, Trouble::Refused, random.below(2) == 0),
                1 => roster.reached(now, server, random.below(2) == 0),
                2 => roster.checked(now, server, found(random.below(3) == 0), &rule),
                3 => {
                    (0..random.below(30)).for_each(|_| answer(&mut roster, now, server, 500));
                    let in_use = roster.in_use().1;
                    assert!(in_use == before || 2 * in_use >= usize::from(count), "{in_use} of {count}");
                }
                _ => answer(&mut roster, now, server, 200),
            }
            let in_use = roster.in_use().1;
            assert_eq!(in_use, servers.iter().filter(|server| !server.is_out()).count());
            let mut tried = Tried::default();
            for number in 0..servers.len().min(Tried::MOST) {
                let choice = choose(&servers, now, &tried, turn, SLOW_START).expect("there is another");
                let is_out = servers[choice.number].is_out();
                assert!(number > 0 || !is_out || choice.is_trial || in_use == 0, "seed {seed}, turn {turn}");
                tried.add(choice.number);
            }
        }
    }
}

#[test]
fn the_share_that_is_there_counts_servers_by_their_turns() {
    let (mut roster, mut servers) = servers(4);
    assert_eq!(roster.share(at(1000)), 1.0);
    roster.unreachable(at(1000), &servers[1], Trouble::Refused, false);
    assert_eq!(roster.share(at(1001)), 0.75);
    roster.reached(at(6000), &servers[1], true);
    // It grows over the five seconds that it was out.
    let shares = [6000, 8500, 11_000].map(|now| roster.share(at(now)));
    assert!((shares[0] - 0.775).abs() < 1e-9 && (shares[1] - 0.875).abs() < 1e-9, "{shares:?}");
    assert_eq!(shares[2], 1.0);
    servers.iter().for_each(|server| roster.unreachable(at(20_000), server, Trouble::Refused, false));
    assert_eq!(roster.share(at(20_001)), 1.0, "all are out, so all are used");
    roster.reached(at(25_000), &servers[0], true);
    assert_eq!(roster.share(at(25_000)), 0.25, "the first that is back has all turns, starting or not");
    servers.iter().for_each(|server| roster.reached(at(25_000), server, false));
    servers.push(Arc::new(Server::new(SocketAddr::from(([127, 0, 0, 1], 9)).into(), None)));
    roster.follow(at(60_000), &servers, SLOW_START);
    assert_eq!([60_000, 71_000].map(|now| roster.share(at(now))), [1.0; 2], "a new one takes from nobody");
    roster.unreachable(at(72_000), &servers[4], Trouble::Refused, false);
    assert_eq!(roster.share(at(72_000)), 0.8);
}

#[test]
fn servers_that_go_and_return_are_logged() {
    let (mut roster, servers) = servers(2);
    assert!(roster.news(at(1000), "app").is_empty());
    roster.unreachable(at(60_000), &servers[0], Trouble::Refused, false);
    let said = |news: Vec<ServerNews>| news.into_iter().map(|one| (one.is_bad, one.text)).collect::<Vec<_>>();
    let line = "127.0.0.1:1 is out of use (connections refused); 1 of 2 servers are in use";
    assert_eq!(said(roster.news(at(60_100), "app")), [(true, line.to_owned())]);
    roster.unreachable(at(60_500), &servers[0], Trouble::ConnectTimeout, true);
    assert!(roster.news(at(60_600), "app").is_empty(), "a try that fails is no news");
    roster.reached(at(62_000), &servers[0], true);
    let line = "127.0.0.1:1 is in use again after 2.0 s, and has its whole share in 2.0 s; 2 of 2 servers are in use";
    assert_eq!(said(roster.news(at(62_100), "app")), [(false, line.to_owned())]);
    servers.iter().for_each(|server| roster.unreachable(at(200_000), server, Trouble::Refused, false));
    let both = said(roster.news(at(200_100), "app"));
    assert!(
        both.len() == 2
            && both.iter().all(|(_, text)| text.ends_with("no server is in use, so all are used"))
    );
}
