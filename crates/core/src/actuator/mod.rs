//! Room: what loops write and requests read.
//!
//! *In*: the allocation at the end of a period. *Out*: one word for each class, the service level m, which each arrival
//! reads, and the capacity of each plant.
//!
//! - `service_level`: m in one word
//! - `levels_by_plant`: the service levels of a class whose levels several plants serve
//! - `level_of_client`: the level of a client at m, chosen from its hash
//! - `fraction_calibration`: which fraction of the clients sends the wanted fraction of the requests
//! - `capacity`: the workers of a plant, the most requests that it is given at once, and the part of them for streams
//! - `retry_after`: when a request that is turned away may come again

pub(crate) mod capacity;
pub(crate) mod fraction_calibration;
pub(crate) mod level_of_client;
pub(crate) mod levels_by_plant;
pub(crate) mod retry_after;
pub(crate) mod service_level;
