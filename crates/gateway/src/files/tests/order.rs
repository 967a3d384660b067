//! Trees with gaps, and the manifest that says which tree is above which.

use super::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::sync::atomic::{AtomicBool, Ordering};

const MANIFEST: &str = r#"{"plimsoll": 2, "trees": [
    {"level": "text", "tree": "text", "missing": ["a.txt"]}, {"level": "light", "tree": "light"},
    {"level": "full", "tree": "full"}], "problems": []}"#;

/// Trees beneath a root. Each file holds its own path.
fn trees(manifest: &str) -> Place {
    let place = Place::new();
    for name in ["text/t.txt", "light/l.txt", "light/dir/index.html", "full/f.txt", "full/deep/index.html"] {
        place.write(&format!("root/{name}"), name);
    }
    place.write("root/full/t.txt", "full/t.txt");
    place.write("root/full/l.txt", "full/l.txt");
    place.write("root/elsewhere/e.txt", "elsewhere/e.txt");
    place.write("root/manifest.json", manifest);
    place
}

#[test]
fn what_a_tree_lacks_is_served_from_the_next() {
    let place = trees(MANIFEST);
    let mut server = place.server();
    for (path, expected) in [
        ("/text/t.txt", "text/t.txt"),
        ("/text/l.txt", "light/l.txt"),
        ("/text/f.txt", "full/f.txt"),
        ("/light/t.txt", "full/t.txt"),
        ("/full/t.txt", "full/t.txt"),
        ("/text/dir/", "light/dir/index.html"),
        ("/light/deep/", "full/deep/index.html"),
    ] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.text()), (200, expected), "{path}");
    }
    let folder = server.get("/text/deep?q");
    assert_eq!((folder.status, folder.header("location")), (301, Some("./deep/?q")));
    for path in ["/text/no.txt", "/full/no.txt", "/elsewhere/t.txt", "/t.txt", "/text/../elsewhere/t.txt"] {
        assert_ne!(server.get(path).status, 200, "{path}");
    }
    // A range and a condition apply to the file that is sent.
    assert_eq!(server.ask("GET", "/text/f.txt", &[("range", "bytes=5-")]).text(), "f.txt");
    let tag = server.get("/full/f.txt").header("etag").unwrap().to_owned();
    assert_eq!(server.ask("GET", "/text/f.txt", &[("if-none-match", &tag)]).status, 304);
}

#[test]
fn a_new_manifest_is_read_within_a_second() {
    let place = trees(MANIFEST);
    let mut server = place.server();
    assert_eq!(server.get("/text/f.txt").text(), "full/f.txt");
    // Another file with the same name is no manifest.
    place.write("root/new.json", MANIFEST.replace("\"light\"}", "\"elsewhere\"}"));
    fs::rename(place.at("root/new.json"), place.at("root/manifest.json")).unwrap();
    assert_eq!(server.get("/text/e.txt").status, 404, "within the second");
    server.pass(REVALIDATE);
    assert_eq!(server.get("/text/e.txt").text(), "elsewhere/e.txt");
    assert_eq!(server.get("/text/l.txt").text(), "full/l.txt");
    fs::remove_file(place.at("root/manifest.json")).unwrap();
    server.pass(REVALIDATE);
    assert_eq!(server.get("/text/e.txt").status, 404);
    // The folder of the trees is replaced by another, as `adapt` does it.
    place.write("other/manifest.json", MANIFEST);
    place.write("other/full/g.txt", "g");
    fs::rename(place.at("root"), place.at("aside")).unwrap();
    fs::rename(place.at("other"), place.at("root")).unwrap();
    server.pass(REVALIDATE);
    assert_eq!(server.get("/text/g.txt").text(), "g");
}

#[test]
fn trees_that_are_exchanged_and_taken_away_leave_no_gap() {
    let place = trees(MANIFEST);
    let mut server = place.server();
    place.write("root/full/large", large());
    assert_eq!(server.get("/text/f.txt").text(), "full/f.txt");
    assert_eq!(server.get("/full/large").status, 200);
    place.write("other/manifest.json", MANIFEST);
    place.write("other/full/new.txt", "new");
    place.write("other/full/large", large());
    fs::rename(place.at("root"), place.at("aside")).unwrap();
    fs::rename(place.at("other"), place.at("root")).unwrap();
    fs::remove_dir_all(place.at("aside")).unwrap();
    // No time has passed: files in memory are still served, and others are looked for in the new trees.
    for path in ["/text/new.txt", "/full/large"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    assert_eq!(server.get("/text/no.txt").status, 404);
}

/// The folder is replaced as fast as the disk allows, so that a replacement often falls into a look-up, and the next one into
/// the look-up after it.
#[test]
fn no_name_is_lost_while_trees_are_exchanged_again_and_again() {
    let place = trees(MANIFEST);
    place.write("root/full/large", large());
    let mut server = place.server();
    let exchanged = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..300 {
                let new = format!("new{number}");
                fs::create_dir_all(place.at(&new).join("full")).unwrap();
                for name in ["manifest.json", "full/f.txt", "full/large"] {
                    fs::hard_link(place.at("root").join(name), place.at(&new).join(name)).unwrap();
                }
                let [new, root] = [new.as_str(), "root"].map(|name| place.at(name));
                renameat_with(CWD, &new, CWD, &root, RenameFlags::EXCHANGE).unwrap();
                fs::remove_dir_all(new).unwrap();
            }
            exchanged.store(true, Ordering::Relaxed);
        });
        while !exchanged.load(Ordering::Relaxed) {
            for path in ["/text/f.txt", "/full/large"] {
                assert_eq!(server.get(path).status, 200, "{path}");
            }
            // A file in memory would need no look-up.
            server.files.forget();
        }
    });
}

#[test]
fn what_is_no_manifest_of_ours_changes_nothing() {
    for manifest in [
        "",
        "[]",
        "{\"name\": \"an app of the web\", \"trees\": [{\"tree\": \"text\"}, {\"tree\": \"full\"}]}",
        &MANIFEST.replace("\"plimsoll\": 2", "\"plimsoll\": 3"),
        // No name in the manifest may lead out of the folder, or upwards.
        &MANIFEST.replace("\"light\"}", "\"../full\"}"),
        &MANIFEST.replace("\"light\"}", "\"\"}"),
    ] {
        let place = trees(manifest);
        let mut server = place.server();
        assert_eq!(server.get("/text/l.txt").status, 404, "{manifest}");
        assert_eq!(server.get("/text/t.txt").status, 200, "{manifest}");
    }
}
