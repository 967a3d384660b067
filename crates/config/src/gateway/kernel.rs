//! Work that Linux does in the gateway's place.

use super::file::ConfigurationKeys;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::section;

section! { "[kernel]"
    /// Work that Linux does in the gateway's place.
    KernelKeys {
        /// Whether the system itself resets the connections of a client that was turned away by `reject_at_accept`, until
        /// the client may come again, a minute at most. Such connections wake no process. Needs nftables and
        /// `CAP_NET_ADMIN`; see [security](security.md#before-a-connection-comes).
        shed: bool, default(false);
    }
}

/// Whether the system resets rejected clients' connections. Refuses the key if the gateway could not know such clients.
pub(super) fn shed(file: &ConfigurationKeys, findings: &mut Findings) -> bool {
    let shed = &file.kernel.value.shed;
    if shed.value && !file.gateway.value.reject_at_accept.value {
        refuse!(findings, Conflict at &shed.span,
            "no client would ever be turned away so: it must have been turned away at accept before",
            help: "write `reject_at_accept = true` under [gateway], or leave `shed` out");
    }
    shed.value
}
