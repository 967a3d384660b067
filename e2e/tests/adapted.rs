//! A site and its lighter copies (`plimsoll adapt`): served whole under overload, and whole in a real browser.

use plimsoll_e2e::site::{
    GATEWAY, SETTLED, Shop, VISITS, Visit, WORKERS, before_trees, levels, visit, visits,
};
use plimsoll_e2e::{Apache, Browser, Folder, Plimsoll, Viewed, get};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, thread};

/// Whatever was served was whole, from its first byte to its last.
fn assert_whole(visits: &[(f64, Visit)]) {
    assert!(visits.len() > 20, "{} visits", visits.len());
    let broken: Vec<_> = visits.iter().flat_map(|(_, visit)| &visit.broken).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

/// Each request of the visits, and of so many more, was accounted for once.
fn assert_accounted(gateway: &Plimsoll, visits: &[(f64, Visit)], more: usize) {
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    let requests: usize = visits.iter().map(|(_, visit)| visit.requests).sum();
    assert_eq!(gateway.metric("plimsoll_arrivals_total"), (requests + more) as f64);
}

/// What was not served was turned away: a page of a tree that is gone would be 404, and one that was cut short an error.
fn assert_turned_away(visits: &[(f64, Visit)]) {
    let failed: Vec<_> = visits.iter().flat_map(|(_, visit)| &visit.failed).collect();
    assert!(failed.iter().all(|failed| failed.contains(": 503")), "{failed:?}");
}

/// With control and without. How many visits fail in each, `make live shop` shows.
#[test]
fn a_shop_at_three_times_the_capacity_is_served_whole() {
    let shop = Shop::adapted(&[]);
    for mode in ["control", "off"] {
        let apache = Apache::serving(&shop.trees(), WORKERS);
        let gateway = Plimsoll::run(&before_trees(apache.upstream, mode));
        let visits = visits(gateway.address, VISITS);
        assert_whole(&visits);
        assert_accounted(&gateway, &visits, 0);
        if mode == "control" {
            assert_turned_away(&visits);
        }
    }
}

#[test]
fn trees_with_gaps_are_served_whole_while_they_are_exchanged() {
    let shop = Shop::adapted(&["--sparse"]);
    assert!(!shop.trees().join("light/img/icon0.gif").exists(), "the lower trees have gaps");
    // The link is what is full: a visit at full quality has some 300 KB.
    let root = shop.trees();
    let folder = format!("[folder.www]\nroot = \"{}\"\n", root.display());
    let folder = folder + "capacity = { bandwidth = \"16 Mbit/s\" }\n\n";
    let gateway = Plimsoll::run(&(GATEWAY.to_owned() + &folder + &levels("folder = \"www\"")));
    let full = visit(gateway.address, Ipv4Addr::LOCALHOST, "/page1.html");
    assert!(full.failed.is_empty() && full.broken.is_empty(), "{full:?}");
    let exchanged = AtomicBool::new(false);
    let visits = thread::scope(|scope| {
        // Meanwhile the trees are made anew, and exchanged.
        scope.spawn(|| {
            thread::sleep(Duration::from_secs_f64(SETTLED));
            shop.adapt(&["--sparse"]);
            shop.adapt(&["--sparse", "--without", "lazy"]);
            exchanged.store(true, Ordering::Relaxed);
        });
        visits(gateway.address, 3.0 * 2e6 / full.bytes as f64)
    });
    assert!(exchanged.load(Ordering::Relaxed));
    assert_whole(&visits);
    assert_accounted(&gateway, &visits, full.requests);
    assert_turned_away(&visits);
    let mut settled = visits.iter().filter(|(due, _)| *due >= SETTLED);
    assert!(settled.any(|(_, visit)| !visit.levels.contains("level=4")), "some are degraded");
}

/// Every page of a site at each level, in a browser, against the site as it is.
fn nothing_new_is_wrong(site: &Path, trees: &Path, name: &str) {
    let tree = |level| (level, trees.join(level));
    let roots = [("site", site.to_owned()), tree("text"), tree("lean"), tree("light")];
    let folders = roots.iter().map(|(name, root)| {
        format!(
            "[folder.{name}]\nroot = \"{}\"\nindex = [\"index.html\", \"index.htm\"]\n[[site]]\nname = \"{name}\"\n\
             host = \"{name}.test\"\nfolder = \"{name}\"\n",
            root.display()
        )
    });
    let gateway = Plimsoll::run(&(GATEWAY.to_owned() + &folders.collect::<String>()));
    let mut browser = Browser::start(gateway.address);
    let pages = pages(site, "");
    let mut dead: BTreeSet<(&str, String)> = BTreeSet::new();
    let (mut known, mut requests, mut bytes) = (BTreeSet::new(), [0; 4], [0; 4]);
    for page in &pages {
        let views = ["site", "text", "lean", "light"].map(|host| {
            let viewed = browser.view(&format!("http://{host}.test/{page}"));
            without_host(&viewed, host)
        });
        for (at, (level, view)) in ["site", "text", "lean", "light"].into_iter().zip(&views).enumerate() {
            requests[at] += view.requests;
            bytes[at] += view.bytes;
            let new = |all: fn(&Viewed) -> &BTreeSet<String>| -> Vec<String> {
                all(view).difference(all(&views[0])).cloned().collect()
            };
            let news =
                [new(|view| &view.failed), new(|view| &view.errors), new(|view| &view.broken)].concat();
            assert!(news.is_empty(), "{level}/{page}: {news:?}");
            for link in view.links.iter().filter(|link| link.starts_with('/')) {
                let path = link.split(['#', '?']).next().unwrap_or_default();
                if known.insert((level, path.to_owned())) && status(gateway.address, level, path) == 404 {
                    dead.insert((level, path.to_owned()));
                }
            }
        }
    }
    let new: Vec<_> = dead.iter().filter(|(_, path)| !dead.contains(&("site", path.clone()))).collect();
    assert!(new.is_empty(), "dead links: {new:?}");
    eprintln!(
        "{name}: {} pages; requests {requests:?}, bytes {bytes:?} of site, text, lean, light",
        pages.len()
    );
}

fn status(server: SocketAddr, level: &str, path: &str) -> u16 {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {level}.test\r\nConnection: close\r\nRange: bytes=0-0\r\n\r\n");
    plimsoll_e2e::exchange(server, request).status
}

/// The pages under a folder, as addresses.
fn pages(site: &Path, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(site.join(folder)).into_iter().flatten().filter_map(Result::ok);
    let mut found = Vec::new();
    for entry in entries {
        let path = format!("{folder}{}", entry.file_name().to_string_lossy());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(pages(site, &format!("{path}/")));
        } else if path.ends_with(".html") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn without_host(viewed: &Viewed, host: &str) -> Viewed {
    let host = format!("http://{host}.test");
    let all = |of: &BTreeSet<String>| of.iter().map(|text| text.replace(&host, "")).collect();
    Viewed {
        failed: all(&viewed.failed),
        errors: all(&viewed.errors),
        broken: all(&viewed.broken),
        links: all(&viewed.links),
        ..*viewed
    }
}

#[test]
fn every_page_is_whole_in_a_browser() {
    let shop = Shop::adapted(&[]);
    nothing_new_is_wrong(&shop.site(), &shop.trees(), "the shop");
    // A site of your own: PLIMSOLL_SITE=/var/www/html.
    if let Some(site) = env::var_os("PLIMSOLL_SITE") {
        let folder = Folder::new();
        let (site, trees) = (Path::new(&site), folder.path().join("trees"));
        let output = Plimsoll::output(&["adapt", &site.to_string_lossy(), &trees.to_string_lossy()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        nothing_new_is_wrong(site, &trees, &site.to_string_lossy());
    }
}

/// The shop with some of its photos as AVIF, for `avifenc` is what makes them.
fn shop_with_avif() -> Shop {
    let shop = Shop::adapted(&["--levels", "full"]);
    let photos = shop.site().join("photos");
    let encode = |number: usize, name: &str, options: &[&str]| {
        let mut command = Command::new("avifenc");
        command.args(["--speed", "9", "--min", "12", "--max", "12"]).args(options);
        command.arg(photos.join(format!("Bild {number}.JPG"))).arg(photos.join(name));
        let output =
            command.output().unwrap_or_else(|error| panic!("avifenc: {error}; `make deps` installs it"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    encode(0, "plain.avif", &[]);
    encode(1, "wide gamut.avif", &["--cicp", "12/13/6", "--depth", "10"]);
    encode(2, "turned.avif", &["--irot", "1"]);
    let page = "<!DOCTYPE html><title>AVIF</title><link rel=icon href=data:,><img src=photos/plain.avif alt=Plain>\
                <picture><source type=image/avif srcset='photos/wide%20gamut.avif'>\
                <img src='photos/Bild 1.JPG' alt=Wide></picture><img src=photos/turned.avif alt=Turned>";
    std::fs::write(shop.site().join("avif.html"), page).unwrap_or_else(|error| panic!("{error}"));
    shop
}

/// AVIF is reduced where that is asked for, by libavif's own programs, and a browser shows what they wrote.
#[test]
fn avif_is_reduced_where_it_is_asked_for() {
    let shop = shop_with_avif();
    let [site, trees] = [shop.site(), shop.trees()].map(|path| path.to_string_lossy().into_owned());
    let read = |level: &str, name: &str| std::fs::read(shop.trees().join(level).join("photos").join(name));
    let read = |level, name| read(level, name).unwrap_or_else(|error| panic!("{level}/{name}: {error}"));
    let names = ["plain.avif", "wide gamut.avif", "turned.avif"];
    let adapt = |options: &[&str]| {
        let output = Plimsoll::output(&[&["adapt", &site, &trees], options].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = adapt(&[]);
    assert_eq!(said.matches("`--avif` reduces it").count(), 3, "{said}");
    assert!(names.iter().all(|name| read("light", name) == read("full", name)), "copied");

    let said = adapt(&["--avif"]);
    assert!(said.contains("photos/turned.avif: an AVIF that is turned"), "{said}");
    assert!(read("light", names[2]) == read("full", names[2]), "left alone");
    for name in &names[..2] {
        let (before, after) = (read("full", name), read("lean", name));
        assert!(before.len() >= 3 * after.len(), "{name}: {} {}", before.len(), after.len());
    }
    let primaries = |bytes: &[u8]| {
        let at = bytes.windows(8).position(|name| name == b"colrnclx")?;
        bytes.get(at + 8..at + 10).map(<[u8]>::to_vec)
    };
    assert_eq!(primaries(&read("light", names[1])), Some(vec![0, 12]), "its colours are said as before");
    assert!(adapt(&["--avif"]).contains(" 0 images reduced in this run"), "nothing is done again");
    nothing_new_is_wrong(&shop.site(), &shop.trees(), "the shop with AVIF");

    let mut command = Command::new(plimsoll_e2e::binary());
    let output = command.args(["adapt", &site, &trees, "--avif"]).env("PATH", "/nowhere").output();
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("`avifdec`, which cannot be run") && said.contains("libavif-bin"), "{said}");
}

#[test]
fn a_broken_page_does_not_pass() {
    let folder = Folder::new();
    for (name, page) in [
        ("site/a.html", "<img src=data:,><a href=b.html>b</a>"),
        ("site/b.html", "b"),
        ("site/bad.html", "<img src=gone.png><script>undefined_thing()</script>"),
    ] {
        folder.write(name, page);
    }
    let root = folder.path().join("site");
    let text = format!("[folder.www]\nroot = \"{}\"\n", root.display());
    let gateway = Plimsoll::run(&(GATEWAY.to_owned() + &text));
    assert_eq!(get(gateway.address, "/b.html").text(), "b");
    let mut browser = Browser::start(gateway.address);
    let bad = browser.view("http://site.test/bad.html");
    assert!(bad.failed.iter().any(|failed| failed.ends_with("/gone.png")), "{bad:?}");
    assert!(
        bad.broken.len() == 1 && bad.errors.iter().any(|error| error.contains("undefined_thing")),
        "{bad:?}"
    );
    let good = browser.view("http://site.test/a.html");
    assert!(good.errors.is_empty() && good.links.contains("http://site.test/b.html"), "{good:?}");
}
