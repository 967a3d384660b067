//! Names that leave the tree, and names of what is no file.

use super::super::tree::Confinement;
use super::*;
use plimsoll_core::random::Random;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[test]
fn links_that_leave_the_tree() {
    let place = Place::new();
    place.write("outside/a.txt", "secret");
    place.write("root/in.txt", "inside");
    let link = |target: &Path, name: &str| symlink(target, place.at("root").join(name)).unwrap();
    link(&place.at("secret.txt"), "absolute");
    link(Path::new("../secret.txt"), "relative");
    link(Path::new("../outside"), "folder");
    link(Path::new("in.txt"), "within");
    link(Path::new("loop"), "loop");
    link(Path::new("../secret.txt"), "in.txt.gz");
    let escapes = ["/absolute", "/relative", "/folder/a.txt", "/folder"];
    let mut server = place.server();
    for path in escapes {
        assert_eq!(server.get(path).status, 403, "{path}");
    }
    assert_eq!(server.get("/within").text(), "inside");
    assert_eq!(server.get("/loop").status, 403);
    assert_eq!(server.ask("GET", "/in.txt", &[("accept-encoding", "gzip")]).text(), "inside");

    let mut walking = place.server();
    walking.files.tree.confine(Confinement::Walk);
    for path in escapes.into_iter().chain(["/within", "/loop"]) {
        assert!(matches!(walking.get(path).status, 403 | 404), "{path}");
    }
    assert_eq!(walking.get("/in.txt").text(), "inside");
    assert_eq!(walking.get("/").status, 404);

    let settings = FilesSettings { follow_symlinks: true, ..place.settings() };
    let mut following = Server { files: Files::new(settings).unwrap(), now: Instant::now() };
    for path in &escapes[..3] {
        assert_eq!(following.get(path).text(), "secret", "{path}");
    }
    assert_eq!(following.get("/../secret.txt").status, 400);
}

#[test]
fn what_is_no_file() {
    let place = Place::new();
    place.write("root/closed.txt", "closed");
    fs::set_permissions(place.at("root/closed.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    let pipe = place.at("root/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o644), 0)
        .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.at("root/socket")).unwrap();
    let mut server = place.server();
    assert_eq!(server.get("/pipe").status, 404, "and does not wait for a writer");
    assert_eq!(server.get("/socket").status, 404);
    assert_eq!(server.get(&format!("/{}", "a".repeat(300))).status, 404);
    assert_eq!(server.get(&format!("/{}", "a/".repeat(4000))).status, 404);
    // The superuser may read the file all the same.
    if fs::read(place.at("root/closed.txt")).is_err() {
        assert_eq!(server.get("/closed.txt").status, 403);
    }
    let missing = FilesSettings { root: place.at("nowhere"), ..place.settings() };
    assert!(Files::new(missing).is_err());
    let file = FilesSettings { root: place.at("secret.txt"), ..place.settings() };
    assert!(Files::new(file).is_err());
}

/// Pieces of paths: names in the tree and around it, and pieces that climb. Most are names, so that paths lead to files.
const STEPS: &[&str] = &["..", "sub", "root", "out", "a.txt", "secret.txt", ".git", "index.html"];

const PIECES: &[&str] = &[
    "/",
    "//",
    ".",
    "...",
    "../",
    "/..",
    "%2e",
    "%2E%2e",
    "%2f",
    "%5c",
    "\\",
    "..\\",
    "%00",
    "%",
    "%%",
    "%2",
    "%252e",
    "%c0%ae",
    "%c0%af",
    "%e0%80%ae",
    "\u{ff0e}",
    ";",
    "~",
    "~root",
    "etc/passwd",
    "proc/self/root",
    ".well-known",
    "C:",
    "?",
    "#",
    "*",
    " ",
    "%0d%0a",
];

fn random_path(random: &mut Random) -> String {
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    let count = below(8);
    let mut path = String::from("/");
    for _ in 0..count {
        let pieces = [STEPS, STEPS, PIECES][below(3)];
        path.push_str(pieces[below(pieces.len())]);
        path.push_str(["/", "/", ""][below(3)]);
    }
    path.push_str(STEPS[below(STEPS.len())]);
    path
}

/// For no path does a response have bytes from outside the tree, a server error, or a header of several lines.
#[test]
fn fuzz_smoke_no_path_escapes() {
    let place = Place::new();
    place.write("root/a.txt", "inside");
    place.write("root/sub/a.txt", "inside");
    place.write("root/index.html", "inside");
    place.write("root/.git/a.txt", "secret");
    place.write("sub/a.txt", "secret");
    symlink("..", place.at("root/out")).unwrap();
    symlink("/", place.at("root/sub/out")).unwrap();
    for confinement in [Confinement::Kernel, Confinement::Walk] {
        let mut server = place.server();
        server.files.tree.confine(confinement);
        let mut random = Random::new(20_260_101);
        let mut found = 0;
        for _ in 0..20_000 {
            let path = random_path(&mut random);
            let answer = server.get(&path);
            assert!(matches!(answer.status, 200 | 301 | 400 | 403 | 404), "{path:?}: {}", answer.status);
            assert!(answer.body.is_empty() || answer.body == b"inside", "{path:?}");
            assert!(answer.headers.iter().all(|(_, value)| !value.contains(['\r', '\n'])), "{path:?}");
            if let Some(location) = answer.header("location") {
                assert!(
                    location.starts_with("./") && !location[2..].starts_with('/'),
                    "{path:?}: {location}"
                );
            }
            found += usize::from(answer.status == 200);
        }
        assert!(found > 100, "the generator finds what there is: {found}");
    }
    // The canary: the same paths, resolved by joining text, do reach the secret.
    let mut random = Random::new(20_260_101);
    let escapes = (0..20_000).map(|_| random_path(&mut random)).filter(|path| {
        fs::read(format!("{}{path}", place.at("root").display())).is_ok_and(|content| content == b"secret")
    });
    let escaped = escapes.count();
    assert!(escaped > 30, "{escaped}");
}
