//! The characters that a site can show.
//!
//! These are the characters in its pages, scripts, templates and other texts, in upper and lower case; ASCII and the characters
//! that browsers add, such as an ellipsis; and the characters that sheets put before elements of classes that a page or a
//! script names. A sheet of icons has a rule for each of a thousand signs, and pages name the classes of a few.
//!
//! If a script composes a class name, only its beginning is known: `"fa-" + name` counts as all names that begin so. Characters
//! from elsewhere, such as visitors' texts, are shown in the next font of the list if they are not among these.

use super::Characters;
use crate::parallel::{self, Watch};
use crate::site::Site;
use crate::site::kind::{Kind, ends_with};
use crate::text::charset::decode;
use crate::text::css;
use crate::text::markup;
use std::collections::BTreeSet;
use std::io;

/// Blanks, dashes, quotes, bullets and the ellipsis, which browsers may show although the page does not have them.
const ALWAYS: &str =
    "\u{a0}\u{ad}\u{ab}\u{bb}\u{2010}\u{2013}\u{2014}\u{2018}\u{2019}\u{201c}\u{201d}\u{2022}\u{2026}";

/// The endings of template files, from which programs make pages.
const TEMPLATES: [&str; 22] = [
    "asp", "aspx", "cfm", "cgi", "cshtml", "ejs", "erb", "hbs", "inc", "j2", "jinja", "jsp", "liquid", "md",
    "mustache", "njk", "php", "phtml", "pl", "py", "tpl", "twig",
];

/// The characters and words found in one file.
#[derive(Default)]
struct Part {
    characters: Characters,
    /// Words that may be class names.
    words: BTreeSet<String>,
    /// The texts that sheets put into pages, with the selectors of their rules.
    put_in: Vec<(String, String)>,
}

/// The characters that the site can show.
///
/// # Errors
/// A file cannot be read, or the user stopped the run.
pub(crate) fn used(site: &Site, watch: &dyn Watch) -> io::Result<Characters> {
    let files = &site.tree.files;
    // An image does not use its page's fonts, and old SVG fonts contain every one of their signs, so SVG files are not read.
    let is_read =
        |path: &str, kind: Kind| (kind.is_text(path) && !Kind::is_svg(path)) || ends_with(path, &TEMPLATES);
    let texts = files.iter().filter(|(path, file)| is_read(path, file.kind));
    let texts: Vec<&String> = texts.map(|(path, _)| path).collect();
    let parts = parallel::each(&texts, watch, |path| {
        let text = decode(&site.tree.read_file(path)?).map(|decoded| decoded.text).unwrap_or_default();
        Ok(part(files[*path].kind, &text))
    })?;
    let mut all = Part::default();
    for part in parts {
        all.characters.extend(part.characters);
        all.words.extend(part.words);
        all.put_in.extend(part.put_in);
    }
    Ok(shown(all))
}

fn part(kind: Kind, text: &str) -> Part {
    let mut part = Part::default();
    match kind {
        Kind::Style => part.put_in = css::strings(text),
        Kind::Page => {
            part.characters.extend(markup::decoded(text));
            take_words(text, &mut part);
        }
        _ => take_words(text, &mut part),
    }
    part
}

fn take_words(text: &str, part: &mut Part) {
    part.characters.extend(text.chars().filter(|one| !one.is_ascii()));
    part.characters.extend(escaped(text));
    let words =
        text.split(|one: char| !(one.is_ascii_alphanumeric() || "-_".contains(one) || !one.is_ascii()));
    part.words.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
}

fn shown(part: Part) -> Characters {
    let Part { mut characters, words, put_in } = part;
    // A word with such an ending is completed by a script.
    let begun: Vec<&String> =
        words.iter().filter(|word| word.len() > 1 && word.ends_with(['-', '_'])).collect();
    let is_named = |class: &str| words.contains(class) || begun.iter().any(|begin| class.starts_with(*begin));
    for (selectors, text) in put_in {
        if selectors.split(',').any(|selector| can_match(selector, is_named)) {
            characters.extend(text.chars());
        }
    }
    characters.extend(ALWAYS.chars().chain(' '..='~'));
    // `text-transform` and small capitals change the case of letters.
    let cases = characters.iter().flat_map(|one| one.to_uppercase().chain(one.to_lowercase()));
    let cases: Vec<char> = cases.collect();
    characters.extend(cases);
    // Scripts use these as bounds of ranges. No font shows them, although some claim to.
    characters.retain(|one| !one.is_control() && u32::from(*one) & 0xfffe != 0xfffe);
    characters
}

/// Whether an element may have all classes of the selector. If the selector excludes a class, or has a backslash, it may.
fn can_match(selector: &str, is_named: impl Fn(&str) -> bool) -> bool {
    let is_open = selector.contains(":not(") || selector.contains('\\');
    let mut classes = selector.split('.').skip(1).map(|rest| {
        let end =
            rest.find(|one: char| one.is_ascii() && !one.is_ascii_alphanumeric() && one != '-' && one != '_');
        &rest[..end.unwrap_or(rest.len())]
    });
    is_open || classes.all(|class| class.is_empty() || is_named(class))
}

/// Characters that scripts and sheets write as numbers: `\u2665`, `\u{2665}`, `\xe9`, `\2665`.
fn escaped(text: &str) -> impl Iterator<Item = char> + '_ {
    let mut high = None;
    text.split('\\').skip(1).filter_map(move |rest| {
        let (digits, most) = match rest.strip_prefix('u') {
            Some(rest) => rest.strip_prefix('{').map_or((rest, 4), |rest| (rest, 6)),
            None => rest.strip_prefix('x').map_or((rest, 6), |rest| (rest, 2)),
        };
        let length = digits.bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
        let code = u32::from_str_radix(&digits[..length], 16).ok()?;
        // Two numbers are the halves of a character beyond the first plane (UTF-16).
        match (code, high.take()) {
            (0xd800..0xdc00, _) => high = Some(code),
            (0xdc00..0xe000, Some(first)) => {
                return char::from_u32(0x10000 + ((first - 0xd800) << 10) + (code - 0xdc00));
            }
            _ => return char::from_u32(code),
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(Kind, &str)]) -> Characters {
        let mut all = Part::default();
        for (kind, text) in files {
            let part = part(*kind, text);
            all.characters.extend(part.characters);
            all.words.extend(part.words);
            all.put_in.extend(part.put_in);
        }
        shown(all)
    }

    #[test]
    fn what_pages_and_scripts_say_in_either_case() {
        let page = "<p title='&#x416;'>caf\u{e9} &hearts; &szlig;</p>";
        let script = r#"x = "\u2192\u{1f600}\xf8 \ud83d\ude80"; y = 'ü'"#;
        let found = of(&[(Kind::Page, page), (Kind::Script, script)]);
        for one in "é É ♥ ß Ж ж → 😀 ø Ø 🚀 ü Ü A ~ …".chars() {
            assert!(found.contains(&one), "{one}");
        }
        assert!(!found.contains(&'ä') && !found.contains(&'я'));
        let found = of(&[(Kind::Script, r"/[\0-\x1f\x7f\uffff]/")]);
        assert!(!['\0', '\x1f', '\x7f', '\u{ffff}'].iter().any(|one| found.contains(one)));
    }

    #[test]
    fn icons_of_classes_that_are_named() {
        let sheet = r#".i-home:before{content:"\f015"} .i-bell::before{content:"\f0f3"} a:after{content:"\2197"}
            @media print { .big.i-mail:before, .i-sun:before { --x: '\f185' } } .b:not(.i-no):before{content:"\f001"}"#;
        let found = of(&[(Kind::Style, sheet), (Kind::Page, "<i class='i-home big'></i>")]);
        assert!(['\u{f015}', '\u{2197}', '\u{f001}'].iter().all(|one| found.contains(one)));
        assert!(['\u{f0f3}', '\u{f185}'].iter().all(|one| !found.contains(one)));
        // A script names a class, or the beginning of several classes.
        let found = of(&[(Kind::Style, sheet), (Kind::Script, "add('i-sun')")]);
        assert!(found.contains(&'\u{f185}') && !found.contains(&'\u{f0f3}'));
        let found = of(&[(Kind::Style, sheet), (Kind::Script, "add('i-' + name)")]);
        assert!(found.contains(&'\u{f185}') && found.contains(&'\u{f0f3}'));
    }
}
