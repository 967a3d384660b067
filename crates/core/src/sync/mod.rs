//! What threads share safely: the one lock, words with a tag, and the model check of both.

pub(crate) mod lock;
#[cfg(all(test, loom))]
mod model_check;
pub(crate) mod published;
pub(crate) mod tagged;
