//! Finds the best quality of an image that fits into a number of bytes.

use super::similarity::Judge;

/// The ways to write one image, in steps of quality.
pub(super) struct Ladder {
    /// The number of steps, the lowest quality first. Bytes and similarity grow from step to step.
    pub(super) steps: usize,
    /// Writes the image in a step; `None` if it cannot be written.
    pub(super) write: Box<dyn FnMut(usize) -> Option<Vec<u8>>>,
    /// How similar a written file is to the original.
    pub(super) similarity: Judge,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The most bytes of the file, if a similar enough file fits; 0 for as few as possible.
    pub(super) bytes: usize,
    /// The least similarity; it takes precedence over the bytes.
    pub(super) similarity: f64,
    /// Once this similarity is reached no further byte is spent.
    pub(super) enough: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) written: Vec<u8>,
    /// The structural similarity to the original.
    pub(crate) similarity: f64,
}

impl Wanted {
    /// The better of two files that are similar enough: the more similar one of those that fit; but the smaller one if both
    /// reach `enough`, or none fits.
    pub(super) fn better(self, one: Found, other: Found) -> Found {
        let fits = |found: &Found| found.written.len() <= self.bytes && found.similarity >= self.similarity;
        let worth_more = one.similarity.min(other.similarity) < self.enough;
        let first = match (fits(&one), fits(&other)) {
            (true, true) if worth_more => one.similarity >= other.similarity,
            (true, true) | (false, false) => one.written.len() <= other.written.len(),
            (first, _) => first,
        };
        if first { one } else { other }
    }
}

/// The most similar file that fits, or the smallest one that reaches `enough`. If no file that fits is similar enough, the
/// smallest file that is similar enough; `None` if there is none.
pub(super) fn best(mut ladder: Ladder, wanted: Wanted) -> Option<Found> {
    let ladder = &mut ladder;
    let fitting = last_that_fits(ladder, wanted.bytes).map(|written| {
        let similarity = (ladder.similarity)(&written);
        Found { written, similarity }
    });
    match fitting {
        Some(found) if found.similarity > wanted.enough => {
            let smallest = first_similar(ladder, wanted.enough);
            Some(smallest.filter(|smallest| smallest.written.len() < found.written.len()).unwrap_or(found))
        }
        Some(found) if found.similarity >= wanted.similarity => Some(found),
        _ => first_similar(ladder, wanted.similarity),
    }
}

/// The search ends at a file with this part of the allowed bytes, because another try costs more than it gains.
const NEAR: f64 = 0.975;
/// The ratio of the bytes of the highest step to those of the lowest, assumed until two steps are known.
const SPAN: f64 = 10.0;
/// After this number of guesses the search halves the remaining steps.
const GUESSES: usize = 5;

/// The highest step whose file has at most `bytes` bytes; the search stops early if a file is nearly as large.
///
/// Bytes grow about exponentially with the step, so the next try is where the line through the last two logarithms meets the
/// wanted one: three or four tries instead of seven by halving.
fn last_that_fits(ladder: &mut Ladder, bytes: usize) -> Option<Vec<u8>> {
    if bytes == 0 {
        return None;
    }
    let (mut low, mut high, mut found) = (0, ladder.steps, None);
    let mut slope = SPAN.ln() / ladder.steps as f64;
    let mut last: Option<(usize, f64)> = None;
    for tries in 0.. {
        if low >= high {
            break;
        }
        let guess = last.filter(|_| tries < GUESSES).map(|(step, length)| {
            let ahead = ((bytes as f64).ln() - length) / slope;
            (step as f64 + ahead).clamp(low as f64, (high - 1) as f64) as usize
        });
        // The first try is at a third, because a file with an eighth of the bytes lies in the lower half.
        let first = if last.is_none() { 3 } else { 2 };
        let step = guess.unwrap_or(low + (high - low) / first);
        let written = (ladder.write)(step)?;
        let length = (written.len() as f64).ln();
        if let Some((before, known)) = last {
            let between = (length - known) / (step as f64 - before as f64);
            slope = if between > 0.0 { between } else { slope };
        }
        last = Some((step, length));
        if written.len() <= bytes {
            low = step + 1;
            let near = written.len() as f64 >= NEAR * bytes as f64;
            found = Some(written);
            if near {
                break;
            }
        } else {
            high = step;
        }
    }
    found
}

/// The search ends at a file that exceeds the least similarity by no more than this, because the next lower step is hardly
/// smaller.
const CLOSE: f64 = 0.004;

/// The lowest step that is at least this similar, or one that is hardly above it.
///
/// Similarity grows smoothly with the step, so the next try is where the line between the two nearest known steps meets the
/// wanted similarity; but every second try halves the remaining steps, because the line may be far from straight.
fn first_similar(ladder: &mut Ladder, least: f64) -> Option<Found> {
    let (mut low, mut high, mut found) = (0, ladder.steps, None);
    // The similarities found at the step below `low` and at `high`.
    let (mut below, mut above): (Option<f64>, Option<f64>) = (None, None);
    for tries in 0.. {
        if low >= high {
            break;
        }
        let half = low + (high - low) / 2;
        let step = match (below, above) {
            (Some(below), Some(above)) if tries % 2 == 0 => {
                let part = (least - below) / (above - below);
                let ahead = part * (high - low + 1) as f64;
                ((low as f64 - 1.0 + ahead).ceil() as usize).clamp(low, high - 1)
            }
            _ => half,
        };
        let written = (ladder.write)(step)?;
        let similarity = (ladder.similarity)(&written);
        if similarity >= least {
            (high, above) = (step, Some(similarity));
            found = Some(Found { written, similarity });
            if similarity - least < CLOSE {
                break;
            }
        } else {
            (low, below) = (step + 1, Some(similarity));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// A ladder of 100 steps of 10 bytes, with similarity step / 100. It counts its writes in `writes`.
    fn model(writes: &Rc<Cell<usize>>) -> Ladder {
        let writes = Rc::clone(writes);
        Ladder {
            steps: 100,
            write: Box::new(move |step| {
                writes.set(writes.get() + 1);
                let mut written = vec![step as u8];
                written.resize(2 + step * 10, 3);
                Some(written)
            }),
            similarity: Box::new(|written| f64::from(written[0]) / 100.0),
        }
    }

    fn of(bytes: usize, similarity: f64) -> (u8, usize) {
        let writes = Rc::default();
        let found = best(model(&writes), Wanted { bytes, similarity, enough: 1.0 }).unwrap();
        (found.written[0], writes.get())
    }

    #[test]
    fn the_best_that_fits() {
        let (step, writes) = of(702, 0.5);
        assert!((69..=70).contains(&step), "{step}");
        assert!(writes <= 4, "{writes}");
    }

    #[test]
    fn what_cannot_fit_keeps_the_factor_that_it_can() {
        assert_eq!(of(100, 0.75).0, 75);
        let enough = Wanted { bytes: 702, similarity: 0.3, enough: 0.4 };
        assert_eq!(
            best(model(&Rc::default()), enough).unwrap().written[0],
            40,
            "no byte beyond what is seen"
        );
        assert_eq!(of(0, 0.75).0, 75, "as few bytes as are similar enough");
        assert_eq!(best(model(&Rc::default()), Wanted { bytes: 100, similarity: 1.1, enough: 1.1 }), None);
    }
}
