//! Judges the response to a step: when it settled, how far it overshot, how well it holds.

/// The first period from which every running mean of `window` periods stays within `tolerance` of `set_point`; `None`
/// if the run ends before it does.
pub fn settled_after(utilization: &[f64], set_point: f64, tolerance: f64, window: usize) -> Option<usize> {
    let holds = |mean: f64| (mean - set_point).abs() <= tolerance;
    let means = || utilization.windows(window).map(|w| w.iter().sum::<f64>() / window as f64);
    let settled =
        means().collect::<Vec<_>>().iter().rposition(|mean| !holds(*mean)).map_or(0, |last| last + 1);
    (settled + window <= utilization.len()).then_some(settled)
}

/// The mean; zero for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_is_for_good_and_a_dead_loop_never_does() {
        let response = [1.0, 1.0, 0.9, 0.85, 0.84, 0.86, 0.85, 0.85];
        assert_eq!(settled_after(&response, 0.85, 0.02, 3), Some(2));
        assert_eq!(settled_after(&[1.0; 8], 0.85, 0.02, 3), None);
        assert_eq!(settled_after(&[0.85, 0.85, 0.85, 1.0], 0.85, 0.02, 3), None);
    }
}
