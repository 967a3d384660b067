//! Writes the HTML document around sections: head, policy, lead facts, contents, footer.

use crate::chart::Figures;
use crate::text::{Escaped, push_paragraphs};
use crate::{Block, Fact, Page, Picture, Section, Verdict};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page with fewer sections than this has no table of contents.
const CONTENTS: usize = 4;

impl Page {
    /// The page: one document that refers to nothing outside itself.
    #[must_use]
    pub fn to_html(&self) -> String {
        let mut out = String::with_capacity(1 << 18);
        self.write_head(&mut out);
        let _ = writeln!(out, "<header><h1>{}</h1>", Escaped(&self.title));
        for what in &self.assumptions {
            let _ = writeln!(out, "<p class=\"assumed\"><b>Assumed:</b> {}.</p>", Escaped(what));
        }
        if !self.subtitle.is_empty() {
            let _ = writeln!(out, "<p class=\"subtitle\">{}</p>", Escaped(&self.subtitle));
        }
        out.push_str("</header>\n<main>\n");
        write_lead(&mut out, &self.lead);
        self.write_contents(&mut out);
        let mut figures = Figures::default();
        for (index, section) in self.sections.iter().enumerate() {
            section.write(&mut out, index, &mut figures);
        }
        out.push_str("</main>\n<footer>");
        push_paragraphs(&mut out, &self.footer);
        let _ = write!(out, "</footer>\n<script>{SCRIPT}</script>\n</body>\n</html>\n");
        out
    }

    fn write_head(&self, out: &mut String) {
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; script-src {}; \
             {}base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            policy_source(STYLE),
            policy_source(SCRIPT),
            if self.has_pictures() { "img-src data:; " } else { "" },
            Escaped(&self.title)
        );
    }

    fn has_pictures(&self) -> bool {
        let mut blocks = self.sections.iter().flat_map(|section| &section.blocks);
        blocks.any(|block| matches!(block, Block::Pictures(_)))
    }

    fn write_contents(&self, out: &mut String) {
        if self.sections.len() < CONTENTS {
            return;
        }
        out.push_str("<nav aria-label=\"Contents\">");
        for (index, section) in self.sections.iter().enumerate() {
            let _ = write!(out, "<a href=\"#s{}\">{}</a> ", index + 1, Escaped(&section.title));
        }
        out.push_str("</nav>\n");
    }
}

impl Section {
    fn write(&self, out: &mut String, index: usize, figures: &mut Figures) {
        let _ = writeln!(out, "<section id=\"s{}\">\n<h2>{}</h2>", index + 1, Escaped(&self.title));
        push_paragraphs(out, &self.text);
        for block in &self.blocks {
            match block {
                Block::Chart(chart) => figures.write(out, std::slice::from_ref(chart)),
                Block::Multiples(charts) => figures.write(out, charts),
                Block::Table(table) => table.write(out),
                Block::Tiles(heading, facts) => {
                    let _ = writeln!(out, "<h3 class=\"tiles\">{}</h3>", Escaped(heading));
                    write_lead(out, facts);
                }
                Block::Pictures(pictures) => write_pictures(out, pictures),
                Block::Note(text) => {
                    out.push_str("<div class=\"note\">");
                    push_paragraphs(out, text);
                    out.push_str("</div>\n");
                }
            }
        }
        out.push_str("</section>\n");
    }
}

/// Writes pictures into the page as data, because the page may load nothing.
fn write_pictures(out: &mut String, pictures: &[Picture]) {
    out.push_str("<div class=\"pictures\">\n");
    for Picture { caption, bytes } in pictures {
        // The first bytes decide the kind; SVG is left out, because it could hold a script.
        let kind = match bytes.as_slice() {
            [0x89, b'P', b'N', b'G', ..] => "png",
            [0xff, 0xd8, 0xff, ..] => "jpeg",
            [b'G', b'I', b'F', b'8', ..] => "gif",
            _ => continue,
        };
        let (data, caption) = (STANDARD.encode(bytes), Escaped(caption));
        let _ = writeln!(
            out,
            "<figure class=\"picture\"><img src=\"data:image/{kind};base64,{data}\" alt=\"{caption}\">\
             <figcaption>{caption}</figcaption></figure>"
        );
    }
    out.push_str("</div>\n");
}

fn write_lead(out: &mut String, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    out.push_str("<dl class=\"lead\">\n");
    for fact in facts {
        // The verdict is shown by a sign and a word, never by colour alone.
        let sign = match fact.verdict {
            Verdict::Good => " <b aria-label=\"good\" title=\"as promised\">✓</b>",
            Verdict::Bad => " <b aria-label=\"bad\" title=\"not as promised\">✗</b>",
            Verdict::Neutral => "",
        };
        let (class, name, value) = (class(fact.verdict), Escaped(&fact.name), Escaped(&fact.value));
        let _ = write!(out, "<div class=\"{class}\"><dt>{name}{sign}</dt><dd>{value}");
        if !fact.unit.is_empty() {
            let _ = write!(out, "<span class=\"unit\"> {}</span>", Escaped(&fact.unit));
        }
        out.push_str("</dd>");
        if !fact.note.is_empty() {
            let _ = write!(out, "<dd class=\"aside\">{}</dd>", Escaped(&fact.note));
        }
        out.push_str("</div>\n");
    }
    out.push_str("</dl>\n");
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Bad => "bad",
        Verdict::Neutral => "neutral",
    }
}

/// The source `'sha256-…'` by which the page's Content-Security-Policy allows its own script and style.
fn policy_source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_names_a_text_by_its_digest() {
        assert_eq!(policy_source(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
    }
}
