//! Pushes metrics to a collector at intervals, from a thread of its own, for sites where nothing may connect to the admin
//! listener.

use super::otlp::{CountingTime, export_request};
use crate::admin::OwnerCell;
use crate::admin::scrape::Scrape;
use crate::background::Background;
use crate::otlp::{CollectorClient, Delivery};
use crate::settings::MetricsSettings;
use crate::sync::TroubleNews;
use crate::worker::shared::Shared;
use plimsoll_core::Engine;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How long the end of the gateway waits until the collector has taken the last figures.
const FINISH: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct MetricsPusher {
    /// Why figures were not taken, until it is logged.
    news: Arc<TroubleNews>,
    thread: Background,
}

/// What the pushing thread owns.
struct Push {
    settings: MetricsSettings,
    start: SystemTime,
    engine: Arc<Mutex<Engine>>,
    shared: Arc<Shared>,
    owner: OwnerCell,
    news: Arc<TroubleNews>,
    client: CollectorClient,
}

impl MetricsPusher {
    /// Starts pushing.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(
        settings: MetricsSettings,
        engine: Arc<Mutex<Engine>>,
        shared: Arc<Shared>,
        owner: OwnerCell,
    ) -> io::Result<Self> {
        let news = Arc::<TroubleNews>::default();
        let (start, client) = (SystemTime::now(), CollectorClient::new());
        let push = Push { settings, start, engine, shared, owner, news: news.clone(), client };
        let thread = Background::start("metrics", |ending| push.run(ending))?;
        Ok(MetricsPusher { news, thread })
    }

    /// Why the collector does not take the figures, if the reason is new.
    pub(crate) fn take_news(&self) -> Option<String> {
        self.news.take()
    }

    /// Pushes the last figures, and waits a moment at most.
    pub(crate) fn stop(&self) {
        self.thread.finish(FINISH);
    }
}

impl Push {
    /// Figures that were not taken are not sent again: counters count from the start, so the next figures contain them.
    fn run(self, ending: &AtomicBool) {
        let mut next = Instant::now() + self.settings.interval;
        loop {
            let is_ending = ending.load(Relaxed);
            if !is_ending && Instant::now() < next {
                thread::park_timeout(next.saturating_duration_since(Instant::now()));
                continue;
            }
            next = Instant::now() + self.settings.interval;
            self.news.put(match self.once() {
                Delivery::Taken => None,
                Delivery::Later(why) | Delivery::Refused(why) => Some(why),
            });
            if is_ending {
                return;
            }
        }
    }

    fn once(&self) -> Delivery {
        let scrape = Scrape::take(&self.engine, &self.shared, self.owner.get().map(Box::as_ref));
        let span = CountingTime { start: self.start, now: SystemTime::now() };
        self.client.post(&self.settings.endpoint, &export_request(&self.settings.service, span, &scrape))
    }
}
