//! Turns text from outside into text in the page, whatever it contains.

use std::fmt::{Display, Formatter, Result, Write};

/// Text that is safe as an element's content and inside a quoted attribute.
///
/// Besides the five characters of markup, control characters and those that change the direction of writing are replaced by
/// U+FFFD, because they could make a path look like another one. Line feeds stay.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => out.write_str("&amp;"),
            '<' => out.write_str("&lt;"),
            '>' => out.write_str("&gt;"),
            '"' => out.write_str("&quot;"),
            '\'' => out.write_str("&#39;"),
            '\n' => out.write_char('\n'),
            '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
                out.write_char('\u{FFFD}')
            }
            _ if character.is_control() => out.write_char('\u{FFFD}'),
            _ => out.write_char(character),
        })
    }
}

/// Appends `text` escaped, on one line and without tabs, as a cell of tab-separated values.
pub(crate) fn push_cell(out: &mut String, text: &str) {
    let _ = write!(out, "{}", Escaped(&text.replace(['\n', '\t'], " ")));
}

/// Appends each paragraph of `text` as an element `<p>`; a blank line separates paragraphs.
pub(crate) fn push_paragraphs(out: &mut String, text: &str) {
    for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", Escaped(paragraph));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        Escaped(text).to_string()
    }

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escaped("<a b=\"c\" d='e'>&</a>"),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;&lt;/a&gt;"
        );
        assert_eq!(escaped("/größe?x=1"), "/größe?x=1");
    }

    #[test]
    fn what_would_deceive_the_eye_shows() {
        assert_eq!(escaped("a\u{202E}b\0c\u{1b}[31m"), "a\u{FFFD}b\u{FFFD}c\u{FFFD}[31m");
        assert_eq!(escaped("a\nb"), "a\nb");
    }

    #[test]
    fn a_cell_is_one_cell() {
        let mut out = String::new();
        push_cell(&mut out, "a\tb\nc");
        assert_eq!(out, "a b c");
    }

    #[test]
    fn blank_lines_part_paragraphs() {
        let mut out = String::new();
        push_paragraphs(&mut out, "one\n\n\n two<\n");
        assert_eq!(out, "<p>one</p>\n<p>two&lt;</p>\n");
    }
}
