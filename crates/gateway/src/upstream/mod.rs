//! Upstream servers: which address, which connection, and what became of it.

pub(crate) mod exchange;
pub(crate) mod heads;
pub(crate) mod health;
pub(crate) mod load_report;
pub(crate) mod pool;
pub(crate) mod request;
pub(crate) mod response;
