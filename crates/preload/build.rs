//! How the shared library is linked (`examples/`). Cargo gives what is meant for examples to those that are programs only, so
//! this is for everything; to programs and tests it does nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg=-Wl,-soname,libplimsoll_preload.so");
    // It stays when a server unloads it: threads may have used it, and Apache loads its modules twice at its start.
    println!("cargo::rustc-link-arg=-Wl,-z,nodelete");
}
