//! What a request is estimated to take, by its type (AC, section 3.2 and table 2) and, if wished, its size (eq. 1).
//!
//! A type is worth so many computation quanta: static 1, dynamic 10, audio 20, video 100. The type is read from the
//! path: "classification of object types introduces less overhead than retrieving file size information". Where the
//! number of server processes n is given, what is read from a file takes `T(s, n) = a + floor(s / 64 KB) (b + c n)`,
//! a : b : c = 1 : 0.06 : 0.18, flat below 64 KB. The paper prints s over 64 without saying how it is rounded; its
//! figure 2 is flat below the leap, so that it is rounded down.
//!
//! The table is what the paper has before anything is learned, and here nothing ever is: that is what it is compared for.

use crate::request::Request;

/// One block of a file: what the kernel's send buffer and read-ahead hold.
const BLOCK_BYTES: u64 = 64 << 10;
/// b and c over a.
const TRANSFER: f64 = 0.06;
const SWITCHING: f64 = 0.18;

/// The paper's four types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectType {
    Static,
    Dynamic,
    Audio,
    Video,
}

const AUDIO: [&str; 9] = ["au", "wav", "mp3", "ra", "ram", "mid", "aif", "aiff", "ogg"];
const VIDEO: [&str; 8] = ["mpg", "mpeg", "mov", "qt", "avi", "mp4", "webm", "m4v"];
const PROGRAMS: [&str; 9] = ["cgi", "pl", "perl", "php", "asp", "aspx", "jsp", "fcgi", "py"];

impl ObjectType {
    pub(super) fn of(request: &Request) -> ObjectType {
        let path = request.path.split('?').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_one_of = |endings: &[&str]| endings.iter().any(|known| ending.eq_ignore_ascii_case(known));
        let reads = request.method.is_empty() || request.method == "GET" || request.method == "HEAD";
        if !reads
            || path.len() < request.path.len()
            || path.split('/').any(|folder| folder == "cgi-bin")
            || is_one_of(&PROGRAMS)
        {
            ObjectType::Dynamic
        } else if is_one_of(&VIDEO) {
            ObjectType::Video
        } else if is_one_of(&AUDIO) {
            ObjectType::Audio
        } else {
            ObjectType::Static
        }
    }

    /// Table 2.
    pub(super) fn quanta(self) -> f64 {
        match self {
            ObjectType::Static => 1.0,
            ObjectType::Dynamic => 10.0,
            ObjectType::Audio => 20.0,
            ObjectType::Video => 100.0,
        }
    }
}

/// The estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quanta {
    /// The time of one quantum: a.
    pub(super) unit_seconds: f64,
    /// n. `None`: by type alone.
    pub(super) processes: Option<u32>,
}

impl Quanta {
    /// Service time (s) on one worker.
    pub(super) fn estimate(&self, request: &Request) -> f64 {
        let kind = ObjectType::of(request);
        let quanta = match self.processes {
            Some(processes) if kind != ObjectType::Dynamic => of_size(request.bytes, processes),
            _ => kind.quanta(),
        };
        quanta * self.unit_seconds
    }
}

/// T(s, n) over a (eq. 1).
pub(super) fn of_size(bytes: u64, processes: u32) -> f64 {
    1.0 + (bytes / BLOCK_BYTES) as f64 * (TRANSFER + SWITCHING * f64::from(processes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(method: &str, path: &str) -> ObjectType {
        ObjectType::of(&Request { method: method.into(), path: path.into(), ..Request::default() })
    }

    #[test]
    fn the_type_is_in_the_path() {
        for path in ["/", "/index.html", "/a.b/logo.GIF", "/cgi-binary/x", "/mpg", "/pl"] {
            assert_eq!(kind("GET", path), ObjectType::Static, "{path}");
        }
        for path in ["/cgi-bin/imagemap/x", "/search.php", "/a?b=c.mpg", "/x.PL"] {
            assert_eq!(kind("GET", path), ObjectType::Dynamic, "{path}");
        }
        assert_eq!(kind("POST", "/index.html"), ObjectType::Dynamic);
        assert_eq!(
            (kind("", "/a.wav"), kind("HEAD", "/v/launch.mpg")),
            (ObjectType::Audio, ObjectType::Video)
        );
    }

    #[test]
    fn by_type_or_by_size() {
        let video = Request { path: "/launch.mpg".into(), bytes: 10 * BLOCK_BYTES, ..Request::default() };
        let by_type = Quanta { unit_seconds: 0.002, processes: None };
        assert!((by_type.estimate(&video) - 0.2).abs() < 1e-12);
        // 1 + 10 (0.06 + 0.18 * 8) quanta.
        let by_size = Quanta { processes: Some(8), ..by_type };
        assert!((by_size.estimate(&video) - 0.032).abs() < 1e-12);
        let dynamic = Request { path: "/x.cgi".into(), ..video };
        assert!((by_size.estimate(&dynamic) - 0.02).abs() < 1e-12);
    }

    #[test]
    fn the_size_law_leaps_at_64_kilobytes() {
        assert_eq!([of_size(0, 60), of_size(65_535, 60)], [1.0, 1.0]);
        assert!((of_size(65_536, 5) - 1.96).abs() < 1e-12);
        assert!(of_size(65_536, 60) > 11.0);
    }
}
