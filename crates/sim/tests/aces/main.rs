//! The paper AC's experiments: its server and its mix of types, SAC, CAC, tail-drop, AC itself and the engine.

mod budget;
mod engine;
mod heard;
mod plant;
mod priorities;
mod stress;
mod theorem;
mod tokens;
