//! The layer between a client and a server of gRPC: messages and trailers pass, and a rejection is a status that clients know.

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use http::{Request, Response};
use plimsoll_tower::{PlimsollLayer, PlimsollService};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::UnaryService;
use tonic::{Code, Status};
use tower::{Layer, Service};

/// Messages are bytes.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A server that answers with what it was sent, once it is let go on.
#[derive(Clone)]
struct Echo(Arc<Semaphore>);

impl Service<Request<Body>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Boxed<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = self.clone();
        Box::pin(async move { Ok(tonic::server::Grpc::new(Raw).unary(method, request).await) })
    }
}

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Boxed<Result<tonic::Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let doors = self.0.clone();
        Box::pin(async move {
            doors.acquire().await.map_err(|_| Status::internal("closed"))?.forget();
            match request.into_inner() {
                message if message == "wrong" => Err(Status::invalid_argument("no such message")),
                message => Ok(tonic::Response::new(message)),
            }
        })
    }
}

async fn ask(service: PlimsollService<Echo>, message: &'static str) -> Result<Bytes, Status> {
    let mut client = tonic::client::Grpc::new(service);
    client.ready().await.expect("always ready");
    let path = PathAndQuery::from_static("/package.Echo/Say");
    let request = tonic::Request::new(Bytes::from_static(message.as_bytes()));
    client.unary(request, path, Raw).await.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn a_client_of_tonic_gets_messages_statuses_and_rejections() {
    let plimsoll = PlimsollLayer::builder()
        .workers(1)
        .promises(|promises| {
            promises.plants[0].queue.max_waiting = 0;
            promises.control.retry_after = Some(std::time::Duration::from_millis(2500));
        })
        .build()
        .expect("possible promises");
    let doors = Arc::new(Semaphore::new(2));
    let service = plimsoll.layer(Echo(doors.clone()));
    assert_eq!(ask(service.clone(), "hello").await.expect("an answer"), "hello");
    let wrong = ask(service.clone(), "wrong").await.expect_err("the server refuses it");
    assert_eq!((wrong.code(), wrong.message()), (Code::InvalidArgument, "no such message"));

    let held = tokio::spawn(ask(service.clone(), "held"));
    while plimsoll.status().plants[0].in_service == 0 {
        tokio::task::yield_now().await;
    }
    let rejected = ask(service.clone(), "hello").await.expect_err("there is no place");
    assert_eq!(rejected.code(), Code::Unavailable);
    assert_eq!(
        rejected.message(),
        "The server has more requests than it can serve, and as many wait as may."
    );
    let pushback = rejected.metadata().get("grpc-retry-pushback-ms").and_then(|value| value.to_str().ok());
    assert_eq!(pushback, Some("2500"));
    doors.add_permits(1);
    assert_eq!(held.await.expect("no panic").expect("an answer"), "held");
    let status = plimsoll.status();
    assert_eq!((status.plants[0].in_service, status.classes[0].counts.outcomes), (0, [3, 0, 0]));
}
