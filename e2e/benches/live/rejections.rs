//! What a rejection costs a server on the same host (UC 7.5), by the processor's own busy time and as the gateway learned it.

use plimsoll_e2e::same_host::rejections;
use std::time::Duration;

pub(crate) fn show() {
    println!("rejections on the server's own processor (UC 7.5)");
    for times in [40.0, 100.0] {
        let found = rejections(Duration::from_secs(10), times);
        let row = |what: &str, value: f64| println!("  {what:<48} {value:>9.3}");
        row("a page (ms of the processor)", 1e3 * found.page);
        row("rejections per second", found.rejected);
        row("pages per second", found.pages);
        row("a rejection, with the kernel's interrupts (ms)", 1e3 * found.by_processor);
        row("a rejection, of the gateway's process (ms)", 1e3 * found.by_process);
        row("a rejection, at most (ms)", 1e3 * found.at_most);
        row("a rejection, as learned (ms)", 1e3 * found.learned);
        row("the processor was busy", found.busy);
        row("U of the loop", found.measured);
        row(
            "U with rejections in seconds of the processor",
            found.measured + found.rejected * found.learned / 2.0,
        );
    }
}
