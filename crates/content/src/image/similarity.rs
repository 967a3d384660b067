//! Structural similarity (SSIM) of two luma planes, and of two pictures as they are seen.
//!
//! `SSIM(x, y) = (2 m_x m_y + C1)(2 c_xy + C2) / ((m_x^2 + m_y^2 + C1)(v_x + v_y + C2))`, m means, v variances, c the
//! covariance, `C1 = (0.01 * 255)^2`, `C2 = (0.03 * 255)^2`, averaged over windows (Wang, Bovik, Sheikh, Simoncelli,
//! "Image quality assessment: from error visibility to structural similarity", IEEE Trans. Image Processing 13(4),
//! 2004, eq. 13). 1 is the same picture.
//!
//! Windows are squares of 8 pixels, 4 apart, put together from sums of 4 by 4: as good as the paper's Gaussian for
//! ranking, and whole numbers until the last step. Nothing is scaled down first, which would flatter.

use super::raster::{Plane, Raster};

/// The grounds on which transparent pictures are compared: white, black.
const GROUNDS: [u8; 2] = [255, 0];
const BLOCK: usize = 4;

/// Says how similar a written file is to its original.
pub(super) type Judge = Box<dyn Fn(&[u8]) -> f64>;

/// The luma of a picture on each ground on which it is compared: on both if it is transparent.
pub(super) struct Original(Vec<Plane>);

impl Original {
    pub(super) fn of(raster: &Raster) -> Self {
        let grounds = if raster.is_transparent() { &GROUNDS[..] } else { &GROUNDS[..1] };
        Original(grounds.iter().map(|&ground| raster.luma(ground)).collect())
    }

    /// Similarity at the original's size, on the background on which the two differ most.
    fn similarity(&self, raster: &Raster) -> f64 {
        let on = |(original, ground): (&Plane, &u8)| {
            similarity(original, &raster.luma(*ground).enlarged(original.width, original.height))
        };
        self.0.iter().zip(&GROUNDS).map(on).fold(1.0, f64::min)
    }

    /// The same for a written file, which `read` decodes; 0 for one that cannot be read.
    pub(super) fn judge(self, read: impl Fn(&[u8]) -> Result<Raster, String> + 'static) -> Judge {
        Box::new(move |written| read(written).map_or(0.0, |raster| self.similarity(&raster)))
    }
}

/// The sums of a block: of x, of y, of x^2 + y^2, of xy.
#[derive(Clone, Copy, Default)]
struct Sums([u32; 4]);

/// The mean SSIM of two planes of one size.
pub(crate) fn similarity(one: &Plane, other: &Plane) -> f64 {
    let (width, height) = (one.width, one.height);
    if width < 2 * BLOCK || height < 2 * BLOCK {
        return whole(one, other);
    }
    let (columns, rows) = (width / BLOCK, height / BLOCK);
    let mut above = vec![Sums::default(); columns];
    let mut here = above.clone();
    let mut total = 0.0;
    for row in 0..rows {
        for (column, sums) in here.iter_mut().enumerate() {
            *sums = block(one, other, column * BLOCK, row * BLOCK);
        }
        if row > 0 {
            for column in 1..columns {
                let (one, two, three, four) =
                    (&above[column - 1].0, &above[column].0, &here[column - 1].0, &here[column].0);
                let mut sums = [0_u64; 4];
                for (which, sum) in sums.iter_mut().enumerate() {
                    *sum = u64::from(one[which] + two[which] + three[which] + four[which]);
                }
                total += window(&sums, 4 * (BLOCK * BLOCK) as u64);
            }
        }
        std::mem::swap(&mut above, &mut here);
    }
    total / ((columns - 1) * (rows - 1)) as f64
}

fn block(one: &Plane, other: &Plane, left: usize, top: usize) -> Sums {
    let mut sums = [0_u32; 4];
    for row in top..top + BLOCK {
        let start = row * one.width + left;
        let pair = one.samples[start..start + BLOCK].iter().zip(&other.samples[start..start + BLOCK]);
        for (&x, &y) in pair {
            add(&mut sums, x, y);
        }
    }
    Sums(sums)
}

fn add<T: From<u8> + Copy + std::ops::AddAssign + std::ops::Mul<Output = T> + std::ops::Add<Output = T>>(
    sums: &mut [T; 4],
    x: u8,
    y: u8,
) {
    let (x, y) = (T::from(x), T::from(y));
    sums[0] += x;
    sums[1] += y;
    sums[2] += x * x + y * y;
    sums[3] += x * y;
}

/// An image that is smaller than a window is compared as one window.
fn whole(one: &Plane, other: &Plane) -> f64 {
    let mut sums = [0_u64; 4];
    for (&x, &y) in one.samples.iter().zip(&other.samples) {
        add(&mut sums, x, y);
    }
    window(&sums, one.samples.len().max(1) as u64)
}

fn window(sums: &[u64; 4], count: u64) -> f64 {
    let mean = |which: usize| sums[which] as f64 / count as f64;
    let (x, y, squares, products) = (mean(0), mean(1), mean(2), mean(3));
    let (c1, c2) = ((0.01_f64 * 255.0).powi(2), (0.03_f64 * 255.0).powi(2));
    let covariance = products - x * y;
    let variances = squares - x * x - y * y;
    (2.0 * x * y + c1) * (2.0 * covariance + c2) / ((x * x + y * y + c1) * (variances + c2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(width: usize, height: usize, of: impl Fn(usize, usize) -> u8) -> Plane {
        let samples = (0..width * height).map(|at| of(at % width, at / width)).collect();
        Plane { width, height, samples }
    }

    #[test]
    fn the_same_picture_is_one_and_its_negative_far_from_it() {
        let picture = plane(64, 48, |x, y| ((x * 7 + y * 13) % 256) as u8);
        let negative = plane(64, 48, |x, y| 255 - ((x * 7 + y * 13) % 256) as u8);
        assert!((similarity(&picture, &picture) - 1.0).abs() < 1e-12);
        assert!(similarity(&picture, &negative) < 0.0);
    }

    #[test]
    fn flat_pictures_differ_by_brightness_alone() {
        // All variances 0: (2 m n + C1) / (m^2 + n^2 + C1).
        let (one, other) = (plane(16, 16, |_, _| 100), plane(16, 16, |_, _| 120));
        let expected = (2.0 * 12_000.0 + 6.5025) / (10_000.0 + 14_400.0 + 6.5025);
        assert!((similarity(&one, &other) - expected).abs() < 1e-9);
        assert!((similarity(&plane(3, 3, |_, _| 100), &plane(3, 3, |_, _| 120)) - expected).abs() < 1e-9);
    }

    #[test]
    fn more_noise_is_less_similar() {
        let noise = |x: usize, y: usize| (x * 7919 + y * 104_729) % 17;
        let picture = plane(64, 64, |x, y| (40 + 2 * x + y) as u8);
        let with =
            |strength: usize| plane(64, 64, |x, y| (40 + 2 * x + y + noise(x, y) * strength / 4) as u8);
        let [little, more] = [1, 4].map(|strength| similarity(&picture, &with(strength)));
        assert!(1.0 > little && little > more && more > 0.0, "{little} {more}");
    }
}
