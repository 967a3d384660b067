//! The document around sections: head, policy, lead facts, contents, footer.

use crate::chart::Figures;
use crate::digest::base64;
use crate::text::{escape, paragraphs};
use crate::{Block, Fact, Note, Page, Picture, Section, Verdict, digest};
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
        out.push_str("<header><h1>");
        escape(&mut out, &self.title);
        out.push_str("</h1>\n");
        if !self.subtitle.is_empty() {
            out.push_str("<p class=\"subtitle\">");
            escape(&mut out, &self.subtitle);
            out.push_str("</p>\n");
        }
        out.push_str("</header>\n<main>\n");
        write_lead(&mut out, &self.lead);
        self.write_contents(&mut out);
        let mut figures = Figures::default();
        for (index, section) in self.sections.iter().enumerate() {
            section.write(&mut out, index, &mut figures);
        }
        out.push_str("</main>\n<footer>");
        paragraphs(&mut out, &self.footer);
        out.push_str("</footer>\n<script>");
        out.push_str(SCRIPT);
        out.push_str("</script>\n</body>\n</html>\n");
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
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>",
            digest::source(STYLE),
            digest::source(SCRIPT),
            if self.has_pictures() { "img-src data:; " } else { "" }
        );
        escape(out, &self.title);
        out.push_str("</title>\n<style>");
        out.push_str(STYLE);
        out.push_str("</style>\n</head>\n<body>\n");
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
            let _ = write!(out, "<a href=\"#s{}\">", index + 1);
            escape(out, &section.title);
            out.push_str("</a> ");
        }
        out.push_str("</nav>\n");
    }
}

impl Section {
    fn write(&self, out: &mut String, index: usize, figures: &mut Figures) {
        let _ = write!(out, "<section id=\"s{}\">\n<h2>", index + 1);
        escape(out, &self.title);
        out.push_str("</h2>\n");
        paragraphs(out, &self.text);
        for block in &self.blocks {
            match block {
                Block::Chart(chart) => figures.write(out, std::slice::from_ref(chart)),
                Block::Charts(charts) => figures.write(out, charts),
                Block::Multiples(charts) => figures.write_multiples(out, charts),
                Block::Table(table) => table.write(out),
                Block::Pictures(pictures) => write_pictures(out, pictures),
                Block::Note(note) => note.write(out),
            }
        }
        out.push_str("</section>\n");
    }
}

impl Note {
    fn write(&self, out: &mut String) {
        let _ = write!(out, "<div class=\"note {}\">", class(self.verdict));
        paragraphs(out, &self.text);
        out.push_str("</div>\n");
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
        let _ = write!(
            out,
            "<figure class=\"picture\"><img src=\"data:image/{kind};base64,{}\" alt=\"",
            base64(bytes)
        );
        escape(out, caption);
        out.push_str("\"><figcaption>");
        escape(out, caption);
        out.push_str("</figcaption></figure>\n");
    }
    out.push_str("</div>\n");
}

fn write_lead(out: &mut String, facts: &[Fact]) {
    if facts.is_empty() {
        return;
    }
    out.push_str("<dl class=\"lead\">\n");
    for fact in facts {
        let _ = write!(out, "<div class=\"{}\"><dt>", class(fact.verdict));
        escape(out, &fact.name);
        // The verdict is a sign and a word, never the colour alone.
        out.push_str(match fact.verdict {
            Verdict::Good => " <b aria-label=\"good\" title=\"as promised\">✓</b>",
            Verdict::Bad => " <b aria-label=\"bad\" title=\"not as promised\">✗</b>",
            Verdict::Neutral => "",
        });
        out.push_str("</dt><dd>");
        escape(out, &fact.value);
        if !fact.unit.is_empty() {
            out.push_str("<span class=\"unit\"> ");
            escape(out, &fact.unit);
            out.push_str("</span>");
        }
        out.push_str("</dd>");
        if !fact.note.is_empty() {
            out.push_str("<dd class=\"aside\">");
            escape(out, &fact.note);
            out.push_str("</dd>");
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
