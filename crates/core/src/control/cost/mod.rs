//! Learned costs: what a request of a class costs its plant (`class`), what a rejection costs the gateway's own machine
//! (`rejection`), and how much of that is taken from a plant on the same machine (`shared_machine`). The models are in
//! [`crate::model`]; here they are fed with measurements.

pub(crate) mod class;
pub(crate) mod rejection;
pub(crate) mod shared_machine;
