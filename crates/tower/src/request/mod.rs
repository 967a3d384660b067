//! One request's way: what the engine sees of it, its decision, its place, its response.
//!
//! - `view`: a request's head as the classification sees it
//! - `arrival`: a request is put to the engine
//! - `decision`: what the handler and the layers around it are told
//! - `guard`: permits that depart on drop
//! - `future`: from the decision to the response
//! - `body`: the response's body, to its last frame
//! - `grpc`: how a call of gRPC has ended
//! - `rejection`: the answer to a request that is turned away

pub(crate) mod arrival;
pub(crate) mod body;
pub(crate) mod decision;
pub(crate) mod future;
pub(crate) mod grpc;
pub(crate) mod guard;
pub(crate) mod rejection;
pub(crate) mod view;
