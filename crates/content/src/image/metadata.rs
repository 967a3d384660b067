//! What a viewer needs of a photo's metadata, and no more: the orientation, and a colour profile other than sRGB. Camera,
//! place and preview are not kept.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    /// The Exif orientation, where it is not the usual one.
    pub(super) orientation: Option<u8>,
    /// The colour profile, where it is not sRGB's.
    pub(super) profile: Option<Vec<u8>>,
}

impl Metadata {
    /// Metadata out of the Exif block (a TIFF file) and the colour profile of an image.
    pub(super) fn of(exif: Option<&[u8]>, profile: Option<Vec<u8>>) -> Metadata {
        Metadata {
            orientation: exif.and_then(orientation),
            profile: profile.filter(|profile| !is_srgb(profile)),
        }
    }

    /// An Exif block that says the orientation alone.
    pub(super) fn exif(&self) -> Option<Vec<u8>> {
        self.orientation.map(exif_of)
    }
}

/// The orientation's value where it is not the usual one (Exif 2.32, 4.6.4, tag 0x0112).
fn orientation(exif: &[u8]) -> Option<u8> {
    let little = exif.starts_with(b"II");
    let short = |at: usize| {
        let bytes = exif.get(at..at + 2)?.try_into().ok()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let (high, low) = if little { (short(6)?, short(4)?) } else { (short(4)?, short(6)?) };
    let start = usize::from(high) << 16 | usize::from(low);
    let entries = usize::from(short(start)?);
    let entry = (0..entries).map(|n| start + 2 + 12 * n).find(|&at| short(at) == Some(0x0112))?;
    let value = u8::try_from(short(entry + 8)?).ok()?;
    (2..=8).contains(&value).then_some(value)
}

/// Whether the profile says what viewers assume without one.
fn is_srgb(profile: &[u8]) -> bool {
    let wide: Vec<u8> = b"sRGB".iter().flat_map(|&letter| [0, letter]).collect();
    [b"sRGB".as_slice(), &wide].iter().any(|name| profile.windows(name.len()).any(|part| part == *name))
}

fn exif_of(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orientation_in_either_byte_order() {
        let little = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x03\0\0\0\0\0\0\0";
        assert_eq!(orientation(little), Some(3));
        for end in 0..little.len() {
            orientation(&little[..end]);
        }
        for value in 2..=8 {
            assert_eq!(orientation(&exif_of(value)), Some(value));
        }
        assert_eq!(orientation(&exif_of(1)), None, "the usual one");
    }
}
