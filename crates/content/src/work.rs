//! Work on many files at once, on every core, watched and stopped by the user.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A watcher: a progress bar, Ctrl-C.
pub trait Watch: Sync {
    /// `done` of `of` files of this step are done.
    fn progress(&self, done: usize, of: usize);
    /// The user wants it to end.
    fn stopped(&self) -> bool;
}

/// No watcher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&self, _: usize, _: usize) {}
    fn stopped(&self) -> bool {
        false
    }
}

/// Does `work` on each item; the results are in the items' order, however many threads there were.
///
/// # Errors
/// The first that `work` makes; `Interrupted` if the user stopped it.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    watch: &dyn Watch,
    work: impl Fn(&T) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len()).max(1);
    let (next, done, failed) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<Option<io::Result<R>>>> = Mutex::new(items.iter().map(|_| None).collect());
    let worker = || {
        while !failed.load(Ordering::Relaxed) && !watch.stopped() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let result = work(item);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            if let Ok(mut results) = results.lock() {
                results[at] = Some(result);
            }
            watch.progress(1 + done.fetch_add(1, Ordering::Relaxed), items.len());
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(worker);
        }
        worker();
    });
    let results = results.into_inner().map_err(|_| io::Error::other("a thread failed"))?;
    let mut done = Vec::with_capacity(results.len());
    let mut undone = false;
    for result in results {
        match result {
            Some(result) => done.push(result?),
            None => undone = true,
        }
    }
    if undone { Err(io::Error::new(io::ErrorKind::Interrupted, "stopped")) } else { Ok(done) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_counts() {
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
