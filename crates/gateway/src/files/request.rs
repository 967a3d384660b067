//! What the file server reads of a request.

use std::borrow::Cow;

#[derive(Clone, Debug)]
pub(crate) struct FileRequest<'a> {
    /// The method, as sent.
    pub(crate) method: &'a str,
    /// The path as sent, percent-encoded and without its query, behind the prefix of its level.
    pub(crate) path: &'a str,
    /// The query without its question mark; kept when a folder's missing slash is added.
    pub(crate) query: Option<&'a str>,
    pub(crate) fields: FileFields<'a>,
}

/// The header fields that matter to files, filled in one pass over the headers. If a list has several lines, they count as one
/// list (RFC 9110 5.3); if another field has several lines, the first counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileFields<'a> {
    pub(crate) accept: Option<Cow<'a, str>>,
    pub(crate) accept_encoding: Option<Cow<'a, str>>,
    pub(crate) if_match: Option<Cow<'a, str>>,
    pub(crate) if_modified_since: Option<&'a str>,
    pub(crate) if_none_match: Option<Cow<'a, str>>,
    pub(crate) if_range: Option<&'a str>,
    pub(crate) if_unmodified_since: Option<&'a str>,
    pub(crate) range: Option<&'a str>,
}

/// A field that the file server looks for.
enum Sought<'f, 'a> {
    One(&'f mut Option<&'a str>),
    List(&'f mut Option<Cow<'a, str>>),
}

impl<'a> FileFields<'a> {
    /// Takes the fields from a request's headers. A value that is not text is ignored.
    pub(crate) fn of(headers: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut fields = FileFields::default();
        for (name, value) in headers {
            if let Some(field) = fields.field(name)
                && let Ok(value) = std::str::from_utf8(value)
            {
                field.add(value.trim());
            }
        }
        fields
    }

    fn field(&mut self, name: &str) -> Option<Sought<'_, 'a>> {
        // Lengths are compared first: most headers are not looked for, and most lengths fit only one field.
        let (expected, field) = match name.len() {
            5 => ("range", Sought::One(&mut self.range)),
            6 => ("accept", Sought::List(&mut self.accept)),
            8 if name.as_bytes()[3].eq_ignore_ascii_case(&b'm') => {
                ("if-match", Sought::List(&mut self.if_match))
            }
            8 => ("if-range", Sought::One(&mut self.if_range)),
            13 => ("if-none-match", Sought::List(&mut self.if_none_match)),
            15 => ("accept-encoding", Sought::List(&mut self.accept_encoding)),
            17 => ("if-modified-since", Sought::One(&mut self.if_modified_since)),
            19 => ("if-unmodified-since", Sought::One(&mut self.if_unmodified_since)),
            _ => return None,
        };
        name.eq_ignore_ascii_case(expected).then_some(field)
    }
}

impl<'a> Sought<'_, 'a> {
    /// Takes one more line of the field.
    fn add(self, value: &'a str) {
        match self {
            Sought::One(field) => {
                field.get_or_insert(value);
            }
            Sought::List(Some(list)) => {
                let list = list.to_mut();
                list.push_str(", ");
                list.push_str(value);
            }
            Sought::List(none) => *none = Some(Cow::Borrowed(value)),
        }
    }
}
