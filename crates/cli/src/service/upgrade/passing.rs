//! Passes listening sockets and a text over a Unix socket: `+` with each descriptor, or `=` if a supervisor opened it, then
//! `.`, the text's length and the text.

use plimsoll_gateway::ListeningSocket;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, Error, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

const OWN: u8 = b'+';
const SUPERVISED: u8 = b'=';
const TEXT: u8 = b'.';
/// The longest text; what is learned about a thousand sites is much shorter.
const LONGEST: u64 = 64 << 20;

/// Sends listening sockets and a text.
pub(super) fn send(socket: &UnixStream, listeners: &[ListeningSocket], text: &str) -> io::Result<()> {
    for listener in listeners {
        let kind = if listener.is_supervised { SUPERVISED } else { OWN };
        let descriptor: &[BorrowedFd<'_>] = &[listener.socket.as_fd()];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(descriptor)) {
            return Err(Error::other("a descriptor has no room in its message"));
        }
        sendmsg(socket, &[IoSlice::new(&[kind])], &mut control, SendFlags::NOSIGNAL)?;
    }
    let mut socket = socket;
    socket.write_all(&[TEXT])?;
    socket.write_all(&(text.len() as u64).to_le_bytes())?;
    socket.write_all(text.as_bytes())
}

/// Receives what [`send`] has sent.
pub(super) fn receive(socket: &UnixStream) -> io::Result<(Vec<ListeningSocket>, String)> {
    let mut listeners = Vec::new();
    loop {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut kind = [0];
        let received =
            recvmsg(socket, &mut [IoSliceMut::new(&mut kind)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                let is_supervised = kind[0] == SUPERVISED;
                listeners.extend(some.map(|socket| ListeningSocket { socket, is_supervised }));
            }
        }
        match (received.bytes, kind[0]) {
            (0, _) => return Err(ErrorKind::UnexpectedEof.into()),
            (_, OWN | SUPERVISED) => {}
            (_, TEXT) => break,
            _ => return Err(Error::new(ErrorKind::InvalidData, "what was handed over is not understood")),
        }
    }
    let (mut socket, mut length) = (socket, [0; 8]);
    socket.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return Err(Error::new(ErrorKind::InvalidData, "what was learned is too long"));
    }
    let mut text = String::new();
    socket.take(length).read_to_string(&mut text)?;
    Ok((listeners, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn sockets_and_text_arrive_in_order() {
        let (one, other) = UnixStream::pair().unwrap();
        let listeners: Vec<TcpListener> =
            (0..300).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = listeners.iter().map(|one| one.local_addr().unwrap()).collect();
        let sent = thread::spawn(move || {
            let own = |(number, one): (usize, TcpListener)| ListeningSocket {
                socket: one.into(),
                is_supervised: number % 3 == 0,
            };
            let all: Vec<ListeningSocket> = listeners.into_iter().enumerate().map(own).collect();
            send(&one, &all, &"ä".repeat(100_000)).unwrap();
            one
        });
        let (received, text) = receive(&other).unwrap();
        let _one = sent.join().unwrap();
        assert!(received.iter().enumerate().all(|(number, one)| one.is_supervised == (number % 3 == 0)));
        let received: Vec<_> =
            received.into_iter().map(|one| TcpListener::from(one.socket).local_addr().unwrap()).collect();
        assert!(received == addresses && text == "ä".repeat(100_000));
    }

    #[test]
    fn an_early_end_and_anything_else_are_errors() {
        let (one, other) = UnixStream::pair().unwrap();
        drop(one);
        assert_eq!(receive(&other).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(b"hello").unwrap();
        assert_eq!(receive(&other).unwrap_err().kind(), ErrorKind::InvalidData);
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(b".\xff\xff\xff\xff\xff\xff\xff\xff").unwrap();
        assert_eq!(receive(&other).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
