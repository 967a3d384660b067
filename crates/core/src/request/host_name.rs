//! The host that an authority names. Pure.

/// The bytes of the host's name at the beginning of an authority: without its port, and without the dot that marks a name as
/// complete (`shop.example.:8080` is `shop.example`).
///
/// An IPv6 address keeps its brackets, behind which its port is looked for. Without brackets its colons begin no port.
pub fn host_length(authority: &[u8]) -> usize {
    let end = if authority.contains(&b':') { before_port(authority) } else { authority.len() };
    end - usize::from(authority[..end].ends_with(b"."))
}

fn before_port(authority: &[u8]) -> usize {
    let after_address = authority.iter().rposition(|&byte| byte == b']').unwrap_or(0);
    let mut colons = authority[after_address..].iter().enumerate().filter(|(_, byte)| **byte == b':');
    match (colons.next(), colons.next()) {
        (Some((colon, _)), None) => after_address + colon,
        _ => authority.len(),
    }
}

/// The host's name without its port.
pub fn host_of(authority: &[u8]) -> &[u8] {
    &authority[..host_length(authority)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_its_name() {
        for (authority, name) in [
            ("www.example.org", "www.example.org"),
            ("www.example.org:8080", "www.example.org"),
            ("www.example.org.", "www.example.org"),
            ("www.example.org.:8080", "www.example.org"),
            ("127.0.0.1:80", "127.0.0.1"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("::1", "::1"),
            (".", ""),
            (":80", ""),
            ("", ""),
        ] {
            assert_eq!(&authority[..host_length(authority.as_bytes())], name, "{authority}");
        }
    }
}
