//! Pixels: resizing, and the luma that similarity is measured on.

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
    /// Reduced to `width` by `height`: each pixel the mean of the area that it covers, in whole numbers, so that every
    /// machine makes the same.
    pub(crate) fn reduced(&self, width: usize, height: usize) -> Raster {
        let channels = self.channels;
        let mut samples = Vec::with_capacity(width * height * channels);
        let columns: Vec<(usize, usize)> = (0..width).map(|x| span(x, width, self.width)).collect();
        let mut sums = vec![0_u32; self.width * channels];
        for y in 0..height {
            // First the rows that it covers, added up, then the columns: each sample is read once.
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

    /// Without its opacity.
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

    /// Half as wide and half as high.
    pub(crate) fn half(&self) -> Raster {
        self.reduced(self.width.div_ceil(2), self.height.div_ceil(2))
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

impl Plane {
    /// Enlarged bilinearly, as a browser does it, so that what was lost by reducing shows.
    pub(crate) fn enlarged(self, width: usize, height: usize) -> Plane {
        if (width, height) == (self.width, self.height) {
            return self;
        }
        let columns: Vec<_> = (0..width).map(|x| between(x, width, self.width)).collect();
        let mut samples = Vec::with_capacity(width * height);
        for y in 0..height {
            let (above, below, down) = between(y, height, self.height);
            let upper = &self.samples[above * self.width..][..self.width];
            let lower = &self.samples[below * self.width..][..self.width];
            for &(left, right, along) in &columns {
                // Hot: array methods in place of these four lines cost three times as much.
                let above = u32::from(upper[left]) * (256 - along) + u32::from(upper[right]) * along;
                let below = u32::from(lower[left]) * (256 - along) + u32::from(lower[right]) * along;
                samples.push(((above * (256 - down) + below * down + (1 << 15)) >> 16) as u8);
            }
        }
        Plane { width, height, samples }
    }
}

/// The part of `from` pixels that pixel `x` of `to` covers; at least one.
fn span(x: usize, to: usize, from: usize) -> (usize, usize) {
    let start = x * from / to;
    (start, ((x + 1) * from / to).max(start + 1).min(from))
}

/// The two pixels of `from` between whose centres the centre of pixel `x` of `to` lies, and how far along, in 256ths.
fn between(x: usize, to: usize, from: usize) -> (usize, usize, u32) {
    let place = ((2 * x + 1) * from * 128 / to).saturating_sub(128);
    let left = (place / 256).min(from - 1);
    (left, (left + 1).min(from - 1), (place % 256) as u32)
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
            let enlarged = reduced.luma(255).enlarged(7, 5);
            assert_eq!(enlarged.samples, raster.samples);
        }
    }

    #[test]
    fn areas_are_averaged_and_gaps_filled() {
        let raster =
            Raster { width: 4, height: 2, channels: 1, samples: vec![0, 10, 100, 200, 20, 30, 100, 200] };
        let reduced = raster.reduced(2, 1);
        assert_eq!(reduced.samples, [15, 150]);
        let enlarged = reduced.luma(0).enlarged(4, 1).samples;
        assert_eq!(enlarged, [15, 49, 116, 150]);
    }

    #[test]
    fn what_is_transparent_shows_its_ground() {
        let raster = Raster { width: 1, height: 1, channels: 4, samples: vec![0, 0, 0, 128] };
        assert!(raster.is_transparent());
        assert_eq!((raster.luma(0).samples[0], raster.luma(255).samples[0]), (0, 127));
    }
}
