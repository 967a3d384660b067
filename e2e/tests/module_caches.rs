//! mod_plimsoll beside Apache's own cache, which answers before the module is asked (`CacheQuickHandler`, its default) or
//! behind it: a lighter page and a rejection are their client's alone, and nobody gets them later.

use crate::module::{apache_of, impatient, slow};
use plimsoll_e2e::{Accounts, Control, Folder, get, get_from, wait_until};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const CLIENTS: u8 = 24;
const PATIENCE: Duration = Duration::from_secs(60);

/// The beginning of an answer to a client; a rejection has none.
fn ask(apache: SocketAddr, client: u8, path: &str) -> String {
    let page = get_from(Ipv4Addr::new(127, 0, 1, client), apache, path).expect("an answer");
    assert!(page.status == 200 || page.status == 503, "{path}: {}", page.status);
    if page.status == 503 { String::new() } else { page.text().chars().take(8).collect() }
}

/// What the cache keeps that has this in it.
fn kept(folder: &Path, text: &[u8]) -> usize {
    let entries = fs::read_dir(folder).expect("a folder").filter_map(Result::ok).map(|entry| entry.path());
    entries
        .map(|path| match fs::read(&path) {
            Ok(bytes) => usize::from(bytes.windows(text.len()).any(|window| window == text)),
            Err(_) if path.is_dir() => kept(&path, text),
            // Apache writes a file under another name first.
            Err(_) => 0,
        })
        .sum()
}

/// Pages that were answered with a lighter copy or not at all in an overload. Each page is asked for once, so that none is in
/// the cache before.
fn overload(apache: SocketAddr) -> Vec<String> {
    let (next, is_over, seen) =
        (AtomicU32::new(0), AtomicBool::new(false), Mutex::new((Vec::new(), Vec::new())));
    thread::scope(|scope| {
        for client in 1..=CLIENTS {
            let (next, is_over, seen) = (&next, &is_over, &seen);
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    let path = format!("/page.html?{}", next.fetch_add(1, Relaxed));
                    let answer = ask(apache, client, &path);
                    let mut seen = seen.lock().expect("no panic");
                    match answer.as_str() {
                        "fullfull" => {}
                        "" => seen.1.push(path),
                        _ => seen.0.push(path),
                    }
                }
            });
        }
        let holds = || seen.lock().is_ok_and(|seen| seen.0.len() >= 8 && seen.1.len() >= 8).then_some(());
        let found = wait_until(PATIENCE, holds);
        is_over.store(true, Relaxed);
        assert!(found.is_some(), "some are served light pages, and some are rejected");
    });
    let (lighter, rejected) = seen.into_inner().expect("no panic");
    lighter.into_iter().take(20).chain(rejected.into_iter().take(20)).collect()
}

fn nobody_gets_a_copy(quick: &str) {
    let (control, cache) = (Control::start(&impatient()), Folder::new());
    fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
    let more = format!(
        "{}CacheRoot {}\nCacheEnable disk /page.html\nCacheEnable disk /light\nCacheQuickHandler {quick}\n\
         Header set Cache-Control max-age=3600\n",
        slow(),
        cache.path().display()
    );
    let apache = apache_of(&control, 4, &["cache", "cache_disk", "headers"], &more);
    let paths = overload(apache.direct);
    assert!(kept(cache.path(), b"fullfull") > 0, "{quick}: nothing is kept at all");
    assert_eq!(kept(cache.path(), b"lightlight"), 0, "{quick}: a lighter page is kept");
    assert_eq!(kept(cache.path(), b"Retry-After"), 0, "{quick}: a rejection is kept");
    for path in paths {
        let found =
            wait_until(PATIENCE, || (ask(apache.direct, CLIENTS + 1, &path) == "fullfull").then_some(()));
        assert!(found.is_some(), "{quick}: {path} is never the page again");
    }
    // The copy under its own path is a page like any other, which this cache keeps.
    assert_eq!(get(apache.direct, "/light/page.html").status, 200);
    let found = wait_until(PATIENCE, || (kept(cache.path(), b"lightlight") == 1).then_some(()));
    assert!(found.is_some(), "{quick}: what is no lighter page is not kept");
    Accounts::at_rest(apache.direct);
}

#[test]
fn a_cache_that_answers_first_keeps_no_lighter_page_and_no_rejection() {
    nobody_gets_a_copy("On");
}

#[test]
fn a_cache_behind_the_decision_keeps_no_lighter_page_and_no_rejection() {
    nobody_gets_a_copy("Off");
}
