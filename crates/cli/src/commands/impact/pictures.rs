//! Pages and images before and after, side by side.
//!
//! Pages are photographed by a headless Chromium, if one is installed (`CHROMIUM`, else the usual names), while this program
//! serves the site and its trees from a gateway of its own on loopback. Without a browser, the images themselves are shown and
//! a note says what is missing, because a report must not depend on a browser.

use crate::output::failure::Failure;
use crate::output::json;
use crate::output::units::size as shown;
use crate::service::resolve;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_content::Examples;
use plimsoll_gateway::Gateway;
use plimsoll_report::{Block, Picture, Section};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where browsers are usually installed.
const BROWSERS: [&str; 4] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/snap/bin/chromium"];
/// The trees, and the captions of their pictures.
const TREES: [(&str, &str); 4] =
    [("site", "as it is"), ("light", "light"), ("lean", "lean"), ("text", "text")];
/// The browser's virtual time for a page before its picture is taken (ms): fade-ins are over then, and fonts are loaded.
/// Virtual time passes at once if there is nothing to wait for.
const VIRTUAL_TIME: &str = "--virtual-time-budget=10000";
/// If the browser takes longer for a page, it is ended.
const PATIENCE: Duration = Duration::from_secs(40);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Larger images are not included in a report.
const MOST_BYTES: u64 = 2 << 20;

/// The sections with pictures. A failure becomes a remark, because the report must not depend on a browser.
pub(super) fn pictures(site: &Path, trees: &Path, examples: &Examples) -> Vec<Section> {
    let mut sections = vec![match browser() {
        Some(browser) => pages(&browser, site, trees, examples).unwrap_or_else(|failure| {
            Section::new("Pages").note(format!("No pictures of pages: {}", failure.text()))
        }),
        None => Section::new("Pages").note(
            "No browser was found, so there are no pictures of pages: install chromium, or name one in CHROMIUM.",
        ),
    }];
    if !examples.images.is_empty() {
        let mut section =
            Section::new("Images").text("Those that save the most bytes: before, and at the light level.");
        for path in &examples.images {
            let files = [("before", site.join(path)), ("after", trees.join("light").join(path))];
            let sizes = files.each_ref().map(|(_, file)| fs::metadata(file).map_or(0, |found| found.len()));
            if sizes.iter().any(|size| *size > MOST_BYTES) {
                let [before, after] = sizes.map(|bytes| shown(bytes as f64));
                let note = format!("{path}: {before} before, {after} after; too large to be shown here");
                section = section.note(note);
                continue;
            }
            let pair = files.iter().filter_map(|(when, file)| image(path, when, file)).collect();
            section = section.block(Block::Pictures(pair));
        }
        sections.push(section);
    }
    sections
}

fn image(path: &str, when: &str, file: &Path) -> Option<Picture> {
    let read = fs::read(file).ok()?;
    Some(Picture { caption: format!("{path}, {when}: {}", shown(read.len() as f64)), bytes: read })
}

fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    named.into_iter().chain(BROWSERS.map(PathBuf::from)).find(|path| path.is_file())
}

fn pages(browser: &Path, site: &Path, trees: &Path, examples: &Examples) -> Result<Section, Failure> {
    let there: Vec<(&str, &str, PathBuf)> = TREES
        .into_iter()
        .map(|(name, shown)| (name, shown, if name == "site" { site.to_owned() } else { trees.join(name) }))
        .filter(|(.., root)| root.is_dir())
        .collect();
    let gateway = serve(&there)?;
    let address = gateway.local_addrs().first().copied();
    let address = address.ok_or_else(|| Failure::Failed("the gateway has no address".to_owned()))?;
    let shots = Shots::new()?;
    let mut section = Section::new("Pages").text("Those whose images are least like their originals, the worst first, in a browser; fade-ins are over.");
    for page in &examples.pages {
        let mut row = Vec::new();
        for (name, shown, _) in &there {
            let caption = format!("{page}, {shown}");
            match shots.take(
                browser,
                address,
                &format!("http://{name}.test/{}", utf8_percent_encode(page, PLAIN)),
            ) {
                Some(bytes) => row.push(Picture { caption, bytes }),
                None => section = section.note(format!("{caption}: the browser took no picture")),
            }
        }
        section = section.block(Block::Pictures(row));
    }
    gateway.shutdown();
    Ok(section)
}

/// Serves each folder under a host of its own, so that paths from the root lead where they should.
fn serve(folders: &[(&str, &str, PathBuf)]) -> Result<Gateway, Failure> {
    let mut text =
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"off\"\nthreads = 1\nmode = \"off\"\n".to_owned();
    for (name, _, root) in folders {
        let root = root.canonicalize().unwrap_or_else(|_| root.clone());
        // A TOML string has the same escapes as a JSON string.
        let root = json::line(&root.display().to_string());
        text += &format!(
            "[folder.{name}]\nroot = {root}\nindex = [\"index.html\", \"index.htm\"]\n[[site]]\nname = \"{name}\"\n\
             host = \"{name}.test\"\nfolder = \"{name}\"\n"
        );
    }
    let configuration = plimsoll_config::parse(&text, "the report's gateway")
        .map_err(|wrong| Failure::Failed(wrong.to_string()))?;
    let settings = resolve::settings(&configuration)?;
    Gateway::start(settings, &configuration.promises)
        .map_err(|error| Failure::Failed(format!("the report's gateway does not start: {error}")))
}

/// Characters that need no escape in a URL's path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'_').remove(b'-').remove(b'~');

/// A folder for the browser's own files, removed with this value.
struct Shots(TempDir);

impl Shots {
    fn new() -> Result<Shots, Failure> {
        let made = tempfile::Builder::new().prefix("plimsoll-pictures-").tempdir();
        made.map(Shots).map_err(|error| Failure::Failed(format!("cannot make a temporary folder: {error}")))
    }

    fn take(&self, browser: &Path, server: SocketAddr, address: &str) -> Option<Vec<u8>> {
        let file = self.0.path().join("page.png");
        let _ = fs::remove_file(&file);
        let mut child = Command::new(browser)
            .args(["--headless", "--disable-gpu", "--hide-scrollbars", "--window-size=900,700"])
            // With its sandbox Chromium refuses to run as root (as in a container); here it loads pages from loopback only.
            .args(["--no-sandbox", "--disable-dev-shm-usage", "--no-first-run", "--timeout=15000"])
            .args([VIRTUAL_TIME, "--force-prefers-reduced-motion", "--run-all-compositor-stages-before-draw"])
            .arg(format!("--user-data-dir={}", self.0.path().join("profile").display()))
            .arg(format!("--host-resolver-rules=MAP * {server}"))
            .arg(format!("--screenshot={}", file.display()))
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let started = Instant::now();
        while child.try_wait().ok()?.is_none() {
            if started.elapsed() > PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            thread::sleep(LOOK_AGAIN);
        }
        fs::read(&file).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_stand_in_where_no_page_can_be_photographed() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        for root in ["site", "trees/light"] {
            fs::create_dir_all(folder.join(root)).unwrap();
            fs::write(folder.join(root).join("a.gif"), b"GIF89a").unwrap();
        }
        let examples =
            Examples { pages: Vec::new(), images: vec!["a.gif".to_owned(), "gone.gif".to_owned()] };
        let sections = pictures(&folder.join("site"), &folder.join("trees"), &examples);
        let Some(Block::Pictures(pair)) = sections[1].blocks.first() else { panic!("{sections:?}") };
        let captions: Vec<&str> = pair.iter().map(|picture| picture.caption.as_str()).collect();
        assert_eq!(captions, ["a.gif, before: 6 B", "a.gif, after: 6 B"]);
        assert_eq!(sections[1].blocks[1], Block::Pictures(Vec::new()));
        assert_eq!(utf8_percent_encode("a b/\u{fc}.html", PLAIN).to_string(), "a%20b/%C3%BC.html");
    }
}
