//! Deadlines (AC) in front of one server: every admitted request is done in time, and what cannot be is refused at once.

mod bound;
mod estimates;
mod found;
mod locked_out;
mod long_requests;
mod premium;
mod priorities;
mod restart;
mod scene;
mod shares;
mod stress;
mod synthetic;
mod tokens;
mod waiting;
