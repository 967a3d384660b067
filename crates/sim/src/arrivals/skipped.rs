//! What is reported about a line that was not understood.

use super::LogNotes;

/// The most characters of a line that are shown.
const SHOWN: usize = 120;

/// Counts the line just read; the first is kept.
pub(super) fn skip(notes: &mut LogNotes, line: &[u8], why: &str) {
    notes.skipped += 1;
    if notes.first_skipped.is_none() {
        notes.first_skipped = Some((notes.lines, excerpt(line), why.to_owned()));
    }
}

/// The beginning of a line, fit to be printed: what would steer a terminal is replaced.
fn excerpt(line: &[u8]) -> String {
    // A character has at most four bytes; one that this cuts is not shown.
    let head = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN + 4)]);
    let printable = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut shown: String = head.chars().take(SHOWN).map(printable).collect();
    if head.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_cut_between_characters() {
        assert_eq!(excerpt("ä".repeat(120).as_bytes()), "ä".repeat(120));
        assert_eq!(excerpt("ä".repeat(121).as_bytes()), "ä".repeat(120) + "…");
        assert_eq!(excerpt("😀".repeat(20_000).as_bytes()), "😀".repeat(120) + "…");
        assert_eq!(excerpt(b"a\x1b[31m\xffb"), "a\u{fffd}[31m\u{fffd}b");
    }

    #[test]
    fn the_first_is_kept() {
        let mut notes = LogNotes { lines: 3, ..LogNotes::default() };
        skip(&mut notes, b"one", "odd");
        notes.lines = 9;
        skip(&mut notes, b"two", "odder");
        assert_eq!((notes.skipped, notes.first_skipped), (2, Some((3, "one".to_owned(), "odd".to_owned()))));
    }
}
