//! What the file server returns: status, header lines, body.

use super::resource::Variant;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// The response to a [`FileRequest`](super::FileRequest).
#[derive(Debug)]
pub(crate) struct FileResponse {
    /// The status code. From 400 on the body is empty, and the caller writes one.
    pub(crate) status: u16,
    /// The header fields, without `date`, `connection` and `content-length`.
    pub(crate) headers: FileHeaders,
    /// The `content-length` to send; a HEAD sends that of the GET. `None` for 204 and 304.
    pub(crate) content_length: Option<u64>,
    pub(crate) body: FileBody,
    /// The name of the file in a higher tree, if the requested tree lacks it.
    pub(crate) above: Option<Vec<u8>>,
}

/// Header fields: a block of lines that was made when the file was read, and the fields of this response alone.
#[derive(Debug, Default)]
pub(crate) struct FileHeaders {
    block: Option<(Rc<str>, usize)>,
    extra: Vec<(&'static str, Cow<'static, str>)>,
}

impl FileHeaders {
    /// The prebuilt lines, each `name: value` and CRLF, names in lower case.
    pub(crate) fn block(&self) -> &str {
        self.block.as_ref().map_or("", |(text, used)| &text[..*used])
    }

    /// The fields besides the block.
    pub(crate) fn extra(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.extra.iter().map(|(name, value)| (*name, value.as_ref()))
    }

    /// All fields.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let prebuilt = self.block().split_terminator("\r\n").filter_map(|line| line.split_once(": "));
        prebuilt.chain(self.extra.iter().map(|(name, value)| (*name, value.as_ref())))
    }
}

#[derive(Debug)]
pub(crate) enum FileBody {
    Empty,
    /// A small file, or a part of one.
    Memory {
        bytes: Rc<[u8]>,
        range: Range<usize>,
    },
    File(FileSlice),
}

/// A part of an open file, read from its beginning to its end.
#[derive(Debug)]
pub(crate) struct FileSlice {
    file: File,
    offset: u64,
    remaining: u64,
}

impl FileSlice {
    #[cfg(test)]
    pub(crate) fn of(file: File, remaining: u64) -> Self {
        FileSlice { file, offset: 0, remaining }
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Counts the next `count` bytes as read.
    pub(crate) fn skip(&mut self, count: usize) {
        self.offset += count as u64;
        self.remaining = self.remaining.saturating_sub(count as u64);
    }

    /// Takes back the last `count` bytes that were read, so that they are read again.
    pub(crate) fn unread(&mut self, count: usize) {
        self.offset -= count as u64;
        self.remaining += count as u64;
    }

    /// Reads the next bytes; 64 to 128 KiB a turn is a good size. Zero at the end.
    ///
    /// # Errors
    /// Errors of the disk, and `UnexpectedEof` if the file is shorter now than its announced length: the connection must
    /// be closed then, so that the client sees that its copy is cut short.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        loop {
            match self.file.read_at(&mut buffer[..wanted], self.offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.skip(count);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl FileResponse {
    pub(super) fn bare(status: u16) -> Self {
        let content_length = (status != 204).then_some(0);
        FileResponse {
            status,
            headers: FileHeaders::default(),
            content_length,
            body: FileBody::Empty,
            above: None,
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.extra.push((name, value.into()));
        self
    }

    /// A response with the first `used` bytes of the variant's header lines.
    fn of(status: u16, variant: &Variant, used: usize) -> Self {
        let headers = FileHeaders { block: Some((variant.block.clone(), used)), extra: Vec::new() };
        FileResponse { headers, content_length: Some(variant.size()), ..FileResponse::bare(status) }
    }

    /// Validators and `vary` alone: a 304 does not repeat fields that the client has (RFC 9110, 15.4.5).
    pub(super) fn not_modified(variant: &Variant) -> Self {
        FileResponse { content_length: None, ..FileResponse::of(304, variant, variant.validators_length) }
    }

    pub(super) fn head(variant: &Variant) -> Self {
        FileResponse::of(200, variant, variant.block.len())
    }

    /// The whole file, or a part. A part that is the whole file also gets 206, by which players find out whether they may seek.
    pub(super) fn content(variant: &Variant, file: Option<File>, part: Option<Range<u64>>) -> Self {
        let size = variant.size();
        let Range { start, end } = part.clone().unwrap_or(0..size);
        let status = if part.is_some() { 206 } else { 200 };
        let mut response = FileResponse { status, ..FileResponse::head(variant) };
        response.content_length = Some(end - start);
        response.body = match (&variant.content, file) {
            _ if start == end => FileBody::Empty,
            // The file is small, so that the casts lose nothing.
            (Some(bytes), _) => {
                FileBody::Memory { bytes: bytes.clone(), range: start as usize..end as usize }
            }
            (None, Some(file)) => FileBody::File(FileSlice { file, offset: start, remaining: end - start }),
            (None, None) => return FileResponse::bare(500),
        };
        if part.is_some() {
            return response.with("content-range", format!("bytes {start}-{}/{size}", end - 1));
        }
        response
    }
}
