//! Reduces the number of colours: median cut, then a few rounds of k-means.
//!
//! Boxes of colours are split at the median of their longest side until there are enough (Heckbert, "Color image quantization
//! for frame buffer display", SIGGRAPH 1982); then each colour moves to the mean of the pixels nearest to it (Lloyd). All
//! numbers are whole, so that the same pixels give the same palette on every machine. There is no dithering, because its noise
//! costs more bytes than the bands that it hides.

use std::collections::BTreeMap;

/// Red, green, blue and opacity.
pub(super) type Color = [u8; 4];

/// If there are more different colours than this, their last bits are dropped before they are counted.
const MOST_COLORS: usize = 1 << 15;
const ROUNDS: usize = 3;

/// The number of pixels of each colour; if there are many colours, they are counted more coarsely.
pub(super) struct Histogram {
    counts: Vec<(Color, u32)>,
    mask: u8,
}

impl Histogram {
    pub(super) fn of<'a>(frames: impl Iterator<Item = &'a [u8]> + Clone) -> Histogram {
        for bits in 0..4 {
            let mask = 0xff << bits;
            let mut counts = BTreeMap::new();
            for pixel in frames.clone().flat_map(|samples| samples.as_chunks::<4>().0) {
                *counts.entry(masked(*pixel, mask)).or_insert(0) += 1;
                if counts.len() > MOST_COLORS && bits < 3 {
                    break;
                }
            }
            if counts.len() <= MOST_COLORS || bits == 3 {
                return Histogram { counts: counts.into_iter().collect(), mask };
            }
        }
        unreachable!("the last mask takes all")
    }

    /// A palette of at most `most` colours, in order.
    pub(super) fn palette(&self, most: usize) -> Palette {
        let mut colors: Vec<Color> = match self.counts.len() <= most {
            true => self.counts.iter().map(|(color, _)| *color).collect(),
            false => self.cut(most),
        };
        if self.counts.len() > most {
            for _ in 0..ROUNDS {
                self.settle(&mut colors);
            }
        }
        colors.sort_unstable();
        colors.dedup();
        let places = self.counts.iter().map(|(color, _)| (*color, nearest(&colors, *color) as u8)).collect();
        Palette { colors, places, mask: self.mask }
    }

    fn cut(&self, most: usize) -> Vec<Color> {
        let mut counts = self.counts.clone();
        let mut boxes: Vec<std::ops::Range<usize>> = std::iter::once(0..counts.len()).collect();
        while boxes.len() < most {
            let worth = |part: &std::ops::Range<usize>| {
                let (_, length) = longest_side(&counts[part.clone()]);
                let pixels: u64 = counts[part.clone()].iter().map(|(_, count)| u64::from(*count)).sum();
                u64::from(length).pow(2) * pixels
            };
            let Some(which) = (0..boxes.len()).max_by_key(|&n| (worth(&boxes[n]), std::cmp::Reverse(n)))
            else {
                break;
            };
            let part = boxes[which].clone();
            if part.len() < 2 || worth(&part) == 0 {
                break;
            }
            let (side, _) = longest_side(&counts[part.clone()]);
            let inside = &mut counts[part.clone()];
            inside.sort_unstable_by_key(|(color, _)| (color[side], *color));
            let half = inside.iter().map(|(_, count)| u64::from(*count)).sum::<u64>() / 2;
            let mut seen = 0;
            let before = inside.iter().take_while(|(_, count)| {
                seen += u64::from(*count);
                seen <= half
            });
            let middle = part.start + before.count().clamp(1, part.len() - 1);
            boxes[which] = part.start..middle;
            boxes.push(middle..part.end);
        }
        boxes.into_iter().map(|part| mean(counts[part].iter().copied())).collect()
    }

    /// Moves each colour to the mean of the pixels that are nearest to it.
    fn settle(&self, colors: &mut [Color]) {
        let mut members: Vec<Vec<(Color, u32)>> = vec![Vec::new(); colors.len()];
        for &(color, count) in &self.counts {
            members[nearest(colors, color)].push((color, count));
        }
        for (color, members) in colors.iter_mut().zip(members) {
            if !members.is_empty() {
                *color = mean(members.into_iter());
            }
        }
    }
}

/// The colour without its last bits; all transparent pixels count as one colour.
fn masked(pixel: Color, mask: u8) -> Color {
    if pixel[3] == 0 {
        return [0; 4];
    }
    // The mask must not make an opaque pixel transparent.
    let opacity = if pixel[3] == 255 { 255 } else { pixel[3] & mask };
    [pixel[0] & mask, pixel[1] & mask, pixel[2] & mask, opacity]
}

fn longest_side(counts: &[(Color, u32)]) -> (usize, u8) {
    let length = |side: usize| {
        let of = counts.iter().map(|(color, _)| color[side]);
        of.clone().max().unwrap_or(0) - of.min().unwrap_or(0)
    };
    let sides = [0, 1, 2, 3].map(|side| (side, length(side)));
    sides.into_iter().max_by_key(|&(side, length)| (length, 3 - side)).unwrap_or((0, 0))
}

fn mean(members: impl Iterator<Item = (Color, u32)>) -> Color {
    let (mut sums, mut total) = ([0_u64; 4], 0_u64);
    for (color, count) in members {
        for (sum, sample) in sums.iter_mut().zip(color) {
            *sum += u64::from(sample) * u64::from(count);
        }
        total += u64::from(count);
    }
    sums.map(|sum| ((sum + total / 2) / total.max(1)) as u8)
}

fn nearest(colors: &[Color], to: Color) -> usize {
    let distance = |color: &Color| -> u32 {
        color.iter().zip(to).map(|(one, other)| u32::from(one.abs_diff(other)).pow(2)).sum()
    };
    let places = colors.iter().map(distance).enumerate();
    places.min_by_key(|&(_, distance)| distance).map_or(0, |(place, _)| place)
}

/// The colours of a palette, and the index of each counted colour in it.
pub(super) struct Palette {
    pub(super) colors: Vec<Color>,
    places: BTreeMap<Color, u8>,
    mask: u8,
}

impl Palette {
    /// The index in the palette of each pixel.
    pub(super) fn indices(&self, samples: &[u8]) -> Vec<u8> {
        let (mut last, mut place) = ([0; 4], None);
        let index = |pixel: &Color| {
            // Neighbouring pixels are often equal, so the last result is used again.
            let color = masked(*pixel, self.mask);
            if place.is_none() || color != last {
                last = color;
                place = self.places.get(&color).copied();
                place.get_or_insert_with(|| nearest(&self.colors, color) as u8);
            }
            place.unwrap_or(0)
        };
        samples.as_chunks::<4>().0.iter().map(index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(colors: &[Color]) -> Vec<u8> {
        colors.concat()
    }

    #[test]
    fn few_colors_stay_as_they_are() {
        let samples = pixels(&[[9, 0, 0, 255], [0, 0, 9, 255], [9, 0, 0, 255], [7, 7, 7, 0], [1, 2, 3, 0]]);
        let palette = Histogram::of([samples.as_slice()].into_iter()).palette(256);
        assert_eq!(palette.colors, [[0; 4], [0, 0, 9, 255], [9, 0, 0, 255]]);
        assert_eq!(palette.indices(&samples), [2, 1, 2, 0, 0]);
    }

    #[test]
    fn many_colors_go_to_the_nearest_of_few() {
        let ramp: Vec<Color> = (0..=255).map(|n| [n, n, n, 255]).collect();
        let samples = pixels(&ramp);
        let palette = Histogram::of([samples.as_slice()].into_iter()).palette(8);
        assert_eq!(palette.colors.len(), 8);
        for (n, index) in palette.indices(&samples).into_iter().enumerate() {
            let color = palette.colors[usize::from(index)];
            assert!(color[0].abs_diff(n as u8) <= 20, "{n} became {color:?}");
            assert_eq!(color[3], 255, "opaque stays opaque");
        }
    }

    #[test]
    fn the_rare_colour_that_is_far_off_is_kept() {
        let mut colors: Vec<Color> = (0..1000).map(|n| [(n % 40) as u8, (n % 37) as u8, 0, 255]).collect();
        colors.extend([[255, 0, 255, 255]; 20]);
        let samples = pixels(&colors);
        let palette = Histogram::of([samples.as_slice()].into_iter()).palette(16);
        assert!(palette.colors.contains(&[255, 0, 255, 255]), "{:?}", palette.colors);
    }
}
