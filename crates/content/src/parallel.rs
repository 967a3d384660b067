//! Work on many files at once, on every core, which the user can watch and stop; and the two sorts of its failures.

use rayon::prelude::*;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A watcher, such as a progress bar, that also reports Ctrl-C.
pub trait Watch: Sync {
    /// Called when `done` of `of` files of this step are done.
    fn progress(&self, done: usize, of: usize);
    /// Whether the user wants the work to end.
    fn stopped(&self) -> bool;
}

/// A watcher that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&self, _: usize, _: usize) {}
    fn stopped(&self) -> bool {
        false
    }
}

/// Does `work` on each item; the results are in the items' order, whatever the number of threads.
///
/// # Errors
/// The first error of `work`; or `Interrupted` if the user stopped the work.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    watch: &dyn Watch,
    work: impl Fn(&T) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let done = AtomicUsize::new(0);
    let watched = |item| {
        if watch.stopped() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped"));
        }
        let result = work(item)?;
        watch.progress(1 + done.fetch_add(1, Ordering::Relaxed), items.len());
        Ok(result)
    };
    // One image may take as long as a thousand pages, so no thread takes several items at a time.
    items.par_iter().with_max_len(1).map(watched).collect()
}

/// The error for input that cannot be used: it says where, what is wrong, and what to write instead.
pub(crate) fn refused(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

/// The same error with the name of its file.
pub(crate) fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_an_error_counts() {
        let items: Vec<usize> = (0..100).collect();
        let squares = each(&items, &Unwatched, |n| Ok(n * n)).unwrap();
        assert_eq!(squares[99], 9801);
        let error = each(&items, &Unwatched, |n| if *n == 50 { Err(io::Error::other("no")) } else { Ok(()) });
        assert_eq!(error.unwrap_err().to_string(), "no");
    }

    struct Impatient(AtomicUsize);
    impl Watch for Impatient {
        fn progress(&self, done: usize, _: usize) {
            self.0.store(done, Ordering::Relaxed);
        }
        fn stopped(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= 3
        }
    }

    #[test]
    fn it_stops_when_told() {
        let items = [(); 1000];
        let error = each(&items, &Impatient(AtomicUsize::new(0)), |()| Ok(())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
