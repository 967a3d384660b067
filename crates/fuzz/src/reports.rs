//! What servers say of their load: a number that may be one, or none.

#[path = "../../cli/src/commands/agent/counters/totals.rs"]
mod totals;

/// A utilization from 0 to 1, and a cost that is no less than nothing.
pub fn load_report(bytes: &[u8]) {
    let (utilization, _cost) = plimsoll_gateway::fuzzing::load_report(bytes);
    assert!(utilization.is_none_or(|part| (0.0..=1.0).contains(&part)), "{utilization:?}");
}

/// Totals, whatever stands on a status page.
pub fn status_page(bytes: &[u8]) {
    let page = String::from_utf8_lossy(bytes);
    let (apache, nginx) = (totals::apache(&page), totals::nginx(&page));
    assert!(
        apache.workers.is_none_or(|workers| workers > 0 || apache.in_service.is_none_or(|busy| busy == 0))
    );
    assert_eq!((nginx.bytes, nginx.workers), (None, None));
}
