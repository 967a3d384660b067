//! The parts that heads are written from.

pub(crate) fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_status(out: &mut Vec<u8>, status: u16) {
    out.extend([status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8));
}

/// Appends `label`, the number and the line's end.
pub(crate) fn write_number(out: &mut Vec<u8>, label: &[u8], mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(label);
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}
