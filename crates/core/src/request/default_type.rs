//! The type of a request that matches no type of its site: static, dynamic, audio or video (AC 3.2, Table 2). Pure.
//!
//! "The object type is a good indicator of the requested CPU time, which can be derived from the requested URL" (AC 2). The
//! paper has files and CGI scripts; here is what scripts and interfaces without extensions need besides:
//!
//! | request | type |
//! |---|---|
//! | any method but GET and HEAD | dynamic: it changes something, which no file does |
//! | below a folder `cgi-bin`, or a program's extension on any part of the path (`/index.php/a.css`) | dynamic |
//! | with a query | dynamic, unless the path is of a style, script, picture or font, where a query names a version |
//! | with the extension of a sound or a film | audio, video |
//! | with any other extension, or a path that ends with `/` | static: a file, the index of a folder |
//! | else: a name without an extension, as `/users/7` | dynamic |
//!
//! The engine and the paper's comparators in the simulator ask the same function.

use crate::promises::DEFAULT_TYPES;
use crate::request::RequestView;

/// A type of [`DEFAULT_TYPES`], in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultType {
    /// A file, which no program makes.
    Static,
    /// A response that a program makes.
    Dynamic,
    /// A sound, by the path's extension.
    Audio,
    /// A film, by the path's extension.
    Video,
}

/// The longest known extension.
const LONGEST: usize = 5;

impl DefaultType {
    /// The type of a request.
    pub fn of(request: &impl RequestView) -> DefaultType {
        let (path, method) = (request.path(), request.method());
        let reads = matches!(method, "" | "GET" | "HEAD");
        // As bytes, because to split a text costs several times as much.
        let mut folders = path.as_bytes().rsplit(|byte| *byte == b'/');
        let name = folders.next().unwrap_or_default();
        // What follows a program's name is the program's argument, whatever it looks like.
        let is_program =
            |folder: &[u8]| folder == b"cgi-bin" || (folder.contains(&b'.') && names_program(folder));
        if !reads || folders.any(is_program) {
            return DefaultType::Dynamic;
        }
        let found = by_extension(name);
        match found {
            _ if found.may_have_version || request.query().is_empty() => found.own,
            Extension { own: DefaultType::Static, .. } => DefaultType::Dynamic,
            Extension { own, .. } => own,
        }
    }

    /// The computation quanta of the type (Table 2).
    pub fn quanta(self) -> f64 {
        DEFAULT_TYPES[self as usize].1
    }
}

/// What the last part of a path says.
#[derive(Clone, Copy)]
struct Extension {
    own: DefaultType,
    /// A query names a version of the file; it asks no program.
    may_have_version: bool,
}

fn by_extension(name: &[u8]) -> Extension {
    let of = |own| Extension { own, may_have_version: false };
    if name.is_empty() {
        return of(DefaultType::Static);
    }
    let mut buffer = [0; LONGEST];
    let Some(lower) = extension(name, &mut buffer) else { return of(DefaultType::Dynamic) };
    match lower {
        program if is_program(program) => of(DefaultType::Dynamic),
        b"mp3" | b"ogg" | b"oga" | b"wav" | b"flac" | b"m4a" | b"aac" | b"opus" | b"au" | b"ra" | b"ram"
        | b"mid" | b"aif" | b"aiff" => of(DefaultType::Audio),
        b"mp4" | b"webm" | b"mpg" | b"mpeg" | b"avi" | b"mov" | b"qt" | b"mkv" | b"m4v" | b"ogv" | b"ts" => {
            of(DefaultType::Video)
        }
        b"css" | b"js" | b"mjs" | b"map" | b"png" | b"jpg" | b"jpeg" | b"gif" | b"svg" | b"ico" | b"webp"
        | b"avif" | b"bmp" | b"woff" | b"woff2" | b"ttf" | b"otf" | b"eot" | b"wasm" => {
            Extension { own: DefaultType::Static, may_have_version: true }
        }
        _ => of(DefaultType::Static),
    }
}

/// The extension of a name in lower case. No known extension is longer than the buffer, and a number is part of a name, as
/// in `/v1.2`.
fn extension<'a>(name: &[u8], buffer: &'a mut [u8; LONGEST]) -> Option<&'a [u8]> {
    let extension = name.iter().rposition(|byte| *byte == b'.').map_or(&[][..], |dot| &name[dot + 1..]);
    let is_one =
        extension.iter().any(u8::is_ascii_alphabetic) && extension.iter().all(u8::is_ascii_alphanumeric);
    let lower = buffer.get_mut(..extension.len()).filter(|_| is_one)?;
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    Some(lower)
}

/// Whether a folder's name is that of a program.
fn names_program(folder: &[u8]) -> bool {
    extension(folder, &mut [0; LONGEST]).is_some_and(is_program)
}

/// Whether an extension is that of a program.
fn is_program(extension: &[u8]) -> bool {
    matches!(
        extension,
        b"cgi"
            | b"fcgi"
            | b"pl"
            | b"perl"
            | b"php"
            | b"php3"
            | b"php4"
            | b"php5"
            | b"php7"
            | b"php8"
            | b"phtml"
            | b"asp"
            | b"aspx"
            | b"ashx"
            | b"asmx"
            | b"jsp"
            | b"jspx"
            | b"do"
            | b"cfm"
            | b"dll"
            | b"py"
            | b"rb"
    )
}

#[cfg(test)]
mod tests {
    use super::super::by_hand::{Request, get};
    use super::*;

    fn of(target: &str) -> DefaultType {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        DefaultType::of(&Request { query, ..get("", path) })
    }

    #[test]
    fn the_path_decides() {
        use DefaultType::{Audio, Dynamic, Static, Video};
        for path in [
            "/",
            "/shuttle/countdown/",
            "/a/b.HTML",
            "/x.tar.gz",
            "/i.Png",
            "/setup.exe",
            "/cgi-binary/x.txt",
            "/v1.2/a.css",
            "/node.js/a.css",
        ] {
            assert_eq!(of(path), Static, "{path}");
        }
        for path in [
            "/page.php",
            "/X.PL",
            "/cgi-bin/imagemap/x",
            "/cgi-bin/logo.gif",
            "/users/7",
            "/v1.2",
            "/v.1/list",
            "/index.php/a.css",
            "/cart.JSP/style.css",
            "/.",
        ] {
            assert_eq!(of(path), Dynamic, "{path}");
        }
        assert_eq!(["/s.mp3", "/a.WAV", "/v.webm", "/v/launch.mpg"].map(of), [Audio, Audio, Video, Video]);
    }

    #[test]
    fn a_query_asks_a_program_unless_it_names_a_version() {
        use DefaultType::{Dynamic, Static, Video};
        assert_eq!(["/a.html?q=1", "/?p=3", "/search?q=c.mpg"].map(of), [Dynamic; 3]);
        assert_eq!(["/a.css?v=3", "/app.js?17", "/a.html?"].map(of), [Static; 3]);
        assert_eq!(of("/film.mp4?from=10"), Video);
    }

    #[test]
    fn what_does_not_read_is_dynamic() {
        let by = |method| DefaultType::of(&Request { method, ..get("", "/x.html") });
        assert_eq!(["", "GET", "HEAD"].map(by), [DefaultType::Static; 3]);
        assert_eq!(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"].map(by), [DefaultType::Dynamic; 5]);
    }

    #[test]
    fn quanta_are_those_of_table_2() {
        use DefaultType::{Audio, Dynamic, Static, Video};
        assert_eq!([Static, Dynamic, Audio, Video].map(DefaultType::quanta), [1.0, 10.0, 20.0, 100.0]);
        let names = ["static", "dynamic", "audio", "video"];
        assert_eq!(DEFAULT_TYPES.map(|(name, _)| name), names, "in the order of the variants");
    }
}
