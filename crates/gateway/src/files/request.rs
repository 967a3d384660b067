//! What the file server reads of a request.

#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRequest<'a> {
    /// The method, as sent.
    pub(crate) method: &'a str,
    /// The path as sent, percent-encoded and without its query, behind the prefix of its level.
    pub(crate) path: &'a str,
    /// The query without its question mark; kept when a folder's missing slash is added.
    pub(crate) query: Option<&'a str>,
    pub(crate) fields: FileFields<'a>,
}

/// The header fields that matter to files, each the first of its name, filled in one pass over the headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileFields<'a> {
    pub(crate) accept: Option<&'a str>,
    pub(crate) accept_encoding: Option<&'a str>,
    pub(crate) if_match: Option<&'a str>,
    pub(crate) if_modified_since: Option<&'a str>,
    pub(crate) if_none_match: Option<&'a str>,
    pub(crate) if_range: Option<&'a str>,
    pub(crate) if_unmodified_since: Option<&'a str>,
    pub(crate) range: Option<&'a str>,
}

impl<'a> FileFields<'a> {
    /// Takes the fields from a request's headers. A value that is not text is ignored.
    pub(crate) fn of(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut fields = FileFields::default();
        for (name, value) in headers {
            if let Some(field) = fields.field(name)
                && field.is_none()
            {
                *field = std::str::from_utf8(value).ok().map(str::trim);
            }
        }
        fields
    }

    fn field(&mut self, name: &str) -> Option<&mut Option<&'a str>> {
        // Lengths are compared first: most headers are none of these, and most lengths belong to one of them.
        let (expected, field) = match name.len() {
            5 => ("range", &mut self.range),
            6 => ("accept", &mut self.accept),
            8 if name.as_bytes()[3].eq_ignore_ascii_case(&b'm') => ("if-match", &mut self.if_match),
            8 => ("if-range", &mut self.if_range),
            13 => ("if-none-match", &mut self.if_none_match),
            15 => ("accept-encoding", &mut self.accept_encoding),
            17 => ("if-modified-since", &mut self.if_modified_since),
            19 => ("if-unmodified-since", &mut self.if_unmodified_since),
            _ => return None,
        };
        name.eq_ignore_ascii_case(expected).then_some(field)
    }
}
