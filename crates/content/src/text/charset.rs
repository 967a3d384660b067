//! The encoding of a page: found as a browser finds it, and restored byte for byte.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// A page as text, with its encoding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    encoding: &'static Encoding,
    /// The byte order mark before the page.
    mark: Vec<u8>,
}

/// How many bytes of a page are searched for its `<meta charset>` (HTML, 13.2.3.2).
const PRESCAN: usize = 1024;

/// Decodes a page; `None` if decoding would lose something, for instance because the file is no text.
///
/// A byte order mark takes precedence, then the page's declaration, then UTF-8 if the bytes are valid; anything else is read as
/// windows-1252, which has a letter for every byte and so loses none. Whatever was chosen, encoding the text again must give
/// the same bytes.
pub(crate) fn decode(bytes: &[u8]) -> Option<Decoded> {
    let (encoding, length) =
        Encoding::for_bom(bytes).unwrap_or_else(|| (declared(bytes).unwrap_or(UTF_8), 0));
    let (mark, body) = bytes.split_at(length);
    [encoding, WINDOWS_1252].into_iter().find_map(|encoding| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(body)?.into_owned();
        let decoded = Decoded { text, encoding, mark: mark.to_vec() };
        (decoded.encode(&decoded.text) == bytes).then_some(decoded)
    })
}

/// The encoding that `<meta charset>` or `<meta http-equiv>` names.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(PRESCAN)].to_ascii_lowercase();
    let mut rest = head.as_slice();
    while let Some(at) = rest.windows(7).position(|part| part == b"charset") {
        rest = rest[at + 7..].trim_ascii_start();
        let Some(value) = rest.strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
        let end = value.iter().position(|byte| b"\"'; >/".contains(byte) || byte.is_ascii_whitespace());
        match Encoding::for_label(&value[..end.unwrap_or(value.len())]) {
            // If a declaration could be read as ASCII, the page is not in UTF-16, even if it says so.
            Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => return Some(UTF_8),
            Some(encoding) => return Some(encoding),
            None => {}
        }
    }
    None
}

impl Decoded {
    /// Encodes `text` in the page's encoding; letters that the encoding lacks become numeric references.
    pub(crate) fn encode(&self, text: &str) -> Vec<u8> {
        let units =
            |to_bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to_bytes).collect::<Vec<u8>>();
        let body = match self.encoding {
            encoding if encoding == UTF_16LE => units(u16::to_le_bytes),
            encoding if encoding == UTF_16BE => units(u16::to_be_bytes),
            encoding => encoding.encode(text).0.into_owned(),
        };
        [self.mark.as_slice(), &body].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_comes_back() {
        let utf16: Vec<u8> =
            b"\xff\xfe".iter().copied().chain("<p>é".encode_utf16().flat_map(u16::to_le_bytes)).collect();
        for (bytes, text) in [
            ("<p>日本".as_bytes(), "<p>日本"),
            (b"\xef\xbb\xbf<p>\xc3\xa9", "<p>é"),
            (b"<meta charset=windows-1251><p>\xe9", "<meta charset=windows-1251><p>й"),
            (
                b"<META http-equiv='x' content='text/html; charset=Shift_JIS'>\x93\xfa",
                "<META http-equiv='x' content='text/html; charset=Shift_JIS'>日",
            ),
            (b"<meta charset = \"euc-jp\">\xc6\xfc", "<meta charset = \"euc-jp\">日"),
            (b"<p>caf\xe9", "<p>café"),
            (b"<meta charset=utf-8>caf\xe9 \x81", "<meta charset=utf-8>café \u{81}"),
            (&utf16, "<p>é"),
        ] {
            let decoded = decode(bytes).unwrap();
            assert_eq!(decoded.text, text);
            assert_eq!(decoded.encode(&decoded.text), bytes, "{text}");
        }
    }

    #[test]
    fn letters_that_the_encoding_lacks_are_written_as_references() {
        let decoded = decode(b"<meta charset=iso-8859-1>").unwrap();
        assert_eq!(decoded.encode("é日"), b"\xe9&#26085;");
    }
}
