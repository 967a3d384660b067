//! The dashboard with two hundred classes: frames a second while the last hour is moved, and the memory of its script after a
//! minute, an hour and two. The hour is played, as fast as the page takes it, from one snapshot of a real gateway.

use super::row;
use plimsoll_e2e::{Browser, PlayedUpstream, Plimsoll};
use serde_json::Value;
use std::fmt::Write;

const SITES: usize = 10;
const CLASSES: usize = 19;
/// How long the hour is moved to and fro (ms).
const SPAN: u32 = 10_000;

pub(crate) fn show() {
    println!("the dashboard with 200 classes");
    let upstream = PlayedUpstream::new();
    let gateway = Plimsoll::run(&configuration(&upstream.address().to_string()));
    let mut browser = Browser::start(gateway.admin);
    browser.run_before_pages(include_str!("played_hour.js"));
    browser.view(&format!("http://{}/", gateway.admin));
    browser.wait_for("document.querySelector('#link').dataset.live === 'true'");
    browser.evaluate("document.querySelector('#traffic .open').click()");
    let play = |browser: &mut Browser, seconds: u32| {
        browser.evaluate(&format!(
            "(async () => {{ for (let i = 0; i < {seconds}; i += 60) await playSeconds(60) }})()"
        ));
        browser.memory() as f64 / 1e6
    };
    let minute = play(&mut browser, 60);
    row("after a minute: memory of its script (MB)", minute, "", "");
    let mut hour = minute;
    for _ in 0..60 {
        hour = play(&mut browser, 60);
    }
    row("after an hour", hour, "", "");
    let panned =
        browser.evaluate(&format!("document.querySelector('#span [value=\"3600\"]').click(), pan({SPAN})"));
    let figure = |name: &str| panned[name].as_f64().unwrap_or(f64::NAN);
    row("frames a second while it is moved", figure("perSecond"), "", "at least 30");
    row("the longest frame (ms)", figure("longest"), "", "");
    for _ in 0..60 {
        hour = play(&mut browser, 60);
    }
    row("after two hours: memory of its script (MB)", hour, "", "as after one");
    let wrong: Value = browser.evaluate("document.querySelector('#link').textContent");
    assert_eq!(wrong, "live", "the page has lost its stream");
}

fn configuration(upstream: &str) -> String {
    let mut text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\n\n\
         [upstream.app]\naddress = \"{upstream}\"\ncapacity = {{ workers = 8 }}\n"
    );
    for site in 0..SITES {
        let _ = write!(text, "\n[[site]]\nname = \"site{site}\"\nhost = \"site{site}.test\"\n");
        text.push_str(
            "\n[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n\n[[site.level]]\nname = \"full\"\n",
        );
        for class in 0..CLASSES {
            let _ = write!(
                text,
                "\n[[site.class]]\nname = \"class{class}\"\nmatch = {{ path = \"/{class}/*\" }}\n"
            );
        }
    }
    text
}
