//! Plimsoll: sim.
