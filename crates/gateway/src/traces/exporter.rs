//! Sends spans to a collector, from a thread of its own that requests never wait for.
//!
//! Each request's spans go through a bounded queue, and are dropped if the queue is full. Twice a second the thread takes the
//! gathered spans and sends them in batches. If the collector does not answer, or is overloaded, a batch is sent twice more,
//! while the queue fills, and then dropped. Requests whose spans were dropped are counted.

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

/// How many requests may wait to be sent, which takes some twenty megabytes, and how many are sent at once.
const QUEUE: usize = 16_384;
const BATCH: usize = 512;
/// How often the thread takes the gathered spans.
const INTERVAL: Duration = Duration::from_millis(500);
/// The times after which a batch is sent again.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// How long the end of the gateway waits for the spans in the queue.
const FINISH: Duration = Duration::from_secs(2);

/// Which requests are traced, and where traces are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSettings {
    /// The collector's address for traces, OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`.
    pub endpoint: String,
    /// The part of the requests that is recorded if their callers have not decided, from 0 to 1.
    pub ratio: f64,
    /// What the collector calls the gateway.
    pub service: String,
}

impl TraceSettings {
    /// The settings for this collector: one request in a hundred, and the usual name.
    pub fn new(endpoint: String) -> Self {
        TraceSettings { endpoint, ratio: 0.01, service: otlp::SERVICE.to_owned() }
    }
}

/// The number of requests whose spans were sent, and of those whose spans were lost.
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

/// An exporter's end of the queue, and its thread. After the exporter is dropped, the thread still sends the spans in the
/// queue.
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

    /// Sends the remaining spans, and waits for a moment at most.
    pub(crate) fn finish(&self) {
        self.thread.finish(FINISH);
    }
}

/// What the thread owns.
struct SpanSender {
    settings: TraceSettings,
    state: Arc<ExporterState>,
    client: CollectorClient,
}

impl SpanSender {
    fn run(mut self, queue: &Receiver<Vec<TraceSpan>>, is_ending: &AtomicBool) {
        loop {
            // The flag is read first: spans that were handed over before the end are then in the queue.
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
        // The collector accepts connections and never answers.
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
        // One batch may have left the queue in this time, and no more.
        assert!((all - QUEUE - BATCH..=all - QUEUE).contains(&(dropped as usize)), "{dropped} of {all}");
    }
}
