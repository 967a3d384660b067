//! The listening socket, and the connections that were accepted on it.

use super::OriginSettings;
use super::service::Service;
use crate::machine::plain_congestion_control;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// The address of the origin, and the task that accepts connections on it.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    keep_alive: Duration,
    service: Arc<Service>,
    /// The accepting task; `None` while the origin is down.
    accepting: Option<AbortHandle>,
}

impl Listener {
    /// Listens, on the current runtime.
    pub(super) fn open(settings: &OriginSettings, service: Arc<Service>) -> io::Result<Self> {
        let (address, keep_alive) = (settings.bind, settings.keep_alive);
        let mut listener = Self { address, keep_alive, service, accepting: None };
        listener.reopen()?;
        Ok(listener)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening and closes every connection.
    pub(super) fn close(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
        }
    }

    /// Listens again on the earlier address; does nothing while listening.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if self.accepting.is_some() {
            return Ok(());
        }
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Earlier connections may linger in TIME_WAIT on the same port.
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        plain_congestion_control(&socket);
        // The plant has the finite queue, so the kernel's queue must be longer than the plant's.
        let listener = socket.listen(4096)?;
        self.address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, Arc::clone(&self.service), self.keep_alive));
        self.accepting = Some(accepting.abort_handle());
        Ok(())
    }
}

/// Accepts connections. This task owns the connections' tasks, so they end with it.
async fn accept(listener: TcpListener, service: Arc<Service>, keep_alive: Duration) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&service), keep_alive))),
            // Mostly this process is out of files, so other connections must end before the next attempt.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Serves a connection until either side closes it or it has been idle for the keep-alive time.
async fn serve(stream: TcpStream, service: Arc<Service>, keep_alive: Duration) {
    // An answer in two writes must not wait for the client's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    // Hyper counts this time from the end of the previous answer, so it closes idle connections.
    http.timer(TokioTimer::new()).header_read_timeout(keep_alive);
    let answer = service_fn(|request| service.answer(request));
    // A connection that ends in an error is closed like any other; the client sees how it ended.
    let _ = http.serve_connection(TokioIo::new(stream), answer).await;
}
