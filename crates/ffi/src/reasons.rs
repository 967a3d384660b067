//! The words of reasons as C reads them.

use plimsoll_core::request::Reason;
use std::ffi::c_char;

/// The most bytes of a reason's word, with its NUL.
const REASON_BYTES: usize = 24;

/// The words of all reasons as C reads them, by number.
pub(crate) static REASONS: [[u8; REASON_BYTES]; Reason::ALL.len()] = {
    let mut words = [[0; REASON_BYTES]; Reason::ALL.len()];
    let mut number = 0;
    while number < words.len() {
        let word = Reason::ALL[number].as_str().as_bytes();
        assert!(word.len() < REASON_BYTES);
        let mut place = 0;
        while place < word.len() {
            words[number][place] = word[place];
            place += 1;
        }
        number += 1;
    }
    words
};

/// The reason as C reads it.
pub(crate) fn c_reason(reason: Reason) -> *const c_char {
    REASONS[reason as usize].as_ptr().cast()
}
