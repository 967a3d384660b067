//! Writes the pages of reference: docs/configuration.md, docs/workload.md, docs/adaptation.md and docs/agent-keys.md.

use super::one_line;
use crate::diagnostic::Code;
use crate::syntax::{KeyShape, Presence, SectionShape, Shape};
use std::fmt::Write;
use std::ops::Bound;

/// A page: the introduction, a table for each section, and the codes of errors.
pub(super) fn page(source: &str, introduction: &str, sections: &[SectionShape]) -> String {
    let mut page = format!(
        "<!-- Generated from crates/config/src/{source}: do not edit. Rewrite it with\n     \
         PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test generated -->\n{introduction}"
    );
    for section in sections {
        let _ = write_section(&mut page, section);
    }
    write_codes(&mut page);
    page
}

fn write_codes(page: &mut String) {
    page.push_str("## Errors\n\nEach error begins with `error[CODE]`. The codes are stable:\n\n| code | means |\n|---|---|\n");
    for code in Code::ALL {
        let _ = writeln!(page, "| `{code}` | {} |", code.meaning());
    }
}

fn write_section(page: &mut String, section: &SectionShape) -> std::fmt::Result {
    match section.title.strip_prefix("the ") {
        Some(_) => writeln!(page, "## At the top of the file\n\n{}\n", one_line(section.doc))?,
        None => writeln!(page, "## `{}`\n\n{}\n", section.title, one_line(section.doc))?,
    }
    writeln!(page, "| key | value | default | meaning |\n|---|---|---|---|")?;
    for key in &section.keys {
        let (value, default) = (value(&key.shape), default(key));
        writeln!(page, "| `{}` | {value} | {default} | {} |", key.name, one_line(key.doc))?;
    }
    for key in &section.keys {
        if let Shape::Word(words) = key.shape {
            writeln!(page, "\n`{}` is one of:\n", key.name)?;
            for (word, meaning) in words {
                writeln!(page, "- `\"{word}\"`: {meaning}.")?;
            }
        }
    }
    page.push('\n');
    Ok(())
}

fn default(key: &KeyShape) -> String {
    match &key.presence {
        _ if key.is_needed() => "required".to_owned(),
        Presence::Required | Presence::Optional | Presence::Implied => String::new(),
        Presence::Default(shown) if shown.is_empty() => String::new(),
        Presence::Default(shown) => format!("`{shown}`"),
    }
}

fn value(shape: &Shape) -> String {
    match shape {
        Shape::Boolean => "`true` or `false`".to_owned(),
        Shape::Whole { min, max } => format!("whole number, {min} to {max}"),
        Shape::Number { from, to } => match from {
            Bound::Excluded(least) => format!("number above {least}, at most {to}"),
            Bound::Included(least) => format!("number from {least}, at most {to}"),
            Bound::Unbounded => format!("number, at most {to}"),
        },
        Shape::Text(text) => match text.what.contains('`') || text.what == text.example {
            true => text.what.to_owned(),
            false => format!("{}, `\"{}\"`", text.what, text.example),
        },
        Shape::Word(words) => {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
            words.join(", ")
        }
        Shape::Either(one, other) => format!("{}, or {}", value(one), value(other)),
        Shape::OneOrMany(inner) => format!("one or a list: {}", value(inner)),
        Shape::Pairs { name, value: inner } => format!("table from {name} to {}", value(inner)),
        Shape::Section(section) => format!("table, see `{}`", section().title),
        Shape::NamedSections(section) => format!("sections `{}`", section().title),
        Shape::Sections(section) => match section().title {
            title if title.starts_with('[') => format!("sections `{title}`"),
            title => format!("list of tables, see `{title}`"),
        },
    }
}
