//! Text from outside becomes text in the page, whatever it contains.

/// Appends `text` so that it is safe as an element's content and inside a quoted attribute.
///
/// Beside the five characters of markup: control characters and those that turn the direction of writing would make
/// a path look like another one, so they show as U+FFFD. Line feeds stay.
pub(crate) fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
                out.push('\u{FFFD}')
            }
            _ if character.is_control() => out.push('\u{FFFD}'),
            _ => out.push(character),
        }
    }
}

/// Appends `text` escaped, on one line and without tabs: a cell of tab-separated values.
pub(crate) fn escape_cell(out: &mut String, text: &str) {
    if text.contains(['\n', '\t']) {
        escape(out, &text.replace(['\n', '\t'], " "));
    } else {
        escape(out, text);
    }
}

/// Appends each paragraph of `text` (a blank line parts them) as an element `<p>`.
pub(crate) fn paragraphs(out: &mut String, text: &str) {
    for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        out.push_str("<p>");
        escape(out, paragraph);
        out.push_str("</p>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        escape(&mut out, text);
        out
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
        escape_cell(&mut out, "a\tb\nc");
        assert_eq!(out, "a b c");
    }

    #[test]
    fn blank_lines_part_paragraphs() {
        let mut out = String::new();
        paragraphs(&mut out, "one\n\n\n two<\n");
        assert_eq!(out, "<p>one</p>\n<p>two&lt;</p>\n");
    }
}
