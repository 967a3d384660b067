//! Files that clients ask for: never one outside of the folder, and always as the head says.

use plimsoll_gateway::fuzzing::{FileAnswer, FileServer};
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::symlink;

/// What stands in every file that no request may reach.
const SECRET: &str = "never to be served";

/// A folder with files of all sorts, and others that lie outside of it or begin with a dot.
fn server() -> FileServer {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let root = folder.join("root");
    let write = |name: &str, content: &[u8]| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    };
    write("index.html", b"<p>index");
    write("a.css", &[b'a'; 5000]);
    write("a.css.gz", &[b'g'; 500]);
    write("a.css.br", &[b'b'; 400]);
    write("large.bin", &[b'l'; 70_000]);
    write("folder/index.html", b"<p>folder");
    write("light/a.html", b"light");
    write("empty", b"");
    write(".hidden", SECRET.as_bytes());
    write("folder/.git/config", SECRET.as_bytes());
    write("../secret", SECRET.as_bytes());
    symlink("../secret", root.join("link")).expect("a link");
    symlink("..", root.join("up")).expect("a link");
    symlink(&folder, root.join("absolute")).expect("a link");
    FileServer::open(&root).expect("the folder is there")
}

thread_local! {
    static SERVER: RefCell<FileServer> = RefCell::new(server());
}

/// Any head: a status that fits, the length that is stated, and never a secret.
pub fn files(bytes: &[u8]) {
    let Some(answer) = SERVER.with_borrow_mut(|server| server.answer(bytes)) else { return };
    let FileAnswer { status, headers, length, body } = &answer;
    let known = [200, 204, 206, 301, 304, 400, 403, 404, 405, 412, 416];
    assert!(known.contains(status), "{status}");
    assert!(!body.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()), "{headers:?}");
    let is_head = bytes.starts_with(b"HEAD ") || bytes.starts_with(b"\r\nHEAD ");
    if !is_head && *status < 300 {
        assert_eq!(length.unwrap_or(0), body.len() as u64, "{headers:?}");
    }
    let header =
        |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!(header("content-range").is_some(), [206, 416].contains(status), "{headers:?}");
    for (name, value) in headers {
        assert!(!format!("{name}{value}").contains(['\r', '\n', '\0']), "{headers:?}");
    }
    if let Some(coding) = header("content-encoding") {
        let request = String::from_utf8_lossy(bytes).to_lowercase();
        let asked =
            request.contains("accept-encoding") && (request.contains(coding) || request.contains('*'));
        assert!(asked, "{coding} was not asked for");
    }
}
