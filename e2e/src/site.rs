//! A small shop of photos, its lighter copies, and visitors who load whole pages.

use crate::{Folder, Plimsoll, Response, get_from, open_to_all};
use jpeg_encoder::{ColorType, Encoder};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Pages of the shop: `page0.html` to the last.
pub const PAGES: usize = 6;
/// Photos on each.
const PHOTOS: usize = 3;
/// The bullets that every page shows.
const ICONS: usize = 4;
const PHOTO_SIZE: (usize, usize) = (560, 420);

/// The shop's folder and that of its trees, in a folder that is removed with this value.
#[derive(Debug)]
pub struct Shop {
    folder: Folder,
}

impl Shop {
    /// Makes the shop, and its trees by `plimsoll adapt` with these options. Panics if that fails.
    pub fn adapted(options: &[&str]) -> Shop {
        let folder = Folder::new();
        for photo in 0..PAGES * PHOTOS {
            folder.write(&format!("site/photos/Bild {photo}.JPG"), photo_of(photo));
        }
        for icon in 0..ICONS {
            folder.write(&format!("site/img/icon{icon}.gif"), icon_of(icon as u8));
        }
        folder.write("site/style.css", "h1 { color: navy } body { background: #fff url(img/icon0.gif) }\n");
        for page in 0..PAGES {
            folder.write(&format!("site/page{page}.html"), page_of(page));
        }
        folder.write("site/index.html", page_of(0));
        let shop = Shop { folder };
        shop.adapt(options);
        shop
    }

    /// Makes the trees again.
    pub fn adapt(&self, options: &[&str]) {
        let (site, trees) = (self.site(), self.trees());
        let folders = [&site, &trees].map(|path| path.to_string_lossy().into_owned());
        let arguments: Vec<&str> =
            ["adapt", &folders[0], &folders[1]].into_iter().chain(options.iter().copied()).collect();
        let output = Plimsoll::output(&arguments);
        assert!(output.status.success(), "adapt: {}", String::from_utf8_lossy(&output.stderr));
        open_to_all(&trees);
    }

    /// The site as its author made it.
    pub fn site(&self) -> PathBuf {
        self.folder.path().join("site")
    }

    /// Its trees, `text`, `lean`, `light` and `full`.
    pub fn trees(&self) -> PathBuf {
        self.folder.path().join("trees")
    }
}

fn page_of(page: usize) -> String {
    let mut text = "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>Shop</title>\n\
         <link rel=icon href=data:,><link rel=stylesheet href=style.css></head><body><h1>Shop</h1>\n<ul>\n"
        .to_owned();
    for other in 0..PAGES {
        let icon = other % ICONS;
        text += &format!(
            "<li><img src=\"img/icon{icon}.gif\" alt=\"*\"> <a href=\"page{other}.html\">Page</a>\n"
        );
    }
    text += "</ul>\n";
    for photo in page * PHOTOS..(page + 1) * PHOTOS {
        text += &format!("<p><img src=\"photos/Bild%20{photo}.JPG\" alt=\"Photo {photo}\">\n");
    }
    text + "</body></html>\n"
}

/// A photo of about 100 KB: a smooth field of light and shade with finer fields on top.
fn photo_of(seed: usize) -> Vec<u8> {
    let (width, height) = PHOTO_SIZE;
    let at = |x: usize, y: usize, step: usize| {
        let corner = |x: usize, y: usize| {
            let hash = ((seed * 7 + step) as u64 ^ (x as u64) << 20 ^ (y as u64) << 40)
                .wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((hash ^ hash >> 31).wrapping_mul(0x94d0_49bb_1331_11eb) >> 48) as f64 / 65536.0
        };
        let (column, row) = (x / step, y / step);
        let (along, down) = ((x % step) as f64 / step as f64, (y % step) as f64 / step as f64);
        let line = |row| corner(column, row) * (1.0 - along) + corner(column + 1, row) * along;
        line(row) * (1.0 - down) + line(row + 1) * down
    };
    let samples: Vec<u8> = (0..width * height)
        .flat_map(|pixel| {
            let (x, y) = (pixel % width, pixel / width);
            let shade = 110.0 * at(x, y, 96) + 60.0 * at(x, y, 24) + 40.0 * at(x, y, 6) + 35.0 * at(x, y, 2);
            [shade, 0.9 * shade + 20.0, 230.0 - 0.6 * shade].map(|part| part.clamp(0.0, 255.0) as u8)
        })
        .collect();
    let mut written = Vec::new();
    let encoded =
        Encoder::new(&mut written, 92).encode(&samples, width as u16, height as u16, ColorType::Rgb);
    encoded.unwrap_or_else(|error| panic!("a photo cannot be written: {error}"));
    written
}

/// One pixel in a colour of its own.
fn icon_of(number: u8) -> Vec<u8> {
    let mut written = b"GIF89a\x01\x00\x01\x00\x80\x00\x00".to_vec();
    written.extend([number * 40, 90, 200, 0, 0, 0]);
    written.extend(b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;");
    written
}

/// What a visitor got.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// Requests, and bytes of their bodies.
    pub requests: usize,
    /// Bytes of all bodies.
    pub bytes: usize,
    /// The levels that answers name.
    pub levels: BTreeSet<String>,
    /// What was not served: the path, and how.
    pub failed: Vec<String>,
    /// What was served and was not whole.
    pub broken: Vec<String>,
}

/// Apache's processes before the trees, each of which sends 256 KiB a second. A visit at full quality has some 300 KB, so the
/// server carries three and a half visits a second.
pub const WORKERS: u32 = 4;
/// Visits a second, three times as many.
pub const VISITS: f64 = 10.0;
/// When the loop has found its level (s).
pub const SETTLED: f64 = 6.0;
/// When the last visit begins (s).
const END: f64 = 11.0;

/// The gateway's own part of the configurations.
pub const GATEWAY: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n\
                           [report]\nwhen = \"always\"\n\n";

/// The shop's section with its four trees.
pub fn levels(site: &str) -> String {
    let level = |name: &str| format!("[[site.level]]\nname = \"{name}\"\nprefix = \"/{name}\"\n");
    format!("[[site]]\nname = \"shop\"\n{site}\n") + &["text", "lean", "light", "full"].map(level).concat()
}

/// The file of a gateway before a server of the trees.
pub fn before_trees(upstream: SocketAddr, mode: &str) -> String {
    GATEWAY.replace("threads", &format!("mode = \"{mode}\"\nthreads"))
        + &format!("[upstream.web]\naddress = \"{upstream}\"\ncapacity = {{ workers = {WORKERS} }}\n\n")
        + &levels("")
}

/// Visitors at addresses of their own come at a steady rate, whether or not earlier ones are still there; all visits, each with
/// the second in which it began.
pub fn visits(server: SocketAddr, per_second: f64) -> Vec<(f64, Visit)> {
    let visits = Mutex::new(Vec::new());
    let start = Instant::now();
    thread::scope(|scope| {
        for number in 0_u32.. {
            let due = f64::from(number) / per_second;
            if due > END {
                break;
            }
            thread::sleep(Duration::from_secs_f64(due).saturating_sub(start.elapsed()));
            let visits = &visits;
            scope.spawn(move || {
                let address = Ipv4Addr::new(127, 8, (number / 200 % 4) as u8, (number % 200 + 1) as u8);
                let visit = visit(server, address, &format!("/page{}.html", number as usize % PAGES));
                visits.lock().unwrap_or_else(PoisonError::into_inner).push((due, visit));
            });
        }
    });
    visits.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The part of the visits to which something was not served.
pub fn failed(visits: &[&Visit]) -> f64 {
    let failed = visits.iter().filter(|visit| !visit.failed.is_empty());
    failed.count() as f64 / visits.len() as f64
}

/// A client at `address` loads the page at `path` and all that it shows, as a browser does, one after the other.
pub fn visit(server: SocketAddr, address: Ipv4Addr, path: &str) -> Visit {
    let mut visit = Visit::default();
    let page = visit.take(server, address, path);
    let folder = &path[..=path.rfind('/').unwrap_or(0)];
    let mut parts = BTreeSet::new();
    for (before, _) in page.match_indices("src=\"").chain(page.match_indices("rel=stylesheet href=")) {
        let value = page[before..].split_once('=').map_or("", |(_, rest)| rest);
        let value = value.strip_prefix("stylesheet href=").unwrap_or(value);
        let end = |text: &str| text.find(['"', '>', ' ']).unwrap_or(text.len());
        let value = value.strip_prefix('"').unwrap_or(value);
        parts.insert(format!("{folder}{}", &value[..end(value)]));
    }
    for part in parts {
        visit.take(server, address, &part);
    }
    visit
}

impl Visit {
    fn take(&mut self, server: SocketAddr, address: Ipv4Addr, path: &str) -> String {
        self.requests += 1;
        let answer = match get_from(address, server, path) {
            Ok(answer) => answer,
            Err(error) => {
                self.failed.push(format!("{path}: {error}"));
                return String::new();
            }
        };
        self.bytes += answer.body.len();
        let level = answer.header("x-plimsoll").and_then(|report| report.split(';').next());
        self.levels.extend(level.map(str::to_owned));
        let answered = || format!("{path}: {} with {} bytes", answer.status, answer.body.len());
        if answer.status != 200 {
            self.failed.push(answered());
        } else if !is_whole(path, &answer) {
            self.broken.push(answered());
        }
        answer.text()
    }
}

/// Whether an answer is whole, from its first byte to its last.
fn is_whole(path: &str, answer: &Response) -> bool {
    let body = &answer.body;
    let length = answer.header("content-length").and_then(|length| length.parse().ok());
    let framed = match path.rsplit('.').next() {
        Some("JPG") => body.starts_with(b"\xff\xd8\xff") && body.ends_with(b"\xff\xd9"),
        Some("gif") => body.starts_with(b"GIF8") && body.ends_with(b";"),
        Some("html") => body.starts_with(b"<!DOCTYPE") && body.ends_with(b"</html>\n"),
        _ => !body.is_empty(),
    };
    framed && length.is_none_or(|length: usize| length == body.len())
}
