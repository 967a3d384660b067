//! How alike two pictures of a page are to somebody who looks at both.
//!
//! Not by the measure that `plimsoll adapt` searches with, which would only say that its search works. Squares of 16 pixels
//! are compared by their mean colour: what has moved, is missing or has lost its colour differs there, and the grain of a
//! photograph does not. Beside it stands the mean difference of single samples.

use std::io::Cursor;

/// The side of a square (pixels).
const SQUARE: usize = 16;
/// The difference of a square's mean colour, in one channel, that is seen at a glance (of 255).
const SEEN: f64 = 10.0;

/// How alike two pictures are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likeness {
    /// The part of the squares whose colour differs by what is seen; squares that only one picture has are among them.
    pub changed: f64,
    /// The mean difference of samples (of 255), where both pictures are.
    pub mean: f64,
}

/// Red, green and blue of a PNG, and its width and height.
fn read(picture: &[u8]) -> (Vec<u8>, usize, usize) {
    let mut decoder = png::Decoder::new(Cursor::new(picture));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let read = || -> Option<(Vec<u8>, usize, usize)> {
        let mut reader = decoder.read_info().ok()?;
        let mut samples = vec![0; reader.output_buffer_size()?];
        let frame = reader.next_frame(&mut samples).ok()?;
        let channels = frame.color_type.samples();
        samples.truncate(frame.buffer_size());
        let colors = samples
            .chunks_exact(channels)
            .flat_map(|pixel| [pixel[0], pixel[1 % channels], pixel[2 % channels]]);
        Some((colors.collect(), frame.width as usize, frame.height as usize))
    };
    read().unwrap_or_else(|| panic!("no PNG"))
}

/// Compares two pictures. Panics if one is no PNG.
pub fn likeness(one: &[u8], other: &[u8]) -> Likeness {
    let ((one, one_width, one_height), (other, other_width, other_height)) = (read(one), read(other));
    let (width, height) = (one_width.min(other_width), one_height.min(other_height));
    let squares = |width: usize, height: usize| width.div_ceil(SQUARE) * height.div_ceil(SQUARE);
    let all = squares(one_width.max(other_width), one_height.max(other_height));
    let (mut changed, mut sum) = (all - squares(width, height), 0_u64);
    for top in (0..height).step_by(SQUARE) {
        for left in (0..width).step_by(SQUARE) {
            let (right, bottom) = ((left + SQUARE).min(width), (top + SQUARE).min(height));
            let mut difference = [0_i64; 3];
            for (row, column) in (top..bottom).flat_map(|row| (left..right).map(move |column| (row, column)))
            {
                let [before, after] = [(&one, one_width), (&other, other_width)].map(|(samples, width)| {
                    let at = (row * width + column) * 3;
                    [samples[at], samples[at + 1], samples[at + 2]]
                });
                for channel in 0..3 {
                    difference[channel] += i64::from(before[channel]) - i64::from(after[channel]);
                    sum += u64::from(before[channel].abs_diff(after[channel]));
                }
            }
            let pixels = ((right - left) * (bottom - top)) as f64;
            changed += usize::from(difference.iter().any(|sum| sum.unsigned_abs() as f64 / pixels > SEEN));
        }
    }
    Likeness {
        changed: changed as f64 / all.max(1) as f64,
        mean: sum as f64 / (width * height * 3).max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(height: usize, of: impl Fn(usize, usize) -> [u8; 3]) -> Vec<u8> {
        let samples: Vec<u8> = (0..64 * height).flat_map(|at| of(at % 64, at / 64)).collect();
        let mut written = Vec::new();
        let mut encoder = png::Encoder::new(&mut written, 64, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&samples).unwrap();
        writer.finish().unwrap();
        written
    }

    #[test]
    fn grain_is_not_seen_and_what_is_gone_is() {
        let grain =
            |strength: usize| picture(64, move |x, y| [((x * 7 + y * 13) % 11 * strength) as u8 + 90; 3]);
        let same = likeness(&grain(1), &grain(2));
        assert!(same.changed == 0.0 && same.mean > 1.0, "{same:?}");
        let gone = likeness(
            &picture(64, |_, _| [90; 3]),
            &picture(64, |x, y| if x < 16 && y < 16 { [200, 90, 90] } else { [90; 3] }),
        );
        assert_eq!(gone.changed, 1.0 / 16.0);
        assert_eq!(likeness(&picture(64, |_, _| [9; 3]), &picture(96, |_, _| [9; 3])).changed, 2.0 / 6.0);
    }
}
