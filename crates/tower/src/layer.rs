//! The layer and its service.

use crate::builder::{BuildError, Builder};
use crate::request::body::ResponseBody;
use crate::request::future::ResponseFuture;
use crate::running::Running;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use plimsoll_core::Changes;
use plimsoll_core::telemetry::status::Status;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Holds the services that it wraps at their load line. All clones share one engine.
#[derive(Clone)]
pub struct PlimsollLayer {
    pub(crate) running: Arc<Running>,
}

impl PlimsollLayer {
    /// A builder for the layer of one server, with the load line as its only promise.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Brings new promises into force for all clones of this layer. The engine keeps what it has learned, and requests under
    /// way are not touched. The seed and the source of client addresses stay as they were built.
    ///
    /// # Errors
    /// Every contradiction or impossible value in the promises; nothing changes then.
    pub fn reload(&self, builder: Builder) -> Result<Changes, BuildError> {
        let (promises, prefixes) = builder.parts(self.running.client.is_some())?;
        self.running.reload(&promises, &prefixes).map_err(BuildError::Promises)
    }

    /// Whether levels stand still because the control loops have panicked. The panic is reported as one of the thread
    /// `plimsoll-tick`. Requests are served as before, those that wait are answered in time, and the loops are tried again.
    /// It is so, too, in a process that was forked after the layer was built, within three seconds: no thread runs the loops
    /// there, and requests that wait are not answered.
    pub fn is_frozen(&self) -> bool {
        self.running.is_frozen()
    }

    /// A snapshot of every plant, site and class, as of the last control period.
    pub fn status(&self) -> Status {
        self.running.status()
    }
}

impl fmt::Debug for PlimsollLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlimsollLayer").finish_non_exhaustive()
    }
}

impl<S> Layer<S> for PlimsollLayer {
    type Service = PlimsollService<S>;

    fn layer(&self, inner: S) -> PlimsollService<S> {
        PlimsollService { inner, running: self.running.clone() }
    }
}

/// A service whose requests the engine starts, keeps waiting or turns away.
#[derive(Clone)]
pub struct PlimsollService<S> {
    inner: S,
    running: Arc<Running>,
}

impl<S: fmt::Debug> fmt::Debug for PlimsollService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlimsollService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for PlimsollService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: Body<Data: From<Bytes>> + Unpin,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    /// Always ready: a request waits where the engine sees it.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<S, B> {
        let (head, body) = request.into_parts();
        let arrived = self.running.arrive(&head);
        ResponseFuture::new(arrived, self.inner.clone(), Request::from_parts(head, body))
    }
}
