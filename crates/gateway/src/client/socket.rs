//! A client, with the bytes on their way from it and to it.

use super::buffers::{self, SMALL};
use super::inbox::Inbox;
use super::outbox::{Outbox, Written};
use super::slots::Slot;
use super::wire::Wire;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

pub(crate) struct Client<W> {
    pub io: W,
    pub inbox: Inbox,
    pub outbox: Outbox,
    pub slot: Rc<Slot>,
    /// The bytes that its connection holds besides inbox, outbox and wire.
    pub besides: usize,
}

impl<W: Wire> Client<W> {
    /// How much memory its connection holds.
    pub(crate) fn held(&self) -> usize {
        self.inbox.held() + self.outbox.held() + self.io.held() + self.besides
    }

    /// How much memory the connection holds while its request waits. If many requests wait, the buffer around its bytes is
    /// given back.
    pub(crate) fn held_while_waiting(&self) -> usize {
        self.inbox.bytes().len() + self.io.held() + self.besides
    }

    /// Reads once. Zero means that the client has left.
    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>, large: bool) -> Poll<io::Result<usize>> {
        self.io.poll_fill(&mut self.inbox, context, large)
    }

    /// Writes once; ready with nothing if the client has all.
    pub(crate) fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Written>> {
        self.io.poll_write(&mut self.outbox, context)
    }

    /// Whether the client has taken all bytes meant for it.
    pub(crate) fn has_all(&self) -> bool {
        self.outbox.is_empty() && self.io.is_written()
    }

    /// Gives back as much memory as possible for a wait.
    pub(crate) fn pack(&mut self) {
        self.inbox.pack();
        self.outbox.pack();
    }

    /// Drops bytes of a folder's file that can be read again. True if the connection then holds nothing else: a socket may keep
    /// the bytes that TLS has encrypted, which is one small buffer; a stream may keep nothing, since there may be many streams,
    /// and turns bound what those of a connection have on their way.
    pub(crate) fn put_back(&mut self) -> bool {
        let kept = if W::IN_ORDER { SMALL } else { 0 };
        let has_none = self.outbox.is_empty() || self.outbox.put_back();
        has_none && self.inbox.is_empty() && self.io.held() <= kept
    }

    /// Ready when the waiting request's verdict has come, when the client has left, or when its deadline has passed.
    /// Where many requests wait, each gives its read buffer back.
    pub(crate) fn poll_verdict(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.slot.has_verdict() || self.slot.expired() {
            return Poll::Ready(());
        }
        let left = self.poll_left(context);
        if left.is_pending() && buffers::are_many() {
            self.inbox.pack();
        }
        left
    }

    /// Ready when the client has left. Bytes that it sends meanwhile are kept, up to a buffer.
    pub(crate) fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.inbox.has_room() {
            match self.poll_fill(context, false) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
        self.io.poll_gone(context)
    }
}
