//! `/live`: the status each second, as server-sent events, for as long as somebody watches.
//!
//! One task makes a snapshot and gives all viewers the same bytes; it begins with the first viewer and ends after the last,
//! so that nobody pays for a page that is closed. There are at most [`MOST_VIEWERS`]. A viewer that reads too slowly misses
//! snapshots, which cost nothing to miss since each is whole; one that has read nothing for [`PATIENCE`] snapshots is dropped.
//!
//! A snapshot is a message without a name. What happened is a message `journal`: all of it at first, then what is new.

use super::document::StatusDocument;
use super::operator::Desk;
use hyper::Response;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::task::spawn_local;
use tokio::time::sleep;

const MOST_VIEWERS: usize = 8;
const EACH: Duration = Duration::from_secs(1);
/// Snapshots in a row that a viewer may miss.
const PATIENCE: u32 = 10;
/// Messages that wait for a viewer.
const WAITING: usize = 4;

/// Signals to a connection that its viewer is dropped.
pub(super) type Dropped = Rc<Notify>;

/// The viewers of a listener.
#[derive(Debug, Default)]
pub(super) struct Viewers {
    present: RefCell<Vec<Viewer>>,
    /// The number of the last event that the viewers were sent.
    sent: Cell<u64>,
}

#[derive(Debug)]
struct Viewer {
    messages: mpsc::Sender<Bytes>,
    missed: u32,
    dropped: Dropped,
}

impl Viewers {
    /// The stream for a new viewer; `None` if there are already [`MOST_VIEWERS`].
    pub(super) fn join(self: &Rc<Self>, desk: &Rc<Desk>) -> Option<(Response<AdminBody>, Dropped)> {
        let mut present = self.present.borrow_mut();
        present.retain(|viewer| !viewer.messages.is_closed());
        if present.len() >= MOST_VIEWERS {
            return None;
        }
        let (messages, received) = mpsc::channel(WAITING);
        let journal = desk.events_after(0);
        self.sent.set(self.sent.get().max(journal.events.last().map_or(0, |event| event.number)));
        // A new channel has room for both messages.
        let _ = messages.try_send(message("retry: 1000\nevent: journal\n", &journal));
        let _ = messages.try_send(snapshot(desk));
        let is_first = present.is_empty();
        let dropped = Dropped::default();
        present.push(Viewer { messages, missed: 0, dropped: dropped.clone() });
        if is_first {
            spawn_local(self.clone().send_each_second(desk.clone()));
        }
        let mut response = Response::new(AdminBody::Live(received));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Some((response, dropped))
    }

    async fn send_each_second(self: Rc<Self>, desk: Rc<Desk>) {
        loop {
            sleep(EACH).await;
            self.present.borrow_mut().retain(|viewer| !viewer.messages.is_closed());
            if self.present.borrow().is_empty() {
                return;
            }
            let snapshot = snapshot(&desk);
            let journal = desk.events_after(self.sent.get());
            if let Some(last) = journal.events.last() {
                self.sent.set(last.number);
                self.send(&message("event: journal\n", &journal));
            }
            self.send(&snapshot);
        }
    }

    fn send(&self, message: &Bytes) {
        self.present.borrow_mut().retain_mut(|viewer| match viewer.messages.try_send(message.clone()) {
            Ok(()) => {
                viewer.missed = 0;
                true
            }
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                viewer.missed += 1;
                if viewer.missed == PATIENCE {
                    viewer.dropped.notify_one();
                }
                viewer.missed < PATIENCE
            }
        });
    }
}

/// The status as a message.
fn snapshot(desk: &Desk) -> Bytes {
    let look = desk.look();
    message("", &StatusDocument::new(&look.scrape, &look.view))
}

/// A message: JSON in one line has no line's end inside.
fn message(fields: &str, document: &impl Serialize) -> Bytes {
    // Texts, numbers and lists of them: writing these to a string cannot fail.
    let data = serde_json::to_string(document).unwrap_or_default();
    Bytes::from(format!("{fields}data: {data}\n\n"))
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum AdminBody {
    Whole(Bytes),
    Live(mpsc::Receiver<Bytes>),
}

impl From<String> for AdminBody {
    fn from(text: String) -> Self {
        AdminBody::Whole(text.into())
    }
}

impl Body for AdminBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            AdminBody::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            AdminBody::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            AdminBody::Live(messages) => {
                messages.poll_recv(context).map(|message| message.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, AdminBody::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AdminBody::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            AdminBody::Live(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewer() -> (Viewer, mpsc::Receiver<Bytes>) {
        let (messages, received) = mpsc::channel(WAITING);
        (Viewer { messages, missed: 0, dropped: Dropped::default() }, received)
    }

    #[test]
    fn a_viewer_that_does_not_read_is_dropped_and_the_others_stay() {
        let viewers = Viewers::default();
        let ((silent, _kept), (reader, mut reading), (gone, _)) = (viewer(), viewer(), viewer());
        viewers.present.borrow_mut().extend([silent, reader, gone]);
        let last = WAITING as u32 + PATIENCE;
        for message in 1..=last {
            viewers.send(&Bytes::from_static(b"data: 1\n\n"));
            assert!(reading.try_recv().is_ok());
            assert_eq!(viewers.present.borrow().len(), if message < last { 2 } else { 1 }, "{message}");
        }
        assert!(!viewers.present.borrow()[0].messages.is_closed());
    }

    #[test]
    fn a_message_is_one_line_of_data() {
        let text = message("event: journal\n", &"a\nb");
        assert_eq!(text, "event: journal\ndata: \"a\\nb\"\n\n".as_bytes());
    }
}
