//! The heads under which one request may be sent to an upstream: that of its level and, where the level falls back, those
//! of the levels above it, in this order. All are written before the first is sent, since the client's own head is gone by
//! then.

/// The heads, one behind the other in a buffer that the connection keeps.
#[derive(Debug, Default)]
pub(crate) struct HeaderVariants {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl HeaderVariants {
    /// Begins anew with the head that `write` appends.
    pub(crate) fn begin(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.clear();
        self.ends.clear();
        self.then(write);
    }

    /// Adds the head that is sent if the one before finds nothing.
    pub(crate) fn then(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The `number`th head, from 0.
    pub(crate) fn get(&self, number: usize) -> Option<&[u8]> {
        let start = number.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before))?;
        self.bytes.get(*start..*self.ends.get(number)?)
    }

    /// Gives the memory of a large request back.
    pub(crate) fn shrink(&mut self, most: usize) {
        if self.bytes.capacity() > most {
            *self = HeaderVariants::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_number() {
        let mut variants = HeaderVariants::default();
        for more in [&["b", "cc"][..], &[]] {
            variants.begin(|out| out.extend(b"aaa"));
            more.iter().for_each(|head| variants.then(|out| out.extend(head.bytes())));
            assert_eq!(variants.get(0), Some(&b"aaa"[..]));
            for (number, head) in more.iter().enumerate() {
                assert_eq!(variants.get(number + 1), Some(head.as_bytes()));
            }
            assert_eq!(variants.get(more.len() + 1), None);
        }
    }
}
