//! How often each path of an access log was asked for.

use super::LogNotes;
use super::access_log::AccessLog;
use super::entry::Record;
use crate::workload::{Input, LogFormat};
use std::collections::BTreeMap;
use std::io;

/// Counts the `GET` requests for each path of a log, without its query, as it stands there. What could not be
/// understood is in the notes.
///
/// # Errors
/// The log cannot be read, or none of its lines is one of an access log.
pub fn views(log: &Input) -> io::Result<(BTreeMap<String, u64>, LogNotes)> {
    let mut log = AccessLog::open(log, &LogFormat::Auto)?;
    let (mut views, mut record) = (BTreeMap::new(), Record::default());
    while log.read(&mut record)? {
        if record.method == "GET" {
            match views.get_mut(&record.path) {
                Some(count) => *count += 1,
                None => drop(views.insert(record.path.clone(), 1)),
            }
        }
    }
    Ok((views, log.notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_counted() {
        let line =
            |request: &str| format!("192.0.2.1 - - [01/Aug/1995:02:00:00 -0400] \"{request}\" 200 1\n");
        let requests = ["GET /a?x HTTP/1.0", "GET /a HTTP/1.0", "POST /a HTTP/1.0", "GET / HTTP/1.0"];
        let text = requests.map(line).concat() + "no line of a log\n";
        let (views, notes) = super::views(&Input::Text(text.into())).unwrap();
        assert_eq!(views.into_iter().collect::<Vec<_>>(), [("/".to_owned(), 1), ("/a".to_owned(), 2)]);
        assert_eq!((notes.lines, notes.skipped), (5, 1));
    }
}
