//! The services of a long-running command: signals, reload, upgrade, the event log, worker counts of upstreams, files with what
//! was learned, simulations beside the gateway. Input: the gateway's status and the operator's requests. Output: log lines and
//! new settings.

pub(crate) mod background;
pub(crate) mod certificates;
pub(crate) mod dns_refresh;
pub(crate) mod events;
pub(crate) mod forecast_file;
pub(crate) mod hanging_reads;
pub(crate) mod kept_files;
pub(crate) mod log;
pub(crate) mod open_files;
pub(crate) mod own_listeners;
pub(crate) mod page;
pub(crate) mod process_news;
pub(crate) mod reload;
pub(crate) mod resolve;
pub(crate) mod signals;
pub(crate) mod state;
pub(crate) mod supervisor;
pub(crate) mod sync;
pub(crate) mod upgrade;
pub(crate) mod what_if;
pub(crate) mod worker_counts;
