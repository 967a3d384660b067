//! TCP segments in the frames of an interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The header with which the frames of an interface begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Ethernet, also that of the loopback interface.
    Ethernet,
    /// An IP packet, with nothing before it.
    Raw,
    /// The header of Linux for the interface `any`.
    Cooked,
}

impl Link {
    /// The type of this number in capture files (`LINKTYPE_…`).
    pub fn of(number: i32) -> Option<Link> {
        match number {
            1 => Some(Link::Ethernet),
            12 | 101 => Some(Link::Raw),
            113 => Some(Link::Cooked),
            _ => None,
        }
    }
}

/// A segment of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The sender's address and port.
    pub from: SocketAddr,
    /// The receiver's address and port.
    pub to: SocketAddr,
    /// The sequence number of its first byte.
    pub sequence: u32,
    /// The sequence number before which the sender has received everything of the other direction.
    pub acknowledged: Option<u32>,
    /// Whether it opens a direction (SYN), which takes the number before its first byte.
    pub is_first: bool,
    /// Whether it ends a direction (FIN).
    pub is_last: bool,
    /// Whether it resets the connection (RST).
    pub is_reset: bool,
    /// The captured part of its bytes.
    pub bytes: &'a [u8],
    /// The number of its bytes, captured or not.
    pub length: usize,
}

impl<'a> Segment<'a> {
    /// The segment in a frame; `None` if the frame has none, or not its beginning.
    pub fn of(link: Link, frame: &'a [u8]) -> Option<Segment<'a>> {
        let packet = match link {
            Link::Raw => frame,
            Link::Cooked => frame.get(16..)?,
            Link::Ethernet => {
                let mut at = 12;
                // Tags of virtual networks stand before the type.
                while matches!(number(frame, at)?, 0x8100 | 0x88a8) {
                    at += 4;
                }
                frame.get(at + 2..)?
            }
        };
        match packet.first()? >> 4 {
            4 => Segment::of_version_4(packet),
            6 => Segment::of_version_6(packet),
            _ => None,
        }
    }

    fn of_version_4(packet: &'a [u8]) -> Option<Segment<'a>> {
        let head = usize::from(packet[0] & 15) * 4;
        let total = usize::from(number(packet, 2)?);
        // A fragment that is not the first has no ports.
        let is_fragment = number(packet, 6)? & 0x1fff != 0;
        if is_fragment || *packet.get(9)? != 6 || head < 20 {
            return None;
        }
        let address = |at: usize| {
            Some(IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?)))
        };
        // For a packet that is too long for the field, the kernel writes the length 0.
        let total = if total == 0 { packet.len() } else { total };
        Segment::of_tcp(packet.get(head..)?, total.checked_sub(head)?, (address(12)?, address(16)?))
    }

    fn of_version_6(packet: &'a [u8]) -> Option<Segment<'a>> {
        // Extension headers before TCP are rare, and are not followed.
        if *packet.get(6)? != 6 {
            return None;
        }
        let address = |at: usize| {
            Some(IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?)))
        };
        let length = match usize::from(number(packet, 4)?) {
            0 => packet.len().checked_sub(40)?,
            length => length,
        };
        Segment::of_tcp(packet.get(40..)?, length, (address(8)?, address(24)?))
    }

    fn of_tcp(tcp: &'a [u8], length: usize, (from, to): (IpAddr, IpAddr)) -> Option<Segment<'a>> {
        let head = usize::from(*tcp.get(12)? >> 4) * 4;
        let length = length.checked_sub(head)?;
        let flags = *tcp.get(13)?;
        // Ethernet pads short frames.
        let bytes = tcp.get(head..)?;
        Some(Segment {
            from: SocketAddr::new(from, number(tcp, 0)?),
            to: SocketAddr::new(to, number(tcp, 2)?),
            sequence: long_number(tcp, 4)?,
            acknowledged: long_number(tcp, 8).filter(|_| flags & 16 != 0),
            is_first: flags & 2 != 0,
            is_last: flags & 1 != 0,
            is_reset: flags & 4 != 0,
            bytes: &bytes[..bytes.len().min(length)],
            length,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn long_number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(number(bytes, at)?) << 16 | u32::from(number(bytes, at + 2)?))
}

/// Frames that tests make.
#[cfg(test)]
pub(crate) mod frames {
    /// A frame of Ethernet.
    pub(crate) fn frame(from: (u8, u16), to: (u8, u16), sequence: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(((40 + bytes.len()) as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0]);
        frame.extend(from.1.to_be_bytes());
        frame.extend(to.1.to_be_bytes());
        frame.extend(sequence.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        frame.extend(bytes);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::frames::frame;
    use super::*;

    #[test]
    fn a_segment_is_found_behind_each_kind_of_beginning() {
        let mut ethernet = frame((1, 4000), (2, 80), 7, 0x18, b"GET");
        ethernet.extend([0; 9]);
        let expected = Segment::of(Link::Ethernet, &ethernet).expect("a segment");
        assert_eq!(
            (expected.from, expected.to),
            ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap())
        );
        assert_eq!((expected.sequence, expected.bytes, expected.length), (7, &b"GET"[..], 3));
        assert_eq!(expected.acknowledged, Some(0));
        assert!(!expected.is_first && !expected.is_last && !expected.is_reset);
        let tagged = [&ethernet[..12], &[0x81, 0, 0, 5], &ethernet[12..]].concat();
        let cooked = [&[0; 16], &ethernet[14..]].concat();
        assert_eq!(Segment::of(Link::Ethernet, &tagged), Some(expected));
        assert_eq!(Segment::of(Link::Raw, &ethernet[14..]), Some(expected));
        assert_eq!(Segment::of(Link::Cooked, &cooked), Some(expected));
        let cut = Segment::of(Link::Ethernet, &ethernet[..56]).expect("its beginning");
        assert_eq!((cut.bytes, cut.length), (&b"GE"[..], 3));
    }

    #[test]
    fn version_6_has_longer_addresses() {
        let old = frame((1, 4000), (2, 80), 7, 0x11, b"x");
        let mut packet = vec![0x60, 0, 0, 0, 0, 21, 6, 64];
        packet.extend([0; 15].iter().chain(&[1]).chain(&[0; 15]).chain(&[2]));
        packet.extend(&old[34..]);
        let found = Segment::of(Link::Raw, &packet).expect("a segment");
        assert_eq!((found.from, found.length, found.is_last), ("[::1]:4000".parse().unwrap(), 1, true));
    }

    #[test]
    fn what_is_cut_anywhere_or_no_tcp_is_none() {
        let whole = frame((1, 4000), (2, 80), 7, 0x18, b"");
        for end in 0..whole.len() {
            let _ = Segment::of(Link::Ethernet, &whole[..end]);
        }
        let mut udp = whole.clone();
        udp[23] = 17;
        let mut fragment = whole;
        fragment[21] = 1;
        assert_eq!((Segment::of(Link::Ethernet, &udp), Segment::of(Link::Ethernet, &fragment)), (None, None));
    }
}
