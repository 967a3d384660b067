//! What a long-running command needs beside its work: signals, reload, upgrade, the event log, workers counted at upstreams,
//! what is kept of what was learned, simulations beside the gateway. In come the gateway's status and the operator's wishes;
//! out go log lines and new settings.

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
