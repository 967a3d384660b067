//! Rejections, live, before a saturated nginx on the gateway's own processor: nothing is lost, and everything is accounted for.
//!
//! What c is learned, and how near it is to what the processor says, is printed by `make live`: it depends on what else the
//! machine does. That c is learned is tested in virtual time.

use plimsoll_e2e::same_host::rejections;
use std::time::Duration;

#[test]
fn a_saturated_server_on_the_same_host_is_accounted_for() {
    let found = rejections(Duration::from_secs(5), 40.0);
    println!("{found:?}");
    assert!(found.rejected > 0.0, "it was saturated: {found:?}");
    assert_eq!((found.lost, found.unaccounted), (0, 0.0), "{found:?}");
}
