//! How the shared library is linked (`examples/`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-examples=-Wl,-soname,libplimsoll_preload.so");
    // It stays when a server unloads it: threads may have used it, and Apache loads its modules twice at its start.
    println!("cargo::rustc-link-arg-examples=-Wl,-z,nodelete");
}
