//! What the end-to-end tests stand on: the real binary, a real nginx and a real Apache, each started and stopped by its test.
//!
//! Every server listens on 127.0.0.1, at a port of its own choice or one that was just free, with its files in a folder that is
//! removed afterwards. A server is ended by its process id when its value is dropped; if the test failed, its log is printed
//! then. A program that is not installed is a failure, never a skip: every function here panics where it cannot do what its
//! first line says.
//!
//! A test in real time judges what no busy machine can change: requests are answered and accounted for exactly once, with these
//! status codes, at these levels. Every statistic is judged in virtual time, where a seed decides: see [`scenes`].

pub mod agent;
mod apache;
mod application;
mod browser;
mod built;
pub mod certificates;
mod client;
pub mod configuration;
pub mod flows;
mod folder;
pub mod hostile;
mod likeness;
mod model;
mod module;
mod nginx;
mod plimsoll;
mod preloaded;
mod process;
pub mod real_sites;
pub mod reloaded;
pub mod same_host;
pub mod scenes;
pub mod site;
mod upstream;

pub use apache::Apache;
pub use browser::{Browser, Portrait, Viewed};
pub use client::{Response, connect_from, exchange, get, get_from};
pub use folder::{Folder, open_to_all};
pub use likeness::{Likeness, likeness};
pub use model::{LIGHT_PART, LIGHT_TREE, SLOW_PAGES, ServerModel};
pub use module::{Accounts, Control, module};
pub use nginx::Nginx;
pub use plimsoll::{Plimsoll, binary, is_gone, signal};
pub use preloaded::{Preloaded, TLS_HOST, Unchanged};
pub use process::{Process, free_port, program, wait_until};
pub use upstream::{PlayedUpstream, answer, answering, serving, serving_each};
