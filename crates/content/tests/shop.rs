//! A shop as templates make it: every alternative text is `IMG-PRODUCT`, `IMG-LOGO` or `ICON`, sheets place the icons, and
//! products have pages of their own. What a visitor needs is there at each level.

#![expect(clippy::unwrap_used, reason = "a test fails where its files do")]

use jpeg_encoder::{ColorType, Encoder};
use plimsoll_content::{Job, Level, Policy, Reason, Role, Unwatched, adapt};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const PRODUCTS: usize = 8;

/// A picture in which brightness and colours fade, as a photo of something before a wall.
fn photo(seed: usize, width: usize, height: usize) -> Vec<u8> {
    let pixel = |at: usize| {
        let (x, y) = (at % width, at / width);
        let thing = (x * 2).abs_diff(width) + (y * 2).abs_diff(height) < height / 2 + 40 * (seed % 3);
        let grain = (at * 7919 + seed * 31) % 104_729 % 13;
        let fade = 60 + x * 120 / width + grain;
        if thing {
            [200, (40 + seed * 20) as u8, fade as u8]
        } else {
            [fade as u8, (fade + 20) as u8, (y * 200 / height) as u8]
        }
    };
    let samples: Vec<u8> = (0..width * height).flat_map(pixel).collect();
    let mut written = Vec::new();
    Encoder::new(&mut written, 92).encode(&samples, width as u16, height as u16, ColorType::Rgb).unwrap();
    written
}

/// A small picture in one colour.
fn icon(color: u8) -> Vec<u8> {
    let mut written = Vec::new();
    let mut encoder = gif::Encoder::new(&mut written, 20, 20, &[color, 90, 200, 0, 0, 0]).unwrap();
    encoder.write_frame(&gif::Frame::from_indexed_pixels(20, 20, vec![0; 400], None)).unwrap();
    drop(encoder);
    written
}

const HEAD: &str =
    "<header><a href=index.html class=logo><img src=images/icons/logo-01.jpg alt=IMG-LOGO></a></header>\n";

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn shop(site: &Path) {
    write(site, "images/icons/logo-01.jpg", photo(99, 140, 60));
    write(site, "images/icons/icon-heart-01.gif", icon(10));
    write(site, "images/icons/icon-heart-02.gif", icon(200));
    write(site, "images/banner.jpg", photo(50, 900, 300));
    write(site, "css/main.css", "img { max-width: 100%; height: auto } .icon-heart2 { position: absolute }");
    let mut list = format!(
        "<link rel=stylesheet href=css/main.css><title>Shoes</title>{HEAD}<img src=images/banner.jpg alt=IMG-BANNER>\n"
    );
    for product in 0..PRODUCTS {
        write(site, &format!("images/product-{product:02}.jpg"), photo(product, 600, 700));
        list += &format!(
            "<div class=block><a href=product-{product}.html><img src=images/product-{product:02}.jpg alt=IMG-PRODUCT width=270></a>\
             <a href=product-{product}.html class=name>Shoe {product}</a>\
             <a href=# class=like><img class=icon-heart1 src=images/icons/icon-heart-01.gif alt=ICON>\
             <img class=icon-heart2 src=images/icons/icon-heart-02.gif alt=ICON></a></div>\n"
        );
        let page = format!(
            "<link rel=stylesheet href=css/main.css><title>Shoe {product}</title>{HEAD}<main><h1>Shoe {product}</h1>\
             <img src=images/product-{product:02}.jpg alt=IMG-PRODUCT width=300><iframe src=https://maps.test/x title=Map></iframe></main>"
        );
        write(site, &format!("product-{product}.html"), page);
    }
    write(site, "index.html", list);
}

#[test]
fn products_logo_and_hearts_are_there_at_each_level() {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("trees"));
    shop(&site);
    let job = Job { site: site.clone(), out: out.clone(), levels: Level::ALL.to_vec(), ..Job::default() };
    adapt(&job, &Unwatched, &|_| Err("no page".to_owned())).unwrap();
    let page = |level: &str, page: &str| fs::read_to_string(out.join(level).join(page)).unwrap();

    let light = page("light", "index.html");
    assert_eq!(light.matches("<img").count(), 2 + 3 * PRODUCTS, "every image is there\n{light}");
    assert!(light.contains("srcset=\"images/product-03.1x.jpg 1x, images/product-03.jpg 2x\""), "{light}");
    assert!(light.contains("<img width=\"900\" height=\"300\" src=images/banner.jpg"), "{light}");
    let detail = page("light", "product-3.html");
    assert!(
        detail.contains("&lt;a href=&quot;https://maps.test/x&quot;&gt;Map&lt;/a&gt;")
            && !detail.contains(" src=https"),
        "{detail}"
    );
    // The larger of the two pages decides: 300 wide there, and twice that on screens of twice the density.
    for (name, width) in [("product-03.1x.jpg", 300), ("product-03.jpg", 600)] {
        let written = fs::read(out.join("light/images").join(name)).unwrap();
        let mut decoder = jpeg_decoder::Decoder::new(written.as_slice());
        decoder.decode().unwrap();
        assert_eq!(decoder.info().unwrap().width, width, "{name}");
        assert!(out.join(format!("light/images/{name}.webp")).is_file(), "{name}");
    }
    for level in ["text", "lean", "full"] {
        assert!(
            out.join(level).join("images/product-03.1x.jpg").is_file(),
            "{level}: a light page may ask for it"
        );
    }

    let lean = page("lean", "index.html");
    assert_eq!(lean.matches("src=images/product-").count(), PRODUCTS, "products are there\n{lean}");
    assert!(lean.contains("src=images/icons/logo-01.jpg") && !lean.contains("icon-heart-0"), "{lean}");
    assert_eq!(lean.matches('\u{2665}').count(), PRODUCTS, "one heart each\n{lean}");
    assert!(lean.contains("<span class=\"icon-heart1\">\u{2665}</span>"), "{lean}");
    let detail = page("lean", "product-3.html");
    assert!(detail.contains("images/product-03.jpg") && detail.contains("logo-01.jpg"), "{detail}");

    for (name, text) in
        [("index.html", page("text", "index.html")), ("product-3.html", page("text", "product-3.html"))]
    {
        assert!(!text.contains("IMG") && !text.contains("ICON") && !text.contains("<img"), "{name}: {text}");
        assert!(text.contains("class=logo>Home</a>") && text.contains("Shoe 3"), "{name}: {text}");
    }

    let manifest: Value = serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    for (image, role, reason) in [
        ("images/icons/logo-01.jpg", Role::Logo, Reason::LeadsHome),
        ("images/product-03.jpg", Role::Product, Reason::LeadsToPage),
        ("images/icons/icon-heart-01.gif", Role::Icon, Reason::IconSized),
        ("images/banner.jpg", Role::Content, Reason::Large),
    ] {
        let image = &manifest["images"][image];
        assert_eq!([&image["role"], &image["why"]], [role.name(), reason.name()], "{image}");
    }
    assert_eq!(manifest["images"]["images/product-03.jpg"]["shown"], serde_json::json!([300, 350]));
}

/// A page may be seen under another address than its own: the server's page of errors, a link to a page. Its references lead
/// from there as they were written.
#[test]
fn copies_for_plain_screens_are_named_as_the_image_is() {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("trees"));
    write(&site, "images/photo.jpg", photo(1, 600, 700));
    write(&site, "images/two words.jpg", photo(2, 600, 700));
    symlink("photo.jpg", site.join("images/link.jpg")).unwrap();
    write(
        &site,
        "errors/404.html",
        "<img src=/images/photo.jpg#x width=200><img src=' ../images/two words.jpg' width=200>\
         <img src=../images/link.jpg width=200><img src=/images/photo.jpg?v=2 width=200>",
    );
    let job = Job { site, out: out.clone(), levels: vec![Level::Light], ..Job::default() };
    adapt(&job, &Unwatched, &|_| Err("no page".to_owned())).unwrap();
    let page = fs::read_to_string(out.join("light/errors/404.html")).unwrap();
    let tags: Vec<&str> = page.split_inclusive('>').collect();
    for (tag, srcset) in tags.iter().zip([
        Some("/images/photo.1x.jpg#x 1x, /images/photo.jpg#x 2x"),
        Some("../images/two%20words.1x.jpg 1x, ../images/two%20words.jpg 2x"),
        None,
        None,
    ]) {
        let said = tag.split_once("srcset=\"").map(|(_, rest)| rest.split('"').next().unwrap());
        assert_eq!(said, srcset, "{tag}");
    }
}

/// One program makes many images, told apart by their query.
#[test]
fn images_that_a_program_makes_are_not_one() {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("trees"));
    write(&site, "thumb.php", "<?php thumb();");
    write(&site, "index.html", "<img src='thumb.php?id=1' alt='A shoe'><a href=two.html>two</a>");
    write(&site, "two.html", "<img src='thumb.php?id=2' alt='A boot'>");
    let job = Job { site, out: out.clone(), levels: vec![Level::Lean], ..Job::default() };
    adapt(&job, &Unwatched, &|_| Err("no page".to_owned())).unwrap();
    let page = fs::read_to_string(out.join("lean/two.html")).unwrap();
    assert_eq!(page, "<img src='thumb.php?id=2' alt='A boot'>");
}

/// What would be written beside a file may have its name taken by a link, which is not written through.
#[test]
fn names_that_links_have_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("trees"));
    let page = "<img src=photo.jpg width=200 alt=Shoe><p>".to_owned() + &"word ".repeat(400);
    write(&site, "index.html", &page);
    write(&site, "photo.jpg", photo(1, 600, 700));
    for (link, to) in
        [("index.html.gz", "de.gz"), ("photo.jpg.webp", "other.webp"), ("photo.1x.jpg", "o.jpg")]
    {
        write(&site, to, to);
        symlink(to, site.join(link)).unwrap();
    }
    let levels = Level::ALL.to_vec();
    let job = Job { site, out: out.clone(), levels, ..Job::default() };
    adapt(&job, &Unwatched, &|_| Err("no page".to_owned())).unwrap();
    for level in Level::ALL {
        let tree = out.join(level.name());
        for to in ["de.gz", "other.webp", "o.jpg"] {
            assert_eq!(fs::read_to_string(tree.join(to)).unwrap(), to, "{level}");
        }
        assert_eq!(fs::read_link(tree.join("index.html.gz")).unwrap(), Path::new("de.gz"), "{level}");
    }
}

/// A name is that of a file or of a folder.
#[test]
fn dynamic_pages_whose_names_clash_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("trees"));
    write(&site, "index.html", "x");
    write(&site, "shop.php/index.html", "x");
    write(&site, "info.html", "x");
    symlink("index.html", site.join("link.php")).unwrap();
    let run = |pages: &[&str]| {
        let snapshots = pages.iter().map(|page| format!("http://127.0.0.1:1/{page}")).collect();
        let job = Job {
            site: site.clone(),
            out: out.clone(),
            levels: Level::ALL.to_vec(),
            snapshots,
            ..Job::default()
        };
        adapt(&job, &Unwatched, &|_| Ok(b"<p>page".to_vec()))
    };
    for (pages, first, second) in [
        (&["list.php", "list.php/shoe.php"][..], "list.php", "list.php/shoe.php"),
        (&["list.php/shoe.php", "list.php"], "list.php/shoe.php", "list.php"),
        (&["shop.php"], "shop.php", "shop.php/index.html"),
        (&["info.html/x.php"], "info.html", "info.html/x.php"),
        (&["link.php/x.php"], "link.php", "link.php/x.php"),
    ] {
        let error = run(pages).unwrap_err();
        let said = error.to_string();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{said}");
        assert!(said.contains(first) && said.contains(second), "{said}");
    }
    run(&["link.php", "other/x.php"]).unwrap();
    assert_eq!(fs::read_to_string(out.join("light/link.php")).unwrap(), "<p>page");
}

/// A rule counts more than evidence.
#[test]
fn rules_overrule_what_an_image_is_taken_for() {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("trees"));
    shop(&site);
    let rule = |pattern: &str, tag| plimsoll_content::Rule { pattern: pattern.to_owned(), tag };
    let rules = vec![
        rule("icon-heart-01.gif", plimsoll_content::Tag::Important),
        rule("banner.jpg", plimsoll_content::Tag::Expendable),
    ];
    let policy = Policy { rules, ..Policy::default() };
    let job = Job { site, out: out.clone(), levels: vec![Level::Lean], policy, ..Job::default() };
    adapt(&job, &Unwatched, &|_| Err("no page".to_owned())).unwrap();
    let lean = fs::read_to_string(out.join("lean/index.html")).unwrap();
    assert!(lean.contains("icon-heart-01.gif") && !lean.contains("banner.jpg"), "{lean}");
}
