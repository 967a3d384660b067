//! A server of HTTP/2 without TLS, by the crate `h2`: what it answers is a function of the request.

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

/// What becomes of a request.
pub enum Reply {
    /// A head alone.
    Head(Response<()>),
    /// A head, what came of the body, and trailers.
    Echo(Response<()>, HeaderMap),
    /// The stream is refused, or reset.
    Reset(Reason),
    /// The connection ends once this response is sent.
    Last(Response<()>),
}

/// A server; its connections and requests are counted.
pub struct GrpcServer {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    pub requests: Arc<AtomicUsize>,
}

impl GrpcServer {
    /// Starts one. `reply` is called with each request and its number on its connection, from 0.
    pub fn start(reply: impl Fn(&Request<RecvStream>, usize) -> Reply + Send + Sync + 'static) -> GrpcServer {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("it can");
        let address = listener.local_addr().expect("its address");
        let server = GrpcServer { address, connections: Arc::default(), requests: Arc::default() };
        let (connections, requests) = (server.connections.clone(), server.requests.clone());
        let reply = Arc::new(reply);
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            LocalSet::new().block_on(&runtime, async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                while let Ok((io, _)) = listener.accept().await {
                    connections.fetch_add(1, SeqCst);
                    let (reply, requests) = (reply.clone(), requests.clone());
                    tokio::task::spawn_local(async move {
                        let Ok(mut connection) = server::handshake(io).await else { return };
                        let mut number = 0;
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            requests.fetch_add(1, SeqCst);
                            match reply(&request, number) {
                                Reply::Last(head) => {
                                    tokio::task::spawn_local(answer(Reply::Head(head), request, respond));
                                    connection.graceful_shutdown();
                                }
                                other => drop(tokio::task::spawn_local(answer(other, request, respond))),
                            }
                            number += 1;
                        }
                    });
                }
            });
        });
        server
    }

    pub fn counts(&self) -> (usize, usize) {
        (self.connections.load(SeqCst), self.requests.load(SeqCst))
    }
}

async fn answer(reply: Reply, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    match reply {
        Reply::Reset(reason) => respond.send_reset(reason),
        Reply::Head(head) => drop(respond.send_response(head, true)),
        Reply::Echo(head, mut trailers) => {
            let Ok(mut send) = respond.send_response(head, false) else { return };
            let mut body = request.into_body();
            while let Some(Ok(bytes)) = body.data().await {
                let _ = body.flow_control().release_capacity(bytes.len());
                send.reserve_capacity(bytes.len());
                while send.capacity() < bytes.len() {
                    if std::future::poll_fn(|context| send.poll_capacity(context)).await.is_none() {
                        return;
                    }
                }
                if send.send_data(bytes, false).is_err() {
                    return;
                }
            }
            let came = body.trailers().await.ok().flatten().unwrap_or_default();
            trailers.extend(came);
            let _ = send.send_trailers(trailers);
        }
        Reply::Last(_) => {}
    }
}
