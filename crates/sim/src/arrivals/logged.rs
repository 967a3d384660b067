//! One line of a log that is followed while it is written.

use super::{common_format, json_format};
use crate::workload::JsonFields;
use std::borrow::Cow;

/// The body bytes of the response that this line of an access log tells of: Common, Combined, or a JSON object with the
/// names in common use.
///
/// # Errors
/// Why it is no such line.
pub fn logged_bytes(line: &str) -> Result<u64, Cow<'static, str>> {
    if !line.starts_with('{') {
        return Ok(common_format::parse(line)?.0.bytes);
    }
    let object = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
    Ok(json_format::parse(&object, &json_format::fields(&JsonFields::default()))?.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_either_format() {
        assert_eq!(logged_bytes(common_format::COMMON), Ok(1713));
        let json = r#"{"time":"2024-05-01T00:00:00Z","request":"GET /a HTTP/1.1","body_bytes_sent":"42"}"#;
        assert_eq!(logged_bytes(json), Ok(42));
        assert!(logged_bytes("hello").is_err() && logged_bytes("{").is_err() && logged_bytes("{}").is_err());
    }
}
