//! The paper AC's experiments: its server and its mix of types, SAC, CAC, tail-drop, AC itself and the engine.

mod budget;
mod engine;
mod heard;
mod plant;
mod printed;
mod priorities;
mod stress;
mod swings;
mod theorem;
mod tokens;
#[path = "../under_way/mod.rs"]
#[expect(dead_code, reason = "where the server got a request is not asked here")]
mod under_way;
