//! A site with many photos, made here, adapted and measured.

#![expect(clippy::unwrap_used, reason = "a test fails where its files do")]

use jpeg_encoder::{ColorType, Encoder};
use plimsoll_content::{Adapted, Image, Job, Level, Policy, Question, Unwatched, Watch, adapt, impact};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const PAGES: usize = 4;
const PHOTOS: usize = 3;

/// Noise with the spectrum of a landscape, 1 / f: its value at a place, in [0, 1).
fn noise(seed: usize, x: usize, y: usize) -> f64 {
    let lattice = |octave: usize, x: usize, y: usize| {
        let hash = (seed * 31 + octave) as u64 ^ (x as u64) << 20 ^ (y as u64) << 40;
        let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((hash ^ hash >> 32).wrapping_mul(0x94d0_49bb_1331_11eb) >> 40) as f64 / f64::from(1 << 24)
    };
    let octave = |octave: usize| {
        let step = 128 >> octave;
        let (column, row) = (x / step, y / step);
        let (along, down) = ((x % step) as f64 / step as f64, (y % step) as f64 / step as f64);
        let across = |row: usize| {
            lattice(octave, column, row) * (1.0 - along) + lattice(octave, column + 1, row) * along
        };
        (across(row) * (1.0 - down) + across(row + 1) * down) / f64::from(1 << octave)
    };
    (0..7).map(octave).sum::<f64>() / 2.0
}

/// A sky with hills before it, one behind the other, the nearest the roughest.
fn photo(seed: usize) -> Vec<u8> {
    let (width, height) = (720_usize, 540_usize);
    let top = |hill: usize, x: usize| 90.0 + 120.0 * hill as f64 - 160.0 * noise(seed + hill * 7, x, 0);
    let tops: Vec<[f64; 4]> = (0..width).map(|x| [0.0, top(1, x), top(2, x), top(3, x)]).collect();
    let pixel = |at: usize| {
        let (x, y) = (at % width, at / width);
        let hill = (1..=3).rev().find(|hill| y as f64 > tops[x][*hill]);
        let [red, green, blue] = match hill {
            None => {
                let grain = noise(seed, x, y) - 0.5;
                [150.0 + 40.0 * grain, 180.0 + 40.0 * grain, 230.0]
            }
            Some(hill) => {
                let rough = 110.0 * hill as f64 * (noise(seed + hill, 3 * x % 5000, 3 * y) - 0.5);
                [
                    120.0 - 20.0 * hill as f64 + rough,
                    130.0 - 10.0 * hill as f64 + rough,
                    110.0 - 25.0 * hill as f64 + rough / 2.0,
                ]
            }
        };
        [red, green, blue].map(|part| part.clamp(0.0, 255.0) as u8)
    };
    let samples: Vec<u8> = (0..width * height).flat_map(pixel).collect();
    let mut written = Vec::new();
    Encoder::new(&mut written, 88).encode(&samples, width as u16, height as u16, ColorType::Rgb).unwrap();
    written
}

fn photos() -> &'static [Vec<u8>] {
    static PHOTOS_MADE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    PHOTOS_MADE.get_or_init(|| (0..PAGES * PHOTOS).map(photo).collect())
}

/// A small picture in one colour.
fn icon(color: u8) -> Vec<u8> {
    let mut written = Vec::new();
    let mut encoder = gif::Encoder::new(&mut written, 16, 16, &[color, 90, 200, 0, 0, 0]).unwrap();
    encoder.write_frame(&gif::Frame::from_indexed_pixels(16, 16, vec![0; 256], None)).unwrap();
    drop(encoder);
    written
}

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A shop of photos, with all that a folder may hold.
fn site(root: &Path) -> PathBuf {
    let site = root.join("site");
    static LOGO: OnceLock<Vec<u8>> = OnceLock::new();
    let logo = LOGO.get_or_init(|| photo(1000));
    for (number, photo) in photos().iter().enumerate() {
        write(&site, &format!("Photos of ours/Bild {number} ü.JPG"), photo);
    }
    write(&site, "img/logo.jpg", logo);
    for number in 0..8 {
        write(&site, &format!("img/icon{number}.gif"), icon(number * 30));
    }
    write(&site, "style.css", "body { background: #fff url(img/icon7.gif) } h1 { color: navy }");
    for page in 0..PAGES {
        let mut text = "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>Shop</title>\
                        <link rel=stylesheet href=style.css></head><body>\n<img src='img/logo.jpg' alt=Shop width=800>\n<ul>\n"
            .to_owned();
        for other in 0..PAGES {
            text += &format!(
                "<li><img src=img/icon{other}.gif alt='*'> <a href=page{other}.html>Page {other}</a>\n"
            );
        }
        text += "</ul>\n";
        for photo in page * PHOTOS..(page + 1) * PHOTOS {
            text += &format!(
                "<p><img src=\"Photos%20of%20ours/Bild {photo} ü.JPG\" alt=\"Hills &amp; {photo}\">\n"
            );
        }
        text += "<p><a href=index.html><img src=img/icon5.gif></a> <a href=gone.html>gone</a> <img src=gone.png></body></html>\n";
        write(&site, &format!("page{page}.html"), text);
    }
    symlink("page0.html", site.join("index.html")).unwrap();
    symlink(".", site.join("loop")).unwrap();
    write(&site, "broken.jpg", &photos()[0][..photos()[0].len() / 2]);
    write(&site, "none.png", "no picture");
    write(&site, "old.html", b"<meta charset=iso-8859-1><p>Gr\xfc\xdfe <img src=img/icon6.gif alt=\"\xe9\">");
    site
}

fn job(site: &Path, out: &Path) -> Job {
    // Without compressed copies a tree has the files of the site and no others.
    let policy = Policy { without: vec![plimsoll_content::Step::Compressed], ..Policy::default() };
    Job { policy, site: site.to_owned(), out: out.to_owned(), levels: Level::ALL.to_vec(), ..Job::default() }
}

/// Every file under a folder, and what is in it.
fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut open) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let bytes = match fs::symlink_metadata(&path).unwrap() {
                of if of.is_dir() => {
                    open.push(path);
                    continue;
                }
                of if of.is_symlink() => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                _ => fs::read(&path).unwrap(),
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
        }
    }
    found
}

/// The sites of these tests have no dynamic pages.
fn no_pages(address: &str) -> Result<Vec<u8>, String> {
    Err(format!("{address} was asked for"))
}

fn made(site: &Path, out: &Path) -> Adapted {
    adapt(&job(site, out), &Unwatched, &no_pages).unwrap()
}

#[test]
fn a_third_of_the_bytes_and_half_of_the_requests_and_pages_that_say_what_they_show() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (site(root), root.join("trees"));
    let adapted = made(&site, &out);
    pages_say_what_they_show(&site, &out);
    for (level, least, factor) in [(Level::Light, 0.85, 1.5), (Level::Lean, 0.70, 3.0)] {
        let images = &adapted.images[&level];
        assert_eq!(images.len(), PAGES * PHOTOS + 1);
        let similar: Vec<f64> = images.values().map(|image| image.similarity).collect();
        assert!(similar.iter().all(|similarity| *similarity >= least), "{level}: {similar:?}");
        let [before, after] = [|image: &Image| image.before, |image: &Image| image.after]
            .map(|of| images.values().map(of).sum::<u64>() as f64);
        assert!(before / after >= factor, "{level}: {before} {after}");
    }
    let question = Question { site: site.clone(), adapted: Some(out.clone()), ..Question::default() };
    let measured = impact(&question, &Unwatched).unwrap();
    let [(_, text), (_, lean), (_, light)] = measured.levels[..] else { panic!("three levels") };
    let full = measured.full;
    assert!(full.view.bytes / lean.view.bytes >= 3.0, "{full:?} {lean:?}");
    // Besides the logo, which stays on each of the pages that have it, and on them alone.
    let logo = PAGES as f64 / full.pages as f64;
    assert!(full.view.requests / (lean.view.requests - logo) >= 2.0, "{full:?} {lean:?}");
    assert!(
        full.view.bytes / light.view.bytes >= 1.5 && light.embedded == full.embedded,
        "{full:?} {light:?}"
    );
    assert_eq!(text.embedded, 0.0);
    // Compressed copies count, on both sides.
    adapt(&Job { policy: Policy::default(), ..job(&site, &out) }, &Unwatched, &no_pages).unwrap();
    let packed = impact(&question, &Unwatched).unwrap();
    assert!(packed.compressed && !measured.compressed);
    for (packed, plain) in [(packed.full, full), (packed.levels[2].1, light)] {
        assert!(packed.page_bytes < 0.8 * plain.page_bytes, "{packed:?} {plain:?}");
    }
    // The estimate is of the same kind: images as small as wanted, texts compressed.
    let estimate = impact(&Question { adapted: None, ..question }, &Unwatched).unwrap();
    assert_eq!(estimate.full, packed.full);
    let (one, other) = (estimate.levels[1].1, packed.levels[1].1);
    assert!((one.page_bytes / other.page_bytes - 1.0).abs() < 0.05, "{one:?} {other:?}");
    // Nothing is saved where nothing is done.
    let none = Policy { image_limit_bytes: u64::MAX, medium_limit_bytes: u64::MAX, ..Policy::default() };
    let policy = Policy { without: plimsoll_content::Step::ALL.to_vec(), ..none };
    let off = impact(&Question { site, policy, ..Question::default() }, &Unwatched).unwrap();
    assert_eq!((off.levels[1].1, off.levels[2].1), (full, full));
}

#[test]
fn the_site_stays_and_runs_agree() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (site(root), root.join("trees"));
    let before = contents(&site);
    let first = made(&site, &out);
    assert_eq!(contents(&site), before);
    assert_eq!(contents(&out.join("full")), before);
    let problems: Vec<&str> = first.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(problems, ["broken.jpg", "none.png"]);
    for level in ["text", "lean", "light"] {
        let tree = contents(&out.join(level));
        assert!(
            before.keys().all(|path| tree.contains_key(path)),
            "every file is there, so that pages of another level find their parts"
        );
        let mut new = tree.keys().filter(|path| !before.contains_key(*path));
        assert!(new.all(|path| level != "text" && path.extension().is_some_and(|ending| ending == "webp")));
        assert_eq!(tree[Path::new("broken.jpg")], before[Path::new("broken.jpg")]);
    }
    let trees = contents(&out);
    let again = made(&site, &out);
    assert_eq!((again.reduced_now, again.written), (0, 0), "nothing was changed, nothing is done again");
    assert!(contents(&out) == trees);
    made(&site, &root.join("other"));
    assert!(contents(&root.join("other")) == trees, "the same site makes the same trees");
    fs::write(site.join("img/logo.jpg"), photo(77)).unwrap();
    assert_eq!(made(&site, &out).reduced_now, 2, "one image is another, at two levels");
}

/// What the pages of the levels say.
fn pages_say_what_they_show(site: &Path, out: &Path) {
    let lean = fs::read_to_string(out.join("lean/page1.html")).unwrap();
    assert!(lean.contains("<li>* <a href=page3.html>Page 3</a>"), "bullets are their text\n{lean}");
    assert!(lean.contains("<a href=index.html>Shop</a>"), "a link keeps something to click at\n{lean}");
    assert!(lean.contains("<img src='img/logo.jpg' alt=Shop width=800>"), "every page has the logo\n{lean}");
    assert!(lean.contains("Bild 5 ü.JPG\" alt=\"Hills &amp; 5\""), "photos stay\n{lean}");
    assert!(
        lean.contains("<a href=gone.html>gone</a> <img src=gone.png>"),
        "what was broken stays so\n{lean}"
    );
    assert_eq!(
        fs::read_to_string(out.join("lean/style.css")).unwrap(),
        "body { background: #fff none } h1 { color: navy }"
    );
    let light = fs::read_to_string(out.join("light/page1.html")).unwrap();
    assert_eq!(light.matches("<img").count(), 1 + PAGES + PHOTOS + 2, "nothing is gone\n{light}");
    assert!(
        light.contains("<img width=\"720\" height=\"540\" loading=\"lazy\" src=\"Photos"),
        "sizes are said\n{light}"
    );
    assert!(fs::read(out.join("light/style.css")).unwrap() == fs::read(site.join("style.css")).unwrap());
    // An icon leaves its text, in the encoding of the page.
    assert_eq!(fs::read(out.join("lean/old.html")).unwrap(), b"<meta charset=iso-8859-1><p>Gr\xfc\xdfe \xe9");
    let text = fs::read_to_string(out.join("text/page1.html")).unwrap();
    assert!(
        !text.contains("<img") && !text.contains("stylesheet") && text.contains("<p>Hills &amp; 5"),
        "{text}"
    );
}

/// Wants it to end soon after it has begun.
struct Impatient(AtomicUsize);

impl Watch for Impatient {
    fn progress(&self, _: usize, _: usize) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 40
    }
}

#[test]
fn whoever_stops_it_keeps_the_old_trees() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (site(root), root.join("trees"));
    let small = Job {
        policy: Policy { image_limit_bytes: u64::MAX, medium_limit_bytes: u64::MAX, ..Policy::default() },
        ..job(&site, &out)
    };
    adapt(&small, &Unwatched, &no_pages).unwrap();
    let trees = contents(root);
    let error = adapt(&job(&site, &out), &Impatient(AtomicUsize::new(0)), &no_pages).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
    assert!(contents(root) == trees, "nothing is changed, and nothing is left");
    let error = adapt(&job(&site, &site.join("trees")), &Unwatched, &no_pages).unwrap_err();
    assert!(error.to_string().contains("in the site"), "{error}");
}

#[test]
fn tags_rules_and_depth() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let site = root.join("site");
    write(
        &site,
        "index.html",
        "<div data-plimsoll=important><img src=a.gif alt=a></div><div data-plimsoll=expendable>ad <p>x</p></div>\
        <script src=x.js></script><a href=one.html>1</a><a data-plimsoll=important href=two.html>2</a>",
    );
    write(&site, "one.html", "<a href=far.html>far</a>");
    write(&site, "two.html", "<a href=near.html>near</a>");
    write(&site, "far.html", "x");
    write(&site, "near.html", "x");
    write(&site, "a.gif", icon(1));
    write(&site, "x.js", "1");
    let rule = plimsoll_content::Rule { pattern: "*.js".to_owned(), tag: plimsoll_content::Tag::Expendable };
    let policy = Policy { depth: Some(1), rules: vec![rule], ..Policy::default() };
    let out = root.join("trees");
    let adapted = adapt(&Job { policy, sparse: true, ..job(&site, &out) }, &Unwatched, &no_pages).unwrap();
    assert_eq!(
        fs::read_to_string(out.join("light/index.html")).unwrap(),
        "<div><img src=a.gif alt=a></div><a href=one.html>1</a><a href=two.html>2</a>"
    );
    assert_eq!(fs::read_to_string(out.join("light/one.html")).unwrap(), "<a>far</a>");
    assert_eq!(adapted.trees[2].missing, ["a.gif", "far.html", "near.html", "two.html", "x.js"], "sparse");
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"far.html\""), "{manifest}");
    // Without the full level nothing else has what is as there.
    let (out, levels) = (root.join("two"), vec![Level::Text, Level::Light]);
    let adapted = adapt(&Job { sparse: true, levels, ..job(&site, &out) }, &Unwatched, &no_pages).unwrap();
    let of = |level| adapted.trees.iter().find(|tree| tree.level == level).expect("a tree");
    assert!(of(Level::Light).missing.is_empty(), "{:?}", of(Level::Light).missing);
    assert!(out.join("light/far.html").is_file() && !out.join("text/far.html").is_file());
}

/// Many web applications have a file of the manifest's name.
#[test]
fn a_folder_of_something_else_stays_though_it_has_a_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("app"));
    write(&site, "index.html", "x");
    write(&out, "manifest.json", "{\"name\": \"My app\", \"icons\": []}");
    write(&out, "app.js", "1");
    let error = adapt(&job(&site, &out), &Unwatched, &no_pages).unwrap_err().to_string();
    assert!(error.contains("`adapt` did not make"), "{error}");
    assert_eq!(fs::read_to_string(out.join("app.js")).unwrap(), "1");
}

/// The most viewed page with an image is cut, so another one keeps it.
#[test]
fn an_image_is_kept_by_a_page_that_is_not_cut() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let site = root.join("site");
    write(&site, "index.html", "<a href=one.html>1</a>");
    write(&site, "one.html", "<img src=a.jpg alt=a><a href=far.html>far</a>");
    write(&site, "far.html", "<img src=a.jpg alt=a>");
    write(&site, "a.jpg", photo(1));
    let views = BTreeMap::from([("far.html".to_owned(), 100), ("one.html".to_owned(), 10)]);
    let policy = Policy { depth: Some(1), ..Policy::default() };
    let out = root.join("trees");
    adapt(&Job { policy, views: Some(views), ..job(&site, &out) }, &Unwatched, &no_pages).unwrap();
    let lean = fs::read_to_string(out.join("lean/one.html")).unwrap();
    assert!(lean.contains("src=a.jpg"), "{lean}");
    assert!(!out.join("lean/far.html").exists());
}

/// A photo as WebP, twice as wide where `wide`.
fn webp(seed: usize, wide: bool) -> Vec<u8> {
    let jpeg = photo(seed);
    let mut decoder = jpeg_decoder::Decoder::new(jpeg.as_slice());
    let samples = decoder.decode().unwrap();
    let (width, height) = (720, 540);
    let rows = samples.chunks_exact(3 * width);
    let samples: Vec<u8> = if wide { rows.flat_map(|row| [row, row].concat()).collect() } else { samples };
    webp::Encoder::from_rgb(&samples, if wide { 2 * width } else { width } as u32, height)
        .encode(90.0)
        .to_vec()
}

/// What is said of a candidate may be anything; browsers take what they do not know for `1x`.
#[test]
fn a_candidate_may_be_told_in_any_letters() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (root.join("site"), root.join("trees"));
    write(&site, "index.html", "<img src=photo.jpg srcset='photo.jpg 2×, photo.jpg 3х' alt=Hills>");
    write(&site, "photo.jpg", photo(3));
    made(&site, &out);
    let lean = fs::read_to_string(out.join("lean/index.html")).unwrap();
    assert!(lean.contains("srcset=\"photo.jpg 2×\""), "{lean}");
}

/// Pictures that a page has in several formats and sizes: each is written again in its own.
#[test]
fn sources_of_a_picture_keep_their_names_and_formats() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (root.join("site"), root.join("trees"));
    let page = "<picture><source type=image/webp srcset='wide.webp 2x, photo.webp 1x'>\
                <source type=image/avif srcset=photo.avif><img src=photo.jpg alt=Hills></picture>\
                <img src=alone.webp alt=Alone>";
    write(&site, "index.html", page);
    // The head of an AVIF: it is copied, whatever is in it.
    let head = b"\0\0\0\x18ftypavif\0\0\0\0mif1miaf\0\0\0\x30meta\0\0\0\0\0\0\0\x24iprp\0\0\0\x1cipco\
        \0\0\0\x14ispe\0\0\0\0\0\0\x02\xd0\0\0\x02\x1c";
    let avif = [head.to_vec(), vec![7; 50_000]].concat();
    write(&site, "photo.avif", &avif);
    write(&site, "photo.jpg", photo(3));
    for (name, seed, wide) in [("photo.webp", 3, false), ("wide.webp", 4, true), ("alone.webp", 5, false)] {
        write(&site, name, webp(seed, wide));
    }
    write(&site, "broken.webp", &webp(6, false)[..9_000]);
    let adapted = made(&site, &out);
    let light = fs::read_to_string(out.join("light/index.html")).unwrap();
    let sized = page.replace("<img src=alone", "<img width=\"720\" height=\"540\" src=alone");
    assert_eq!(light, sized, "every candidate stays");
    let lean = fs::read_to_string(out.join("lean/index.html")).unwrap();
    let lighter = sized.replace("'wide.webp 2x, photo.webp 1x'", "\"photo.webp 1x\"");
    assert_eq!(lean, lighter, "the smallest stays");
    let images = &adapted.images[&Level::Lean];
    let names: Vec<&str> = images.keys().map(String::as_str).collect();
    assert_eq!(names, ["alone.webp", "photo.jpg", "photo.webp", "wide.webp"]);
    for (name, image) in images {
        let written = fs::read(out.join("lean").join(name)).unwrap();
        let variant =
            fs::read(out.join(format!("lean/{name}.webp"))).map_or(usize::MAX, |written| written.len());
        assert_eq!(written.len().min(variant) as u64, image.after);
        assert!(image.before >= 4 * image.after && image.similarity >= 0.70, "{name}: {image:?}");
        if !name.ends_with("jpg") {
            let shown = webp::Decoder::new(&written).decode().unwrap();
            let width = if name.starts_with("wide") { 1440 } else { 720 };
            assert!(shown.width() == width, "{name}: {}", shown.width());
            assert_eq!(&written[8..12], b"WEBP");
        }
    }
    assert!(fs::read(out.join("light/photo.avif")).unwrap() == avif);
    let problems: Vec<&str> = adapted.problems.iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(problems, ["broken.webp", "photo.avif"]);
    assert!(adapted.problems[1].what.contains("--avif"), "{:?}", adapted.problems[1]);
    assert_eq!(fs::read(out.join("light/broken.webp")).unwrap().len(), 9_000, "copied as it is");
}

/// A site with something for each step that rewrites pages; its images are not written again.
fn site_for_steps(root: &Path) -> (PathBuf, Policy) {
    let site = root.join("site");
    for (seed, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        write(&site, &format!("{name}.jpg"), photo(seed));
    }
    write(&site, "dot.gif", icon(7));
    write(
        &site,
        "index.html",
        "<link rel=icon href=dot.gif><body background=dot.gif><video src=v.mp4 poster=a.jpg autoplay></video>\
         <img src=dot.gif alt=dot><img src=a.jpg alt=a><img src=b.jpg alt=b>\
         <img srcset='c.jpg 2x, b.jpg 1x' src=c.jpg alt=c><img src=d.jpg alt='Dunes'>\
         <p data-plimsoll=expendable>ad</p><a href=other.html>other</a>",
    );
    write(
        &site,
        "other.html",
        "<img src=d.jpg alt='Dunes'><script src=x.js></script><img src=b.jpg id=b alt=b>",
    );
    let none = u64::MAX;
    (site, Policy { image_limit_bytes: none, medium_limit_bytes: none, ..Policy::default() })
}

#[test]
fn each_step_does_its_own_and_can_be_left_out() {
    use plimsoll_content::Step;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, policy) = site_for_steps(root);
    let out = root.join("trees");
    let lean = |without: &[Step], page: &str| {
        let policy = Policy { without: without.to_vec(), ..policy.clone() };
        adapt(&Job { policy, ..job(&site, &out) }, &Unwatched, &no_pages).unwrap();
        fs::read_to_string(out.join("lean").join(page)).unwrap()
    };
    let all = lean(&[], "index.html");
    assert!(out.join("lean/index.html.gz").is_file() && out.join("full/index.html.gz").is_file());
    for (step, page, before, after) in [
        (Step::Cosmetic, "index.html", "<img src=dot.gif alt=dot>", "</video>dot <img src=a.jpg"),
        (Step::Cosmetic, "index.html", "<link rel=icon href=dot.gif>", "href=\"data:,\">"),
        (Step::Backgrounds, "index.html", "<body background=dot.gif>", "<body>"),
        (Step::Video, "index.html", " autoplay></video>", "preload=\"none\""),
        (Step::Responsive, "index.html", "srcset='c.jpg 2x, b.jpg 1x'", "srcset=\"b.jpg 1x\""),
        (Step::Expendable, "index.html", "<p>ad</p>", "alt='Dunes'><a href=other.html>"),
        (Step::OnePage, "other.html", " src=d.jpg alt='Dunes'>", "<a href=\"d.jpg\">Dunes</a>"),
    ] {
        let with = if page == "index.html" { all.clone() } else { lean(&[], page) };
        assert!(with.contains(after) && !with.contains(before), "{step:?}: {with}");
        let left_out = lean(&[step], page);
        assert!(left_out.contains(before) && !left_out.contains(after), "without {step:?}: {left_out}");
    }
    assert_eq!(all.matches("loading=\"lazy\"").count(), 1, "the fourth that stays: {all}");
    assert_eq!(lean(&[Step::Lazy], "index.html").matches("loading").count(), 0);
    let other = lean(&[], "other.html");
    assert!(other.ends_with(" src=b.jpg id=b alt=b>"), "a script may look for it: {other}");
    lean(&[Step::Compressed], "index.html");
    assert!(!out.join("lean/index.html.gz").exists());
}

/// By an access log, where one is given: else the page nearest to the first keeps it.
#[test]
fn an_image_stays_on_the_most_popular_page() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, policy) = site_for_steps(root);
    let out = root.join("trees");
    let has = |views: &[(&str, u64)], page: &str| {
        let views: BTreeMap<String, u64> =
            views.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect();
        let job = Job { policy: policy.clone(), views: Some(views), ..job(&site, &out) };
        adapt(&job, &Unwatched, &no_pages).unwrap();
        fs::read_to_string(out.join("lean").join(page)).unwrap().contains("src=d.jpg")
    };
    let logs: [&[(&str, u64)]; 3] =
        [&[], &[("/other.html", 9), ("/", 2)], &[("/other.html", 9), ("/?q", 4), ("/index.html", 7)]];
    let found = logs.map(|views| [has(views, "index.html"), has(views, "other.html")]);
    assert_eq!(found, [[true, false], [false, true], [true, false]]);
}

/// An advertisement on one page and the product's own picture on another, and two advertisements for one picture.
#[test]
fn an_expendable_block_takes_its_images_from_its_own_page_alone() {
    use plimsoll_content::{Reason, Role, Step};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (root.join("site"), root.join("trees"));
    write(
        &site,
        "index.html",
        "<p>Shop</p><aside data-plimsoll=expendable><a href=chair.html><img src=chair.jpg></a><img src=table.jpg alt=Table>\
         <p data-plimsoll=degradable><img src=lamp.jpg alt=Lamp></p><img src=ad.jpg alt=Ad></aside>\
         <a href=chair.html>Chair</a>",
    );
    let page = "<img src=chair.jpg alt='Blue chair'><img src=table.jpg alt=Table><img src=lamp.jpg alt=Lamp>\
                <div data-plimsoll=expendable><img src=ad.jpg alt=Ad></div>";
    write(&site, "chair.html", page);
    for (seed, name) in ["chair", "table", "lamp", "ad"].into_iter().enumerate() {
        write(&site, &format!("{name}.jpg"), photo(seed));
    }
    let policy = |without: &[Step]| Policy {
        without: without.to_vec(),
        image_limit_bytes: u64::MAX,
        medium_limit_bytes: u64::MAX,
        ..Policy::default()
    };
    for without in [vec![], vec![Step::Cosmetic], vec![Step::Expendable, Step::Cosmetic, Step::OnePage]] {
        adapt(&Job { policy: policy(&without), ..job(&site, &out) }, &Unwatched, &no_pages).unwrap();
        let lean = fs::read_to_string(out.join("lean/chair.html")).unwrap();
        for image in ["chair", "table", "lamp"] {
            assert!(lean.contains(&format!(" src={image}.jpg")), "without {without:?}, {image}: {lean}");
        }
        let first = fs::read_to_string(out.join("lean/index.html")).unwrap();
        let stays = without.contains(&Step::Expendable);
        assert!(first.contains("<aside") == stays && lean.contains("ad.jpg") == stays, "{first}\n{lean}");
    }
    // What is gone from the first page, and the second advertisement, are what is saved; the tag counts where all agree.
    let question = Question { site: site.clone(), policy: policy(&[]), ..Question::default() };
    let estimate = impact(&question, &Unwatched).unwrap();
    let [full, lean] = [estimate.full, estimate.levels[1].1].map(|figures| figures.embedded);
    assert_eq!(
        (full, lean),
        (4.0, 1.5),
        "four images on each of two pages; at the lean level none, and three"
    );
    adapt(&Job { policy: policy(&[]), ..job(&site, &out) }, &Unwatched, &no_pages).unwrap();
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    for (name, role, reason) in [
        ("chair.jpg", Role::Product, Reason::LeadsToPage),
        ("table.jpg", Role::Content, Reason::Described),
        ("ad.jpg", Role::Decoration, Reason::Tagged),
    ] {
        let image = &manifest["images"][name];
        assert_eq!([&image["role"], &image["why"]], [role.name(), reason.name()], "{image}");
    }
}

/// Small pictures that mean something in a table, in links and beside text: no level says less than a lower one.
#[test]
fn what_an_icon_says_stays_when_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (root.join("site"), root.join("trees"));
    let pages = [
        // What pages say, what the lean level says, and what the text level says if that is something else.
        (
            "<td><img src=yes.gif width=16 height=16 alt=\"In stock\"></td><td><img src=no.gif alt=\"Sold out\"></td>",
            "<td>In stock</td><td>Sold out</td>",
            None,
        ),
        (
            "New<img src=no.gif alt=Sale><img src=yes.gif alt='5 left'>now<img src=no.gif alt='*'>",
            "New Sale 5 left now*",
            None,
        ),
        ("<p><img src=yes.gif alt=ICON><img src=no.gif alt=spacer><img src=no.gif alt=''>", "<p>", None),
        (
            "<a href=c><img src=yes.gif alt='In Stock'> All <b>in</b> stock</a><button><img src=no.gif alt=tock> Stock</button>",
            "<a href=c> All <b>in</b> stock</a><button>tock Stock</button>",
            None,
        ),
        (
            "<a href=c><img src=yes.gif alt=New><img src=wide.jpg alt='Blue chair'><img src=no.gif alt=x1></a>\
             <a href=c><img src=no.gif alt='Blue chair'><img src=wide.jpg alt='Blue chair'></a>\
             <a href=c><img src=heart.gif class=i alt='Add to &lt;3'></a>",
            "<a href=c>New <img width=\"720\" height=\"540\" src=wide.jpg alt='Blue chair'></a>\
             <a href=c><img width=\"720\" height=\"540\" src=wide.jpg alt='Blue chair'></a>\
             <a href=c><span class=\"i\" title=\"Add to &lt;3\">\u{2665}</span></a>",
            Some("<a href=c>New</a><a href=c>Blue chair</a><a href=c>Add to &lt;3</a>"),
        ),
    ];
    for (number, (page, ..)) in pages.iter().enumerate() {
        write(&site, &format!("{number}.html"), page);
    }
    for name in ["yes", "no", "heart"] {
        write(&site, &format!("{name}.gif"), icon(9));
    }
    write(&site, "wide.jpg", photo(1));
    adapt(&job(&site, &out), &Unwatched, &no_pages).unwrap();
    for (number, (_, lean, text)) in pages.into_iter().enumerate() {
        for (level, expected) in [("lean", lean), ("text", text.unwrap_or(lean))] {
            let page = fs::read_to_string(out.join(level).join(format!("{number}.html"))).unwrap();
            assert_eq!(page, expected, "{level}/{number}.html");
        }
    }
}

/// Icons that are drawn in the page or by its style, in links and buttons without any text.
#[test]
fn a_link_with_an_icon_alone_keeps_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (root.join("site"), root.join("trees"));
    let drawing = "<svg><style/><title>Basket</title><path d='M0 0h9'/></svg>";
    let pages = [
        (
            format!("<a href=c aria-label=Search>{drawing}</a> rest"),
            "<a href=c aria-label=Search>Search</a> rest",
        ),
        (format!("<button>{drawing}</button><p>rest"), "<button>Basket</button><p>rest"),
        (format!("<a href=c>{drawing} 3</a>"), "<a href=c> 3</a>"),
        (
            "<a href=c title=Top><i class=up></i></a>".to_owned(),
            "<a href=c title=Top>Top<i class=up></i></a>",
        ),
        ("<button><svg aria-label='Sort: a &lt; b'/></button>".to_owned(), "<button>Sort: a &lt; b</button>"),
        ("<a href=0.html><svg></svg></a>".to_owned(), "<a href=0.html>0</a>"),
        ("<a href='javascript:f()'><i></i></a><a id=x></a>".to_owned(), "<a><i></i></a><a id=x></a>"),
        (
            "<a href=c aria-label=Basket><img src=no.gif alt=2></a><input type=image src=no.gif title=Go>"
                .to_owned(),
            "<a href=c aria-label=Basket>Basket</a><input value=\"Go\" type=\"submit\" title=Go>",
        ),
    ];
    for (number, (page, _)) in pages.iter().enumerate() {
        write(&site, &format!("{number}.html"), page);
    }
    write(&site, "no.gif", icon(9));
    adapt(&job(&site, &out), &Unwatched, &no_pages).unwrap();
    for (number, (_, expected)) in pages.into_iter().enumerate() {
        let page = fs::read_to_string(out.join(format!("text/{number}.html"))).unwrap();
        assert_eq!(page, expected, "{number}.html");
    }
}

/// A browser refuses a sheet that is not what the page's hash says.
#[test]
fn a_sheet_whose_hash_a_page_says_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (root.join("site"), root.join("trees"));
    let page = "<link rel=stylesheet href=a.css integrity=sha384-x><link rel=stylesheet href=b.css>";
    write(&site, "index.html", page);
    for name in ["a.css", "b.css"] {
        write(&site, name, "p { background: url(dot.gif) }");
    }
    write(&site, "dot.gif", icon(7));
    made(&site, &out);
    let lean = |path: &str| fs::read_to_string(out.join("lean").join(path)).unwrap();
    assert_eq!(lean("index.html"), page);
    assert_eq!([lean("a.css"), lean("b.css")], ["p { background: url(dot.gif) }", "p { background: none }"]);
}

/// A file of few bytes goes, as the paper has it, and what it is said to show stays in its place.
#[test]
fn what_a_small_file_is_said_to_show_stays() {
    use plimsoll_content::{Reason, Role};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (site, out) = (root.join("site"), root.join("trees"));
    let drawing =
        |head: &str| format!("<svg xmlns='http://www.w3.org/2000/svg' {head}><path d='M0 0h9'/></svg>");
    write(&site, "chart.svg", drawing("viewBox='0 0 24 24'"));
    write(&site, "sign.svg", drawing("viewBox='0 0 512 512'"));
    write(&site, "plain.svg", drawing("width='200' height='200'"));
    write(
        &site,
        "table.html",
        "<img src=chart.svg width=400 alt='Sales by year'><img src=sign.svg width=24 height=24 alt='In stock'>\
         <img src=plain.svg>",
    );
    adapt(&job(&site, &out), &Unwatched, &no_pages).unwrap();
    assert_eq!(fs::read_to_string(out.join("lean/table.html")).unwrap(), "Sales by year In stock ");
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    for (name, role, reason, shown) in [
        ("chart.svg", Role::Icon, Reason::FewBytes, [400, 400]),
        ("sign.svg", Role::Icon, Reason::IconSized, [24, 24]),
        ("plain.svg", Role::Icon, Reason::FewBytes, [200, 200]),
    ] {
        let image = &manifest["images"][name];
        assert_eq!([&image["role"], &image["why"]], [role.name(), reason.name()], "{image}");
        assert_eq!(image["shown"], serde_json::json!(shown), "{image}");
    }
}
