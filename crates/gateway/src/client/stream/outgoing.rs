//! A response as a stream takes it: the outbox's bytes, taken apart into head, payload and trailers.
//!
//! Bytes are handed to the connection only as far as the client gives a window for them, and as far as the connection has
//! written what it was given before: what the client does not take stays in the outbox, which may move it to a file.

use super::chunk::{Chunk, Flight, Turns};
use crate::client::buffers::{self, Buffer, SMALL};
use crate::client::outbox::{Bytes, Outbox, Written};
use crate::http1::body::{Decoder, Framing};
use crate::http1::response::ResponseHead;
use crate::http1::scan::HeadScan;
use crate::http2::head;
use crate::http2::metered::Meter;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

enum Sending {
    Head(SendResponse<Chunk>),
    Body(SendStream<Chunk>),
}

pub(super) struct ResponseFrames {
    sending: Sending,
    /// Whether the request was `HEAD`.
    pub(super) to_head: bool,
    /// Whether the request asks for another protocol: a 2xx then says that the stream carries it.
    pub(super) may_switch: bool,
    head: ResponseHead,
    body: Decoder<'static>,
    /// The lines of the trailers, as far as they came.
    trailers: Vec<u8>,
    has_ended: bool,
    /// Whether the last frame carries bytes of the body, so that the response is whole once they have left.
    ends_with_bytes: bool,
    /// Whether the response was aborted before its last frame could leave.
    is_cut: bool,
    /// Whether the stream was reset before it was aborted; `None` until it is checked.
    was_reset: Option<bool>,
    flight: Rc<Flight>,
    /// How many bytes on their way were already counted when they were taken.
    counted: u64,
    /// The connection's meter, to which each message that passes is reported.
    meter: Rc<Meter>,
    turns: Rc<Turns>,
}

impl ResponseFrames {
    pub(super) fn new(respond: SendResponse<Chunk>, meter: Rc<Meter>, turns: Rc<Turns>) -> Self {
        ResponseFrames {
            sending: Sending::Head(respond),
            to_head: false,
            may_switch: false,
            head: ResponseHead::default(),
            body: Decoder::new(Framing::None),
            trailers: Vec::new(),
            has_ended: false,
            ends_with_bytes: false,
            is_cut: false,
            was_reset: None,
            flight: Rc::default(),
            counted: 0,
            meter,
            turns,
        }
    }

    /// Whether all of a response was written.
    pub(super) fn has_all(&self) -> bool {
        let was_written = self.flight.pending() == 0 && !self.flight.has_lost();
        self.has_ended && !self.is_cut && was_written && matches!(self.sending, Sending::Body(_))
    }

    /// How many bytes of the response are on their way to the socket.
    pub(super) fn pending(&self) -> usize {
        self.flight.pending()
    }

    /// How many of these bytes count against the client. Bytes of a folder's file are bounded by turns instead.
    pub(super) fn held(&self) -> usize {
        if self.flight.takes_turns() { 0 } else { self.flight.pending() }
    }

    /// Ready once the client has reset the stream, or has left.
    pub(super) fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.sending {
            Sending::Head(respond) => respond.poll_reset(context).map(drop),
            Sending::Body(stream) => stream.poll_reset(context).map(drop),
        }
    }

    /// Whether the stream was reset, but not by [`abort`](Self::abort).
    pub(super) fn was_reset(&mut self) -> bool {
        if self.was_reset.is_none() {
            let is_gone = self.poll_gone(&mut Context::from_waker(Waker::noop())).is_ready();
            self.was_reset = Some(is_gone);
        }
        self.was_reset == Some(true)
    }

    /// Whether the stream carries another protocol.
    pub(super) fn is_switched(&self) -> bool {
        self.head.status == 101 && matches!(self.sending, Sending::Body(_))
    }

    /// Ends a stream that carries another protocol.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.has_ended { Ok(()) } else { self.send(Vec::new(), true) }
    }

    /// Sends as many of these bytes of another protocol as the window allows.
    pub(super) fn poll_send(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let count = ready!(self.poll_room(bytes.len(), context))?.min(bytes.len());
        self.send(bytes[..count].to_vec(), false)?;
        self.counted += count as u64;
        if count == bytes.len() {
            self.meter.account(|account| account.passed_message());
        }
        Poll::Ready(Ok(count))
    }

    /// Resets a response that cannot be finished, or that its client does not take. The connection drops the bytes that it was
    /// given, except for the frame that it is sending.
    pub(super) fn abort(&mut self) {
        if self.has_all() {
            return;
        }
        self.was_reset();
        match &mut self.sending {
            Sending::Head(respond) => respond.send_reset(Reason::INTERNAL_ERROR),
            Sending::Body(stream) => stream.send_reset(Reason::INTERNAL_ERROR),
        }
        self.is_cut |= !(self.has_ended && self.ends_with_bytes);
        self.has_ended = true;
    }

    /// After an abort: whether the client gets the whole response, once that is known. It does if the last frame was being
    /// sent.
    pub(super) fn poll_aborted(&self, context: &Context<'_>) -> Poll<bool> {
        if self.flight.pending() == 0 || self.is_cut || self.flight.has_lost() {
            return Poll::Ready(self.has_all());
        }
        self.flight.watch(context);
        Poll::Pending
    }

    pub(super) fn poll_write(
        &mut self,
        outbox: &mut Outbox,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Written>> {
        let before = self.flight.pending();
        let all = self.poll_hand_over(outbox, context)?;
        if all.is_ready() && self.flight.pending() > before {
            self.meter.account(|account| account.passed_message());
        }
        let bytes = self.flight.take_written();
        let known = bytes.min(self.counted);
        self.counted -= known;
        if bytes > 0 || (all.is_ready() && self.flight.pending() == 0) {
            return Poll::Ready(Ok(Written { body: bytes - known, bytes }));
        }
        self.flight.watch(context);
        ready!(self.poll_gone(context));
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }

    /// Hands over as many bytes as the window allows; ready when the outbox is empty.
    fn poll_hand_over(&mut self, outbox: &mut Outbox, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Sending::Head(respond) = &mut self.sending {
            let Some(text) = outbox.front()? else { return Poll::Ready(Ok(())) };
            let length = HeadScan::default().advance(text, text.len()).ok().flatten();
            let length = length.ok_or(io::ErrorKind::InvalidData)?;
            self.head.parse(&text[..length], self.to_head).map_err(|_| io::ErrorKind::InvalidData)?;
            let response = head::to_client(&text[..length], &self.head).ok_or(io::ErrorKind::InvalidData)?;
            outbox.advance(length);
            if self.head.is_interim() {
                respond.send_informational(response).map_err(io::Error::other)?;
                continue;
            }
            let is_switch = self.head.status == 101;
            if self.may_switch != is_switch && (is_switch || (200..300).contains(&self.head.status)) {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            self.body = Decoder::new(if is_switch { Framing::UntilClose } else { self.head.framing });
            self.has_ended = self.body.is_done();
            let stream = respond.send_response(response, self.has_ended).map_err(io::Error::other)?;
            self.sending = Sending::Body(stream);
            if outbox.goes_by_turns() {
                self.flight.take_turns(&self.turns);
            }
        }
        if self.has_ended {
            outbox.clear();
            return Poll::Ready(Ok(()));
        }
        self.poll_body(outbox, context)
    }

    fn poll_body(&mut self, outbox: &mut Outbox, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (mut gathered, mut room) = (Vec::new(), 0);
        while !self.body.is_done() {
            let ahead = usize::try_from(self.body.payload_ahead()).unwrap_or(usize::MAX);
            if ahead > 0 && room == 0 {
                self.send(std::mem::take(&mut gathered), false)?;
                let wanted = outbox.next_length();
                if wanted == 0 {
                    return Poll::Ready(Ok(()));
                }
                room = ready!(self.poll_room(wanted, context))?;
            }
            let Some(front) = outbox.front()? else {
                self.send(gathered, false)?;
                self.give_room_back();
                return Poll::Ready(Ok(()));
            };
            let count = if ahead == 0 { 1 } else { front.len().min(ahead).min(room) };
            let (is_all, is_trailer) = (count == front.len(), self.body.is_in_trailers());
            self.body.advance(&front[..count]).map_err(|_| io::ErrorKind::InvalidData)?;
            if ahead == 0 {
                if is_trailer {
                    self.trailers.extend_from_slice(&front[..count]);
                }
                outbox.advance(count);
                continue;
            }
            room -= count;
            // A whole piece keeps its memory, unless other bytes share its frame.
            if is_all && gathered.is_empty() && self.head.content_length.is_some() {
                if let Some((bytes, range)) = outbox.pop_front() {
                    self.send_chunk(bytes, range, self.body.is_done())?;
                }
            } else {
                gathered.extend_from_slice(&front[..count]);
                outbox.advance(count);
            }
        }
        if !self.has_ended {
            self.end(gathered)?;
        }
        outbox.clear();
        Poll::Ready(Ok(()))
    }

    /// How many bytes may be handed over.
    fn poll_room(&mut self, wanted: usize, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Sending::Body(stream) = &mut self.sending else { return Poll::Ready(Ok(0)) };
        // A stream for whose piece others wait takes turns even if few buffers are in use by then, so that the others are
        // woken.
        let in_turn = self.flight.takes_turns() && (!buffers::are_few() || self.flight.is_awaited());
        let most = if in_turn { SMALL } else { usize::MAX };
        loop {
            if stream.capacity() > 0 {
                // A stream without a window takes no turn, since the others would then wait for its client.
                if in_turn {
                    ready!(self.flight.poll_turn(context));
                }
                return Poll::Ready(Ok(stream.capacity().min(most)));
            }
            stream.reserve_capacity(wanted.min(most));
            if stream.capacity() == 0 {
                match ready!(stream.poll_capacity(context)) {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                    None => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                }
            }
        }
    }

    /// Gives the connection's window back to other streams.
    fn give_room_back(&mut self) {
        if let Sending::Body(stream) = &mut self.sending {
            stream.reserve_capacity(0);
        }
    }

    fn end(&mut self, gathered: Vec<u8>) -> io::Result<()> {
        // Most responses have only the last line of the section, which is empty.
        let trailers = head::read_trailers(&self.trailers).ok_or(io::ErrorKind::InvalidData)?;
        let has_trailers = !trailers.is_empty();
        self.send(gathered, !has_trailers)?;
        if let (true, Sending::Body(stream)) = (has_trailers, &mut self.sending) {
            stream.send_trailers(trailers).map_err(io::Error::other)?;
        }
        self.has_ended = true;
        Ok(())
    }

    fn send(&mut self, bytes: Vec<u8>, is_last: bool) -> io::Result<()> {
        if bytes.is_empty() && !is_last {
            return Ok(());
        }
        let length = bytes.len();
        self.send_chunk(Bytes::Pooled(Buffer::of(bytes)), 0..length, is_last)
    }

    fn send_chunk(&mut self, bytes: Bytes, range: std::ops::Range<usize>, is_last: bool) -> io::Result<()> {
        let Sending::Body(stream) = &mut self.sending else { return Ok(()) };
        self.has_ended |= is_last;
        self.ends_with_bytes |= is_last && !range.is_empty();
        stream.send_data(Chunk::new(bytes, range, &self.flight), is_last).map_err(io::Error::other)
    }
}
