//! Following the disk, and the bounds of the memory.

use super::*;
use std::os::unix::fs::symlink;

#[test]
fn a_change_is_seen_within_a_second_and_the_disk_is_left_alone_before() {
    let place = Place::new();
    place.write("root/a.txt", "first");
    let mut server = place.server();
    let first = server.get("/a.txt");
    place.write("root/a.txt", "second");
    server.pass(REVALIDATE - Duration::from_nanos(1));
    assert_eq!(server.get("/a.txt").text(), "first", "from memory, without a look at the disk");
    server.pass(Duration::from_nanos(1));
    let second = server.get("/a.txt");
    assert_eq!(second.text(), "second");
    assert_ne!(first.header("etag"), second.header("etag"));

    place.write("root/a.txt.gz", "gz");
    fs::remove_file(place.at("root/a.txt")).unwrap();
    server.pass(REVALIDATE);
    assert_eq!(server.get("/a.txt").status, 404, "a copy does not stand for its original");
    place.write("root/a.txt", "third");
    assert_eq!(server.get("/a.txt").text(), "third", "what is missing is not remembered");
    place.write("root/a.txt.gz", "newer");
    server.pass(REVALIDATE);
    assert_eq!(server.ask("GET", "/a.txt", &[("accept-encoding", "gzip")]).text(), "newer");
}

#[test]
fn what_did_not_change_is_kept() {
    let place = Place::new();
    place.write("root/a.txt", "same");
    let mut server = place.server();
    let mut bytes = || {
        server.pass(REVALIDATE);
        let request =
            FileRequest { method: "GET", path: "/a.txt", query: None, fields: FileFields::default() };
        match server.files.respond(server.now, &request).body {
            FileBody::Memory { bytes, .. } => bytes,
            other => panic!("{other:?}"),
        }
    };
    assert!(Rc::ptr_eq(&bytes(), &bytes()));
    // Content that was read right after a change is read again: its stamp could hide a second change.
    place.touch("root/a.txt", SystemTime::now() + Duration::from_secs(60));
    assert!(!Rc::ptr_eq(&bytes(), &bytes()));
}

#[test]
fn a_change_that_keeps_size_and_time_is_seen() {
    let place = Place::new();
    let time = SystemTime::now() - Duration::from_secs(3600);
    place.write("root/a.txt", "first");
    place.touch("root/a.txt", time);
    let mut server = place.server();
    assert_eq!(server.get("/a.txt").text(), "first");
    place.write("root/b.txt", "other");
    place.touch("root/b.txt", time);
    fs::rename(place.at("root/b.txt"), place.at("root/a.txt")).unwrap();
    server.pass(REVALIDATE);
    assert_eq!(server.get("/a.txt").text(), "other");
}

#[test]
fn a_large_file_has_the_headers_of_what_is_sent_even_between_looks() {
    let place = Place::new();
    place.write("root/video.mp4", large());
    let mut server = place.server();
    assert_eq!(server.get("/video.mp4").body, large());
    place.write("root/video.mp4", "short now");
    let answer = server.get("/video.mp4");
    assert_eq!(answer.text(), "short now");
    assert!(answer.header("etag").is_some_and(|tag| tag.starts_with("\"9-")));
    fs::remove_file(place.at("root/video.mp4")).unwrap();
    assert_eq!(server.get("/video.mp4").status, 404);
}

#[test]
fn a_switched_tree_is_seen() {
    let place = Place::new();
    for (release, text) in [("releases/1", "one"), ("releases/2", "two")] {
        place.write(&format!("{release}/index.html"), text);
        place.write(&format!("{release}/part/a.txt"), text);
    }
    let current = place.at("current");
    let point = |release: &str| {
        symlink(release, place.at("next")).unwrap();
        fs::rename(place.at("next"), &current).unwrap();
    };
    point("releases/1");
    symlink("../releases/1/part", place.at("root/part")).unwrap();
    let settings = FilesSettings { root: current.clone(), ..place.settings() };
    let mut server = Server { files: Files::new(settings).unwrap(), now: Instant::now() };
    assert_eq!(server.get("/").text(), "one");
    server.pass(REVALIDATE / 2);
    assert_eq!(server.get("/part/a.txt").text(), "one");
    point("releases/2");
    assert_eq!(server.get("/").text(), "one");
    // A second has passed since the root was last looked up, but not since the files were compared.
    server.pass(REVALIDATE / 2);
    assert_eq!(server.get("/").text(), "two");
    assert_eq!(server.get("/part/a.txt").text(), "two");
    fs::remove_file(&current).unwrap();
    server.pass(REVALIDATE);
    assert_eq!(server.get("/").text(), "two", "while the root leads nowhere, the last one is served");
    point("releases/1");
    server.pass(REVALIDATE);
    assert_eq!(server.get("/").text(), "one");
}

#[test]
fn a_switched_link_within_the_tree_is_seen() {
    let place = Place::new();
    place.write("root/1/a.txt", "one");
    place.write("root/2/a.txt", "two");
    symlink("1", place.at("root/now")).unwrap();
    let mut server = place.server();
    assert_eq!(server.get("/now/a.txt").text(), "one");
    fs::remove_file(place.at("root/now")).unwrap();
    symlink("2", place.at("root/now")).unwrap();
    server.pass(REVALIDATE);
    assert_eq!(server.get("/now/a.txt").text(), "two");
}

#[test]
fn memory_stays_within_its_budget_and_keeps_what_is_used() {
    let place = Place::new();
    for number in 0..40 {
        place.write(&format!("root/{number}.txt"), vec![b'x'; 10_000]);
    }
    for budget in [0, 5_000, 100_000] {
        let settings = FilesSettings { cache_bytes: budget, ..place.settings() };
        let mut server = Server { files: Files::new(settings).unwrap(), now: Instant::now() };
        for number in (0..40).chain(0..40) {
            assert_eq!(server.get("/0.txt").body.len(), 10_000);
            assert_eq!(server.get(&format!("/{number}.txt")).body.len(), 10_000);
            assert!(server.files.cache.bytes() <= budget);
        }
        assert_eq!(server.files.cache.get(b"0.txt").is_some(), budget >= 100_000);
        assert!(server.files.cache.get(b"1.txt").is_none(), "not used for more than a generation");
    }
}
