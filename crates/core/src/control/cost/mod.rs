//! Learned costs: what a request of a class costs its plant (`class`), and what a rejection costs the gateway's own
//! machine (`rejection`), and what of it counts for a plant there (`host`). The models are in [`crate::model`]; here they are
//! fed with measurements.

pub(crate) mod class;
pub(crate) mod host;
pub(crate) mod rejection;
