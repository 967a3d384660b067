//! Deadlines (AC) in front of one server: every admitted request is done in time, and what cannot be is refused at once.

mod beside_delay;
mod bound;
mod estimates;
mod even_chances;
mod found;
mod locked_out;
mod long_deadlines;
mod long_requests;
mod one_band;
mod premium;
mod priorities;
mod restart;
mod scene;
mod shares;
mod stress;
mod synthetic;
mod tails;
mod tokens;
#[path = "../under_way/mod.rs"]
mod under_way;
mod waiting;
