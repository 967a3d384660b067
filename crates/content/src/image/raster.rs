//! Pixels: resizing, and the planes on which similarity is measured.

use std::borrow::Cow;

/// The weights of red, green and blue in the differences of blue and of red (ITU-R BT.601, in 65,536ths).
const BLUE: [i32; 3] = [-11_058, -21_710, 32_768];
const RED: [i32; 3] = [32_768, -27_439, -5_329];

/// An image in memory, its channels interleaved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raster {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// 1 gray; 3 red, green, blue; 4 red, green, blue, opacity.
    pub(crate) channels: usize,
    pub(crate) samples: Vec<u8>,
}

impl Raster {
    /// The image reduced to `width` by `height`: each pixel is the mean of the area that it covers, in whole numbers, so that
    /// the result is the same on every machine.
    pub(crate) fn reduced(&self, width: usize, height: usize) -> Raster {
        let channels = self.channels;
        let mut samples = Vec::with_capacity(width * height * channels);
        let columns: Vec<(usize, usize)> = (0..width).map(|x| span(x, width, self.width)).collect();
        let mut sums = vec![0_u32; self.width * channels];
        for y in 0..height {
            // First the rows that the pixel covers are summed, then the columns, so that each sample is read once.
            let (top, bottom) = span(y, height, self.height);
            sums.fill(0);
            for row in self.samples[top * sums.len()..bottom * sums.len()].chunks_exact(self.width * channels)
            {
                for (sum, &sample) in sums.iter_mut().zip(row) {
                    *sum += u32::from(sample);
                }
            }
            for &(left, right) in &columns {
                let count = ((bottom - top) * (right - left)) as u32;
                for channel in 0..channels {
                    let mut sum = count / 2;
                    for column in left..right {
                        sum += sums[column * channels + channel];
                    }
                    samples.push((sum / count) as u8);
                }
            }
        }
        Raster { width, height, channels, samples }
    }

    /// The image without its opacity.
    pub(crate) fn opaque(&self) -> Raster {
        let Raster { width, height, .. } = *self;
        let samples = match self.channels {
            4 => self
                .samples
                .as_chunks::<4>()
                .0
                .iter()
                .flat_map(|&[red, green, blue, _]| [red, green, blue])
                .collect(),
            _ => return self.clone(),
        };
        Raster { width, height, channels: 3, samples }
    }

    /// The image at a quarter of its width and height.
    pub(crate) fn quarter(&self) -> Raster {
        self.reduced(self.width.div_ceil(4), self.height.div_ceil(4))
    }

    /// The image scaled to fewer pixels: each is the mean of the area that it covers, where a pixel at the edge is weighted by
    /// the part of it in the area. All numbers are whole, so that the result is the same on every machine.
    pub(crate) fn scaled(&self, width: usize, height: usize) -> Raster {
        let channels = self.channels;
        let [columns, rows] = [(width, self.width), (height, self.height)].map(|(to, from)| shares(to, from));
        // Premultiplied, a transparent pixel's colour has no effect on the mean.
        let premultiplied = self.multiplied();
        let mut samples = Vec::with_capacity(width * height * channels);
        let mut sums = vec![0_u64; self.width * channels];
        for (top, weights) in &rows {
            sums.fill(0);
            for (row, weight) in weights.iter().enumerate() {
                let start = (top + row) * sums.len();
                for (sum, &sample) in sums.iter_mut().zip(&premultiplied[start..]) {
                    *sum += u64::from(sample) * weight;
                }
            }
            for (left, weights) in &columns {
                let mean = |channel: usize| {
                    let at = |column: usize| sums[(left + column) * channels + channel];
                    let sum: u64 =
                        weights.iter().enumerate().map(|(column, weight)| at(column) * weight).sum();
                    ((sum + WHOLE * WHOLE / 2) / (WHOLE * WHOLE)) as u8
                };
                samples.extend((0..channels).map(mean));
            }
        }
        let mut scaled = Raster { width, height, channels, samples };
        scaled.divide();
        scaled
    }

    /// The samples, with colours multiplied by their opacity.
    fn multiplied(&self) -> Cow<'_, [u8]> {
        if !self.is_transparent() {
            return Cow::Borrowed(&self.samples);
        }
        let multiply = |&[red, green, blue, opacity]: &[u8; 4]| {
            let part = |part: u8| ((u32::from(part) * u32::from(opacity) + 127) / 255) as u8;
            [part(red), part(green), part(blue), opacity]
        };
        self.samples.as_chunks::<4>().0.iter().flat_map(multiply).collect()
    }

    /// Divides the colours by their opacity again.
    fn divide(&mut self) {
        if self.is_transparent() {
            for [red, green, blue, opacity] in self.samples.as_chunks_mut::<4>().0 {
                let whole = u32::from(*opacity).max(1);
                for part in [red, green, blue] {
                    *part = ((u32::from(*part) * 255 + whole / 2) / whole).min(255) as u8;
                }
            }
        }
    }

    /// The image as seen on a `ground` of this brightness: its luma and, if it has colours, the differences of blue and of red
    /// at a quarter of the size.
    pub(crate) fn planes(&self, ground: u8) -> Vec<Plane> {
        let luma = self.luma(ground);
        if self.channels == 1 {
            return vec![luma];
        }
        let quarter = self.on(ground).quarter();
        let plane = |weights: [i32; 3]| {
            let samples = quarter.samples.as_chunks::<3>().0.iter().map(|pixel| {
                let sum: i32 =
                    pixel.iter().zip(weights).map(|(&part, weight)| i32::from(part) * weight).sum();
                ((sum + (128 << 16) + (1 << 15)) >> 16).clamp(0, 255) as u8
            });
            Plane { width: quarter.width, height: quarter.height, samples: samples.collect() }
        };
        vec![luma, plane(BLUE), plane(RED)]
    }

    /// The image on a gray ground of this brightness, without opacity.
    fn on(&self, ground: u8) -> Raster {
        let Raster { width, height, channels, .. } = *self;
        let mix = |&[red, green, blue, opacity]: &[u8; 4]| {
            let over = u32::from(ground) * (255 - u32::from(opacity)) + 127;
            [red, green, blue].map(|part| ((u32::from(part) * u32::from(opacity) + over) / 255) as u8)
        };
        if channels != 4 {
            return self.clone();
        }
        let samples = self.samples.as_chunks::<4>().0.iter().flat_map(mix).collect();
        Raster { width, height, channels: 3, samples }
    }

    /// The luma of every pixel, as seen on a `ground` of this brightness.
    pub(crate) fn luma(&self, ground: u8) -> Plane {
        let samples = match self.channels {
            4 => self.samples.as_chunks::<4>().0.iter().map(|pixel| over(*pixel, ground)).collect(),
            3 => self.samples.as_chunks::<3>().0.iter().map(|&pixel| luma(pixel)).collect(),
            _ => self.samples.clone(),
        };
        Plane { width: self.width, height: self.height, samples }
    }

    /// Whether a pixel lets through what is behind it.
    pub(crate) fn is_transparent(&self) -> bool {
        self.channels == 4 && self.samples.chunks_exact(4).any(|pixel| pixel[3] < 255)
    }
}

/// The brightness of one pixel (ITU-R BT.601).
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let (red, green, blue) = (u32::from(red), u32::from(green), u32::from(blue));
    ((19_595 * red + 38_470 * green + 7_471 * blue + (1 << 15)) >> 16) as u8
}

/// The brightness of one pixel over a ground.
fn over([red, green, blue, opacity]: [u8; 4], ground: u8) -> u8 {
    let (luma, opacity) = (u32::from(luma([red, green, blue])), u32::from(opacity));
    ((luma * opacity + u32::from(ground) * (255 - opacity) + 127) / 255) as u8
}

/// One channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plane {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) samples: Vec<u8>,
}

/// The sum of the weights in a mean.
const WHOLE: u64 = 1 << 12;

/// For each of `to` pixels: the first of the `from` pixels that it covers, and the weight of each.
fn shares(to: usize, from: usize) -> Vec<(usize, Vec<u64>)> {
    // The unit is such that a pixel of `from` is `to` long, and a pixel of `to` is `from` long.
    let share = |x: usize| {
        let (start, end) = (x * from, (x + 1) * from);
        let (first, last) = (start / to, end.div_ceil(to).min(from));
        // The weights are differences of a running sum that ends at the whole, so nothing is lost by rounding.
        let until = |pixel: usize| ((pixel * to).clamp(start, end) - start) as u64 * WHOLE / from as u64;
        (first, (first..last).map(|pixel| until(pixel + 1) - until(pixel)).collect())
    };
    (0..to).map(share).collect()
}

/// The range of the `from` pixels that pixel `x` of `to` covers; at least one.
fn span(x: usize, to: usize, from: usize) -> (usize, usize) {
    let start = x * from / to;
    (start, ((x + 1) * from / to).max(start + 1).min(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_image_stays_flat_in_every_size() {
        let raster = Raster { width: 7, height: 5, channels: 1, samples: vec![93; 35] };
        for (width, height) in [(1, 1), (3, 2), (6, 5), (7, 5)] {
            let reduced = raster.reduced(width, height);
            assert!(reduced.samples.iter().all(|&sample| sample == 93), "{width}x{height}");
            let scaled = raster.scaled(width, height);
            assert!(scaled.samples.iter().all(|&sample| sample == 93), "{width}x{height}");
        }
    }

    #[test]
    fn areas_are_averaged() {
        let raster =
            Raster { width: 4, height: 2, channels: 1, samples: vec![0, 10, 100, 200, 20, 30, 100, 200] };
        let reduced = raster.reduced(2, 1);
        assert_eq!(reduced.samples, [15, 150]);
    }

    #[test]
    fn edges_of_an_area_count_in_part_and_hidden_colours_do_not() {
        let raster = Raster { width: 3, height: 1, channels: 1, samples: vec![0, 90, 180] };
        assert_eq!(raster.scaled(2, 1).samples, [30, 150]);
        let raster = Raster { width: 2, height: 1, channels: 4, samples: vec![200, 0, 0, 255, 0, 255, 0, 0] };
        assert_eq!(raster.scaled(1, 1).samples, [199, 0, 0, 128]);
    }

    #[test]
    fn what_is_transparent_shows_its_ground() {
        let raster = Raster { width: 1, height: 1, channels: 4, samples: vec![0, 0, 0, 128] };
        assert!(raster.is_transparent());
        assert_eq!((raster.luma(0).samples[0], raster.luma(255).samples[0]), (0, 127));
        assert_eq!(raster.on(255).samples, [127; 3]);
    }
}
