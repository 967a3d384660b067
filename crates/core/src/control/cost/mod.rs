//! Learned costs: what a request of a class costs its plant (`class`), what a rejection costs the gateway's own machine
//! (`rejection`), and how much of that is taken from a plant on the same machine (`shared_machine`).
//!
//! *In*: measurements, and the gateway's own CPU time. *Out*: costs by class and level, c, and the part of c that workers pay.
//! The models are in [`crate::model`].

pub(crate) mod class;
pub(crate) mod rejection;
pub(crate) mod shared_machine;
