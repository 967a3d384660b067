//! The part of a photo's metadata that a viewer needs: the orientation, and a colour profile other than sRGB. Camera, place and
//! preview are dropped.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Metadata {
    /// The Exif orientation, if it is not the usual one.
    pub(super) orientation: Option<u8>,
    /// The colour profile, if it is not sRGB's.
    pub(super) profile: Option<Vec<u8>>,
}

impl Metadata {
    /// The metadata from the Exif block (a TIFF file) and the colour profile of an image.
    pub(super) fn of(exif: Option<&[u8]>, profile: Option<Vec<u8>>) -> Metadata {
        Metadata {
            orientation: exif.and_then(orientation),
            profile: profile.filter(|profile| !is_srgb(profile)),
        }
    }

    /// An Exif block with only the orientation.
    pub(super) fn exif(&self) -> Option<Vec<u8>> {
        self.orientation.map(exif_of)
    }
}

/// The orientation's value, if it is not the usual one (Exif 2.32, 4.6.4, tag 0x0112).
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

/// The names of sRGB profiles. Other profiles mention sRGB in their names too, such as one of wider colours with sRGB's curve.
const SRGB: [&str; 9] = [
    "sRGB",
    "sRGB IEC61966-2.1",
    "sRGB IEC61966-2-1",
    "sRGB IEC61966-2-1 black scaled",
    "sRGB IEC61966-2-1 no black scaling",
    "sRGB built-in",
    "GIMP built-in sRGB",
    "sRGB2014",
    "sRGB Color Space Profile",
];

/// Whether the profile only states what viewers assume without one: its name is one of sRGB's.
fn is_srgb(profile: &[u8]) -> bool {
    space(profile) == Some(b"RGB ") && description(profile).is_some_and(|name| SRGB.contains(&name.trim()))
}

/// Whether the profile is one of gray tones.
pub(super) fn is_gray(profile: &[u8]) -> bool {
    space(profile) == Some(b"GRAY")
}

fn space(profile: &[u8]) -> Option<&[u8]> {
    profile.get(16..20)
}

/// The name of a profile (ICC.1:2022, 7.3 and 9.2.41; the text in ASCII of version 2 and the first of version 4).
fn description(profile: &[u8]) -> Option<String> {
    let word =
        |at: usize| Some(u32::from_be_bytes(profile.get(at..at.checked_add(4)?)?.try_into().ok()?) as usize);
    // A damaged profile may claim any number of tags, so the number is bounded.
    let tags = (0..word(128)?.min(100)).map(|number| 132 + 12 * number);
    let tag = tags.take_while(|at| *at < profile.len()).find(|at| profile[*at..].starts_with(b"desc"))?;
    let tag = profile.get(word(tag + 4)?..)?;
    let word = |at: usize| Some(u32::from_be_bytes(tag.get(at..at + 4)?.try_into().ok()?) as usize);
    let text = |start: usize, length: usize| tag.get(start..start.checked_add(length)?);
    match tag.get(..4)? {
        b"desc" => {
            let ascii = text(12, word(8)?)?;
            let ascii = ascii.split(|byte| *byte == 0).next()?;
            Some(String::from_utf8_lossy(ascii).into_owned())
        }
        b"mluc" => {
            let pairs = text(word(24)?, word(20)?)?.as_chunks::<2>().0;
            let units: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            Some(String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned())
        }
        _ => None,
    }
}

fn exif_of(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A profile with this name and no other tag, as version 2 or 4 of the format has it.
    pub(in super::super) fn profile_of(name: &str, space: [u8; 4], version: u8) -> Vec<u8> {
        let mut tag = match version {
            2 => b"desc\0\0\0\0".to_vec(),
            _ => b"mluc\0\0\0\0\0\0\0\x01\0\0\0\x0cenUS".to_vec(),
        };
        if version == 2 {
            tag.extend((name.len() as u32 + 1).to_be_bytes());
            tag.extend(name.bytes().chain([0]));
        } else {
            let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_be_bytes).collect();
            tag.extend([units.len() as u32, 28].into_iter().flat_map(u32::to_be_bytes));
            tag.extend(units);
        }
        let mut profile = vec![0; 128];
        profile[8] = version;
        profile[16..20].copy_from_slice(&space);
        profile.extend(b"\0\0\0\x01desc");
        profile.extend([144, tag.len() as u32].into_iter().flat_map(u32::to_be_bytes));
        profile.extend(tag);
        let length = profile.len() as u32;
        profile[..4].copy_from_slice(&length.to_be_bytes());
        profile
    }

    #[test]
    fn only_the_name_of_a_profile_says_that_it_is_srgb() {
        for version in [2, 4] {
            let is = |name| is_srgb(&profile_of(name, *b"RGB ", version));
            assert!(is("sRGB IEC61966-2.1") && is("sRGB") && is("sRGB built-in"));
            assert!(!is("DCI-P3 D65 Gamut with sRGB Transfer") && !is("Display P3") && !is(""));
            let whole = profile_of("sRGB", *b"RGB ", version);
            assert!(!is_srgb(&profile_of("sRGB", *b"GRAY", version)));
            assert!(
                (0..whole.len() - 4).all(|end| !is_srgb(&whole[..end])),
                "a damaged profile is none that is known"
            );
        }
    }

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
