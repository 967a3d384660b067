//! The lighter copies of real sites in a real browser: what a visitor sees, reads and loads at each level, beside the site.

use plimsoll_e2e::real_sites::{RealSite, SITES, real_site};
use plimsoll_e2e::{Browser, Folder, Likeness, Plimsoll, Portrait, likeness, open_to_all};
use std::collections::BTreeSet;
use std::path::Path;

const LEVELS: [&str; 4] = ["full", "light", "lean", "text"];
/// The part of a page's squares of 16 pixels that may differ at the light level by what is seen at a glance, and the mean
/// difference of its samples (of 255).
const CHANGED: f64 = 0.01;
const MEAN: f64 = 3.0;

/// A gateway that has each level under a host of its own.
fn gateway(trees: &Path) -> Plimsoll {
    let mut text =
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\nmode = \"off\"\n"
            .to_owned();
    for level in LEVELS {
        text += &format!(
            "[folder.{level}]\nroot = \"{}\"\nindex = [\"index.html\"]\n[[site]]\nname = \"{level}\"\nhost = \"{level}.test\"\n\
             folder = \"{level}\"\n",
            trees.join(level).display()
        );
    }
    Plimsoll::run(&text)
}

/// What is wrong with a page at a level and not with the page itself, whatever the host is called.
fn news(full: &Portrait, level: &Portrait, name: &str) -> Vec<String> {
    let plain = |all: &BTreeSet<String>, host: &str| -> BTreeSet<String> {
        all.iter().map(|text| text.replace(&format!("http://{host}.test"), "")).collect()
    };
    let new = |of: fn(&Portrait) -> &BTreeSet<String>| -> Vec<String> {
        plain(of(level), name).difference(&plain(of(full), "full")).cloned().collect()
    };
    [new(|page| &page.viewed.failed), new(|page| &page.viewed.errors), new(|page| &page.viewed.broken)]
        .concat()
}

/// Links of a level that the site does not have; pictures that are gone may leave a link to them.
fn new_links(full: &Portrait, level: &Portrait, name: &str) -> Vec<String> {
    let plain = |page: &Portrait, host: &str| -> BTreeSet<String> {
        page.viewed.links.iter().map(|text| text.replace(&format!("http://{host}.test"), "")).collect()
    };
    plain(level, name).difference(&plain(full, "full")).cloned().collect()
}

/// The pictures are left where `PLIMSOLL_PICTURES` says, to be looked at.
fn keep(site: &RealSite, page: &str, level: &str, portrait: &Portrait) {
    if let Some(folder) = std::env::var_os("PLIMSOLL_PICTURES") {
        let name = format!("{}-{}-{level}.png", site.folder.replace('/', "_"), page.replace('/', "_"));
        let written = std::fs::write(Path::new(&folder).join(name), &portrait.picture);
        written.unwrap_or_else(|error| panic!("the picture cannot be written: {error}"));
    }
}

/// What was found of a site: bytes of a view at each level, and how alike the light pages are at least.
fn look(site: &RealSite) -> ([f64; 4], Vec<(String, Likeness)>) {
    let folder = Folder::new();
    let (from, trees) = (site.path(), folder.path().join("trees"));
    let output = Plimsoll::output(&["adapt", &from.to_string_lossy(), &trees.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    open_to_all(&trees);
    let gateway = gateway(&trees);
    let mut browser = Browser::start(gateway.address);
    let (mut bytes, mut alike) = ([0.0; 4], Vec::new());
    for page in site.pages {
        let shown = LEVELS.map(|level| browser.portrait(&format!("http://{level}.test/{page}")));
        for (at, level) in LEVELS.into_iter().enumerate() {
            keep(site, page, level, &shown[at]);
            bytes[at] += shown[at].viewed.bytes as f64;
            let wrong = news(&shown[0], &shown[at], level);
            assert!(wrong.is_empty(), "{} {level}/{page}: {wrong:?}", site.folder);
        }
        assert_eq!(
            shown[0].text, shown[1].text,
            "{} {page}: the light page reads as the site does",
            site.folder
        );
        let links = new_links(&shown[0], &shown[1], "light");
        assert!(links.is_empty(), "{} {page}: {links:?}", site.folder);
        alike.push(((*page).to_owned(), likeness(&shown[0].picture, &shown[1].picture)));
    }
    (bytes, alike)
}

/// Looks at a site, and fails where a copy is heavier, or looks less like the site, than it may.
fn check(folder: &str) {
    let site = real_site(folder);
    let (bytes, alike) = look(site);
    let factors = [1, 2, 3].map(|at| bytes[0] / bytes[at]);
    let [light, lean, text] = factors;
    eprintln!(
        "{folder}: {bytes:.0?} bytes at {LEVELS:?}: {light:.2}, {lean:.2}, {text:.1} times fewer; {alike:?}"
    );
    let all = LEVELS[1..].iter().zip(factors).zip(site.factors);
    let heavy = all.filter(|((_, factor), least)| factor < least);
    let heavy = heavy.map(|((level, factor), least)| format!("{level}: {factor:.2}, not {least}"));
    let seen = alike.iter().filter(|(_, alike)| alike.changed > CHANGED || alike.mean > MEAN);
    let wrong: Vec<String> =
        heavy.chain(seen.map(|(page, alike)| format!("light/{page}: {alike:?}"))).collect();
    assert!(wrong.is_empty(), "{folder}: {wrong:#?}");
}

/// A test for each site, so that they share the processors and each is run by its name.
macro_rules! sites {
    ($($name:ident: $folder:literal,)+) => {
        $(#[test]
        fn $name() {
            check($folder);
        })+
    };
}

sites! {
    agency: "startbootstrap-agency@7.0.12/dist",
    business_casual: "startbootstrap-business-casual@7.0.9/dist",
    clean_blog: "startbootstrap-clean-blog@6.0.9/dist",
    creative: "startbootstrap-creative@7.0.7/dist",
    landing_page: "startbootstrap-landing-page@6.0.6/dist",
    landing_page_with_fonts: "startbootstrap-landing-page@5.0.9",
    stylish_portfolio: "startbootstrap-stylish-portfolio@6.0.6/dist",
    xfig: "xfig-doc",
}

/// The twin: at the lean level pictures are gone, and the measure of likeness says so.
#[test]
fn a_page_without_its_pictures_is_not_taken_for_the_site() {
    let folder = Folder::new();
    let from = SITES[0].path();
    let trees = folder.path().join("trees");
    let output = Plimsoll::output(&[
        "adapt",
        &from.to_string_lossy(),
        &trees.to_string_lossy(),
        "--levels",
        "text,full",
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for level in ["light", "lean"] {
        std::os::unix::fs::symlink("text", trees.join(level)).unwrap_or_else(|error| panic!("{error}"));
    }
    open_to_all(&trees);
    let gateway = gateway(&trees);
    let mut browser = Browser::start(gateway.address);
    let [full, text] =
        ["full", "text"].map(|level| browser.portrait(&format!("http://{level}.test/{}", SITES[0].pages[0])));
    let alike = likeness(&full.picture, &text.picture);
    assert!(alike.changed > 10.0 * CHANGED && alike.mean > MEAN, "{alike:?}");
}
