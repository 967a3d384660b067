//! Promised delays (QM): a law, and the loops that run it by class.

pub(crate) mod law;
pub(crate) mod loops;
