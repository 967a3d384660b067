//! From the decision to the response.

use super::arrival::{Arrived, Started};
use super::body::{Expected, ResponseBody};
use super::decision::Decision;
use super::grpc::status_of_call;
use super::guard::WaitingGuard;
use super::rejection::Rejected;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use pin_project_lite::pin_project;
use plimsoll_core::request::{Outcome, Reason, Rejection, Service as Served, is_event_stream};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tower_service::Service;

pin_project! {
    /// A request under way. Dropped, it leaves the queue or gives its place back at once.
    pub struct ResponseFuture<S: Service<Request<B>>, B> {
        // Declared before the stage, which has the guard, so that it is dropped first: the handler has ended when its place is
        // freed.
        #[pin]
        handler: Option<S::Future>,
        // The service and the request for it, until the request has its place.
        call: Option<(S, Request<B>)>,
        stage: Stage,
        method: Method,
    }
}

/// How far a request has come.
enum Stage {
    Waiting(WaitingGuard),
    /// The request has its place: the layer polls the service for readiness, calls it, and waits for its response.
    Started(Started),
    Rejected(Rejected),
    Done,
}

impl<S: Service<Request<B>>, B> ResponseFuture<S, B> {
    pub(crate) fn new(arrived: Arrived, inner: S, request: Request<B>) -> Self {
        let method = request.method().clone();
        let stage = match arrived {
            Arrived::Started(started) => Stage::Started(started),
            Arrived::Waiting(waiting) => Stage::Waiting(waiting),
            Arrived::Rejected(rejected) => Stage::Rejected(rejected),
        };
        ResponseFuture { handler: None, call: Some((inner, request)), stage, method }
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
        if let (Stage::Waiting(waiting), Some((_, request))) = (&mut *this.stage, &*this.call) {
            *this.stage = match ready!(waiting.poll(context.waker())) {
                Ok(started) => Stage::Started(started),
                Err((rejection, decision)) => {
                    Stage::Rejected(Rejected::new(rejection, decision, request.headers()))
                }
            };
        }
        let mut made = None;
        if let Stage::Started(started) = this.stage {
            made = Some(ready!(make(started, this.call, this.handler.as_mut(), context)));
            this.handler.set(None);
        }
        Poll::Ready(match (std::mem::replace(this.stage, Stage::Done), made) {
            (Stage::Started(started), Some(Ok(response))) => {
                Ok(respond(response, started, this.method, context))
            }
            (Stage::Started(started), Some(Err(error))) => Err(started.guard.fail(error)),
            (Stage::Rejected(rejected), _) => Ok(rejected.response(this.method)),
            _ => panic!("a response future was polled after its response"),
        })
    }
}

/// Asks the service behind the layer whether it is ready, calls it, and asks its handler for the response.
fn make<S: Service<Request<B>>, B>(
    Started { guard, decision }: &mut Started,
    call: &mut Option<(S, Request<B>)>,
    mut handler: Pin<&mut Option<S::Future>>,
    context: &mut Context<'_>,
) -> Poll<Result<S::Response, S::Error>> {
    if let Some((inner, _)) = call {
        ready!(guard.run(|| inner.poll_ready(context)))?;
    }
    if let Some((mut inner, mut request)) = call.take() {
        rewrite(&mut request, decision);
        request.extensions_mut().insert(decision.clone());
        handler.set(Some(guard.run(|| inner.call(request))));
    }
    match handler.as_pin_mut() {
        Some(handler) => guard.run(|| handler.poll(context)),
        None => panic!("a handler was polled after its panic"),
    }
}

/// Puts the prefix of a request's level before its path.
fn rewrite<B>(request: &mut Request<B>, decision: &Decision) {
    let Some(prefix) = decision.prefix() else { return };
    let before = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    if !before.starts_with('/') {
        // The target is `*`, which names no page.
        return;
    }
    let mut parts = request.uri().clone().into_parts();
    // Both parts are valid paths, so they are a valid path together unless it is too long.
    if let Ok(after) = PathAndQuery::try_from(format!("{prefix}{before}")) {
        parts.path_and_query = Some(after);
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
}

/// Builds the response, and gives the place back as soon as the response is whole.
fn respond<R: Body<Data: From<Bytes>> + Unpin>(
    response: Response<R>,
    Started { mut guard, decision }: Started,
    method: &Method,
    context: &mut Context<'_>,
) -> Response<ResponseBody<R>> {
    let (mut head, body) = response.into_parts();
    let outcome = guard.answered(status_of_call(&head.headers).unwrap_or(head.status.as_u16()));
    let is_upgrade = head.status == StatusCode::SWITCHING_PROTOCOLS
        || (method == Method::CONNECT && head.status.is_success());
    let is_bodiless = is_upgrade
        || method == Method::HEAD
        || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if !is_bodiless && has_events(&head.headers) && !guard.stay_open() {
        guard.depart(0, Served::default(), Outcome::Failed);
        let rejection = Rejection { reason: Reason::TooManyStreams, retry_after: Duration::ZERO };
        let decision = decision.dropped(Reason::TooManyStreams);
        return Rejected::new(rejection, decision, &head.headers).response(method);
    }
    head.extensions.insert(decision);
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let body = if is_bodiless {
        let representative = outcome == Outcome::Completed && !is_upgrade;
        let service = Served { representative, ..Served::default() };
        guard.depart(0, service, outcome);
        ResponseBody::unwatched(body)
    } else {
        ResponseBody::begin(body, guard, Expected { length, outcome }, context)
    };
    Response::from_parts(head, body)
}

fn has_events(headers: &HeaderMap) -> bool {
    is_event_stream(headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes))
}
