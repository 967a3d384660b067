//! GIF: read, and written again with fewer colours or frames.
//!
//! Frames are composed on their canvas as a viewer does it (GIF89a, 23), so that some can be left out; each kept frame is shown
//! for as long as the frames that it replaces.

use super::palette::Histogram;
use super::png::COLORS;
use super::raster::Raster;
use super::search::Ladder;
use super::similarity::Original;
use super::within_bounds;
use gif::{ColorOutput, DecodeOptions, DisposalMethod, Encoder, Frame, Repeat};

/// One picture of a GIF, as a viewer shows it.
struct Shown {
    raster: Raster,
    /// How long the picture is shown (1/100 s).
    delay: u16,
}

struct Gif {
    frames: Vec<Shown>,
    repeat: Repeat,
}

fn read(bytes: &[u8]) -> Result<Gif, String> {
    let wrong = |error: gif::DecodingError| error.to_string();
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    let mut decoder = options.read_info(bytes).map_err(wrong)?;
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    let mut canvas = Raster { width, height, channels: 4, samples: vec![0; width * height * 4] };
    let mut frames = Vec::new();
    while let Some(frame) = decoder.read_next_frame().map_err(wrong)? {
        within_bounds(width, height * (frames.len() + 1))?;
        let before = (frame.dispose == DisposalMethod::Previous).then(|| canvas.clone());
        draw(&mut canvas, frame, |under, over| if over[3] > 0 { over } else { under });
        frames.push(Shown { raster: canvas.clone(), delay: frame.delay });
        match frame.dispose {
            DisposalMethod::Background => draw(&mut canvas, frame, |_, _| [0; 4]),
            DisposalMethod::Previous => canvas = before.unwrap_or(canvas),
            DisposalMethod::Any | DisposalMethod::Keep => {}
        }
    }
    if frames.is_empty() || width == 0 || height == 0 {
        return Err("no picture in it".to_owned());
    }
    Ok(Gif { frames, repeat: decoder.repeat() })
}

/// The picture of a GIF with a single frame; `None` if the GIF moves.
pub(super) fn still(bytes: &[u8]) -> Result<Option<Raster>, String> {
    let mut frames = read(bytes)?.frames;
    Ok((frames.len() == 1).then(|| frames.swap_remove(0).raster))
}

fn draw(canvas: &mut Raster, frame: &Frame<'_>, mix: impl Fn([u8; 4], [u8; 4]) -> [u8; 4]) {
    let (left, top, width) = (usize::from(frame.left), usize::from(frame.top), usize::from(frame.width));
    for (place, pixel) in frame.buffer.as_chunks::<4>().0.iter().enumerate() {
        let (x, y) = (left + place % width, top + place / width);
        if x < canvas.width && y < canvas.height {
            let at = &mut canvas.samples.as_chunks_mut::<4>().0[y * canvas.width + x];
            *at = mix(*at, *pixel);
        }
    }
}

/// The steps of a moving image that may lose frames: each keeps every n-th frame (0: only the first) and at most this number of
/// colours. The colours grow from step to step, because similarity is measured only on the frames that are kept.
const FEWER: [(usize, usize); 7] = [(0, 32), (0, 64), (8, 64), (4, 64), (2, 64), (2, 128), (1, 128)];

/// The ladder of a moving image, by its colours and, if frames `may_go`, by its frames. Its similarity is that of the least
/// similar frame written.
///
/// # Errors
/// The image cannot be read.
pub(super) fn ladder(bytes: &[u8], may_go: bool) -> Result<Ladder, String> {
    let gif = read(bytes)?;
    let originals: Vec<Original> = gif.frames.iter().map(|shown| Original::of(&shown.raster)).collect();
    Ok(Ladder {
        steps: COLORS.len(),
        write: Box::new(move |step| {
            let (every, colors) = if may_go { FEWER[step] } else { (1, COLORS[step]) };
            write(&gif, every, colors).ok()
        }),
        similarity: Box::new(move |written| {
            let Ok(written) = read(written) else { return 0.0 };
            // The number of frames shows which were kept: of two or more frames, every second, fourth or eighth.
            let every = originals.len().div_ceil(written.frames.len()).next_power_of_two();
            let kept = originals.iter().step_by(every).zip(&written.frames);
            kept.map(|(original, shown)| original.similarity(&shown.raster)).fold(1.0, f64::min)
        }),
    })
}

/// The ladder of colours of a picture that does not move.
pub(super) fn still_ladder(raster: &Raster) -> Ladder {
    let original = Original::of(raster);
    let gif = Gif { frames: vec![Shown { raster: raster.clone(), delay: 0 }], repeat: Repeat::Infinite };
    Ladder {
        steps: COLORS.len(),
        write: Box::new(move |step| write(&gif, 1, COLORS[step]).ok()),
        similarity: original.judge(|written| Ok(read(written)?.frames.swap_remove(0).raster)),
    }
}

fn write(gif: &Gif, every: usize, colors: usize) -> Result<Vec<u8>, gif::EncodingError> {
    let kept: Vec<(&Raster, u16)> = match every {
        0 => vec![(&gif.frames[0].raster, 0)],
        _ => gif
            .frames
            .chunks(every)
            .map(|part| {
                (&part[0].raster, part.iter().fold(0, |sum: u16, shown| sum.saturating_add(shown.delay)))
            })
            .collect(),
    };
    let first = kept[0].0;
    // A GIF's pixel is either opaque or transparent. After the first frame, the transparent colour marks pixels that do not
    // change.
    let opaque: Vec<Vec<u8>> = kept.iter().map(|(raster, _)| hardened(&raster.samples)).collect();
    let moves = kept.len() > 1;
    let histogram = Histogram::of(opaque.iter().map(Vec::as_slice));
    let mut palette = histogram.palette(colors - usize::from(moves && colors == 256));
    let mut table: Vec<u8> = palette.colors.iter().flat_map(|color| [color[0], color[1], color[2]]).collect();
    let transparent = match palette.colors.iter().position(|color| color[3] == 0) {
        Some(place) => Some(place as u8),
        None if moves => {
            table.extend([0; 3]);
            palette.colors.push([0; 4]);
            Some((palette.colors.len() - 1) as u8)
        }
        None => None,
    };
    // Through a transparent pixel of a later frame the earlier frame would show, so such frames begin on an empty canvas.
    let shows_through = moves && opaque.iter().any(|samples| samples.as_chunks::<4>().0.contains(&[0; 4]));
    let mut written = Vec::new();
    let mut encoder = Encoder::new(&mut written, first.width as u16, first.height as u16, &table)?;
    if moves {
        encoder.set_repeat(gif.repeat)?;
    }
    let mut before: Option<Vec<u8>> = None;
    for (samples, (_, delay)) in opaque.iter().zip(&kept) {
        let indices = palette.indices(samples);
        let changed = match (&before, transparent) {
            (Some(before), Some(nothing)) if !shows_through => indices
                .iter()
                .zip(before)
                .map(|(here, before)| if here == before { nothing } else { *here })
                .collect(),
            _ => indices.clone(),
        };
        let dispose = if shows_through { DisposalMethod::Background } else { DisposalMethod::Keep };
        encoder.write_frame(&Frame {
            width: first.width as u16,
            height: first.height as u16,
            buffer: changed.into(),
            transparent,
            delay: *delay,
            dispose,
            ..Frame::default()
        })?;
        before = Some(indices);
    }
    drop(encoder);
    Ok(written)
}

/// The pixels, each made wholly opaque or wholly transparent.
fn hardened(samples: &[u8]) -> Vec<u8> {
    let harden = |pixel: &[u8; 4]| if pixel[3] < 128 { [0; 4] } else { [pixel[0], pixel[1], pixel[2], 255] };
    samples.as_chunks::<4>().0.iter().flat_map(harden).collect()
}

/// A picture as a GIF of 256 colours.
#[cfg(test)]
pub(super) fn of(raster: &Raster) -> Vec<u8> {
    let frames = vec![Shown { raster: raster.clone(), delay: 0 }];
    write(&Gif { frames, repeat: Repeat::Infinite }, 1, 256).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moving(transparent: bool) -> Gif {
        let frame = |n: usize| {
            let pixel = |at: usize| match at % 20 {
                x if x == n => [255, 0, 0, 255],
                _ if transparent => [0; 4],
                x => [(x * 10) as u8, 100, (at / 20) as u8, 255],
            };
            Shown {
                raster: Raster {
                    width: 20,
                    height: 20,
                    channels: 4,
                    samples: (0..400).flat_map(pixel).collect(),
                },
                delay: 10,
            }
        };
        Gif { frames: (0..8).map(frame).collect(), repeat: Repeat::Infinite }
    }

    #[test]
    fn frames_are_shown_as_they_were() {
        for transparent in [false, true] {
            let gif = moving(transparent);
            let again = read(&write(&gif, 1, 256).unwrap()).unwrap();
            assert_eq!(again.frames.len(), 8);
            for (one, other) in gif.frames.iter().zip(&again.frames) {
                let planes = [one.raster.luma(255), other.raster.luma(255)];
                let similar = super::super::similarity::worst(&planes[0], &planes[1], usize::MAX);
                assert!(similar > 0.98, "{similar}, transparent: {transparent}");
                assert_eq!(one.delay, other.delay);
            }
        }
    }

    #[test]
    fn fewer_frames_take_as_long() {
        let again = read(&write(&moving(false), 4, 64).unwrap()).unwrap();
        assert_eq!(again.frames.iter().map(|shown| shown.delay).collect::<Vec<_>>(), [40, 40]);
        assert_eq!(read(&write(&moving(false), 0, 64).unwrap()).unwrap().frames.len(), 1);
    }

    /// A shaded disc that moves over a transparent background, in five frames.
    fn disc() -> Vec<u8> {
        let frame = |n: usize| {
            let pixel = |at: usize| {
                let (x, y) = (at % 96, at / 96);
                let away = (x as f64 - (20 + 14 * n) as f64).hypot(y as f64 - 48.0);
                let (red, green) = (255 - 10 * away as i32, 2 * x as i32 + n as i32);
                if away < 18.0 { [red.clamp(0, 255) as u8, green as u8, (2 * y) as u8, 255] } else { [0; 4] }
            };
            let samples = (0..96 * 96).flat_map(pixel).collect();
            Shown { raster: Raster { width: 96, height: 96, channels: 4, samples }, delay: 10 }
        };
        write(&Gif { frames: (0..5).map(frame).collect(), repeat: Repeat::Infinite }, 1, 256).unwrap()
    }

    fn reduced(factor: Option<f64>, similarity: f64) -> super::super::Found {
        let reduction = super::super::Reduction {
            factor,
            similarity,
            enough: 0.85,
            size: None,
            any_format: true,
            variant: true,
        };
        let copies = super::super::reduced(&disc(), reduction).unwrap();
        assert!(copies.variant.is_none(), "a WebP beside it would stand still");
        copies.named.unwrap()
    }

    #[test]
    fn without_a_factor_every_frame_stays_and_the_worst_one_counts() {
        let found = reduced(None, 0.85);
        let [before, after] = [&disc(), &found.written].map(|bytes| read(bytes).unwrap().frames);
        assert_eq!(before.len(), after.len());
        let similar = before.iter().zip(&after).map(|(one, other)| {
            assert_eq!(one.delay, other.delay);
            Original::of(&one.raster).similarity(&other.raster)
        });
        let worst = similar.fold(1.0, f64::min);
        assert!((0.85..1.0).contains(&worst), "{worst}");
        assert!((found.similarity - worst).abs() < 1e-9, "{} is told, {worst} seen", found.similarity);
    }

    #[test]
    fn with_a_factor_frames_go_and_each_that_is_left_counts() {
        let found = reduced(Some(2.0), 0.7);
        let [before, after] = [&disc(), &found.written].map(|bytes| read(bytes).unwrap().frames);
        assert!(after.len() < before.len());
        for (every, colors, left) in [(0, 64, 1), (8, 64, 1), (4, 64, 2), (2, 64, 3), (1, 64, 5)] {
            let bytes = write(&read(&disc()).unwrap(), every, colors).unwrap();
            let after = read(&bytes).unwrap().frames;
            assert_eq!(after.len(), left);
            let similar = after
                .iter()
                .enumerate()
                .map(|(n, shown)| Original::of(&before[n * every].raster).similarity(&shown.raster));
            let ladder = ladder(&disc(), true).unwrap();
            assert_eq!((ladder.similarity)(&bytes), similar.fold(1.0, f64::min), "every {every}");
        }
    }
}
