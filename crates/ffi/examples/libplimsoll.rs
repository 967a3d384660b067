//! The shared library in C, `libplimsoll.so`: nothing but the functions of [`plimsoll_ffi::api`]. It is an example to Cargo, so
//! that the tests build it together with everything else; `.ci/module` puts it in its place.

pub use plimsoll_ffi::api;
