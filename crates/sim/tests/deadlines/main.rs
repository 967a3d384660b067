//! Deadlines (AC) in front of one server: every admitted request is done in time, and what cannot be is refused at once.

mod scene;
mod stress;
