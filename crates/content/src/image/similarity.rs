//! The structural similarity (SSIM) of two pictures as viewers see them, in their worst region and in colour.
//!
//! `SSIM(x, y) = (2 m_x m_y + C1)(2 c_xy + C2) / ((m_x^2 + m_y^2 + C1)(v_x + v_y + C2))`, m means, v variances, c the
//! covariance, `C1 = (0.01 * 255)^2`, `C2 = (0.03 * 255)^2`, averaged over windows (Wang, Bovik, Sheikh, Simoncelli,
//! "Image quality assessment: from error visibility to structural similarity", IEEE Trans. Image Processing 13(4),
//! 2004, eq. 13). 1 is the same picture.
//!
//! Windows are squares of 8 pixels, 4 apart, put together from sums of 4 by 4: as good as the paper's Gaussian for
//! ranking, and whole numbers until the last step. The mean of the windows is taken for each square *region* of 32 pixels,
//! and the least of these means counts: a mean over the picture hides a sky that became three bands behind a thousand
//! leaves that did not. Brightness is compared at full size, and the two differences of colour at a quarter of it: the eye is
//! less and less sensitive to patterns of colour above a cycle a degree, and blind to them at a third of the frequency at
//! which it still sees brightness (Mullen, "The contrast sensitivity of human colour vision to red-green and blue-yellow
//! chromatic gratings", J. Physiology 359, 1985). Brightness alone does not see a photograph lose its colours.

use super::raster::{Plane, Raster};

/// The grounds on which transparent pictures are compared: white, black.
const GROUNDS: [u8; 2] = [255, 0];
const BLOCK: usize = 4;
/// The side of a region (pixels of the picture).
const REGION: usize = 32;

/// Returns the similarity of a written file to its original.
pub(super) type Judge = Box<dyn Fn(&[u8]) -> f64>;

/// A picture as seen on each ground on which it is compared: on both if it is transparent. A gray picture has only its
/// brightness.
pub(super) struct Original(Vec<Vec<Plane>>);

impl Original {
    pub(super) fn of(raster: &Raster) -> Self {
        let grounds = if raster.is_transparent() { &GROUNDS[..] } else { &GROUNDS[..1] };
        Original(grounds.iter().map(|&ground| raster.planes(ground)).collect())
    }

    /// The similarity in the region, plane and ground in which the two pictures differ most; 0 if their sizes differ.
    pub(super) fn similarity(&self, raster: &Raster) -> f64 {
        let on = |(original, ground): (&Vec<Plane>, &u8)| {
            let seen = raster.planes(*ground);
            original
                .iter()
                .zip(&seen)
                .enumerate()
                .map(|(number, (one, other))| {
                    // Colour planes have a quarter of the size, and so do their regions.
                    worst(one, other, if number == 0 { REGION } else { REGION / 4 })
                })
                .fold(1.0, f64::min)
        };
        self.0.iter().zip(&GROUNDS).map(on).fold(1.0, f64::min)
    }

    /// The same for a written file, which `read` decodes; 0 if it cannot be read.
    pub(super) fn judge(self, read: impl Fn(&[u8]) -> Result<Raster, String> + 'static) -> Judge {
        Box::new(move |written| read(written).map_or(0.0, |raster| self.similarity(&raster)))
    }
}

/// The mean SSIM in the worst square region of this side; 0 if the planes' sizes differ.
pub(crate) fn worst(one: &Plane, other: &Plane, region: usize) -> f64 {
    regions(one, other, region).into_iter().fold(1.0, f64::min)
}

/// The mean SSIM of each region of this side, row by row. Pixels left over at the right and at the bottom belong to the last
/// regions.
pub(crate) fn regions(one: &Plane, other: &Plane, region: usize) -> Vec<f64> {
    let (width, height) = (one.width, one.height);
    if (width, height) != (other.width, other.height) {
        return vec![0.0];
    }
    if width < 2 * BLOCK || height < 2 * BLOCK {
        return vec![whole(one, other)];
    }
    let (columns, rows) = (width / BLOCK, height / BLOCK);
    let [across, down] = [width, height].map(|side| (side / region).max(1));
    let mut totals = vec![(0.0, 0_u32); across * down];
    let mut above = vec![Sums::default(); columns];
    let mut here = above.clone();
    for row in 0..rows {
        for (column, sums) in here.iter_mut().enumerate() {
            *sums = block(one, other, column * BLOCK, row * BLOCK);
        }
        let beside = if row > 0 { columns } else { 0 };
        for column in 1..beside {
            let (one, two, three, four) =
                (&above[column - 1].0, &above[column].0, &here[column - 1].0, &here[column].0);
            let mut sums = [0_u64; 4];
            for (which, sum) in sums.iter_mut().enumerate() {
                *sum = u64::from(one[which] + two[which] + three[which] + four[which]);
            }
            let place = |at: usize, of: usize| ((at - 1) * BLOCK / region).min(of - 1);
            let total = &mut totals[place(row, down) * across + place(column, across)];
            total.0 += window(&sums, 4 * (BLOCK * BLOCK) as u64);
            total.1 += 1;
        }
        std::mem::swap(&mut above, &mut here);
    }
    totals.into_iter().map(|(total, count)| total / f64::from(count.max(1))).collect()
}

/// The sums over a block: of x, of y, of x^2 + y^2, of xy.
#[derive(Clone, Copy, Default)]
struct Sums([u32; 4]);

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

/// Compares an image that is smaller than a window as one window.
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

    /// The mean over the whole picture.
    fn similarity(one: &Plane, other: &Plane) -> f64 {
        worst(one, other, usize::MAX)
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

    /// A sky that fades beside a wood of leaves.
    fn fading(of: impl Fn(usize, usize) -> [u8; 3]) -> Raster {
        let samples = (0..160 * 96).flat_map(|at: usize| of(at % 160, at / 160)).collect();
        Raster { width: 160, height: 96, channels: 3, samples }
    }

    #[test]
    fn a_posterised_corner_counts_and_so_does_colour_alone() {
        let leaf = |x: usize, y: usize| ((x * 7919 + y * 104_729) % 151) as u8;
        let sky = |x: usize, y: usize, step: usize| ((x + 2 * y) / step * step) as u8;
        let picture = |step: usize, tint: u8| {
            fading(move |x, y| match (x < 64, leaf(x, y)) {
                (true, _) => [sky(x, y, step), sky(x, y, step), 200],
                (false, leaf) => [leaf, leaf.saturating_sub(tint), leaf],
            })
        };
        let original = Original::of(&picture(1, 0));
        let [same, bands, tint] =
            [picture(1, 0), picture(24, 0), picture(1, 80)].map(|raster| original.similarity(&raster));
        assert!(same > 0.9999, "{same}");
        assert!(bands < 0.8, "{bands}: the sky became bands");
        // The mean over the picture, and the mean of its brightness alone, would accept both.
        let luma = |raster: &Raster| raster.planes(255).swap_remove(0);
        assert!(similarity(&luma(&picture(1, 0)), &luma(&picture(24, 0))) > 0.85);
        assert!(tint < 0.8, "{tint}: the leaves lost their colour");
    }
}
