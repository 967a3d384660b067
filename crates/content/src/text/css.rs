//! Style sheets: finds the files that they load, and takes some of them out.
//!
//! Only tokens are read (CSS Syntax 3, 4): comments, strings, `url(...)`, blocks, and the name of the declaration with the URL.
//! That is enough to tell a background from a font, and leaves everything else as it was, byte for byte.

use super::markup::Edits;
use std::ops::Range;

/// A file that a sheet names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SheetUrl {
    /// The whole `url(...)`, or an import's string.
    pub(crate) range: Range<usize>,
    /// The URL, decoded.
    pub(crate) url: String,
    /// What it is for.
    pub(crate) purpose: Purpose,
}

/// What a URL in a sheet is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `@import`: another sheet.
    Import,
    /// A source of a font face, with the range of its whole rule. A browser takes the first source that it can read.
    Font(Range<usize>),
    /// `background`, `background-image`, `list-style` or `list-style-image`, which may also be `none`.
    Background,
    /// Any other declaration: a cursor, a mask, content.
    Other,
}

/// The names of declarations that tell what a file is for are no longer than this, with a blank or comment behind them.
const LONGEST_NAME: usize = 64;

/// A scanner over a sheet, or over the declarations of a `style` attribute.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    found: Vec<SheetUrl>,
    /// Where the present declaration or prelude begins, after blanks and comments.
    start: usize,
    blocks: Vec<Block>,
    /// Strings in blocks that name no file, with the selectors of their rule.
    strings: Vec<(Range<usize>, String)>,
}

/// An open block.
struct Block {
    /// If the block is a font face, the index in `found` of its first source.
    face: Option<usize>,
    /// The text before the block: selectors, or an at-rule.
    prelude: Range<usize>,
}

/// The files that `sheet` names, in order.
pub(crate) fn urls(sheet: &str) -> Vec<SheetUrl> {
    scanned(sheet).found
}

/// The texts that `sheet` puts into pages, such as by `content`, each with the selectors of its rule; and other strings, such
/// as names of fonts.
pub(crate) fn strings(sheet: &str) -> Vec<(String, String)> {
    let strings = scanned(sheet).strings.into_iter();
    strings.map(|(selectors, text)| (sheet[selectors].to_owned(), text)).collect()
}

fn scanned(sheet: &str) -> Scanner<'_> {
    let (found, blocks, strings) = Default::default();
    let mut scanner = Scanner { text: sheet, at: 0, found, start: 0, blocks, strings };
    scanner.scan();
    scanner
}

impl Scanner<'_> {
    fn scan(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => {
                    let is_before = self.start == self.at;
                    let end = self.text[self.at + 2..].find("*/");
                    self.at = end.map_or(bytes.len(), |end| self.at + 2 + end + 2);
                    if is_before {
                        self.start = self.at;
                    }
                }
                b'"' | b'\'' => {
                    let (range, text) = self.string();
                    if self.begins("@import") {
                        self.push(range, text, Purpose::Import);
                    } else if let Some(block) = self.blocks.last() {
                        self.strings.push((block.prelude.clone(), text));
                    }
                }
                b'u' | b'U' if self.is_url() => self.url(),
                b'{' => self.open(),
                b'}' => self.close(),
                b';' => {
                    self.at += 1;
                    self.start = self.at;
                }
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' if self.start == self.at => {
                    self.at += 1;
                    self.start = self.at;
                }
                b'\\' => self.at += 1 + self.text[self.at + 1..].chars().next().map_or(0, char::len_utf8),
                _ => self.at += 1,
            }
        }
    }

    /// Whether the present declaration or prelude begins with `word`.
    fn begins(&self, word: &str) -> bool {
        let begin = self.text.as_bytes().get(self.start..self.start + word.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The name of the present declaration, in lower case: the text before its colon, cut at the longest name that matters.
    fn name(&self) -> String {
        let begin = &self.text.as_bytes()[self.start..self.at.min(self.start + LONGEST_NAME)];
        let name = begin.split(|&byte| byte == b':').next().unwrap_or_default();
        String::from_utf8_lossy(name).trim().to_ascii_lowercase()
    }

    fn is_url(&self) -> bool {
        let bytes = self.text.as_bytes();
        let before = self.at.checked_sub(1).map_or(b' ', |at| bytes[at]);
        let name = bytes.get(self.at..self.at + 4).is_some_and(|name| name.eq_ignore_ascii_case(b"url("));
        name && !(before.is_ascii_alphanumeric() || b"-_".contains(&before) || before >= 0x80)
    }

    fn url(&mut self) {
        let begin = self.at;
        let name = self.name();
        self.at += 4;
        let inside = &self.text[self.at..];
        self.at += inside.len() - inside.trim_start().len();
        let text = match self.text.as_bytes().get(self.at) {
            Some(b'"' | b'\'') => self.string().1,
            _ => {
                let inside = &self.text[self.at..];
                let end = inside.find(')').unwrap_or(inside.len());
                self.at += end;
                unescaped(inside[..end].trim_end())
            }
        };
        let close = self.text[self.at..].find(')');
        self.at = close.map_or(self.text.len(), |close| self.at + close + 1);
        let purpose = match name.as_str() {
            _ if self.begins("@import") => Purpose::Import,
            "background" | "background-image" | "list-style" | "list-style-image" => Purpose::Background,
            // The range of the rule is filled in when its end is known.
            _ if self.blocks.last().is_some_and(|block| block.face.is_some()) => Purpose::Font(0..0),
            _ => Purpose::Other,
        };
        self.push(begin..self.at, text, purpose);
    }

    fn push(&mut self, range: Range<usize>, url: String, purpose: Purpose) {
        // A namespace's URL loads nothing.
        if !self.begins("@namespace") {
            self.found.push(SheetUrl { range, url, purpose });
        }
    }

    fn open(&mut self) {
        let face = self.begins("@font-face").then_some(self.found.len());
        self.blocks.push(Block { face, prelude: self.start..self.at });
        self.at += 1;
        self.start = self.at;
    }

    fn close(&mut self) {
        self.at += 1;
        self.start = self.at;
        if let Some(Block { face: Some(first), prelude }) = self.blocks.pop() {
            for url in &mut self.found[first..] {
                url.purpose = Purpose::Font(prelude.start..self.at);
            }
        }
    }

    /// The string that begins here: its place and its text.
    fn string(&mut self) -> (Range<usize>, String) {
        let begin = self.at;
        let quote = self.text.as_bytes()[begin];
        let mut escaped = false;
        let inside = self.text[begin + 1..].bytes().position(|byte| {
            let ends = !escaped && (byte == quote || byte == b'\n');
            escaped = !escaped && byte == b'\\';
            ends
        });
        let end = inside.map_or(self.text.len(), |length| begin + 1 + length);
        self.at = (end + 1).min(self.text.len());
        (begin..self.at, unescaped(&self.text[begin + 1..end]))
    }
}

/// The text with its escapes resolved (CSS Syntax 3, 4.3.7).
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let mut code = String::new();
        while let Some(digit) = rest.next_if(|c| c.is_ascii_hexdigit() && code.len() < 6) {
            code.push(digit);
        }
        match u32::from_str_radix(&code, 16) {
            Ok(code) => {
                out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                rest.next_if(|c| c.is_ascii_whitespace());
            }
            // An escaped line end stands for nothing.
            Err(_) => out.extend(rest.next().filter(|c| *c != '\n')),
        }
    }
    out
}

/// The sheet without the files that `removed` selects: a background becomes `none`, and a font face is removed whole.
/// Declarations without a word for "nothing" keep their file. `None` if nothing changes.
pub(crate) fn without(sheet: &str, removed: impl Fn(&SheetUrl) -> bool) -> Option<String> {
    let mut edits = Edits::default();
    for url in urls(sheet).into_iter().filter(removed) {
        match url.purpose {
            Purpose::Background => edits.replace(url.range, "none"),
            Purpose::Font(rule) => edits.replace(rule, ""),
            Purpose::Import | Purpose::Other => {}
        }
    }
    edits.apply(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sheet: &str) -> Vec<(String, String)> {
        urls(sheet)
            .into_iter()
            .map(|url| {
                let purpose = match &url.purpose {
                    Purpose::Font(rule) => format!("font {}", &sheet[rule.clone()]),
                    other => format!("{other:?}"),
                };
                (url.url, purpose)
            })
            .collect()
    }

    #[test]
    fn what_a_sheet_loads() {
        let sheet = "@charset \"x\"; @import 'a.css'; @import url(b.css) print;\n\
                     /* url(no.png) */ a { content: 'url(no.png)'; color: red; /* c */ Background: #fff URL( \"c (1).png\" ) }\n\
                     @media print { li{list-style:url(d\\ e.png)} } p{cursor:url('f.cur'),auto}\n\
                     @font-face{font-family:x;src:url(g.eot);src:url(g.woff2?v) format('woff2'),url(g.woff)}\n\
                     b { background-image:url(h.png);mask:url(i.svg) } myurl(x)";
        let font =
            "font @font-face{font-family:x;src:url(g.eot);src:url(g.woff2?v) format('woff2'),url(g.woff)}";
        let expected = [
            ("a.css", "Import"),
            ("b.css", "Import"),
            ("c (1).png", "Background"),
            ("d e.png", "Background"),
            ("f.cur", "Other"),
            ("g.eot", font),
            ("g.woff2?v", font),
            ("g.woff", font),
            ("h.png", "Background"),
            ("i.svg", "Other"),
        ];
        assert_eq!(found(sheet), expected.map(|(url, purpose)| (url.to_owned(), purpose.to_owned())));
    }

    #[test]
    fn declarations_alone_are_a_style_attribute() {
        let text = "color: red; background: url(a.png) no-repeat";
        assert_eq!(without(text, |_| true).unwrap(), "color: red; background: none no-repeat");
        assert_eq!(without(text, |url| url.url == "b.png"), None);
    }

    #[test]
    fn fonts_go_whole_and_what_has_no_nothing_stays() {
        let sheet = "a{}\n@font-face { src: url(x.eot); src: url(x.woff) } b{cursor:url(c.cur),auto}";
        assert_eq!(without(sheet, |_| true).unwrap(), "a{}\n b{cursor:url(c.cur),auto}");
    }

    #[test]
    fn broken_sheets_end() {
        for sheet in ["url(", "'", "a{b:url('x", "/*", "\\", "}}}", "@font-face{src:url(x", "é\\é{url(é)}"]
        {
            urls(sheet);
            without(sheet, |_| true);
        }
    }
}
