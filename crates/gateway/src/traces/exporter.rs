//! Sends spans to a collector, from a thread of its own that requests never wait for.
//!
//! Each request's spans go through a bounded queue; one that finds the queue full is dropped. The thread takes what has
//! gathered, twice a second, and sends it in batches. A collector that does not answer, or says that it has too much to do, is
//! asked again twice, and the queue fills meanwhile; then the batch is dropped. Requests whose spans were dropped are counted.

use super::otlp::{TraceSpan, export_request};
use crate::background::Background;
use crate::otlp::{self, CollectorClient, Delivery};
use crate::sync::TroubleNews;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

/// How many requests may wait to be sent, some twenty megabytes, and how many are sent at once.
const QUEUE: usize = 16_384;
const BATCH: usize = 512;
/// How often the thread looks what has gathered.
const INTERVAL: Duration = Duration::from_millis(500);
/// After how long a batch is sent again.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// How long the end of the gateway waits for what is still in the queue.
const FINISH: Duration = Duration::from_secs(2);

/// Which requests are traced, and where traces are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSettings {
    /// Where the collector takes traces: OTLP over HTTP, `http://127.0.0.1:4318/v1/traces`.
    pub endpoint: String,
    /// Which part of the requests that come without a decision is recorded, 0 to 1.
    pub ratio: f64,
    /// What the collector calls the gateway.
    pub service: String,
}

impl TraceSettings {
    /// One request in a hundred, and the usual name.
    pub fn new(endpoint: String) -> Self {
        TraceSettings { endpoint, ratio: 0.01, service: otlp::SERVICE.to_owned() }
    }
}

/// How many requests were sent, and how many were lost.
#[derive(Debug, Default)]
pub(crate) struct ExportCounts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl ExportCounts {
    /// The requests sent, and those lost.
    pub(crate) fn read(&self) -> [u64; 2] {
        [&self.sent, &self.dropped].map(|count| count.load(Relaxed))
    }
}

/// An exporter's end of the queue, and its thread. Once it is dropped, the thread goes on with what is in the queue.
#[derive(Debug)]
pub(crate) struct TraceExporter {
    pub settings: TraceSettings,
    queue: SyncSender<Vec<TraceSpan>>,
    shared: Arc<ExporterState>,
    thread: Background,
}

#[derive(Debug)]
struct ExporterState {
    counts: Arc<ExportCounts>,
    /// Why batches are lost, until it is logged.
    news: TroubleNews,
}

impl TraceExporter {
    /// Starts an exporter; what becomes of requests is counted in `counts`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(settings: TraceSettings, counts: Arc<ExportCounts>) -> io::Result<Arc<Self>> {
        let (queue, receiver) = mpsc::sync_channel(QUEUE);
        let shared = Arc::new(ExporterState { counts, news: TroubleNews::default() });
        let (own, state, client) = (settings.clone(), shared.clone(), CollectorClient::new());
        let sending = SpanSender { settings: own, state, client };
        let thread = Background::start("traces", move |is_ending| sending.run(&receiver, is_ending))?;
        Ok(Arc::new(TraceExporter { settings, queue, shared, thread }))
    }

    /// Hands over the spans of a request.
    pub(crate) fn export(&self, spans: Vec<TraceSpan>) {
        if self.queue.try_send(spans).is_err() {
            self.shared.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Why spans are lost, if that is news.
    pub(crate) fn take_news(&self) -> Option<String> {
        self.shared.news.take()
    }

    /// Sends what is left, a moment at most.
    pub(crate) fn finish(&self) {
        self.thread.finish(FINISH);
    }
}

/// What the thread has.
struct SpanSender {
    settings: TraceSettings,
    state: Arc<ExporterState>,
    client: CollectorClient,
}

impl SpanSender {
    fn run(mut self, queue: &Receiver<Vec<TraceSpan>>, is_ending: &AtomicBool) {
        loop {
            // Read first: what was handed over before the end is in the queue then.
            let is_last = is_ending.load(Relaxed);
            let batch: Vec<Vec<TraceSpan>> = queue.try_iter().take(BATCH).collect();
            if !batch.is_empty() {
                self.deliver(&batch, is_ending);
            } else if is_last {
                return;
            } else {
                thread::park_timeout(INTERVAL);
            }
        }
    }

    fn deliver(&mut self, batch: &[Vec<TraceSpan>], is_ending: &AtomicBool) {
        let body = export_request(&self.settings.service, batch.iter().flatten());
        let mut pauses = AGAIN.into_iter();
        let lost = loop {
            match self.client.post(&self.settings.endpoint, &body) {
                Delivery::Taken => break None,
                Delivery::Refused(why) => break Some(why),
                Delivery::Later(why) => match pauses.next().filter(|_| !is_ending.load(Relaxed)) {
                    Some(pause) => thread::park_timeout(pause),
                    None => break Some(why),
                },
            }
        };
        let counts = &self.state.counts;
        let count = if lost.is_some() { &counts.dropped } else { &counts.sent };
        count.fetch_add(batch.len() as u64, Relaxed);
        self.state.news.put(lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_the_queue_full_is_dropped_and_counted() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        // A collector that accepts connections and never answers.
        let settings = TraceSettings {
            endpoint: format!("http://{address}/v1/traces"),
            ratio: 1.0,
            service: "test".to_owned(),
        };
        let counts = Arc::<ExportCounts>::default();
        let exporter = TraceExporter::start(settings, counts.clone()).expect("a thread");
        let all = 2 * QUEUE + BATCH;
        (0..all).for_each(|_| exporter.export(Vec::new()));
        let [sent, dropped] = counts.read();
        assert_eq!(sent, 0);
        // A batch may have left the queue, and no more in this time.
        assert!((all - QUEUE - BATCH..=all - QUEUE).contains(&(dropped as usize)), "{dropped} of {all}");
    }
}
