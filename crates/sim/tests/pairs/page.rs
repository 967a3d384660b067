//! The table of all pairs: for each promise and each other one, the figure that came nearest to the bound.

use crate::Kept;
use crate::case::Case;
use crate::exceeded::{Beside, Exceeds};
use crate::harder::InCase;
use crate::promise::Promise;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Every promise beside every other

<!-- Generated; rewrite it with PLIMSOLL_BLESS=1 cargo test -p plimsoll-sim --test pairs -->

Promises are easy to keep alone. Here two promises share one server, beside a site without promises. The server has two workers
that take 10 ms a request (200 requests a second), six tenths of it for the bytes of its page. Each pair is run with both orders
of declaration, in one site and in two, with Poisson arrivals and with bursts of twice the rate, on a calm server and on one that
is offered at least 2.3 times what it can do. Two of the overloads (one site with Poisson arrivals, two sites with bursts) are
run again before a server that takes up to sixteen requests for each worker, and queues those that no worker is free for.

These are twenty runs in virtual time. Each is made with three seeds, over which the mean is taken; with a ratio it is made with
one seed, and lasts twelve times as long. A test fails where a promise breaks, and its bounds are the promises themselves. Before
a server that does not queue it fails too where one run breaks a promise; of a mean and a percentile, where status calls it missed.

A row is a promise, and a column is the promise beside it. A cell has the one of the twenty figures that came nearest to the
bound.
";

/// Compares the page in docs/ with these figures, or writes it.
pub(crate) fn is_current(all: &[Kept], exceeded: &[Beside], harder: &[InCase]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pairs.md");
    let page = page(all, exceeded, harder);
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

fn page(all: &[Kept], exceeded: &[Beside], harder: &[InCase]) -> String {
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
    page.push_str(HARDER);
    add_harder(&mut page, harder);
    page
}

/// A row for each promise, a column for each case.
fn add_harder(page: &mut String, harder: &[InCase]) {
    page.push_str("\n| promise |");
    Case::HARDER.iter().for_each(|case| _ = write!(page, " {} |", case.name()));
    _ = writeln!(page, "\n|---|{}", "---|".repeat(Case::HARDER.len()));
    for promise in Promise::ALL {
        _ = write!(page, "| {} |", promise.name());
        for case in Case::HARDER {
            let own = harder.iter().find(|own| own.case == case && own.promise == promise);
            _ = write!(page, " {} |", written(promise, own.and_then(|own| own.figure), 0));
        }
        page.push('\n');
    }
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
A ratio needs a queue to divide. If too few requests wait, the status reports the ratio as infeasible, and the run is left out;
the number in parentheses is how many of the twenty were. In each of these runs strict priority of the first class over the
second does not reach the ratio either, and the law comes within 5 % of the ratio that strict priority reaches.

There are two such cases. On the calm server hardly any request of these classes waits. Beside another class of the same site
that has a contract, both classes are inside that contract, and so are served before all others.

Before a server that queues, the bound for lighter levels is 99 %. A contract beside them needs the room above the load line, so
a burst beyond the line is rejected; and requests that wait in the server can no longer be degraded to make room.
";

const EXCEEDED: &str = "
## Beside a contract that is exceeded

Here another site exceeds its contract on the overloaded server. It sends 90 requests a second: three times the 30 that its
contract is for, or three times the bytes of 30 pages, where the contract is for 90 requests and these bytes. The two sites are
declared in both orders, with Poisson arrivals and with bursts.

The deadline is judged over the requests that are admitted. Requests beyond a contract go before sites without one
([deadlines](deadlines.md#beside-a-contract)), so that some of theirs are refused. A ratio has one seed and the length of its
pairs, and a run in which it is infeasible is judged as above.

A contract's column has the answers at full quality within a second, as a part of the 30 a second that it is for.

| promise | beside requests: nearest to the bound | the contract | beside bytes: nearest to the bound | the contract |
|---|---|---|---|---|
";

const HARDER: &str = "
## Where more is uneven

Here one thing about the server or its load is harder than above. A class with a delay or a deadline has the first priority, and
the load line is the usual one, as in a configuration that says neither. Each pair is run on the overloaded server in one site with
Poisson arrivals and, declared in the other order, in two sites with bursts; each promise beside best effort on the calm server too.
A promise must be kept in every run, of which there are two seeds. A mean may be 10 % longer in one run, and 30 % more may be late
than under a percentile, as before status says that it is missed. In every overload at least 0.75 of the server is used.

- **Found workers**: nothing of the server is configured but its address. Judged from the sixtieth second on.
- **Dear others**: requests of the site without promises take ten times as long as others, before eight workers instead of two.
- **Heavy tails**: service times are lognormal with a squared coefficient of variation of 4. Only the overload is judged, by the
  mean over the seeds, and a deadline over the requests that are admitted.
- **Lower deadline**, **lower delay**: the load comes from a class of the last priority with a deadline of 400 ms, or a mean delay of
  300 ms.
- **Parties**: the requests without promises come eight at once.

A cell has the figure nearest to the bound. A dash stands where the promise is not kept in some pair, and so is not judged:

- Heavy tails: mean delays are up to 12 % too long, 6 % instead of 5 % are late under two percentiles, and up to 4 % of the
  requests of a site with lighter levels are not answered within a second.
- Lower deadline, lower delay: a ratio is infeasible, and status says so: few requests wait. Two sites with lighter levels beside a
  lower deadline: up to a tenth of their requests is turned away.
";
