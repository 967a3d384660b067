//! Methods, headers, folders, ranges, preconditions, precompressed copies.

use super::*;
use std::time::UNIX_EPOCH;

#[test]
fn a_small_file_from_memory_with_its_headers() {
    let place = Place::new();
    place.write("root/a b.css", "body {}");
    let mut server = place.server();
    for path in ["/a%20b.css", "/a%20b.css", "//a%20b%2ecss"] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.text(), answer.from_memory), (200, "body {}", true));
        assert_eq!(answer.header("content-type"), Some("text/css; charset=utf-8"));
        assert_eq!(answer.header("accept-ranges"), Some("bytes"));
        assert!(answer.header("etag").is_some_and(|tag| tag.starts_with("\"7-")));
        assert!(answer.header("last-modified").is_some_and(|date| date.ends_with(" GMT")));
        assert_eq!(answer.header("vary"), None);
    }
    assert_eq!(server.get("/missing.css").status, 404);
    assert_eq!(server.get("/a%20b.css/").status, 404);
}

#[test]
fn a_photograph_under_the_name_of_another_format_has_its_own_type() {
    let place = Place::new();
    place.write("root/a.gif", [&b"\xff\xd8\xff\xe0\0\x10JFIF\0"[..], &[0; 20]].concat());
    place.write("root/b.png", [&b"RIFF\x20\0\0\0WEBPVP8 "[..], &[0; 20]].concat());
    place.write("root/c.gif", [&b"GIF89a"[..], &[0; 20]].concat());
    place.write("root/d.png", "");
    let mut server = place.server();
    for (path, expected) in
        [("/a.gif", "image/jpeg"), ("/b.png", "image/webp"), ("/c.gif", "image/gif"), ("/d.png", "image/png")]
    {
        assert_eq!(server.get(path).header("content-type"), Some(expected), "{path}");
    }
}

#[test]
fn the_source_of_a_program_is_not_served() {
    let place = Place::new();
    let programs = [
        ("a.php", "<?php $password = 'secret';"),
        ("b.PHTML", "\u{feff}\n <?= $x ?>"),
        ("c.php", "<!DOCTYPE html>\n<title>Shop</title>\n<?PHP include 'x';"),
        ("d.jsp", " <%@ page import='x' %>"),
        ("e.asp", "<% x %>"),
        ("f.cgi", "#!/bin/sh\necho x"),
        ("g.php", "<?xml version='1.0'?><?php x();"),
        ("dir/index.php", "<?php x();"),
    ];
    let pages = [
        ("1.php", "<!DOCTYPE html><p>3 left"),
        ("2.php", "<?xml version='1.0' encoding='utf-8'?><!DOCTYPE html>"),
        ("3.php", ""),
        ("4.aspx", "<p>&lt;?php"),
        ("5.html", "<?php"),
        ("php", "<?php"),
    ];
    for (name, content) in programs.iter().chain(&pages) {
        place.write(&format!("root/{name}"), content);
    }
    let mut server = place.server();
    server.files.index = vec!["index.php".to_owned()];
    for (name, _) in programs {
        assert_eq!(server.get(&format!("/{name}")).status, 404, "{name}");
    }
    assert_eq!(server.get("/dir/").status, 404);
    for (name, content) in pages {
        let answer = server.get(&format!("/{name}"));
        assert_eq!((answer.status, answer.text()), (200, content), "{name}");
    }
    // Copies that other tools compressed, beside an original or alone. A page's copies are served, and so are copies with other
    // names.
    for name in ["a.php.gz", "b.PHTML.br", "c.php.ZST", "alone.php.gz", "a.php.gz.br"] {
        place.write(&format!("root/{name}"), "compressed");
        assert_eq!(server.get(&format!("/{name}")).status, 404, "{name}");
    }
    for name in ["1.php.gz", "5.html.gz", "list.gz"] {
        place.write(&format!("root/{name}"), "compressed");
        assert_eq!(server.get(&format!("/{name}")).status, 200, "{name}");
    }
    // The page becomes a program.
    place.write("root/1.php", "<?php x();");
    server.pass(REVALIDATE);
    assert_eq!(server.get("/1.php").status, 404);
    assert_eq!(server.get("/1.php.gz").status, 404);
}

#[test]
fn a_large_file_from_disk() {
    let place = Place::new();
    place.write("root/video.mp4", large());
    let mut server = place.server();
    let answer = server.get("/video.mp4");
    assert_eq!((answer.status, answer.from_memory), (200, false));
    assert_eq!(answer.body, large());
    let part = server.ask("GET", "/video.mp4", &[("Range", "bytes=65530-65549")]);
    assert_eq!((part.status, &part.body[..]), (206, &large()[65530..65550]));
    assert_eq!(part.header("content-range"), Some(&*format!("bytes 65530-65549/{}", large().len())));
}

#[test]
fn a_file_that_was_cut_short_is_an_error_and_not_an_end() {
    let place = Place::new();
    place.write("root/video.mp4", large());
    let mut files = Files::new(place.settings()).unwrap();
    let request =
        FileRequest { method: "GET", path: "/video.mp4", query: None, fields: FileFields::default() };
    let response = files.respond(Instant::now(), &request);
    let FileBody::File(mut slice) = response.body else { panic!("a large file is not in memory") };
    fs::File::options().write(true).open(place.at("root/video.mp4")).unwrap().set_len(100).unwrap();
    let mut buffer = [0; 1000];
    assert_eq!(slice.read(&mut buffer).unwrap(), 100);
    assert_eq!(slice.read(&mut buffer).unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn head_and_other_methods() {
    let place = Place::new();
    place.write("root/a.txt", "0123456789");
    place.write("root/empty.txt", "");
    place.write("root/video.mp4", large());
    let mut server = place.server();
    for (path, length) in [("/a.txt", 10), ("/video.mp4", large().len() as u64), ("/empty.txt", 0)] {
        let (head, get) = (server.ask("HEAD", path, &[("range", "bytes=0-1")]), server.get(path));
        assert_eq!((head.status, head.length, head.body.len()), (200, Some(length), 0));
        assert_eq!(head.headers, get.headers);
    }
    assert_eq!(server.ask("HEAD", "/missing", &[]).status, 404);
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "get", "BREW"] {
        let answer = server.ask(method, "/a.txt", &[]);
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
    }
    let options = server.ask("OPTIONS", "*", &[]);
    assert_eq!(
        (options.status, options.header("allow"), options.length),
        (204, Some("GET, HEAD, OPTIONS"), None)
    );
}

#[test]
fn folders() {
    let place = Place::new();
    place.write("root/index.html", "home");
    place.write("root/docs/index.html", "docs");
    place.write("root/a:b/index.html", "odd");
    place.write("root/none/a.txt", "a");
    fs::create_dir_all(place.at("root/folder/index.html")).unwrap();
    let mut server = place.server();
    assert_eq!(server.get("/").text(), "home");
    assert_eq!(server.get("/").header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(server.get("/docs/").text(), "docs");
    assert_eq!(server.get("/none/").status, 404);
    assert_eq!(server.get("/folder/").status, 404);
    for (path, location) in [
        ("/docs", "./docs/"),
        ("//docs", "./docs/"),
        ("/docs?x=1&y=%20", "./docs/?x=1&y=%20"),
        ("/a:b", "./a%3Ab/"),
        ("/folder/index.html", "./index.html/"),
        ("/docs?\u{e9}", "./docs/"),
    ] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.header("location")), (301, Some(location)), "{path}");
    }
    server.files.index = vec!["index.htm".to_owned(), "a.txt".to_owned()];
    assert_eq!(server.get("/none/").text(), "a");
}

#[test]
fn ranges() {
    let place = Place::new();
    place.write("root/a.txt", "0123456789");
    place.write("root/empty.txt", "");
    let mut server = place.server();
    for (range, status, body, content_range) in [
        ("bytes=2-4", 206, "234", Some("bytes 2-4/10")),
        ("bytes=0-", 206, "0123456789", Some("bytes 0-9/10")),
        ("bytes=-3", 206, "789", Some("bytes 7-9/10")),
        ("bytes=10-", 416, "", Some("bytes */10")),
        ("bytes=0-1,4-5", 200, "0123456789", None),
        ("bytes=x", 200, "0123456789", None),
    ] {
        let answer = server.ask("GET", "/a.txt", &[("range", range)]);
        assert_eq!(
            (answer.status, answer.text(), answer.header("content-range")),
            (status, body, content_range)
        );
    }
    assert_eq!(server.ask("GET", "/empty.txt", &[("range", "bytes=0-")]).status, 416);
}

#[test]
fn conditional_requests() {
    let place = Place::new();
    place.write("root/a.txt", "0123456789");
    let mut server = place.server();
    let whole = server.get("/a.txt");
    let (tag, date) = (whole.header("etag").unwrap(), whole.header("last-modified").unwrap());
    let other = "\"other\"";
    let (weak, list) = (format!("W/{tag}"), format!("{other}, {tag}"));
    let (before, after) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:59 GMT");
    for (headers, status) in [
        (&[("if-none-match", tag)][..], 304),
        (&[("if-none-match", &weak)], 304),
        (&[("if-none-match", &list)], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", other)], 200),
        (&[("if-modified-since", date)], 304),
        (&[("if-modified-since", after)], 304),
        (&[("if-modified-since", before)], 200),
        (&[("if-modified-since", "yesterday")], 200),
        // The tag overrides the date.
        (&[("if-none-match", other), ("if-modified-since", date)], 200),
        (&[("if-match", tag)], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", &weak)], 412),
        (&[("if-match", other)], 412),
        (&[("if-match", other), ("if-none-match", tag)], 412),
        (&[("if-unmodified-since", before)], 412),
        (&[("if-unmodified-since", date)], 200),
        (&[("if-match", tag), ("if-unmodified-since", before)], 200),
        // A precondition comes before the range.
        (&[("if-none-match", tag), ("range", "bytes=99-")], 304),
        (&[("if-range", tag), ("range", "bytes=0-1")], 206),
        (&[("if-range", date), ("range", "bytes=0-1")], 206),
        (&[("if-range", other), ("range", "bytes=0-1")], 200),
        (&[("if-range", &weak), ("range", "bytes=0-1")], 200),
        (&[("if-range", after), ("range", "bytes=0-1")], 200),
        (&[("if-range", "*"), ("range", "bytes=0-1")], 200),
        (&[("if-range", other), ("range", "bytes=99-")], 200),
    ] {
        let answer = server.ask("GET", "/a.txt", headers);
        assert_eq!(answer.status, status, "{headers:?}");
        if status == 304 {
            assert_eq!((answer.header("etag"), answer.length), (Some(tag), None));
            assert_eq!((answer.header("content-type"), answer.body.len()), (None, 0));
            assert_eq!(server.ask("HEAD", "/a.txt", headers).status, 304);
        }
    }
}

#[test]
fn a_date_is_no_strong_validator_while_the_file_is_young() {
    let place = Place::new();
    place.write("root/a.txt", "0123456789");
    place.touch("root/a.txt", SystemTime::now());
    let mut server = place.server();
    let date = server.get("/a.txt").header("last-modified").unwrap().to_owned();
    let headers = [("if-range", date.as_str()), ("range", "bytes=0-1")];
    assert_eq!(server.ask("GET", "/a.txt", &headers).status, 200);
}

#[test]
fn odd_times() {
    let place = Place::new();
    place.write("root/future.txt", "f");
    place.touch("root/future.txt", SystemTime::now() + Duration::from_secs(86_400));
    place.write("root/past.txt", "p");
    place.touch("root/past.txt", UNIX_EPOCH - Duration::from_secs(10));
    let mut server = place.server();
    for path in ["/future.txt", "/past.txt"] {
        let answer = server.ask("GET", path, &[("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        assert_eq!((answer.status, answer.header("last-modified")), (200, None), "{path}");
        assert!(answer.header("etag").is_some());
    }
}

#[test]
fn precompressed_copies() {
    let place = Place::new();
    place.write("root/a.js", "original");
    place.write("root/a.js.gz", "gzipped");
    place.write("root/a.js.br", "brotli");
    place.write("root/photo.png", "picture");
    place.write("root/photo.png.gz", "gz");
    place.write("root/big.txt", large());
    place.write("root/big.txt.zst", "z");
    let mut server = place.server();
    let mut tags = Vec::new();
    for (accept, body, coding) in
        [("gzip", "gzipped", Some("gzip")), ("br, gzip", "brotli", Some("br")), ("deflate", "original", None)]
    {
        let answer = server.ask("GET", "/a.js", &[("accept-encoding", accept)]);
        assert_eq!((answer.text(), answer.header("content-encoding")), (body, coding), "{accept}");
        assert_eq!(answer.header("vary"), Some("accept-encoding"));
        assert_eq!(answer.header("content-type"), Some("text/javascript; charset=utf-8"));
        tags.push(answer.header("etag").unwrap().to_owned());
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 3, "each representation has a tag of its own");
    assert_eq!(server.get("/a.js").text(), "original");
    assert_eq!(server.get("/a.js").header("vary"), Some("accept-encoding"));
    assert_eq!(server.get("/a.js.gz").header("content-type"), Some("application/gzip"));
    assert_eq!(server.ask("GET", "/photo.png", &[("accept-encoding", "gzip")]).text(), "picture");
    let small = server.ask("GET", "/big.txt", &[("accept-encoding", "zstd")]);
    assert_eq!((small.text(), small.from_memory), ("z", true));
    assert_eq!(server.get("/big.txt").body, large());
    let not_modified = server.ask("GET", "/a.js", &[("if-none-match", "*")]);
    assert_eq!((not_modified.status, not_modified.header("vary")), (304, Some("accept-encoding")));
}

#[test]
fn images_in_newer_formats() {
    let place = Place::new();
    place.write("root/photo.jpg", "a picture of many bytes");
    place.write("root/photo.jpg.webp", "webp of fewer");
    place.write("root/photo.jpg.avif", "avif");
    place.write("root/alone.png", "picture");
    place.write("root/own.webp", "webp itself");
    place.write("root/own.webp.avif", "x");
    let mut server = place.server();
    let mut tags = Vec::new();
    for (accept, body, content_type) in [
        ("image/avif,image/webp,image/*,*/*;q=0.8", "avif", "image/avif"),
        ("image/webp,*/*", "webp of fewer", "image/webp"),
        ("image/*", "a picture of many bytes", "image/jpeg"),
    ] {
        let answer = server.ask("GET", "/photo.jpg", &[("accept", accept)]);
        assert_eq!((answer.text(), answer.header("content-type")), (body, Some(content_type)), "{accept}");
        assert_eq!((answer.header("vary"), answer.header("content-encoding")), (Some("accept"), None));
        tags.push(answer.header("etag").unwrap().to_owned());
        let known = [("accept", accept), ("if-none-match", tags.last().unwrap())];
        let again = server.ask("GET", "/photo.jpg", &known);
        assert_eq!((again.status, again.header("vary")), (304, Some("accept")));
    }
    tags.dedup();
    assert_eq!(tags.len(), 3, "each representation has a tag of its own");
    assert_eq!(server.get("/photo.jpg").text(), "a picture of many bytes");
    assert_eq!(server.get("/alone.png").header("vary"), None);
    assert_eq!(server.ask("GET", "/own.webp", &[("accept", "image/avif")]).text(), "webp itself");
    // A range applies to the representation that was chosen.
    let part = server.ask("GET", "/photo.jpg", &[("accept", "image/webp"), ("range", "bytes=0-3")]);
    assert_eq!((part.text(), part.header("content-range")), ("webp", Some("bytes 0-3/13")));
}

#[test]
fn a_copy_older_than_its_original_is_passed_over() {
    let place = Place::new();
    place.write("root/a.js", "new");
    place.write("root/a.js.gz", "old");
    place.touch("root/a.js.gz", SystemTime::now() - Duration::from_secs(7200));
    let mut server = place.server();
    let answer = server.ask("GET", "/a.js", &[("accept-encoding", "gzip")]);
    assert_eq!((answer.text(), answer.header("vary")), ("new", None));
}

#[test]
fn a_page_that_names_its_encoding_is_believed() {
    let place = Place::new();
    place.write(
        "root/old.html",
        b"<META http-equiv=content-type content='text/html; Charset=iso-8859-1'><p>\xfc",
    );
    place.write("root/new.html", "<p>\u{fc}");
    place.write("root/list.php", "<p>\u{fc}");
    let mut server = place.server();
    for (path, expected) in [
        ("/old.html", "text/html"),
        ("/new.html", "text/html; charset=utf-8"),
        ("/list.php", "text/html; charset=utf-8"),
    ] {
        assert_eq!(server.get(path).header("content-type"), Some(expected), "{path}");
    }
    assert!(server.get("/old.html").body.ends_with(b"\xfc"));
}

/// A list may come in several lines, which count as one (RFC 9110 5.3).
#[test]
fn a_list_in_several_lines_is_one_list() {
    let place = Place::new();
    place.write("root/a.css", "body { color: black }");
    place.write("root/a.css.br", "brotli");
    let mut server = place.server();
    let (gzip, br) = (("Accept-Encoding", "gzip"), ("accept-encoding", " br "));
    let answer = server.ask("GET", "/a.css", &[gzip, ("x", "y"), br]);
    assert_eq!((answer.header("content-encoding"), answer.text()), (Some("br"), "brotli"));
    let tag = server.get("/a.css").header("etag").expect("a tag").to_owned();
    for name in ["If-None-Match", "If-Match"] {
        let ask = |server: &mut Server, tags: &[&str]| {
            let lines: Vec<_> = tags.iter().map(|tag| (name, *tag)).collect();
            server.ask("GET", "/a.css", &lines).status
        };
        let (known, other) = if name == "If-Match" { (200, 412) } else { (304, 200) };
        assert_eq!(ask(&mut server, &["\"x\"", "\"y\"", &tag]), known, "{name}");
        assert_eq!(ask(&mut server, &[&tag, "\"x\""]), known, "{name}");
        assert_eq!(ask(&mut server, &["\"x\"", "\"y\""]), other, "{name}");
    }
}
