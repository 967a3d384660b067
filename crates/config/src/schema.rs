//! docs/plimsoll.schema.json, made from the table of keys.

/// The JSON Schema of the file.
pub fn json_schema() -> String {
    String::new()
}
