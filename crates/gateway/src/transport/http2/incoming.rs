//! A response's frames as text for the rooms above: a head, and a body of the announced length, or in chunks with trailers.

use crate::http2::head;
use bytes::{Buf, Bytes};
use h2::RecvStream;
use h2::client::ResponseFuture;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

#[derive(Default)]
enum Awaiting {
    #[default]
    Nothing,
    Head(ResponseFuture),
    Body(RecvStream),
}

/// A response on its way.
#[derive(Default)]
pub(super) struct ResponseText {
    awaiting: Awaiting,
    to_head: bool,
    in_chunks: bool,
    /// Text that is not read yet, then a chunk's data behind its line, and how much of the server's window the data takes.
    text: Bytes,
    data: Bytes,
    owed: usize,
    has_begun: bool,
}

impl ResponseText {
    /// The response to a request; `to_head`: its method is `HEAD`.
    pub(super) fn awaited(response: ResponseFuture, to_head: bool) -> Self {
        ResponseText { awaiting: Awaiting::Head(response), to_head, ..ResponseText::default() }
    }

    /// The answer to a request that HTTP/2 cannot express. The client has caused it, and not the server.
    pub(super) fn impossible() -> Self {
        let text = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        ResponseText { text: Bytes::from_static(text.as_bytes()), ..ResponseText::default() }
    }

    /// Whether any byte of the response has come.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Reads once; no bytes mean the end.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), h2::Error>> {
        let before = into.remaining();
        loop {
            self.give(into);
            if !self.text.is_empty() || !self.data.is_empty() || into.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            match self.poll_more(context) {
                Poll::Ready(Ok(true)) => {}
                // What was put there is reported first; the rest is asked for again.
                _ if into.remaining() < before => return Poll::Ready(Ok(())),
                Poll::Ready(end) => return Poll::Ready(end.map(drop)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Gives as much of the text and data as there is room for.
    fn give(&mut self, into: &mut ReadBuf<'_>) {
        for piece in [&mut self.text, &mut self.data] {
            let count = piece.len().min(into.remaining());
            into.put_slice(&piece[..count]);
            piece.advance(count);
            if !piece.is_empty() {
                return;
            }
        }
        if self.owed > 0 {
            if let Awaiting::Body(stream) = &mut self.awaiting {
                // If the stream is gone, its window is not needed any more.
                let _ = stream.flow_control().release_capacity(self.owed);
            }
            self.owed = 0;
            if self.in_chunks {
                self.text = Bytes::from_static(b"\r\n");
                self.give(into);
            }
        }
    }

    /// Waits for the next frame. False at the end of the response.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, h2::Error>> {
        match &mut self.awaiting {
            Awaiting::Nothing => Poll::Ready(Ok(false)),
            Awaiting::Head(response) => {
                if let Poll::Ready(Some(interim)) = response.poll_informational(context) {
                    let (parts, ()) = interim?.into_parts();
                    self.has_begun = true;
                    self.text = head::incoming(&parts, true, false).0.into();
                    return Poll::Ready(Ok(true));
                }
                let (parts, stream) = ready!(Pin::new(response).poll(context))?.into_parts();
                self.has_begun = true;
                let (text, in_chunks) = head::incoming(&parts, stream.is_end_stream(), self.to_head);
                (self.text, self.in_chunks) = (text.into(), in_chunks);
                self.awaiting = Awaiting::Body(stream);
                Poll::Ready(Ok(true))
            }
            Awaiting::Body(stream) => match ready!(stream.poll_data(context)).transpose()? {
                Some(data) if data.is_empty() => Poll::Ready(Ok(true)),
                Some(data) => {
                    self.owed = data.len();
                    if self.in_chunks {
                        self.text = format!("{:x}\r\n", data.len()).into();
                    }
                    self.data = data;
                    Poll::Ready(Ok(true))
                }
                None => {
                    let trailers = ready!(stream.poll_trailers(context))?;
                    self.awaiting = Awaiting::Nothing;
                    if !self.in_chunks {
                        return Poll::Ready(Ok(false));
                    }
                    let mut last = b"0\r\n".to_vec();
                    head::write_trailers(&trailers.unwrap_or_default(), &mut last);
                    last.extend_from_slice(b"\r\n");
                    self.text = last.into();
                    Poll::Ready(Ok(true))
                }
            },
        }
    }
}
