//! The request's half of an exchange: from the client's inbox to the upstream's socket.
//!
//! The head was written anew. The body's bytes go from the client's buffer to the socket uncopied, each after the decoder has
//! checked it. The head and the first bytes of the body share one write. A body that was too long for the inbox comes from its
//! file first, then from the inbox. A body that came whole in chunks is sent without them, and the head states its length.

use crate::client::early_body::{EarlyBody, StoredBody};
use crate::client::inbox::Inbox;
use crate::http1::Refusal;
use crate::http1::body::{Decoder, Taken};
use crate::transport::socket::Socket;
use std::io::IoSlice;
use std::task::{Context, Poll, ready};

/// The answer to a request whose body is too long.
pub(crate) const BODY_TOO_LARGE: Refusal = Refusal::with(413, "the request body is too large");

#[derive(Debug)]
pub(crate) struct RequestSide<'a> {
    head: &'a [u8],
    head_sent: usize,
    body: Decoder<'a>,
    /// The beginning of the body, if it is in a file.
    stored: Option<Box<StoredBody>>,
    /// Whether the client has sent the whole body, to the file and the inbox.
    is_whole: bool,
    /// Whether the body is sent without the chunks in which it came.
    is_unwrapped: bool,
    /// How many bytes at the front of the file's window, or of the client's inbox, are checked and not yet sent.
    ready: usize,
    total: u64,
    limit: u64,
    /// Whether the client waits for `100 Continue`, and no byte of its body has come.
    pub awaits_continue: bool,
    /// Whether the request may be sent twice without harm ([`retry`](super::retry)).
    pub is_repeatable: bool,
    /// Whether the request has no body.
    pub is_bodiless: bool,
    touched: bool,
    /// Whether the upstream takes no more bytes; its response may still come.
    refused: bool,
}

impl<'a> RequestSide<'a> {
    pub(crate) fn new(head: &'a [u8], body: Decoder<'a>, limit: u64) -> Self {
        let is_bodiless = body.is_done();
        RequestSide {
            head,
            head_sent: 0,
            body,
            stored: None,
            is_whole: false,
            is_unwrapped: false,
            ready: 0,
            total: 0,
            limit,
            awaits_continue: false,
            is_repeatable: false,
            is_bodiless,
            touched: false,
            refused: false,
        }
    }

    /// Takes over the part of the body that was read before the request arrived.
    pub(crate) fn begin_with(&mut self, early: EarlyBody) {
        (self.is_whole, self.is_unwrapped) = (early.is_whole, early.is_to_be_unwrapped);
        self.stored = early.stored.map(|store| Box::new(StoredBody::new(store)));
    }

    /// Replaces the head, after the former one found nothing. Only for a request without a body.
    pub(crate) fn replace_head(&mut self, head: &'a [u8]) {
        self.head = head;
        self.rewind();
    }

    /// Begins the request again, on another connection.
    pub(crate) fn rewind(&mut self) {
        (self.head_sent, self.refused, self.touched) = (0, false, false);
    }

    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// Whether the client has sent all of the request.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_whole || self.body.is_done()
    }

    /// Whether the upstream has all of the request.
    pub(crate) fn is_sent(&self) -> bool {
        self.head_sent == self.head.len() && self.ready == 0 && self.body.is_done()
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether all bytes that came were sent on, and more must come from the client.
    pub(crate) fn is_starved(&self) -> bool {
        self.head_sent == self.head.len() && self.ready == 0 && !self.body.is_done() && self.stored.is_none()
    }

    /// Checks the body's bytes that came into the inbox. They are sent after those of the file.
    pub(crate) fn check(&mut self, inbox: &mut Inbox) -> Result<(), Refusal> {
        if self.stored.is_some() { Ok(()) } else { self.take(inbox) }
    }

    fn take(&mut self, inbox: &mut Inbox) -> Result<(), Refusal> {
        if self.body.is_done() {
            return Ok(());
        }
        let taken = if self.is_unwrapped {
            let bytes = inbox.unwrap(self.ready, &mut self.body)?;
            Taken { bytes, payload: bytes as u64 }
        } else {
            self.body.advance(&inbox.bytes()[self.ready..])?
        };
        self.awaits_continue &= taken.bytes == 0;
        self.ready += taken.bytes;
        self.total += taken.payload;
        if self.total > self.limit {
            return Err(BODY_TOO_LARGE);
        }
        Ok(())
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// Makes the file's next bytes ready once the earlier ones are sent, and after the file's last byte those of the inbox.
    pub(crate) fn refill(&mut self, inbox: &mut Inbox) -> Result<(), Refusal> {
        // The bytes of a read may be chunk lines alone.
        while self.ready == 0
            && let Some(mut stored) = self.stored.take()
        {
            match stored.refill() {
                Ok(true) => {
                    let taken = self.take(&mut stored.window);
                    self.stored = Some(stored);
                    taken?;
                }
                Ok(false) => self.take(inbox)?,
                Err(_) => return Err(Refusal::with(503, "the stored request body cannot be read")),
            }
        }
        Ok(())
    }

    /// Writes once. `Pending` even if there is nothing to write; a failed write marks the request as refused.
    pub(crate) fn poll_send(
        &mut self,
        inbox: &mut Inbox,
        io: &mut Socket,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        if self.refused || (self.head_sent == self.head.len() && self.ready == 0) {
            return Poll::Pending;
        }
        let inbox = self.stored.as_mut().map_or(inbox, |stored| &mut stored.window);
        let head = &self.head[self.head_sent..];
        let body = &inbox.bytes()[..self.ready];
        let sent = match (head, body) {
            ([], bytes) | (bytes, []) => io.poll_send(context, bytes),
            _ => io.poll_send_vectored(context, &[IoSlice::new(head), IoSlice::new(body)]),
        };
        self.touched |= io.has_sent_part();
        match ready!(sent) {
            Ok(count) if count > 0 => {
                self.touched = true;
                let of_head = count.min(head.len());
                self.head_sent += of_head;
                self.ready -= count - of_head;
                inbox.consume(count - of_head);
            }
            Ok(_) | Err(_) => self.refused = true,
        }
        Poll::Ready(())
    }
}

/// The heads under which one request may be sent to an upstream: that of its level and, where the level falls back, those
/// of the levels above it, one behind the other in a buffer that the connection keeps. All are written before the first is
/// sent, since the client's own head is gone by then.
#[derive(Debug, Default)]
pub(crate) struct HeaderVariants {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl HeaderVariants {
    /// Replaces the heads by the one that `write` appends.
    pub(crate) fn begin(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.clear();
        self.ends.clear();
        self.then(write);
    }

    /// Adds the head that is sent if the one before it finds nothing.
    pub(crate) fn then(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The `number`th head, from 0.
    pub(crate) fn get(&self, number: usize) -> Option<&[u8]> {
        let start = number.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        self.bytes.get(*start..*self.ends.get(number)?)
    }

    /// How much memory the heads hold.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Frees memory beyond `most` bytes, which a large request left.
    pub(crate) fn shrink(&mut self, most: usize) {
        if self.bytes.capacity() > most {
            *self = HeaderVariants::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::body::Framing;
    use crate::transport::plain::DetachedSocket;
    use crate::transport::tls::client::server_name;
    use crate::transport::tls::session::TlsSocket;
    use rustls::crypto::aws_lc_rs;
    use rustls::{ClientConfig, RootCertStore};
    use std::future::poll_fn;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::task::Waker;

    /// The server may have read the request, so that it must not be sent again on another connection.
    #[test]
    fn a_request_is_touched_once_the_system_has_a_part_of_what_tls_holds() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let (own, _server) = UnixStream::pair().unwrap();
            own.set_nonblocking(true).unwrap();
            // The socket's buffer is smaller than the first bytes, which are many.
            rustix::net::sockopt::set_socket_send_buffer_size(&own, 1).unwrap();
            let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
            let config = config.with_safe_default_protocol_versions().unwrap();
            let mut config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
            config.alpn_protocols = vec![vec![b'x'; 200]; 100];
            let io = DetachedSocket::Unix(own).attach().unwrap();
            let io = TlsSocket::connect(io, Arc::new(config), server_name("a.test").unwrap()).unwrap();
            let (mut io, mut inbox) = (Socket::Tls(io), Inbox::default());
            let mut request = RequestSide::new(b"POST / HTTP/1.1\r\n\r\n", Decoder::new(Framing::None), 0);
            let mut context = Context::from_waker(Waker::noop());
            // The selector has not been asked yet, so that no write is tried.
            assert!(request.poll_send(&mut inbox, &mut io, &mut context).is_pending());
            assert!(!request.is_touched());
            poll_fn(|context| io.poll_write_ready(context)).await.unwrap();
            assert!(request.poll_send(&mut inbox, &mut io, &mut context).is_pending());
            assert!(request.is_touched());
        });
    }

    #[test]
    fn each_is_found_by_its_number() {
        let mut variants = HeaderVariants::default();
        for more in [&["b", "cc"][..], &[]] {
            variants.begin(|out| out.extend(b"aaa"));
            more.iter().for_each(|head| variants.then(|out| out.extend(head.bytes())));
            assert_eq!(variants.get(0), Some(&b"aaa"[..]));
            for (number, head) in more.iter().enumerate() {
                assert_eq!(variants.get(number + 1), Some(head.as_bytes()));
            }
            assert_eq!(variants.get(more.len() + 1), None);
        }
    }
}
