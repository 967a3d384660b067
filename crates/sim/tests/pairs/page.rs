//! The table of all pairs: for each promise and each other one, the figure that came nearest to the bound.

use crate::Kept;
use crate::exceeded::{Beside, Exceeds};
use crate::promise::Promise;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Every promise beside every other

<!-- Generated; rewrite it with PLIMSOLL_BLESS=1 cargo test -p plimsoll-sim --test pairs -->

Promises are easy to keep alone. Here two parties share one server of two workers that take 10 ms a request (200 requests a
second), six tenths of it for the bytes of its page, beside a site without promises. Each pair is run with both orders of
declaration, in one site and in two, with Poisson arrivals and with bursts of twice the rate, on a calm server and on one that
is offered 2.3 times what it can do or more. Two of the overloads (one site with Poisson arrivals, two with bursts) are run
again before a server that is given up to sixteen times as many requests as it has workers, and queues the others itself. These
are twenty runs in virtual time, each of them with three seeds, over which the mean is taken (with a ratio each lasts twelve
times as long, with one seed). A test fails where a promise breaks, and the bounds are the promises themselves.

A row is a promise, a column what stood beside it, a cell the one of the twenty figures that came nearest to the bound.
";

/// Compares the page in docs/ with these figures, or writes it.
pub(crate) fn is_current(all: &[Kept], exceeded: &[Beside]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pairs.md");
    let page = page(all, exceeded);
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

fn page(all: &[Kept], exceeded: &[Beside]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n| promise | asked |");
    Promise::ALL.iter().for_each(|beside| _ = write!(page, " {} |", beside.name()));
    _ = writeln!(page, "\n|---|---|{}", "---|".repeat(Promise::ALL.len()));
    for promise in Promise::ALL {
        _ = write!(page, "| **{}**: {} | {} |", promise.name(), promise.figure(), promise.asked());
        for beside in Promise::ALL {
            let own: Vec<&Kept> =
                all.iter().filter(|kept| kept.promise == promise && kept.beside == beside).collect();
            _ = write!(page, " {} |", cell(promise, &own));
        }
        page.push('\n');
    }
    page.push_str(LEFT_OUT);
    page.push_str(EXCEEDED);
    for promise in exceeded.iter().filter(|beside| beside.exceeds == Exceeds::Requests) {
        let promise = promise.promise;
        _ = write!(page, "| {} |", promise.name());
        for beside in exceeded.iter().filter(|beside| beside.promise == promise) {
            let figure = written(promise, beside.figure, beside.infeasible);
            _ = write!(page, " {figure} | {:.1} % |", 100.0 * beside.of_contract);
        }
        page.push('\n');
    }
    page
}

/// The figure nearest to the bound, and how many were left out.
fn cell(promise: Promise, own: &[&Kept]) -> String {
    let feasible = own.iter().filter(|kept| !kept.infeasible);
    let nearest = feasible.clone().max_by(|a, b| a.strain().total_cmp(&b.strain()));
    written(promise, nearest.map(|kept| kept.figure), own.len() - feasible.count())
}

fn written(promise: Promise, nearest: Option<f64>, left_out: usize) -> String {
    let figure = nearest.map_or_else(|| "-".to_owned(), |figure| promise.written(figure));
    match left_out {
        0 => figure,
        left_out => format!("{figure} ({left_out})"),
    }
}

const LEFT_OUT: &str = "
A ratio needs a queue to divide. Where too few requests wait for it, status says that it is infeasible, and the run is left
out; in parentheses is how many of the twenty were. In each of them strict priority of the first class over the second
reaches less than the ratio too, and the law comes within 5 % of what that reaches.

Almost nobody of these classes waits on the calm server, and beside another class of the same site that has a contract both
classes are inside it, and so before everybody else.

Lighter levels are asked for 99 % before a server that queues: a contract beside them needs the room above the load line, so a
burst beyond the line is turned away, and what waits in the server cannot be degraded any more to make room.
";

const EXCEEDED: &str = "
## Beside a contract that is exceeded

Another site sends three times the 30 requests a second that its contract is for, or three times the bytes of so many pages
where its contract is for as many requests as come, on the overloaded server, in two sites, with
both orders of declaration, Poisson arrivals and bursts. The deadline is judged over the requests that are admitted here: what the
site sends beyond its contract goes before sites without one ([deadlines](deadlines.md#beside-a-contract)), so that some of
theirs are refused. A ratio has one seed and the length of its pairs, and a run in which it is infeasible is judged as above.

A contract's column says how many answers in full come within a second, of the 30 that it is for.

| promise | beside requests: nearest to the bound | the contract | beside bytes: nearest to the bound | the contract |
|---|---|---|---|---|
";
