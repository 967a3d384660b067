//! A real Chromium without a window, driven over a pipe by the DevTools protocol.
//!
//! A pipe needs no port, unlike a WebSocket; its messages are JSON with a NUL behind each. Chromium takes descriptors 3 and 4
//! for it; a shell puts them there, since Rust would need `unsafe` for that.

use crate::process::{PATIENCE, end};
use crate::{Folder, program};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{env, thread};

/// A page is complete after so long without a message.
const QUIET: Duration = Duration::from_millis(400);
/// How often its messages are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The script that says which images are broken and where links lead.
const LOOK: &str = "JSON.stringify({
    broken: [...document.images].filter(i => i.complete && i.src && !i.naturalWidth).map(i => i.src),
    links: [...document.links].map(a => a.href) })";

/// The running browser.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    session: String,
    _profile: Folder,
}

/// What a browser says of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Viewed {
    /// Addresses that could not be loaded, or were answered with an error.
    pub failed: BTreeSet<String>,
    /// Errors on the console, and exceptions of scripts.
    pub errors: BTreeSet<String>,
    /// Images that show nothing.
    pub broken: BTreeSet<String>,
    /// Where its links lead.
    pub links: BTreeSet<String>,
    /// Requests that it made.
    pub requests: usize,
    /// Bytes that came over the network.
    pub bytes: u64,
}

impl Browser {
    /// Starts one that takes every host for `server`: the program that `CHROMIUM` names, else `chromium`.
    pub fn start(server: std::net::SocketAddr) -> Browser {
        let program = env::var_os("CHROMIUM").map_or_else(|| program("chromium"), PathBuf::from);
        let profile = Folder::new();
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .arg(&program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--remote-debugging-pipe", "--disable-background-networking", "--no-first-run"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(format!("--host-resolver-rules=MAP * {server}"))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        let (Some(to), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            panic!("no pipes to {}", program.display())
        };
        let (sender, from) = channel();
        // A thread that reads, so that waiting can end.
        thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser { child, to, from, next: 0, session: String::new(), _profile: profile };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().unwrap_or_default().to_owned();
        for domain in ["Page.enable", "Network.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        browser.call("Network.setCacheDisabled", json!({ "cacheDisabled": true }));
        browser
    }

    /// Loads a page and looks at it.
    pub fn view(&mut self, address: &str) -> Viewed {
        let mut viewed = Viewed::default();
        let id = self.send("Page.navigate", json!({ "url": address }));
        let (start, mut loaded, mut heard) = (Instant::now(), false, Instant::now());
        let mut navigated = false;
        while !(loaded && navigated && heard.elapsed() > QUIET) {
            assert!(start.elapsed() < PATIENCE, "{address} does not load");
            match self.from.recv_timeout(LOOK_AGAIN) {
                Ok(message) => {
                    heard = Instant::now();
                    navigated |= message["id"] == id;
                    // A load event before the answer belongs to the page before.
                    loaded |= navigated && message["method"] == "Page.loadEventFired";
                    note(&message, &mut viewed);
                }
                Err(_) => assert!(self.child.try_wait().is_ok_and(|e| e.is_none()), "the browser ended"),
            }
        }
        let look = json!({ "expression": LOOK, "returnByValue": true });
        let found = self.call("Runtime.evaluate", look);
        let found: Value =
            serde_json::from_str(found["result"]["value"].as_str().unwrap_or("{}")).unwrap_or_default();
        let list = |name: &str| -> BTreeSet<String> {
            found[name].as_array().into_iter().flatten().filter_map(text).collect()
        };
        Viewed { broken: list("broken"), links: list("links"), ..viewed }
    }

    fn send(&mut self, method: &str, parameters: Value) -> u64 {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        let sent = self.to.write_all(format!("{message}\0").as_bytes());
        sent.unwrap_or_else(|error| panic!("the browser does not listen: {error}"));
        self.next
    }

    /// Sends a command and waits for its answer; other messages that come meanwhile belong to no page.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        let start = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(start.elapsed());
            let message = self.from.recv_timeout(left);
            let message = message.unwrap_or_else(|_| panic!("the browser does not answer {method}"));
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn note(message: &Value, viewed: &mut Viewed) {
    let said = &message["params"];
    match message["method"].as_str() {
        Some("Network.requestWillBeSent") => viewed.requests += 1,
        Some("Network.responseReceived") if said["response"]["status"].as_u64() >= Some(400) => {
            viewed.failed.extend(text(&said["response"]["url"]));
        }
        Some("Network.loadingFinished") => {
            viewed.bytes += said["encodedDataLength"].as_f64().unwrap_or(0.0) as u64
        }
        Some("Runtime.exceptionThrown") => {
            let details = &said["exceptionDetails"];
            let what = text(&details["exception"]["description"]).or_else(|| text(&details["text"]));
            viewed.errors.extend(what.and_then(|what| what.lines().next().map(str::to_owned)));
        }
        Some("Runtime.consoleAPICalled") if said["type"] == "error" => {
            viewed.errors.extend(text(&said["args"][0]["value"]));
        }
        Some("Log.entryAdded") if said["entry"]["level"] == "error" => {
            let entry = &said["entry"];
            // An error of the network is named by the address that could not be loaded.
            match entry["source"] == "network" {
                true => viewed.failed.extend(text(&entry["url"])),
                false => viewed.errors.extend(text(&entry["text"])),
            }
        }
        _ => {}
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends its children when it is asked to close.
        self.next += 1;
        let close = json!({ "id": self.next, "method": "Browser.close" });
        drop(self.to.write_all(format!("{close}\0").as_bytes()));
        end(&mut self.child);
    }
}
