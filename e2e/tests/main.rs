//! The end-to-end tests, in one program: built once, they share what is made for them (`plimsoll_e2e::module`) and all cores of
//! the machine.
//!
//! One file alone: `cargo test -p plimsoll-e2e --test end_to_end tls::`.

mod access_log;
mod adapted;
mod agent;
mod clients;
mod control_admin;
mod control_state;
mod corpora;
mod dashboard;
mod faults;
mod few_descriptors;
mod hanging_reload;
mod header_rules;
mod hostile_memory;
mod http2;
mod in_front_of;
mod incidents;
mod lifecycle;
mod module;
mod module_caches;
mod module_experiments;
mod module_hosts;
mod module_threads;
mod module_trees;
mod names;
mod operators_listener;
mod package;
mod pauses;
mod prefixes;
mod preload;
mod products;
mod profile;
mod prometheus;
mod proxy_protocol;
mod public_api;
mod python;
mod real_sites;
mod rejections;
mod reload;
mod reports;
mod scenes;
mod servers;
mod signed;
mod slow_clients;
mod slow_reader;
mod slow_tls;
mod spoofing;
mod state;
mod supervisor;
mod tls;
mod tls_upstreams;
mod traces;
mod tunnels;
mod tutorial;
mod unfinished_heads;
mod upgrade;
mod upgrade_http2;
#[cfg(feature = "wire")]
mod wire;
mod worker_counts;

use std::path::Path;

/// The program of the servers' pages.
fn page() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_page"))
}
