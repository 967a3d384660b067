//! A name that has other addresses than before, as clients and servers see it: no request fails, requests under way finish
//! where they began, and what is known of the servers that stay is kept.

use crate::support::*;
use plimsoll_gateway::Gateway;
use plimsoll_gateway::settings::Address;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

fn move_to(gateway: &Gateway, addresses: &[SocketAddr]) -> [Vec<Address>; 2] {
    let addresses: Vec<_> = addresses.iter().map(|address| (Address::from(*address), None)).collect();
    let name = upstream(gateway)["name"].as_str().expect("a name").to_owned();
    gateway.reloader().readdress(&name, &addresses).expect("no name is wrong").expect("it is there")
}

#[test]
fn servers_come_and_go_under_load_and_no_request_fails() {
    let [stays, first, second] = [b"stays", b"first", b"other"].map(|body| Origin::serving(body));
    let gateway = watched(&[stays.address, first.address]);
    let (stop, served) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut client = client(&gateway);
                while !stop.load(SeqCst) {
                    assert_eq!(client.get("/").0, 200);
                    served.fetch_add(1, SeqCst);
                }
            });
        }
        for round in 0..20 {
            let (now, before) = if round % 2 == 0 { (&second, &first) } else { (&first, &second) };
            let changes = move_to(&gateway, &[stays.address, now.address]);
            assert_eq!(changes, [vec![now.address.into()], vec![before.address.into()]]);
            let count = served.load(SeqCst);
            eventually("traffic goes on", || served.load(SeqCst) > count + 20);
            eventually("connections to the one that is gone are closed", || before.open.load(SeqCst) == 0);
        }
        stop.store(true, SeqCst);
    });
    settled(&gateway);
    let upstream = upstream(&gateway);
    let kept = upstream["servers"][0]["served"].as_u64().expect("a count");
    assert!(kept > 100, "what was counted at the server that stays is kept: {upstream}");
    assert_eq!(upstream["servers"][0]["state"], "healthy", "and it does not start anew");
    assert_eq!(upstream["retries"], 0, "{upstream}");
}

#[test]
fn a_server_that_is_out_stays_out_and_no_address_at_all_changes_nothing() {
    let origins = [b"one", b"two"].map(|body| Origin::serving(body));
    let dead = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let gateway = watched(&[origins[0].address, dead]);
    eventually("it is found out", || {
        assert_eq!(client(&gateway).get("/").0, 200);
        upstream(&gateway)["servers"][1]["unreachable"].as_u64() >= Some(1)
    });
    let before = upstream(&gateway)["servers"][1]["unreachable"].clone();
    move_to(&gateway, &[origins[1].address, dead, origins[0].address]);
    let now = upstream(&gateway);
    assert_eq!(now["servers"][1]["address"], dead.to_string());
    assert!(now["servers"][1]["unreachable"].as_u64() >= before.as_u64(), "{now}");
    assert_eq!(now["servers"][0]["state"], "starting", "a new server starts slowly: {now}");
    let name = now["name"].as_str().expect("a name");
    assert_eq!(gateway.reloader().readdress(name, &[]), Ok(None));
    assert_eq!(gateway.reloader().readdress("nobody", &[(dead.into(), None)]), Ok(None));
    let same = move_to(&gateway, &[dead, origins[0].address, origins[1].address]);
    assert_eq!(same, [vec![], vec![]], "the order of a name server's answer says nothing");
    gateway.reloader().note_lookup(name, Some("no answer".to_owned()));
    assert_eq!(upstream(&gateway)["lookup_failure"], "no answer");
    gateway.reloader().note_lookup(name, None);
    assert!(upstream(&gateway)["lookup_failure"].is_null());
}

#[test]
fn a_request_under_way_finishes_at_a_server_that_is_gone() {
    let (go, came) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (may, has_come) = (go.clone(), came.clone());
    let old = Origin::answering(move |_, _| {
        has_come.store(true, SeqCst);
        eventually("the test lets it go", || may.load(SeqCst));
        b"old"
    });
    let new = Origin::serving(b"new");
    let gateway = watched(&[old.address]);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| client(&gateway).get("/"));
        eventually("it is under way", || came.load(SeqCst));
        move_to(&gateway, &[new.address]);
        assert_eq!(client(&gateway).get("/"), (200, b"new".to_vec()));
        go.store(true, SeqCst);
        assert_eq!(first.join().expect("no panic"), (200, b"old".to_vec()));
    });
    settled(&gateway);
    eventually("its connection is closed", || old.open.load(SeqCst) == 0);
}
