//! The framing of bodies, decoded incrementally and passed through unchanged.
//!
//! A decoder looks at each byte once, and says how many bytes belong to the body and which of them are payload. The proxy
//! forwards the framed bytes unchanged after they were checked here, so that the next server reads what was checked.
//!
//! Chunked framing is read strictly: a size is 1 to 15 hexadecimal digits, an extension must begin with `;` and hold
//! no control characters, a chunk's line has at most [`MAX_CHUNK_LINE`] bytes, every line ends in CR LF, trailers obey
//! the rules of fields and do not name a framing field. Each laxer rule has let requests be smuggled somewhere.

use super::Refusal;
use super::field::{FieldKind, is_alike, kind_of};
use std::ops::Range;

/// The longest line of a chunk's size and extensions, since extensions are of no use but to attackers.
pub const MAX_CHUNK_LINE: u32 = 256;
/// The most bytes of trailers.
pub const MAX_TRAILERS: u32 = 8192;
/// The length of the empty line behind the trailers.
const LAST_LINE: u32 = 2;

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    #[default]
    None,
    /// After this many bytes.
    Length(u64),
    Chunked,
    /// Up to the end of the connection; responses only.
    UntilClose,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyStep {
    /// Bytes of the input that belong to the body, framing included.
    pub taken: usize,
    /// The payload among them.
    pub payload: Range<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes of the input that belong to the body, framing included.
    pub bytes: usize,
    /// How many of them are payload.
    pub payload: u64,
}

#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    state: DecoderState,
    /// The names of fields that no trailer may have.
    reserved: Reserved<'a>,
}

/// Fields that the gateway itself sets or drops.
#[derive(Clone, Copy, Debug, Default)]
struct Reserved<'a> {
    fields: &'a [(String, String)],
    dropped: &'a [String],
    own: Option<&'a str>,
    of_a_request: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum DecoderState {
    Length(u64),
    UntilClose,
    Size { size: u64, digits: u32 },
    Extension { size: u64, length: u32 },
    SizeLf { size: u64 },
    Data(u64),
    DataCr,
    DataLf,
    Trailers(Trailers),
    Done { has_trailers: bool },
}

impl<'a> Decoder<'a> {
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => DecoderState::Done { has_trailers: false },
            Framing::Length(length) => DecoderState::Length(length),
            Framing::Chunked => DecoderState::Size { size: 0, digits: 0 },
            Framing::UntilClose => DecoderState::UntilClose,
        };
        Decoder { state, reserved: Reserved::default() }
    }

    /// Decodes a request's body. Extensions of chunks are refused: no client needs them, and servers differ in where they end.
    /// Trailers with the name of one of `fields` are refused too: a server that merges trailers into the head would take them
    /// for these fields.
    pub fn of_request(self, fields: &'a [(String, String)]) -> Self {
        Decoder { reserved: Reserved { fields, of_a_request: true, ..self.reserved }, ..self }
    }

    /// Refuses trailers of these names, because the head's fields of these names are dropped or replaced. `own` is the
    /// gateway's own field, which is written only for clients with a certificate.
    pub fn without(self, dropped: &'a [String], own: Option<&'a str>) -> Self {
        Decoder { reserved: Reserved { dropped, own, ..self.reserved }, ..self }
    }

    /// Whether the body's last byte was seen.
    pub fn is_done(&self) -> bool {
        matches!(self.state, DecoderState::Done { .. })
    }

    /// Whether a trailer came.
    pub fn has_trailers(&self) -> bool {
        self.state == DecoderState::Done { has_trailers: true }
    }

    /// Whether the end of the connection is a proper end of this body.
    pub fn may_end(&self) -> bool {
        matches!(self.state, DecoderState::Done { .. } | DecoderState::UntilClose)
    }

    /// How many bytes of payload come next, before any byte of framing.
    pub fn payload_ahead(&self) -> u64 {
        match self.state {
            DecoderState::Length(left) | DecoderState::Data(left) => left,
            DecoderState::UntilClose => u64::MAX,
            _ => 0,
        }
    }

    /// Whether the next byte is one of the trailers, their last line included.
    pub fn is_in_trailers(&self) -> bool {
        matches!(self.state, DecoderState::Trailers(_))
    }

    /// Takes as much of `input` as belongs to the body.
    pub fn advance(&mut self, input: &[u8]) -> Result<Taken, Refusal> {
        self.advance_while(input, |_, _| true)
    }

    /// Takes bytes as `advance` does, but only up to the first trailer. If there is no trailer, the last line is taken too.
    pub(crate) fn advance_to_trailers(&mut self, input: &[u8]) -> Result<Taken, Refusal> {
        self.advance_while(input, |own, next| match &own.state {
            DecoderState::Trailers(trailers) => trailers.total == 0 && next == b'\r',
            _ => true,
        })
    }

    fn advance_while(&mut self, input: &[u8], goes_on: impl Fn(&Self, u8) -> bool) -> Result<Taken, Refusal> {
        let mut taken = Taken::default();
        while taken.bytes < input.len() && !self.is_done() && goes_on(self, input[taken.bytes]) {
            let step = self.step(&input[taken.bytes..])?;
            taken.bytes += step.taken;
            taken.payload += step.payload.len() as u64;
        }
        Ok(taken)
    }

    /// Takes bytes up to the end of the next piece of payload, or up to the trailers: at least one byte, unless the input is
    /// empty or the body has ended.
    pub fn step(&mut self, input: &[u8]) -> Result<BodyStep, Refusal> {
        let mut at = 0;
        while at < input.len() {
            match &mut self.state {
                DecoderState::Done { .. } => break,
                DecoderState::Trailers(trailers) if trailers.total == 0 && at > 0 => break,
                DecoderState::UntilClose => {
                    return Ok(BodyStep { taken: input.len(), payload: at..input.len() });
                }
                DecoderState::Length(left) | DecoderState::Data(left) => {
                    let end = (at as u64).saturating_add(*left).min(input.len() as u64) as usize;
                    *left -= (end - at) as u64;
                    match self.state {
                        DecoderState::Length(0) => self.state = DecoderState::Done { has_trailers: false },
                        DecoderState::Data(0) => self.state = DecoderState::DataCr,
                        _ => {}
                    }
                    return Ok(BodyStep { taken: end, payload: at..end });
                }
                _ => {
                    self.framing_byte(input[at])?;
                    at += 1;
                }
            }
        }
        Ok(BodyStep { taken: at, payload: at..at })
    }

    fn framing_byte(&mut self, byte: u8) -> Result<(), Refusal> {
        match &mut self.state {
            DecoderState::Size { size, digits } => match (byte as char).to_digit(16) {
                Some(_) if *digits == 15 => return Err(Refusal::bad("a chunk size is too large")),
                Some(digit) => {
                    *size = *size * 16 + u64::from(digit);
                    *digits += 1;
                }
                None if *digits == 0 => return Err(Refusal::bad("a chunk has no size")),
                None if byte == b'\r' => self.state = DecoderState::SizeLf { size: *size },
                None if byte == b';' && self.reserved.of_a_request => {
                    return Err(Refusal::bad("a chunk has an extension"));
                }
                None if byte == b';' => {
                    self.state = DecoderState::Extension { size: *size, length: *digits + 1 }
                }
                None => return Err(Refusal::bad("a chunk size is not hexadecimal")),
            },
            DecoderState::Extension { size, length } => {
                *length += 1;
                match byte {
                    b'\r' => self.state = DecoderState::SizeLf { size: *size },
                    _ if *length > MAX_CHUNK_LINE => return Err(Refusal::bad("a chunk's line is too long")),
                    b'\t' | b' '..=b'~' | 0x80.. => {}
                    _ => return Err(Refusal::bad("a chunk's extension has a control character")),
                }
            }
            DecoderState::SizeLf { size } => {
                expect(byte, b'\n')?;
                self.state = if *size == 0 {
                    DecoderState::Trailers(Trailers::default())
                } else {
                    DecoderState::Data(*size)
                };
            }
            DecoderState::DataCr => {
                expect(byte, b'\r')?;
                self.state = DecoderState::DataLf;
            }
            DecoderState::DataLf => {
                expect(byte, b'\n')?;
                self.state = DecoderState::Size { size: 0, digits: 0 };
            }
            DecoderState::Trailers(trailers) => {
                if trailers.byte(byte, self.reserved)? {
                    self.state = DecoderState::Done { has_trailers: trailers.total > LAST_LINE };
                }
            }
            DecoderState::Length(_)
            | DecoderState::UntilClose
            | DecoderState::Data(_)
            | DecoderState::Done { .. } => {}
        }
        Ok(())
    }
}

fn expect(byte: u8, wanted: u8) -> Result<(), Refusal> {
    if byte == wanted { Ok(()) } else { Err(Refusal::bad("a chunk does not end in CR LF")) }
}

/// The trailer section, byte by byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Trailers {
    place: TrailerPlace,
    total: u32,
    name: [u8; 24],
    name_length: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TrailerPlace {
    #[default]
    LineStart,
    Name,
    Value,
    LineLf,
    LastLf,
}

impl Trailers {
    /// True when the empty line is complete.
    fn byte(&mut self, byte: u8, reserved: Reserved<'_>) -> Result<bool, Refusal> {
        self.total += 1;
        if self.total > MAX_TRAILERS {
            return Err(Refusal::with(431, "the trailers are too large"));
        }
        match (self.place, byte) {
            (TrailerPlace::LineStart, b'\r') => self.place = TrailerPlace::LastLf,
            (TrailerPlace::LastLf, b'\n') => return Ok(true),
            (TrailerPlace::LineLf, b'\n') => self.place = TrailerPlace::LineStart,
            (TrailerPlace::LineStart, _) if is_token(byte) => {
                self.place = TrailerPlace::Name;
                self.name[0] = byte;
                self.name_length = 1;
            }
            (TrailerPlace::Name, b':') => {
                self.check_name(reserved)?;
                self.place = TrailerPlace::Value;
            }
            (TrailerPlace::Name, _) if is_token(byte) => {
                if let Some(place) = self.name.get_mut(self.name_length) {
                    *place = byte;
                }
                self.name_length += 1;
            }
            (TrailerPlace::Value, b'\r') => self.place = TrailerPlace::LineLf,
            (TrailerPlace::Value, b'\t' | b' '..=b'~' | 0x80..) => {}
            _ => return Err(Refusal::bad("a trailer is malformed")),
        }
        Ok(false)
    }

    /// A server may merge trailers into the head, so no trailer may change framing or routing.
    fn check_name(&self, reserved: Reserved<'_>) -> Result<(), Refusal> {
        // A longer name is compared by its beginning and its length, which may refuse a harmless name but never passes a
        // reserved one.
        let known = self.name_length.min(self.name.len());
        let fields = reserved.fields.iter().map(|(name, _)| name).chain(reserved.dropped).map(String::as_str);
        let is_reserved = fields.chain(reserved.own).any(|name| {
            name.len() == self.name_length && is_alike(&name.as_bytes()[..known], &self.name[..known])
        });
        // A longer name is recognized by its beginning, as all are that begin with `x-forwarded-`.
        let name = &self.name[..known];
        let is_known = match kind_of(name) {
            FieldKind::Other | FieldKind::LoadReport => false,
            FieldKind::SetByProxy => reserved.of_a_request,
            _ => true,
        };
        if is_reserved || is_known || is_of_the_head(name) {
            return Err(Refusal::bad("a trailer names a field that may not be a trailer"));
        }
        Ok(())
    }
}

/// Whether a field states who asks, for what, or how a body is to be read (RFC 9110 6.5.1): a server that merges trailers into
/// the head would take it for a field that was seen here when the request was classified.
fn is_of_the_head(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 14] = [
        b"authorization",
        b"cache-control",
        b"content-encoding",
        b"content-range",
        b"content-type",
        b"cookie",
        b"max-forwards",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"range",
        b"set-cookie",
        b"via",
        b"www-authenticate",
        b"x-real-ip",
    ];
    NAMES.iter().any(|known| is_alike(known, name))
        || name.get(..3).is_some_and(|start| is_alike(start, b"if-"))
}

/// Characters of a token, RFC 9110 5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
