//! Tells meaningful alternative texts from those that a template left: file names, `IMG-PRODUCT`, `ICON`.

/// Words that only say that there is a picture, and not what it shows.
const PLACEHOLDERS: [&str; 42] = [
    "alt",
    "background",
    "banner",
    "bg",
    "blank",
    "bullet",
    "decoration",
    "divider",
    "dsc",
    "dscn",
    "foto",
    "gallery",
    "icon",
    "icons",
    "image",
    "images",
    "img",
    "imgs",
    "item",
    "logo",
    "ornament",
    "photo",
    "photos",
    "pic",
    "picture",
    "pictures",
    "pixel",
    "placeholder",
    "preview",
    "product",
    "sample",
    "screenshot",
    "separator",
    "slide",
    "spacer",
    "text",
    "the",
    "thumb",
    "thumbnail",
    "transparent",
    "untitled",
    "your",
];
/// Endings of images' names.
const ENDINGS: [&str; 9] = [".jpg", ".jpeg", ".png", ".gif", ".webp", ".avif", ".svg", ".bmp", ".ico"];

/// The text, if it says something about the picture: it is not its file's name, and not made only of [`PLACEHOLDERS`] and
/// numbers.
pub(crate) fn telling<'a>(text: &'a str, path: &str) -> Option<&'a str> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if !text.chars().any(char::is_alphabetic) {
        // A bullet such as `*` is meaningful; an ellipsis is not.
        let is_ellipsis = text.chars().all(|c| ".\u{2026}".contains(c));
        return (!is_ellipsis && text.chars().all(|c| c.is_ascii_punctuation() || !c.is_ascii()))
            .then_some(text);
    }
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let is_name = ENDINGS.iter().any(|ending| lower.ends_with(ending)) || looks_like_a_name(&lower, stem);
    let words = lower.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let is_placeholder = words.clone().all(|word| word.len() < 2 || PLACEHOLDERS.contains(&word));
    (!is_name && !is_placeholder).then_some(text)
}

/// Whether the text is the file's stem and unlike an author's words: `red_shoe-2` for `red_shoe-2.jpg`, but not `Shoes` for
/// `shoes.jpg`.
fn looks_like_a_name(text: &str, stem: &str) -> bool {
    text == stem && text.contains(['_', '-', '.', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
}

/// Names of things for which every font has a sign, with that sign.
const GLYPHS: [(&str, &str); 25] = [
    ("heart", "\u{2665}"),
    ("favorite", "\u{2665}"),
    ("wishlist", "\u{2665}"),
    ("like", "\u{2665}"),
    ("star", "\u{2605}"),
    ("rating", "\u{2605}"),
    ("search", "\u{2315}"),
    ("cart", "\u{1f6d2}\u{fe0e}"),
    ("basket", "\u{1f6d2}\u{fe0e}"),
    ("menu", "\u{2630}"),
    ("hamburger", "\u{2630}"),
    ("close", "\u{2715}"),
    ("check", "\u{2713}"),
    ("tick", "\u{2713}"),
    ("plus", "+"),
    ("mail", "\u{2709}\u{fe0e}"),
    ("email", "\u{2709}\u{fe0e}"),
    ("envelope", "\u{2709}\u{fe0e}"),
    ("phone", "\u{260e}\u{fe0e}"),
    ("home", "\u{2302}"),
    ("next", "\u{203a}"),
    ("right", "\u{203a}"),
    ("prev", "\u{2039}"),
    ("left", "\u{2039}"),
    ("print", "\u{2399}"),
];

/// The sign for the thing that a file's name or an element's class names.
pub(crate) fn glyph(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphabetic());
    words.find_map(|word| GLYPHS.iter().find(|(known, _)| *known == word).map(|(_, glyph)| *glyph))
}

/// Whether a name, class or text says that this is the site's logo.
pub(crate) fn says_logo(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| ["logo", "logotype", "brand", "wordmark"].contains(&word) || word.ends_with("logo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_template_left_says_nothing() {
        for (text, path, tells) in [
            ("IMG-PRODUCT", "images/product-01.jpg", false),
            ("IMG-LOGO", "images/logo.png", false),
            ("ICON", "images/icon-heart-01.png", false),
            ("IMG-01", "a.jpg", false),
            ("DSC_0123", "DSC_0123.JPG", false),
            ("red_shoe-2", "red_shoe-2.jpg", false),
            ("photo.JPG", "x.jpg", false),
            ("", "x.jpg", false),
            ("12", "x.jpg", false),
            ("Product image", "x.jpg", false),
            ("spacer", "s.gif", false),
            ("Blank page", "x.jpg", true),
            ("Shoes", "shoes.jpg", true),
            ("Photo of Berlin", "x.jpg", true),
            ("Bild 5", "x.jpg", true),
            ("...", "assets/img/products-01.jpg", false),
            ("\u{2605}\u{2605}", "rating.png", true),
            ("*", "dot.gif", true),
            ("\u{9d8f}", "x.jpg", true),
        ] {
            assert_eq!(telling(text, path).is_some(), tells, "{text}");
        }
    }

    #[test]
    fn names_have_their_signs() {
        assert_eq!(glyph("icon-heart-01"), Some("\u{2665}"));
        assert_eq!(glyph("images/Search.png"), Some("\u{2315}"));
        assert_eq!(glyph("scart"), None);
        assert!(
            says_logo("main-logo.png")
                && says_logo("navbar-brand")
                && says_logo("shoplogo")
                && !says_logo("logistics")
        );
    }
}
