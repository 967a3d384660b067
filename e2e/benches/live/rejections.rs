//! What a rejection costs a server on the same host (UC 7.5), by the processor's own busy time and as the gateway learned it.

use plimsoll_e2e::same_host::{children, cpu, pin, rejections};
use plimsoll_e2e::{Apache, Control, Folder, Plimsoll, Process, exchange, module, open_to_all};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

/// Requests for one figure; CPU time is told in ticks of 10 ms.
const REQUESTS: usize = 12_000;
/// As many at once.
const CLIENTS: usize = 4;

/// The CPU time of a process and its children for each of many requests of a host, a connection each (us), once they are
/// answered so: no site is turned away in the first control period. Tells where more than one in a hundred is not.
fn per_request(process: &Process, server: SocketAddr, (host, path, status): (&str, &str, u16)) -> f64 {
    let taken = || {
        let pid = process.pid();
        children(pid).into_iter().chain([pid]).map(cpu).sum::<f64>()
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let ask = |count: usize| {
        let others = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    for _ in 0..count / CLIENTS {
                        if exchange(server, &request).status != status {
                            others.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
        });
        others.into_inner()
    };
    for _ in 0..100 {
        if exchange(server, &request).status == status {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    ask(REQUESTS / 2);
    let before = taken();
    let others = ask(REQUESTS);
    if others > REQUESTS / 100 {
        println!("  {host}{path}: {others} of {REQUESTS} were not answered with {status}");
    }
    1e6 * (taken() - before) / REQUESTS as f64
}

/// A file with a site whose contract is all that it may have, so that it is turned away on an idle server, and one that may
/// have all.
pub(super) fn closed_and_open(upstream: SocketAddr) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\n\
         [upstream.server]\naddress = \"{upstream}\"\ncapacity = {{ workers = 64 }}\n\
         [[site]]\nname = \"closed\"\nhost = \"closed.test\"\nshare_excess = false\n\
         guarantee = {{ rate = \"0.01/s\", burst = \"1s\" }}\n[[site]]\nname = \"open\"\n"
    )
}

/// What a rejection takes inside Apache, beside a page that Apache serves and a rejection of the gateway (UC 7.5).
pub(crate) fn show_inside() {
    let control = Control::start(&closed_and_open(([127, 0, 0, 1], 9).into()));
    let serve = |more: &str| {
        let folder = Folder::new();
        open_to_all(folder.path());
        folder.write("empty.html", "");
        folder.write("page.html", "full".repeat(6 << 10));
        let root = folder.path().display().to_string();
        Apache::with(folder, (CLIENTS as u32 * 2, 511), &["mime"], &format!("DocumentRoot {root}\n{more}"))
    };
    let decides = serve(&format!(
        "LoadModule plimsoll_module {}/mod_plimsoll.so\nPlimsollState {}\n",
        module().display(),
        control.state().display()
    ));
    let plain = serve("");
    let gateway = Plimsoll::run(&closed_and_open(plain.upstream));
    println!("CPU time of the server's own processes for a request with a connection of its own (us)");
    let row = |what: &str, value: f64| println!("  {what:<48} {value:>9.1}");
    let inside = |what| per_request(&decides.process, decides.direct, what);
    row("Apache, a rejection of the module", inside(("closed.test", "/page.html", 503)));
    row("Apache with the module, an empty page", inside(("open.test", "/empty.html", 200)));
    row("Apache with the module, a page of 24 KiB", inside(("open.test", "/page.html", 200)));
    let alone = |path| per_request(&plain.process, plain.direct, ("open.test", path, 200));
    row("Apache alone, an empty page", alone("/empty.html"));
    row("Apache alone, a page of 24 KiB", alone("/page.html"));
    row(
        "the gateway, a rejection",
        per_request(&gateway.process, gateway.address, ("closed.test", "/page.html", 503)),
    );
}

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
    // It has kept this program on one processor: what comes next has all of them.
    pin(std::process::id(), "0-1023");
}
