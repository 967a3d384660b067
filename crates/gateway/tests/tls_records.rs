//! Clients that speak TLS and send a part of a record, of which no byte in clear can be read.

use crate::support::*;
use plimsoll_gateway::settings::{CertificateFiles, Limits, Listener, Timeouts, TlsSettings};
use plimsoll_gateway::{Gateway, Settings};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The longest record, but for its last bytes.
const RECORD: usize = 5 + 16_380;

/// Makes a certificate and its key in a folder.
fn certificate(folder: &Path) -> CertificateFiles {
    let files = CertificateFiles { chain: folder.join("c.pem"), key: folder.join("c.key") };
    let made = Command::new("openssl")
        .args(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test".split(' '),
        )
        .args("-addext subjectAltName=DNS:test -addext basicConstraints=critical,CA:FALSE".split(' '))
        .args(["-keyout".as_ref(), files.key.as_os_str(), "-out".as_ref(), files.chain.as_os_str()])
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    files
}

struct Client {
    session: ClientConnection,
    io: TcpStream,
}

impl Client {
    fn connect(address: SocketAddr, chain: &Path) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(chain).expect("a certificate")).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.expect("versions").with_root_certificates(roots).with_no_client_auth();
        let session = ClientConnection::new(Arc::new(config), "test".try_into().expect("a name"));
        let io = TcpStream::connect(address).expect("the gateway accepts");
        io.set_read_timeout(Some(PATIENCE)).expect("a read timeout");
        Client { session: session.expect("a session"), io }
    }

    fn get(&mut self) -> String {
        let mut stream = Stream::new(&mut self.session, &mut self.io);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
        let mut answer = String::new();
        while !answer.ends_with("page") {
            let mut bytes = [0; 1000];
            let count = stream.read(&mut bytes).expect("an answer");
            assert_ne!(count, 0, "{answer}");
            answer.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        answer
    }

    /// Sends all of a record but its end.
    fn begin_record(&mut self) {
        let mut record = vec![0; RECORD];
        record[..5].copy_from_slice(&[0x17, 3, 3, 0x40, 0]);
        self.io.write_all(&record).expect("the gateway takes it");
    }

    fn is_ended(&mut self) -> bool {
        match self.io.read(&mut [0; 100]) {
            Ok(0) => true,
            // An alert comes before the end.
            Ok(_) => self.is_ended(),
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn begun(limits: Limits, timeouts: Timeouts, then: impl FnOnce(&Gateway, &dyn Fn() -> Client)) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = certificate(folder.path());
    let origin = Origin::serving(b"page");
    let settings = settings(&[origin.address]);
    let listen = settings.listen.iter().map(|own| Listener { tls: true, ..own.clone() }).collect();
    let tls = Some(TlsSettings {
        certificates: vec![files.clone()],
        only_1_3: false,
        only_http1: true,
        redirect: None,
        hsts: Duration::ZERO,
        clients: None,
    });
    let gateway = Gateway::start(Settings { listen, tls, limits, timeouts, ..settings }, &promises(8));
    let gateway = gateway.expect("a gateway");
    then(&gateway, &|| Client::connect(address(&gateway), &files.chain));
}

#[test]
fn a_part_of_a_record_has_the_time_of_a_head() {
    let timeouts = Timeouts { head: Duration::from_secs(2), ..Timeouts::default() };
    begun(Limits::default(), timeouts, |gateway, connect| {
        let (mut idle, mut slow) = (connect(), connect());
        idle.get();
        slow.get();
        slow.begin_record();
        assert!(slow.is_ended(), "it may hold its part for as long as a connection may be idle");
        idle.get();
        settled(gateway);
    });
}

#[test]
fn parts_of_records_are_counted_with_unfinished_heads() {
    let timeouts = Timeouts { head: 10 * PATIENCE, ..Timeouts::default() };
    begun(Limits { head_memory: 4 * RECORD, ..Limits::default() }, timeouts, |gateway, connect| {
        let mut idle = connect();
        idle.get();
        let mut clients: Vec<Client> = (0..12).map(|_| connect()).collect();
        for client in &mut clients {
            client.get();
            client.begin_record();
        }
        eventually("the first are ended for the last", || gateway.client_connections() <= 6);
        assert!(clients[0].is_ended());
        idle.get();
        settled(gateway);
    });
}
