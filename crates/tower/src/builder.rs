//! The builder of a layer: the common promises in a few calls. All other promises are fields of the core's [`Promises`], which
//! [`Builder::promises`] hands to a closure.

use crate::layer::PlimsollLayer;
use crate::running::clock::Clock;
use crate::running::names::Prefixes;
use crate::running::{Running, ticker};
use http::request::Parts;
use plimsoll_core::promises::{
    Choice, Class, Condition, Identity, Level, Plant, Promises, Site, WorkerBounds,
};
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

/// Reads the address of a request's client from the request's head.
pub(crate) type ClientAddress = Arc<dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync>;

/// Makes a [`PlimsollLayer`]. Without further calls there is one site for every host, served by this process, and the load line
/// is the only promise.
#[must_use]
pub struct Builder {
    promises: Promises,
    prefixes: Prefixes,
    client: Option<ClientAddress>,
    seed: Option<u64>,
    /// Whether no load line was set, so that it follows from the other promises.
    finds_load_line: bool,
}

impl Default for Builder {
    fn default() -> Self {
        let plant = Plant {
            find_workers: Some(WorkerBounds::USUAL),
            max_connections: WorkerBounds::USUAL.most,
            ..Plant::new("server", WorkerBounds::FIRST_GUESS)
        };
        let promises = Promises::of(plant, Site::new("site", &[]));
        Builder { finds_load_line: true, ..Builder::from(promises) }
    }
}

impl From<Promises> for Builder {
    /// Begins with these promises, which were read from a configuration file or written by hand.
    fn from(promises: Promises) -> Self {
        Builder { promises, prefixes: Prefixes::default(), client: None, seed: None, finds_load_line: false }
    }
}

impl Builder {
    /// The number s of requests that the handlers work on at once: the processors where they compute, the connections of the
    /// database where they wait for it. Further requests wait. If it is not set, the engine finds s while the server runs: the
    /// number beyond which more requests at once only take longer.
    pub fn workers(self, workers: u32) -> Self {
        self.promises(|promises| {
            for plant in &mut promises.plants {
                (plant.workers, plant.max_connections, plant.find_workers) = (workers, workers, None);
            }
        })
    }

    /// The utilization to hold, in (0, 1]. If it is not set, it is 0.85, or 1 if a class has a delay or a deadline, since the
    /// engine then holds that promise instead ([`Plant::usual_load_line`]).
    pub fn load_line(mut self, utilization: f64) -> Self {
        self.finds_load_line = false;
        self.promises(|promises| {
            promises.plants.iter_mut().for_each(|plant| plant.set_point = utilization);
        })
    }

    /// The levels of service, lowest quality first. A handler reads its request's level from the [`Decision`](crate::Decision)
    /// in its extensions. Without levels, requests are served or rejected.
    pub fn levels<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let level = |name: &str| Level { name: name.to_owned(), plant: None, cost_ratio: None };
        let levels: Vec<Level> = names.into_iter().map(level).collect();
        self.promises(|promises| promises.sites.iter_mut().for_each(|site| site.levels.clone_from(&levels)))
    }

    /// Puts `prefix` before the path of requests that are served at this level: with `/light`, `/page` becomes `/light/page`.
    /// The layer must stand before the router then, as in `layer.layer(router)`, since `Router::layer` comes after routing.
    pub fn prefix(mut self, level: &str, prefix: &str) -> Self {
        self.prefixes.0.push((level.to_owned(), prefix.to_owned()));
        self
    }

    /// Adds a class of requests with promises of its own. A request belongs to the first class whose condition holds.
    pub fn class(self, class: Class) -> Self {
        self.promises(|promises| promises.sites.iter_mut().for_each(|site| site.classes.push(class.clone())))
    }

    /// Requests that are never degraded nor rejected for the load, such as health checks.
    pub fn exempt(self, condition: Condition) -> Self {
        self.promises(|promises| {
            promises.sites.iter_mut().for_each(|site| site.exempt.push(condition.clone()));
        })
    }

    /// Clients are known by this cookie; where it is absent, by their address.
    pub fn client_cookie(self, name: &str) -> Self {
        self.identity(&Identity::Cookie(name.to_owned()))
    }

    /// Clients are known by this header; where it is absent, by their address.
    pub fn client_header(self, name: &str) -> Self {
        self.identity(&Identity::Header(name.to_owned()))
    }

    fn identity(self, identity: &Identity) -> Self {
        self.promises(|promises| {
            promises.sites.iter_mut().for_each(|site| site.identity.clone_from(identity));
        })
    }

    /// How the address of a client is read from a request's head: from an extension that the server sets (`ConnectInfo` of
    /// axum, `TcpConnectInfo` of tonic), or from a header that your own proxy writes. The address identifies the client, which
    /// so keeps its level while the load stands still. Without an address, header or cookie each request's level is drawn by
    /// chance.
    pub fn client_address(
        mut self,
        address: impl Fn(&Parts) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        self.client = Some(Arc::new(address));
        self
    }

    /// Sets the key of the hash that chooses clients: with the same seed each process chooses the same clients. If it is not
    /// set, the key is drawn at random at the start.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Changes the promises directly. Contracts, the bounds of the queue and the mode have no method of their own here.
    pub fn promises(mut self, change: impl FnOnce(&mut Promises)) -> Self {
        change(&mut self.promises);
        self
    }

    /// Builds the engine and starts the thread that runs its loops.
    ///
    /// # Errors
    /// Every contradiction or impossible value in the promises, or the reason why no thread could be started.
    pub fn build(self) -> Result<PlimsollLayer, BuildError> {
        let running = Arc::new(self.running(Clock::start())?);
        ticker::start(&running).map_err(BuildError::Thread)?;
        Ok(PlimsollLayer { running })
    }

    /// What the layer shares with its requests; the thread of the control loops is not started.
    pub(crate) fn running(self, clock: Clock) -> Result<Running, BuildError> {
        let (client, seed) = (self.client.clone(), self.seed.unwrap_or_else(drawn_seed));
        let (promises, prefixes) = self.parts(client.is_some())?;
        Running::new(&promises, &prefixes, seed, (clock, client)).map_err(BuildError::Promises)
    }

    /// The promises, completed by what the builder derives itself, and the prefixes of levels.
    pub(crate) fn parts(mut self, knows_addresses: bool) -> Result<(Promises, Prefixes), BuildError> {
        for site in &mut self.promises.sites {
            if site.levels.is_empty() {
                site.levels = Site::new("", &["full"]).levels;
            }
            if site.identity == Identity::Address && !knows_addresses {
                site.choice = Choice::Random;
            }
        }
        let Promises { plants, sites, .. } = &mut self.promises;
        for (number, plant) in plants.iter_mut().enumerate() {
            if self.finds_load_line && plant.set_point == Plant::LOAD_LINE {
                plant.set_point = Plant::usual_load_line(number, sites);
            }
        }
        let prefixes = self.prefixes.check(&self.promises).map_err(BuildError::Promises)?;
        Ok((self.promises, prefixes))
    }
}

/// Draws a seed: the standard library draws the keys of its hashes from the operating system.
fn drawn_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// The reason for which no layer could be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// Promises that cannot be kept or contradict each other, one sentence each.
    Promises(Vec<String>),
    /// The thread of the loops could not be started.
    Thread(std::io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Promises(sentences) => f.write_str(&sentences.join("; ")),
            BuildError::Thread(error) => write!(f, "the thread of the control loops cannot start: {error}"),
        }
    }
}

impl std::error::Error for BuildError {}
