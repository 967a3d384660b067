//! The pages that `--report` writes, in a real browser: what a reader sees of a comparison of many fronts, and of a site's
//! levels.

use plimsoll_e2e::{Browser, Folder, Plimsoll, open_to_all};
use serde_json::json;
use std::path::Path;

/// A day of a real server, with more fronts than there are colours, under long names.
const LOG: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crates/sim/tests/data/nasa-1995-08-01-pages-and-pictures.log.gz"
);
const FRONTS: [&str; 8] = [
    "none",
    "tail-drop:511",
    "concurrency:8,queue=100,wait=1s",
    "gradient2,initial=20,least=20,most=200,window=1s",
    "nginx: limit_req rate=200r/s burst=50 nodelay; limit_conn 64",
    "haproxy: maxconn 8; timeout queue 2s",
    "envoy: adaptive_concurrency; admission_control sr_threshold=95",
    "mod_qos: QS_SrvMaxConn 256; QS_SrvMaxConnPerIP 10",
];

/// A gateway that serves the folder, and a browser that asks it.
fn shown(folder: &Folder) -> (Plimsoll, Browser) {
    open_to_all(folder.path());
    let gateway = Plimsoll::run(&format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\nmode = \"off\"\n\
         [folder.pages]\nroot = \"{}\"\n[[site]]\nname = \"pages\"\nfolder = \"pages\"\n",
        folder.path().display()
    ));
    let browser = Browser::start(gateway.address);
    (gateway, browser)
}

/// Opens the page in a window of usual width. Its picture is left where `PLIMSOLL_PICTURES` says, to be looked at.
fn look(browser: &mut Browser, page: &str) {
    let address = format!("http://pages.test/{page}");
    if let Some(folder) = std::env::var_os("PLIMSOLL_PICTURES") {
        let picture = browser.portrait(&address).picture;
        std::fs::write(Path::new(&folder).join(format!("{page}.png")), picture).expect("it is written");
    }
    browser.show_as(1280, "light");
    let viewed = browser.view(&address);
    assert!(viewed.errors.is_empty() && viewed.failed.is_empty(), "{viewed:?}");
}

#[test]
fn a_comparison_of_nine_fronts_can_be_read() {
    let folder = Folder::new();
    let page = folder.path().join("what-if.html").display().to_string();
    let mut arguments =
        vec!["simulate", "--log", LOG, "--speed", "1500", "--capacity", "200/s", "--report", &page];
    arguments.extend(FRONTS.iter().flat_map(|front| ["--against", front]));
    let output = Plimsoll::output(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_gateway, mut browser) = shown(&folder);
    look(&mut browser, "what-if.html");
    let mut ask = |script: &str| browser.evaluate(script);
    // The comparison comes first, and a row of it is read across: no cell is broken into letters.
    assert_eq!(ask("document.querySelector('section > :not(h2)').matches('.table')"), json!(true));
    let highest = ask(
        "Math.max(...[...document.querySelector('.table').querySelectorAll('tbody tr')].map(r => r.offsetHeight))",
    );
    assert!(highest.as_f64().is_some_and(|height| height < 80.0), "a row is {highest} pixels high");
    assert_eq!(ask("document.documentElement.scrollWidth <= innerWidth"), json!(true));
    assert_eq!(ask("document.querySelectorAll('h3.tiles').length"), json!(FRONTS.len() + 1));
    // Nothing is empty, and what nobody met says so.
    assert_eq!(
        ask("[...document.querySelectorAll('section')].filter(s => s.children.length < 2).length"),
        json!(0)
    );
    assert_eq!(ask("document.body.textContent.includes('no data')"), json!(false));
    assert_eq!(
        ask("[...document.querySelectorAll('.empty')].some(e => e.textContent === 'nobody')"),
        json!(true)
    );
    // Within a chart no two lines look alike, and a reason has one look on the page.
    let twice = "[...document.querySelectorAll('.legend')].filter(l => \
        new Set([...l.children].map(b => b.className)).size < l.children.length).length";
    assert_eq!(ask(twice), json!(0));
    let looks = "Object.entries([...document.querySelectorAll('.chart')].filter(c => c.textContent.includes('by reason')) \
        .flatMap(c => [...c.querySelectorAll('.legend button')]) \
        .reduce((all, b) => { (all[b.textContent] ??= new Set()).add(b.className); return all }, {})) \
        .map(([name, looks]) => [name, looks.size])";
    let looks = ask(looks);
    let reasons = looks.as_array().expect("a list");
    assert!(reasons.len() > 1 && reasons.iter().all(|reason| reason[1] == 1), "{looks}");
    // A click leaves one line alone.
    let hidden = "document.querySelector('.legend button').click(), \
        document.querySelector('.legend').querySelectorAll('[aria-pressed=false]').length";
    assert!(ask(hidden).as_u64() > Some(0), "the others are still there");
}

#[test]
fn a_sites_levels_are_beside_each_other() {
    let folder = Folder::new();
    folder.write("site/index.html", "<h1>A page</h1><p>with words</p>");
    let (site, trees) = (folder.path().join("site"), folder.path().join("trees"));
    let report = folder.path().join("savings.html");
    let [site, trees, report] = [site, trees, report].map(|path| path.display().to_string());
    for arguments in
        [&["adapt", &site, &trees][..], &["impact", &site, "--adapted", &trees, "--report", &report]]
    {
        let output = Plimsoll::output(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (_gateway, mut browser) = shown(&folder);
    look(&mut browser, "savings.html");
    let tops = browser.evaluate("[...document.querySelector('.pictures').children].map(p => p.offsetTop)");
    let tops = tops.as_array().expect("pictures");
    assert!(tops.len() == 4 && tops.iter().all(|top| top == &tops[0]), "{tops:?}");
}
