//! Tagged amounts, under every interleaving of threads that loom can make.
//!
//! What is added to a tagged amount is taken back once, or is over with its period.
//!
//! `make model-check` runs it (RUSTFLAGS="--cfg loom").

use crate::sync::tagged::Tagged;
use loom::sync::Arc;
use loom::thread;

/// One thread adds and takes back, as for a refused request; another adds for good; a third begins the next period.
#[test]
fn of_a_tagged_amount_nothing_leaks_and_nothing_of_others_is_taken() {
    loom::model(|| {
        let amount = Arc::new(Tagged::default());
        let spawn = |act: fn(&Tagged)| {
            let amount = amount.clone();
            thread::spawn(move || act(&amount))
        };
        let refused = spawn(|amount| {
            amount.add(1, 5);
            amount.subtract(1, 5);
        });
        let next = spawn(|amount| amount.add(2, 7));
        amount.add(1, 3);
        refused.join().unwrap();
        next.join().unwrap();
        let (tag, us) = amount.get();
        // A late thread with the old tag takes the word over; else the word holds work of the next period alone.
        assert!((tag, us) == (2, 7) || tag == 1 && [0, 3].contains(&us), "{tag} {us}");
    });
}

/// A request is charged and refused while a period ends: neither period keeps any of its work.
#[test]
fn a_request_refused_as_a_period_ends_is_charged_to_neither() {
    loom::model(|| {
        let amount = Arc::new(Tagged::default());
        amount.begin(1);
        let other = {
            let amount = amount.clone();
            thread::spawn(move || {
                let tag = amount.join(5);
                amount.correct(tag, (5, 0));
            })
        };
        amount.begin(2);
        let tag = amount.join(3);
        other.join().unwrap();
        assert_eq!((tag, amount.get()), (2, (2, 3)));
    });
}
