//! From the decision to the response.

use super::arrival::{Arrived, Started};
use super::body::{Expected, ResponseBody};
use super::decision::Decision;
use super::guard::WaitingGuard;
use super::rejection::Rejected;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use pin_project_lite::pin_project;
use plimsoll_core::request::{Outcome, Reason, Rejection, Service as Served};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

pin_project! {
    /// A request under way. Dropped, it leaves the queue or gives its place back at once.
    pub struct ResponseFuture<S: Service<Request<B>>, B> {
        // Dropped before the guard in the stage: the handler's work has ended when the place is free.
        #[pin]
        handler: Option<S::Future>,
        stage: Stage<S, B>,
    }
}

/// How far a request has come.
enum Stage<S, B> {
    Waiting(WaitingGuard, S, Request<B>),
    /// It has its place, and the service behind the layer is asked whether it is ready.
    Starting(Started, S, Request<B>),
    /// The handler makes the response.
    Serving(Started, Method),
    Rejected(Rejected),
    Done,
}

impl<S: Service<Request<B>>, B> ResponseFuture<S, B> {
    pub(crate) fn new(arrived: Arrived, inner: S, request: Request<B>) -> Self {
        let stage = match arrived {
            Arrived::Started(started) => Stage::Starting(started, inner, request),
            Arrived::Waiting(waiting) => Stage::Waiting(waiting, inner, request),
            Arrived::Rejected(rejected) => Stage::Rejected(rejected),
        };
        ResponseFuture { handler: None, stage }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body<Data: From<Bytes>> + Unpin,
{
    type Output = Result<Response<ResponseBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            // While the user's code runs, the guard is on the stack: a panic drops it at once.
            *this.stage = match std::mem::replace(this.stage, Stage::Done) {
                Stage::Waiting(mut waiting, inner, request) => match waiting.poll(context.waker()) {
                    Poll::Pending => {
                        *this.stage = Stage::Waiting(waiting, inner, request);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(started)) => Stage::Starting(started, inner, request),
                    Poll::Ready(Err((rejection, decision))) => {
                        Stage::Rejected(Rejected::new(rejection, decision, request.headers()))
                    }
                },
                Stage::Starting(mut started, mut inner, mut request) => {
                    match started.guard.run(|| inner.poll_ready(context)) {
                        Poll::Pending => {
                            *this.stage = Stage::Starting(started, inner, request);
                            return Poll::Pending;
                        }
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(started.guard.fail(error))),
                        Poll::Ready(Ok(())) => {}
                    }
                    rewrite(&mut request, &started.decision);
                    request.extensions_mut().insert(started.decision.clone());
                    let method = request.method().clone();
                    this.handler.set(Some(started.guard.run(|| inner.call(request))));
                    Stage::Serving(started, method)
                }
                Stage::Serving(mut started, method) => {
                    let Some(handler) = this.handler.as_mut().as_pin_mut() else {
                        unreachable!("the stage begins with the call of the handler")
                    };
                    let polled = started.guard.run(|| handler.poll(context));
                    if polled.is_ready() {
                        this.handler.set(None);
                    }
                    return match polled {
                        Poll::Pending => {
                            *this.stage = Stage::Serving(started, method);
                            Poll::Pending
                        }
                        Poll::Ready(Ok(response)) => {
                            Poll::Ready(Ok(respond(response, started, &method, context)))
                        }
                        Poll::Ready(Err(error)) => Poll::Ready(Err(started.guard.fail(error))),
                    };
                }
                Stage::Rejected(rejected) => return Poll::Ready(Ok(rejected.response())),
                Stage::Done => panic!("a response future was polled after its response"),
            };
        }
    }
}

/// Puts the prefix of a request's level before its path.
fn rewrite<B>(request: &mut Request<B>, decision: &Decision) {
    let Some(prefix) = decision.prefix() else { return };
    let before = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    if !before.starts_with('/') {
        // `*`, which names no page.
        return;
    }
    let mut parts = request.uri().clone().into_parts();
    // Both were paths: so are they together, unless that is too long.
    if let Ok(after) = PathAndQuery::try_from(format!("{prefix}{before}")) {
        parts.path_and_query = Some(after);
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
}

/// The response, with the place given back as soon as it is whole.
fn respond<R: Body<Data: From<Bytes>> + Unpin>(
    response: Response<R>,
    started: Started,
    method: &Method,
    context: &mut Context<'_>,
) -> Response<ResponseBody<R>> {
    let Started { mut guard, decision } = started;
    let (mut head, body) = response.into_parts();
    head.extensions.insert(decision.clone());
    let representative = !head.status.is_server_error();
    let is_upgrade = head.status == StatusCode::SWITCHING_PROTOCOLS
        || (method == Method::CONNECT && head.status.is_success());
    if (is_upgrade || is_event_stream(&head.headers)) && !guard.stay_open() {
        guard.depart(0, Served::default(), Outcome::Failed);
        let rejection = Rejection { reason: Reason::TooManyStreams, retry_after: Duration::ZERO };
        let decision = decision.dropped(Reason::TooManyStreams);
        return Rejected::new(rejection, decision, &head.headers).response();
    }
    let is_bodiless = is_upgrade
        || method == Method::HEAD
        || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let served = Served { representative, ..Served::default() };
    let body = if is_bodiless {
        guard.depart(0, served, Outcome::Completed);
        ResponseBody::unwatched(body)
    } else {
        ResponseBody::begin(body, guard, Expected { length, representative }, context)
    };
    Response::from_parts(head, body)
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    let content_type = headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    content_type.get(..EVENTS.len()).is_some_and(|start| start.eq_ignore_ascii_case(EVENTS))
}
