//! The thread of the admin listener, apart from the workers, and whether the loops still run.

use super::journal::{Journal, JournalDocument, Sight, View};
use super::listener::serve;
use super::scrape::Scrape;
use super::{AdminTokens, Owner};
use crate::listen::binding::named;
use crate::listen::inherited::{Inherited, ListeningSocket};
use crate::settings::Address;
use crate::sync::lock;
use crate::worker::shared::Shared;
use plimsoll_core::Engine;
use plimsoll_core::request::Pattern;
use plimsoll_core::telemetry::status::Status;
use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::Notify;

/// The gateway's owner, once it has registered.
pub(crate) type OwnerCell = Arc<OnceLock<Box<dyn Owner>>>;

/// What the listener may ask: the gateway or the controller for what there is to show, its owner for a reload.
pub(super) struct Desk {
    source: Box<dyn Source>,
    pulse: RefCell<Pulse>,
    pub(super) owner: OwnerCell,
    /// The names by which the listener may be asked, besides addresses and `localhost`.
    pub(super) names: Vec<Pattern>,
}

impl Desk {
    pub(super) fn new(source: impl Source + 'static, owner: OwnerCell, names: Vec<Pattern>) -> Self {
        Desk { source: Box::new(source), pulse: RefCell::default(), owner, names }
    }

    pub(super) fn look(&self) -> OperatorLook {
        let scrape = self.source.scrape();
        let view = self.source.view(&scrape.status);
        let stalled = self.pulse.borrow_mut().look(Instant::now(), &scrape.status);
        OperatorLook { scrape, view, stalled }
    }

    /// The events after this number.
    pub(super) fn events_after(&self, number: u64) -> JournalDocument {
        self.source.events_after(number)
    }

    /// Whether a request with this `Authorization` is answered.
    pub(super) fn admits(&self, authorization: Option<&[u8]>) -> bool {
        self.source.tokens().admit(authorization)
    }
}

/// What one request of the operator is answered from.
pub(super) struct OperatorLook {
    pub(super) scrape: Scrape,
    pub(super) view: View,
    /// For how long the loops have stood still, if they do.
    pub(super) stalled: Option<Duration>,
}

/// Where a desk reads its figures: a gateway or a controller.
pub(super) trait Source: Send {
    fn scrape(&self) -> Scrape;
    /// Lets the journal look at a status, and returns the journal's view of it.
    fn view(&self, status: &Status) -> View;
    fn events_after(&self, number: u64) -> JournalDocument;
    /// The tokens of the listener; a request must show one of them.
    fn tokens(&self) -> AdminTokens;
}

/// A running gateway.
pub(crate) struct RunningGateway {
    pub(crate) engine: Arc<Mutex<Engine>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) journal: Arc<Mutex<Journal>>,
    pub(crate) owner: OwnerCell,
}

impl Source for RunningGateway {
    fn scrape(&self) -> Scrape {
        Scrape::take(&self.engine, &self.shared, self.owner.get().map(Box::as_ref))
    }

    fn view(&self, status: &Status) -> View {
        let sight = Sight::of(&self.shared, status);
        let mut journal = lock(&self.journal);
        journal.look(&sight);
        journal.view(&sight)
    }

    fn events_after(&self, number: u64) -> JournalDocument {
        lock(&self.journal).after(number)
    }

    fn tokens(&self) -> AdminTokens {
        self.shared.tables.current().settings.admin_tokens.clone()
    }
}

#[derive(Debug)]
pub(crate) struct Operator {
    pub address: SocketAddr,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Operator {
    /// Takes over or binds the listener of this address; returns it with a second descriptor, to be handed to the next process.
    pub(crate) fn listen(
        address: SocketAddr,
        inherited: &mut Inherited,
    ) -> io::Result<(TcpListener, ListeningSocket)> {
        let address_of_it = Address::from(address);
        let taken = inherited.take(&address_of_it).and_then(|(_, sockets)| sockets.into_iter().next());
        let (listener, is_supervised): (TcpListener, bool) = match taken {
            Some(ListeningSocket { socket, is_supervised }) => (socket.into(), is_supervised),
            None => (TcpListener::bind(address).map_err(|error| named(&address_of_it, &error))?, false),
        };
        let kept = ListeningSocket { socket: listener.try_clone()?.into(), is_supervised };
        Ok((listener, kept))
    }

    /// Begins to answer requests for an address or for one of these names.
    pub(super) fn start(
        listener: TcpListener,
        source: impl Source + 'static,
        owner: OwnerCell,
        names: Vec<Pattern>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let stop = Arc::<Notify>::default();
        let stopped = stop.clone();
        let desk = Desk::new(source, owner, names);
        let thread = thread::Builder::new().name("plimsoll-admin".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::select! {
                    never = serve(listener, desk) => match never {},
                    () = stopped.notified() => {}
                }
            });
            // A reload that is still reading files is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Operator { address, stop, thread: Some(thread) })
    }

    /// Begins to answer for a gateway.
    pub(crate) fn start_for(gateway: RunningGateway, listener: TcpListener) -> io::Result<Self> {
        let names = gateway.shared.tables.current().settings.admin_names.clone();
        let owner = gateway.owner.clone();
        Operator::start(listener, gateway, owner, names)
    }

    pub(crate) fn stop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic was already reported by the thread.
            let _ = thread.join();
        }
    }
}

/// Whether the loops still run. If `tick` stalls, service levels freeze at their last value and requests pass as before, so
/// nothing else would show it. The status says when the last tick ran, in the engine's time: if that time stands still between
/// two looks that are far enough apart, the loops stand still.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pulse {
    /// The engine's time of the last tick, and when it was first seen.
    last: Option<(plimsoll_core::time::Instant, Instant)>,
}

impl Pulse {
    /// For how long no tick was seen, if that is a stall: five periods without one, and at least five seconds. At the first
    /// look it is too early to know.
    pub(super) fn look(&mut self, now: Instant, status: &Status) -> Option<Duration> {
        match self.last {
            Some((at, seen)) if at == status.at => {
                let limit = (status.period * 5).max(Duration::from_secs(5));
                Some(now.saturating_duration_since(seen)).filter(|since| *since > limit)
            }
            _ => {
                self.last = Some((status.at, now));
                None
            }
        }
    }
}
