//! The shared library to preload, `libplimsoll_preload.so`: nothing but the functions of [`plimsoll_preload::calls`]. It is an
//! example to Cargo, so that the tests build it together with everything else; `.ci/module` puts it in its place.

pub use plimsoll_preload::calls;
