//! The thread that serves the operator's listener ([`crate::admin`]), apart from the workers, so that it answers while
//! they are full.

use crate::admin::{self, ReloadOrder};
use crate::mailbox::{Mailbox, Message};
use crate::worker::Shared;
use plimsoll_core::Engine;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use tokio::runtime::Builder;

/// The running thread.
#[derive(Debug)]
pub(crate) struct Operator {
    pub address: SocketAddr,
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

impl Operator {
    pub(crate) fn start(
        address: SocketAddr,
        engine: Arc<Mutex<Engine>>,
        shared: Arc<Shared>,
        orders: Arc<OnceLock<ReloadOrder>>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let mailbox = Arc::<Mailbox>::default();
        let inbox = mailbox.clone();
        let thread = thread::Builder::new().name("plimsoll-admin".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let status = move || engine.lock().unwrap_or_else(PoisonError::into_inner).status();
                let reloads = move || *shared.reloads();
                let mut serving = pin!(admin::serve(listener, status, reloads, orders));
                let mut messages = Vec::new();
                poll_fn(|context| match serving.as_mut().poll(context) {
                    Poll::Ready(never) => match never {},
                    // Any message is the order to stop.
                    Poll::Pending => inbox.poll_take(context, &mut messages),
                })
                .await;
            });
        })?;
        Ok(Operator { address, mailbox, thread: Some(thread) })
    }

    pub(crate) fn stop(&mut self) {
        self.mailbox.post(Message::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by its thread; nothing is left to do here.
            let _ = thread.join();
        }
    }
}
