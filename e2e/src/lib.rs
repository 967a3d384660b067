//! What the end-to-end tests stand on: the real binary, a real nginx and a real Apache, started and stopped by test.
//!
//! Every server listens on 127.0.0.1, at a port of its own choice or one that was just free, with its files in a folder
//! that is removed afterwards. A server is ended by its process id when its value is dropped; if the test failed, its
//! log is printed then. A peer that is not installed is a failure, never a skip; only
//! what needs a browser says that it was skipped where there is none.
//!
//! The client here is a few lines over a blocking socket, for single requests whose bytes a test wants to choose or to
//! see. Load comes from `plimsoll-load`.

mod apache;
pub mod beside;
mod browser;
mod client;
pub mod configuration;
pub mod flows;
mod folder;
mod nginx;
mod origin;
pub mod overload;
pub mod page;
mod plimsoll;
mod process;
pub mod simulated;
pub mod site;

pub use apache::Apache;
pub use browser::{Browser, Viewed};
pub use client::{Response, exchange, get, get_from};
pub use folder::Folder;
pub use nginx::{Nginx, Varied};
pub use origin::{Origin, answer};
pub use plimsoll::{Plimsoll, binary};
pub use process::{Process, free_port, program};
