//! The access log: a line for each request, written beside the requests' way.
//!
//! In: what is known of a request that has ended (`accounting`). Out: a line of a file or of stdout, in a form that other
//! programs read, `plimsoll simulate --log` among them.
//!
//! - `format`: the lines: Common, Combined, JSON
//! - `lossy`: the queue and the thread that writes: it drops and counts, and never fails or delays a request
//! - `file`: a file that is opened anew when it was moved away
//! - `logs`: which site's requests go where

mod file;
pub(crate) mod format;
pub(crate) mod logs;
mod lossy;

pub use logs::{AccessLogSettings, LogForm, LogTarget, SiteLog};
pub use lossy::{LossyQueue, LossyWriter};
