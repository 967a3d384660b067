//! SHA-256 (FIPS 180-4) in base64, by which the page's Content-Security-Policy names its own script and style.
//!
//! Own code, since it is one page long and guards nothing secret: a wrong digest shows at once as a page without
//! style. Never use it for more.

/// `'sha256-…'`, as a Content-Security-Policy writes it.
pub(crate) fn source(text: &str) -> String {
    format!("'sha256-{}'", base64(&sha256(text.as_bytes())))
}

/// The first 32 bits of the fractional parts of the `count` first primes' roots, as FIPS 180-4 defines its constants.
/// Square roots and cube roots of small primes to 32 bits are exact in integer arithmetic of 128 bits.
fn constants(count: usize, cube: bool) -> impl Iterator<Item = u32> {
    let primes = (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).take(count);
    primes.map(move |prime| {
        let (mut low, mut high) = (0u128, 1 << 36);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let inside = if cube { middle.pow(3) <= prime << 96 } else { middle.pow(2) <= prime << 64 };
            if inside { low = middle } else { high = middle }
        }
        (low & 0xFFFF_FFFF) as u32
    })
}

fn sha256(message: &[u8]) -> [u8; 32] {
    let mut state: Vec<u32> = constants(8, false).collect();
    let round_constants: Vec<u32> = constants(64, true).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| word.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)))
            .collect();
        for t in 16..64 {
            let (a, b) = (words[t - 15], words[t - 2]);
            let small0 = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let small1 = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            words.push(words[t - 16].wrapping_add(small0).wrapping_add(words[t - 7]).wrapping_add(small1));
        }
        let mut round = state.clone();
        for (word, constant) in words.iter().zip(&round_constants) {
            let (a, e) = (round[0], round[4]);
            let large1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & round[5]) ^ (!e & round[6]);
            let sum =
                [large1, choice, *constant, *word].iter().fold(round[7], |sum, part| sum.wrapping_add(*part));
            let large0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = (a & round[1]) ^ (a & round[2]) ^ (round[1] & round[2]);
            round.rotate_right(1);
            round[4] = round[4].wrapping_add(sum);
            round[0] = sum.wrapping_add(large0).wrapping_add(majority);
        }
        state.iter_mut().zip(round).for_each(|(state, value)| *state = state.wrapping_add(value));
    }
    let mut digest = [0; 32];
    digest
        .chunks_exact_mut(4)
        .zip(state)
        .for_each(|(bytes, value)| bytes.copy_from_slice(&value.to_be_bytes()));
    digest
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let value =
            chunk.iter().fold(0u32, |sum, &byte| sum << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = ALPHABET[(value >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        sha256(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn sha256_of_the_standard_s_examples() {
        assert_eq!(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(
            hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
    }

    #[test]
    fn base64_pads() {
        assert_eq!(base64(b"M"), "TQ==");
        assert_eq!(base64(b"Ma"), "TWE=");
        assert_eq!(base64(b"Man"), "TWFu");
        assert_eq!(source("")[..12], *"'sha256-47DE");
    }
}
