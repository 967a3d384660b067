//! What threads share safely: the one lock, a value that one thread publishes, and words with a tag. The model check
//! runs tagged words here, and the published value with the gate in `scheduling/`, under every interleaving.

pub(crate) mod lock;
#[cfg(all(test, loom))]
mod model_check;
pub(crate) mod published;
pub(crate) mod tagged;
