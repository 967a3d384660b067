//! The table of all pairs: for each promise and each other one, the figure that came nearest to the bound.

use crate::Kept;
use crate::promise::Promise;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Every promise beside every other

<!-- Generated; rewrite it with PLIMSOLL_BLESS=1 cargo test -p plimsoll-sim --test pairs -->

Promises are easy to keep alone. Here two parties share one server of two workers that take 10 ms a request (200 requests a
second), beside a site without promises. Each pair is run with both orders of declaration, in one site and in two, with
Poisson arrivals and with bursts of twice the rate, on a calm server and on one that is offered 2.3 times what it can do or
more: sixteen runs in virtual time. A test fails where a promise breaks.

A row is a promise, a column what stood beside it, a cell the one of the sixteen figures that came nearest to the bound.
";

/// Compares the page in docs/ with these figures, or writes it.
pub(crate) fn is_current(all: &[Kept]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pairs.md");
    let page = page(all);
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&path, &page).expect("docs can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != page {
        println!("{page}");
        panic!(
            "docs/pairs.md has other figures than these; if they are meant, rewrite it with\n\
             PLIMSOLL_BLESS=1 cargo test -p plimsoll-sim --test pairs"
        );
    }
}

fn page(all: &[Kept]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n| promise | asked |");
    Promise::ALL.iter().for_each(|beside| _ = write!(page, " {} |", beside.name()));
    _ = writeln!(page, "\n|---|---|{}", "---|".repeat(Promise::ALL.len()));
    for promise in Promise::ALL {
        _ = write!(page, "| **{}**: {} | {} |", promise.name(), promise.figure(), promise.asked());
        for beside in Promise::ALL {
            let own = all.iter().filter(|kept| kept.promise == promise && kept.beside == beside);
            let feasible =
                own.filter_map(|kept| kept.figure.map(|figure| (kept.bound.strain(figure), figure)));
            let nearest = feasible.max_by(|a, b| a.0.total_cmp(&b.0));
            _ = match nearest {
                Some((_, figure)) => write!(page, " {} |", promise.written(figure)),
                None => write!(page, " - |"),
            };
        }
        page.push('\n');
    }
    page.push_str(
        "\nA ratio needs a queue to divide. Where too few requests wait for it, status says that it is infeasible, and the run is\n\
         left out.\n",
    );
    page
}
