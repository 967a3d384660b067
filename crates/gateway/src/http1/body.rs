//! The framing of bodies, decoded incrementally and passed through as it stands.
//!
//! A decoder looks at each byte once and says how many belong to the body, and which are payload. The proxy forwards
//! the framed bytes unchanged after they were validated here, so the next server reads what was checked.
//!
//! Chunked framing is read strictly: a size is 1 to 15 hexadecimal digits, an extension must begin with `;` and hold
//! no control characters, a chunk's line has at most [`MAX_CHUNK_LINE`] bytes, every line ends in CR LF, trailers obey
//! the rules of fields and do not name a framing field. Each laxity here has smuggled a request somewhere.

use super::Refusal;
use super::field::{Kind, is_alike, kind_of};
use std::ops::Range;

/// The longest line of a chunk's size and extensions: extensions have no use but to tire the reader.
pub const MAX_CHUNK_LINE: u32 = 256;
/// The most bytes of trailers.
pub const MAX_TRAILERS: u32 = 8192;

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// This many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
    /// Up to the end of the connection; responses only.
    UntilClose,
}

/// What one step of a decoder took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that belong to the body, framing included.
    pub taken: usize,
    /// The payload among them.
    pub payload: Range<usize>,
}

/// What a run of steps took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes of the input that belong to the body, framing included.
    pub bytes: usize,
    /// How many of them are payload.
    pub payload: u64,
}

/// Reads a body's framing.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    state: State,
    /// Fields that no trailer may name.
    reserved: &'a [(String, String)],
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Length(u64),
    UntilClose,
    Size { size: u64, digits: u32 },
    Extension { size: u64, length: u32 },
    SizeLf { size: u64 },
    Data(u64),
    DataCr,
    DataLf,
    Trailers(Trailers),
    Done,
}

impl<'a> Decoder<'a> {
    /// A decoder at the beginning of a body.
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size { size: 0, digits: 0 },
            Framing::UntilClose => State::UntilClose,
        };
        Decoder { state, reserved: &[] }
    }

    /// Refuses trailers named like one of `fields`, each a name and a value: whoever merges trailers into the head
    /// would take them for ours.
    pub fn reserving(self, fields: &'a [(String, String)]) -> Self {
        Decoder { reserved: fields, ..self }
    }

    /// Whether the body's last byte was seen.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the end of the connection is a proper end of this body.
    pub fn may_end(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// Takes as much of `input` as belongs to the body.
    pub fn advance(&mut self, input: &[u8]) -> Result<Taken, Refusal> {
        let mut taken = Taken::default();
        while taken.bytes < input.len() && !self.is_done() {
            let step = self.step(&input[taken.bytes..])?;
            taken.bytes += step.taken;
            taken.payload += step.payload.len() as u64;
        }
        Ok(taken)
    }

    /// Takes bytes up to the end of the next piece of payload. Takes at least one byte of a non-empty input unless
    /// the body is done.
    pub fn step(&mut self, input: &[u8]) -> Result<Step, Refusal> {
        let mut at = 0;
        while at < input.len() {
            match &mut self.state {
                State::Done => break,
                State::UntilClose => return Ok(Step { taken: input.len(), payload: at..input.len() }),
                State::Length(left) => {
                    let end = (at as u64).saturating_add(*left).min(input.len() as u64) as usize;
                    *left -= (end - at) as u64;
                    if *left == 0 {
                        self.state = State::Done;
                    }
                    return Ok(Step { taken: end, payload: at..end });
                }
                State::Data(left) => {
                    let end = (at as u64).saturating_add(*left).min(input.len() as u64) as usize;
                    *left -= (end - at) as u64;
                    if *left == 0 {
                        self.state = State::DataCr;
                    }
                    return Ok(Step { taken: end, payload: at..end });
                }
                _ => {
                    self.framing_byte(input[at])?;
                    at += 1;
                }
            }
        }
        Ok(Step { taken: at, payload: at..at })
    }

    fn framing_byte(&mut self, byte: u8) -> Result<(), Refusal> {
        match &mut self.state {
            State::Size { size, digits } => match (byte as char).to_digit(16) {
                Some(_) if *digits == 15 => return Err(Refusal::bad("a chunk size is too large")),
                Some(digit) => {
                    *size = *size * 16 + u64::from(digit);
                    *digits += 1;
                }
                None if *digits == 0 => return Err(Refusal::bad("a chunk has no size")),
                None if byte == b'\r' => self.state = State::SizeLf { size: *size },
                None if byte == b';' => self.state = State::Extension { size: *size, length: *digits + 1 },
                None => return Err(Refusal::bad("a chunk size is not hexadecimal")),
            },
            State::Extension { size, length } => {
                *length += 1;
                match byte {
                    b'\r' => self.state = State::SizeLf { size: *size },
                    _ if *length > MAX_CHUNK_LINE => return Err(Refusal::bad("a chunk's line is too long")),
                    b'\t' | b' '..=b'~' | 0x80.. => {}
                    _ => return Err(Refusal::bad("a chunk's extension has a control character")),
                }
            }
            State::SizeLf { size } => {
                expect(byte, b'\n')?;
                self.state =
                    if *size == 0 { State::Trailers(Trailers::default()) } else { State::Data(*size) };
            }
            State::DataCr => {
                expect(byte, b'\r')?;
                self.state = State::DataLf;
            }
            State::DataLf => {
                expect(byte, b'\n')?;
                self.state = State::Size { size: 0, digits: 0 };
            }
            State::Trailers(trailers) => {
                if trailers.byte(byte, self.reserved)? {
                    self.state = State::Done;
                }
            }
            State::Length(_) | State::UntilClose | State::Data(_) | State::Done => {}
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
    place: Place,
    total: u32,
    name: [u8; 24],
    name_length: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    LineStart,
    Name,
    Value,
    LineLf,
    LastLf,
}

impl Trailers {
    /// True when the empty line is complete.
    fn byte(&mut self, byte: u8, reserved: &[(String, String)]) -> Result<bool, Refusal> {
        self.total += 1;
        if self.total > MAX_TRAILERS {
            return Err(Refusal::with(431, "the trailers are too large"));
        }
        match (self.place, byte) {
            (Place::LineStart, b'\r') => self.place = Place::LastLf,
            (Place::LastLf, b'\n') => return Ok(true),
            (Place::LineLf, b'\n') => self.place = Place::LineStart,
            (Place::LineStart, _) if is_token(byte) => {
                self.place = Place::Name;
                self.name[0] = byte;
                self.name_length = 1;
            }
            (Place::Name, b':') => {
                self.check_name(reserved)?;
                self.place = Place::Value;
            }
            (Place::Name, _) if is_token(byte) => {
                if let Some(place) = self.name.get_mut(self.name_length) {
                    *place = byte;
                }
                self.name_length += 1;
            }
            (Place::Value, b'\r') => self.place = Place::LineLf,
            (Place::Value, b'\t' | b' '..=b'~' | 0x80..) => {}
            _ => return Err(Refusal::bad("a trailer is malformed")),
        }
        Ok(false)
    }

    /// A recipient may merge trailers into the head: none may then change framing or routing.
    fn check_name(&self, reserved: &[(String, String)]) -> Result<(), Refusal> {
        // Of a longer name the beginning and the length are compared: that refuses too much, never too little.
        let known = self.name_length.min(self.name.len());
        let is_reserved = reserved.iter().any(|(name, _)| {
            name.len() == self.name_length && is_alike(&name.as_bytes()[..known], &self.name[..known])
        });
        match self.name.get(..self.name_length).map(kind_of) {
            None | Some(Kind::Other | Kind::LoadReport) if !is_reserved => Ok(()),
            _ => Err(Refusal::bad("a trailer names a field that may not be a trailer")),
        }
    }
}

/// Characters of a token, RFC 9110 5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
