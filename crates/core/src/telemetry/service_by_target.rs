//! How the service times of a class are distributed up to its promised time.
//!
//! The mean and the deviation of service do not say which share of it takes longer than D_ref: three requests in a hundred
//! that take thirteen times as long as the others miss D_ref whatever they wait, and all others may have time to spare.
//! So requests are counted by the part of D_ref that their service took.

/// Into how many parts D_ref is divided.
pub(crate) const SERVICE_PARTS: usize = 16;

/// Requests by the part of D_ref that their service took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ServiceByTarget {
    /// All requests, longer ones too.
    pub(crate) requests: f64,
    /// Requests that took no longer than D_ref, by the part.
    pub(crate) within: [f64; SERVICE_PARTS],
    /// D_ref (s).
    pub(crate) target: f64,
}

impl ServiceByTarget {
    /// The share whose service alone takes longer than D_ref; 0 of none.
    pub(crate) fn late(&self) -> f64 {
        let within: f64 = self.within.iter().sum();
        (1.0 - within / self.requests.max(1.0)).max(0.0) * f64::from(u8::from(self.requests > 0.0))
    }

    /// The time (s) within which service ends for this part of the requests that service alone does not make late; D_ref if
    /// there are none. Within a part of D_ref requests count as evenly spread.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let wanted = part * self.within.iter().sum::<f64>();
        let mut below = 0.0;
        for (index, count) in self.within.iter().enumerate() {
            if *count > 0.0 && below + count >= wanted {
                let into = ((wanted - below) / count).clamp(0.0, 1.0);
                return self.target * (index as f64 + into) / SERVICE_PARTS as f64;
            }
            below += count;
        }
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_service_is_counted_and_no_part_of_the_quantile() {
        let mut shares = ServiceByTarget { requests: 100.0, target: 1.6, ..ServiceByTarget::default() };
        (shares.within[1], shares.within[4]) = (60.0, 36.0);
        assert!((shares.late() - 0.04).abs() < 1e-12);
        for (part, time) in [(0.0, 0.1), (0.3125, 0.15), (0.625, 0.2), (0.8125, 0.45), (1.0, 0.5)] {
            assert!((shares.quantile(part) - time).abs() < 1e-9, "{part}: {}", shares.quantile(part));
        }
        let nothing = ServiceByTarget { target: 1.6, ..ServiceByTarget::default() };
        assert_eq!((nothing.late(), nothing.quantile(0.9)), (0.0, 1.6));
    }
}
