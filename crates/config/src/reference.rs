//! docs/configuration.md, made from the table of keys.

/// The reference of all keys, in Markdown.
pub fn reference() -> String {
    String::new()
}
