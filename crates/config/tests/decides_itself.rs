//! One file for a gateway and for the processes of a server behind it: who keeps what.

use plimsoll_config::{parse, parse_inside};
use plimsoll_core::promises::LAST_PRIORITY;

const FILE: &str = include_str!("../../../examples/gateway-before-module.toml");

#[test]
fn a_server_that_decides_itself_keeps_levels_and_the_gateway_keeps_times() {
    let [gateway, server] = [parse, parse_inside].map(|parse| parse(FILE, "both.toml").expect("a good file"));
    let [kept, left] = [&gateway, &server].map(|half| &half.promises.sites[0]);
    assert_eq!((kept.levels.len(), left.levels.len()), (1, 2));
    assert!(kept.classes[0].delay.is_some() && left.classes[0].delay.is_none());
    let lines = [&gateway, &server].map(|half| half.promises.plants[0].set_point);
    assert_eq!(lines, [1.0, 0.85], "the server degrades before the gateway rejects");
    let prefixes = [&gateway, &server].map(|half| {
        let levels = &half.gateway.settings.rewrites[0];
        levels.iter().map(|level| level.prefix.clone()).collect::<Vec<_>>()
    });
    assert_eq!(prefixes, [vec![String::new()], vec!["/light".to_owned(), String::new()]]);
}

#[test]
fn a_file_without_the_key_says_the_same_to_both() {
    let file = FILE.replace("decides_itself = true", "");
    assert_eq!(parse(&file, "both.toml"), parse_inside(&file, "both.toml"));
}

#[test]
fn inside_a_server_nothing_listens() {
    let file = FILE.lines().filter(|line| !line.starts_with("listen")).map(|line| format!("{line}\n"));
    let file: String = file.collect();
    assert_eq!(
        parse(&file, "inside.toml").expect_err("a gateway has clients").to_string().matches("error[").count(),
        1
    );
    assert!(parse_inside(&file, "inside.toml").is_ok());
    assert!(parse_inside("[upstream.server]\naddress = \"127.0.0.1:81\"\n", "inside.toml").is_ok());
}

/// Else all others would be turned away before a class with a promised mean got one lighter page; and full pages take longer.
#[test]
fn a_promised_time_is_no_priority_before_a_server_that_decides_itself() {
    let priorities = |file: &str| {
        [parse, parse_inside].map(|parse| {
            let site = parse(file, "both.toml").expect("a good file").promises.sites.remove(0);
            (site.classes[0].priority, site.default_priority)
        })
    };
    assert_eq!(priorities(FILE), [(LAST_PRIORITY, LAST_PRIORITY); 2]);
    let written = FILE.replace("delay = ", "priority = 7\ndelay = ");
    assert_eq!(priorities(&written), [(7, LAST_PRIORITY); 2]);
}
