//! What can go wrong, by number: what the C functions return, and the sentence that goes with it.

use std::fmt;

/// An error. Its number is part of the C interface and stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Fault {
    /// An argument is null, or not what it should be.
    Argument = -1,
    /// The file cannot be opened or mapped.
    File = -2,
    /// The file is no shared state.
    NotState = -3,
    /// The shared state is of another version of Plimsoll.
    Version = -4,
    /// The configuration in the shared state cannot be understood.
    Configuration = -5,
    /// All lanes belong to living processes.
    NoLane = -6,
    /// The handle belongs to the process that this one was forked from.
    Forked = -7,
    /// No site has the request's host.
    NoSite = -8,
    /// The rewritten path does not fit the buffer.
    TooLong = -9,
    /// No request has this number.
    NoRequest = -10,
    /// Something failed inside Plimsoll; this is a defect.
    Internal = -11,
    /// As many responses stay open as this process may have; the request keeps its place.
    TooManyStreams = -12,
    /// The call comes from a signal handler that has interrupted another one in the same thread.
    Interrupted = -13,
    /// The process is in another PID namespace than the controller.
    Namespace = -14,
    /// The kernel lacks what the library needs: `MADV_WIPEONFORK`, which is in Linux 4.14.
    Kernel = -15,
    /// The request's path has a dot segment: the server would serve another path than the one that was decided on.
    Path = -16,
}

impl Fault {
    /// Every fault, in the order of its number.
    ///
    /// cbindgen:ignore
    pub const ALL: [Fault; 16] = [
        Fault::Argument,
        Fault::File,
        Fault::NotState,
        Fault::Version,
        Fault::Configuration,
        Fault::NoLane,
        Fault::Forked,
        Fault::NoSite,
        Fault::TooLong,
        Fault::NoRequest,
        Fault::Internal,
        Fault::TooManyStreams,
        Fault::Interrupted,
        Fault::Namespace,
        Fault::Kernel,
        Fault::Path,
    ];

    /// The sentence, with a final NUL for C.
    pub(crate) const fn c_text(self) -> &'static str {
        match self {
            Fault::Argument => "an argument is null or wrong: a path, a client's address, or a pointer\0",
            Fault::File => {
                "the shared state cannot be opened or mapped: start `plimsoll control`, and let this user read and write its file\0"
            }
            Fault::NotState => "the file is no shared state of Plimsoll\0",
            Fault::Version => {
                "the shared state is of another version of Plimsoll: use the same version for `plimsoll control` and the server\0"
            }
            Fault::Configuration => "the configuration in the shared state cannot be understood\0",
            Fault::NoLane => {
                "all lanes of the shared state belong to living processes: start `plimsoll control` with more --lanes\0"
            }
            Fault::Forked => "the handle belongs to the parent process: call plimsoll_init after the fork\0",
            Fault::NoSite => "no site of the configuration has the request's host\0",
            Fault::TooLong => "the rewritten path does not fit the buffer\0",
            Fault::NoRequest => "no request under way has this number\0",
            Fault::Internal => "something failed inside Plimsoll; please report it\0",
            Fault::TooManyStreams => {
                "as many responses of this process stay open as `max_tunnels` allows: the request keeps its place\0"
            }
            Fault::Interrupted => "the call comes from a signal handler, in the middle of another call\0",
            Fault::Namespace => {
                "this process and `plimsoll control` are in different PID namespaces: run both in one container\0"
            }
            Fault::Path => "the request's path has a dot segment\0",
            Fault::Kernel => "the kernel lacks MADV_WIPEONFORK: use Linux 4.14 or a later one\0",
        }
    }

    /// A sentence that says what is wrong and what to do.
    pub fn text(self) -> &'static str {
        self.c_text().trim_end_matches('\0')
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Fault {}
