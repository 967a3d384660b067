//! docs/configuration.md, docs/workload.md, docs/adaptation.md and docs/agent-keys.md, made from the tables of keys.
//!
//! What is written by hand here is only what no key says: how to read the page, units, and the order of a file.

use crate::diagnostic::Code;
use crate::gateway::file::ConfigurationKeys;
use crate::syntax::{KeyShape, Presence, Section, SectionShape, Shape, sections};
use crate::{adaptation, agent, workload};
use std::fmt::Write;
use std::ops::Bound;

const INTRODUCTION: &str = "\
<!-- Generated from crates/config/src/gateway: do not edit. Rewrite it with
     PLIMSOLL_BLESS=1 cargo test -p plimsoll-config --test generated -->
# Configuration

One TOML file says what the server can carry and what its sites promise. `plimsoll check FILE` reads it and says, all at
once, what is wrong: where, and what to write instead. Start from one of the [examples](../examples):

| file | shows |
|---|---|
| [one-site.toml](../examples/one-site.toml) | one server, a light version of its pages |
| [folder.toml](../examples/folder.toml) | files that the gateway serves itself, in two qualities |
| [classes.toml](../examples/classes.toml) | several sites, levels and groups of clients |
| [deadlines.toml](../examples/deadlines.toml) | an admitted request is answered in time ([more](deadlines.md)) |
| [delays.toml](../examples/delays.toml) | response times that are promised, as times or as ratios ([more](delays.md)) |
| [observe.toml](../examples/observe.toml) | look first: decide and log, but let everything pass |
| [demo.toml](../examples/demo.toml) | what `plimsoll demo` runs |

An editor completes keys and shows their meaning if the file begins with
`#:schema ./plimsoll.schema.json`, the path of what `plimsoll schema` prints.

The smallest file names where clients connect and the server. How many requests it works on at once is found while the
gateway runs; tell it if you know it:

```toml
[gateway]
listen = \"0.0.0.0:80\"

[upstream.app]
address = \"127.0.0.1:8000\"
capacity = { workers = 8 }          # may be left out
```

## How values are written

- A *duration* has a unit: ns, us, ms, s, min (or m), h, d. `\"250ms\"`, `\"10s\"`.
- A *size* has a unit: B, kB, MB, GB, TB by thousands; KiB, MiB, GiB, TiB by 1024. `\"64 KiB\"`.
- A *rate* has a unit: bit/s, kbit/s, Mbit/s, Gbit/s, or a size per second. `\"100 Mbit/s\"`.
- A *pattern* holds at most one `*`, which stands for any run of characters. `\"/buy/*\"`, `\"*.shop.example\"`.
- *One or a list* takes a single value or several: `host = \"a.example\"`, `host = [\"a.example\", \"b.example\"]`.
- A *name* is 1 to 64 letters, digits, `-`, `_` or `.`. Upstreams and folders share one set of names.

";

/// The reference of all keys of the configuration, in Markdown.
pub fn reference() -> String {
    // The root holds sections alone, which follow.
    page_of(INTRODUCTION, &sections(ConfigurationKeys::shape())[1..])
}

/// The reference of all keys of the workload, in Markdown.
pub fn workload_reference() -> String {
    page_of(workload::INTRODUCTION, &sections(workload::keys::WorkloadKeys::shape()))
}

/// The reference of all keys of the adapter's policy, in Markdown.
pub fn adaptation_reference() -> String {
    page_of(adaptation::INTRODUCTION, &sections(adaptation::keys::AdaptationKeys::shape()))
}

/// The reference of all keys of an agent's file, in Markdown.
pub fn agent_reference() -> String {
    page_of(agent::INTRODUCTION, &sections(agent::keys::AgentKeys::shape()))
}

fn page_of(introduction: &str, sections: &[SectionShape]) -> String {
    let mut page = introduction.to_owned();
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

/// A doc comment as one paragraph; within a table cell a bar would end the cell.
pub(crate) fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
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
        Shape::Named(section) => format!("sections `{}`", section().title),
        Shape::Many(section) => match section().title {
            title if title.starts_with('[') => format!("sections `{title}`"),
            title => format!("list of tables, see `{title}`"),
        },
    }
}
