//! A real Chromium without a window, driven over a pipe by the DevTools protocol.
//!
//! A pipe needs no port, unlike a WebSocket; its messages are JSON with a NUL behind each. Chromium takes descriptors 3 and 4
//! for it; a shell puts them there, since Rust would need `unsafe` for that.

use crate::process::{PATIENCE, end};
use crate::{Folder, program};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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

/// The script that waits for fonts and for the pictures that are seen, ends fade-ins, and says what a reader can read. A
/// picture that is not seen may wait for ever: it loads when it comes into view.
const SETTLE: &str = "(async () => {
    const late = i => i.complete ? 0 : new Promise(done => { i.onload = i.onerror = done });
    const calm = document.createElement('style');
    calm.textContent = '*, *::before, *::after { transition: none !important }';
    document.documentElement.append(calm);
    await document.fonts.ready;
    const seen = [...document.images].filter(i => i.checkVisibility());
    seen.forEach(i => { i.loading = 'eager'; i.decoding = 'sync' });
    await Promise.all(seen.map(late));
    for (const one of document.getAnimations()) { try { one.finish() } catch (endless) { one.cancel() } }
    return document.body ? document.body.innerText : '' })()";
/// The width and the height of the window (pixels), and the most height that a picture has.
const WINDOW: (u64, u64, u64) = (1280, 900, 6000);

/// A page as a visitor sees it, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Portrait {
    /// What the browser says of it.
    pub viewed: Viewed,
    /// What can be read, each run of blanks one blank.
    pub text: String,
    /// The picture, a PNG.
    pub picture: Vec<u8>,
}

/// The running browser.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    session: String,
    /// Requests under way, by the browser's own name, to hosts whose bytes count.
    counted: BTreeSet<String>,
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
    /// Bytes that came over the network from hosts that end in `.test`, heads included.
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
        let mut browser = Browser {
            child,
            to,
            from,
            next: 0,
            session: String::new(),
            counted: BTreeSet::new(),
            _profile: profile,
        };
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
                    self.note(&message, &mut viewed);
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

    /// Loads a page, and the pictures further down too, waits until it moves no more, and takes its picture from top to
    /// bottom, as a window of the usual height shows it to somebody who scrolls.
    pub fn portrait(&mut self, address: &str) -> Portrait {
        let window =
            json!({ "width": WINDOW.0, "height": WINDOW.1, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", window);
        let still = json!({ "features": [{ "name": "prefers-reduced-motion", "value": "reduce" }] });
        self.call("Emulation.setEmulatedMedia", still);
        let mut viewed = self.view(address);
        let settle = json!({ "expression": SETTLE, "returnByValue": true, "awaitPromise": true });
        let said = self.call_noting("Runtime.evaluate", settle, &mut viewed);
        // What comes after the last answer belongs to the page, too.
        let quiet = Instant::now();
        while quiet.elapsed() < QUIET {
            if let Ok(message) = self.from.recv_timeout(LOOK_AGAIN) {
                self.note(&message, &mut viewed);
            }
        }
        let height = json!({ "expression": "document.documentElement.scrollHeight", "returnByValue": true });
        let height = self.call("Runtime.evaluate", height)["result"]["value"].as_u64().unwrap_or(WINDOW.1);
        let all = json!({ "x": 0, "y": 0, "width": WINDOW.0, "height": height.clamp(WINDOW.1, WINDOW.2), "scale": 1 });
        let shot = json!({ "format": "png", "captureBeyondViewport": true, "clip": all });
        let shot = self.call("Page.captureScreenshot", shot);
        let picture = STANDARD.decode(shot["data"].as_str().unwrap_or_default());
        let words: Vec<&str> =
            said["result"]["value"].as_str().unwrap_or_default().split_whitespace().collect();
        let picture = picture.unwrap_or_else(|error| panic!("{address}: no picture: {error}"));
        Portrait { viewed, text: words.join(" "), picture }
    }

    /// What a script says of the page that is shown; a promise is waited for. Panics if it throws.
    pub fn evaluate(&mut self, script: &str) -> Value {
        let ask = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let said = self.call("Runtime.evaluate", ask);
        assert!(said.get("exceptionDetails").is_none(), "{script}: {said}");
        said["result"]["value"].clone()
    }

    /// Runs a script in each page that is opened from now on, before the page's own.
    pub fn run_before_pages(&mut self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script }));
    }

    /// The bytes that the page's script holds, with its arrays of numbers, after what it no longer needs is collected.
    pub fn memory(&mut self) -> u64 {
        self.call("HeapProfiler.collectGarbage", json!({}));
        let used = self.call("Runtime.getHeapUsage", json!({}));
        ["usedSize", "backingStorageSize"].iter().filter_map(|part| used[part].as_f64()).sum::<f64>() as u64
    }

    /// Waits until a script says `true` of the page. Panics with what can be read there if that takes too long.
    pub fn wait_for(&mut self, script: &str) {
        let start = Instant::now();
        while self.evaluate(script) != json!(true) {
            if start.elapsed() > PATIENCE {
                panic!("not so: {script}, in\n{}", self.evaluate("document.body.innerText"));
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Shows the page in a window of this width (pixels), in light or dark colours.
    pub fn show_as(&mut self, width: u64, scheme: &str) {
        let window =
            json!({ "width": width, "height": WINDOW.1, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", window);
        let colours = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", colours);
    }

    /// Presses a key and lets it go, as the browser names it.
    pub fn press(&mut self, key: &str, code: u32) {
        for (kind, text) in [("keyDown", if key == "Enter" { "\r" } else { "" }), ("keyUp", "")] {
            let press =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", press);
        }
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
        self.call_noting(method, parameters, &mut Viewed::default())
    }

    /// Sends a command and waits for its answer; other messages that come meanwhile are about this page.
    fn call_noting(&mut self, method: &str, parameters: Value, viewed: &mut Viewed) -> Value {
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
            self.note(&message, viewed);
        }
    }

    fn note(&mut self, message: &Value, viewed: &mut Viewed) {
        let said = &message["params"];
        let request = said["requestId"].as_str().unwrap_or_default();
        match message["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let address = said["request"]["url"].as_str().unwrap_or_default();
                // The tests' own hosts end so; what comes from others is no part of a site.
                if address.split('/').nth(2).is_some_and(|host| host.ends_with(".test")) {
                    self.counted.insert(request.to_owned());
                }
            }
            Some("Network.loadingFinished") if self.counted.remove(request) => {
                viewed.bytes += said["encodedDataLength"].as_f64().unwrap_or(0.0) as u64;
            }
            _ => {}
        }
        note(message, viewed);
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
