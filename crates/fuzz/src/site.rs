//! Pages, sheets and images of anybody's site, and what is written in their place.

use plimsoll_content::Level;
use plimsoll_content::fuzzing::{
    at_level, drawing as silenced, element_names, image_size, reduced_image, sheet_urls,
};

/// A page as text loads nothing any more; every level is again a page.
pub fn page(bytes: &[u8]) {
    for level in [Level::Text, Level::Light] {
        let Some(written) = at_level("index.html", bytes, level) else { continue };
        let names = element_names(&written).expect("a page that was read is written as text");
        if level == Level::Text {
            let before = element_names(bytes).unwrap_or_default();
            let loads = |names: &[String]| names.iter().filter(|name| *name == "img").count();
            assert!(loads(&names) <= loads(&before), "{}", written.escape_ascii());
        }
    }
}

/// What a sheet refers to lies in it, in its order; and the sheet can be written at every level.
pub fn sheet(bytes: &[u8]) {
    if let Some((text, ranges)) = sheet_urls(bytes) {
        assert!(ranges.iter().all(|range| text.get(range.clone()).is_some()), "{ranges:?} of {text}");
        assert!(ranges.is_sorted_by_key(|range| range.start), "{ranges:?} of {text}");
    }
    for level in [Level::Text, Level::Light] {
        let _ = at_level("style.css", bytes, level);
    }
}

/// A drawing without what draws nothing is shorter, and nothing is left to take out.
pub fn drawing(bytes: &[u8]) {
    let Some(written) = silenced(bytes) else { return };
    assert!(written.len() < bytes.len());
}

/// An image has a size or none by its head alone, and is written smaller or not at all.
pub fn image(bytes: &[u8]) {
    let size = image_size(bytes);
    if let Some(written) = reduced_image(bytes) {
        assert!(size.is_some() && written.len() < bytes.len());
        assert!(image_size(&written).is_some_and(|(width, height)| width > 0 && height > 0));
    }
}
