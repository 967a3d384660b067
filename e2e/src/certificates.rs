//! Certificates for tests, made by the real openssl, and clients that speak TLS: openssl and curl.

use crate::{Folder, Plimsoll, program};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Makes `NAME.pem` and `NAME.key` in a folder, for a host, signed by themselves. Panics if openssl cannot.
pub fn certificate(folder: &Folder, name: &str, host: &str) -> (PathBuf, PathBuf) {
    made(folder, name, host, &[])
}

/// The same, for a client or a server, signed by the key of another.
pub fn signed_certificate(
    folder: &Folder,
    name: &str,
    host: &str,
    (authority, its_key): &(PathBuf, PathBuf),
) -> (PathBuf, PathBuf) {
    let (authority, its_key) = (authority.display().to_string(), its_key.display().to_string());
    let by = ["-CA", &authority, "-CAkey", &its_key, "-addext", "basicConstraints=CA:FALSE"];
    made(folder, name, host, &by)
}

/// The same as [`certificate`], for two days of January 2020.
pub fn expired_certificate(folder: &Folder, name: &str, host: &str) -> (PathBuf, PathBuf) {
    let (chain, key) = certificate(folder, name, host);
    let settings = format!(
        "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n\
         x509_extensions=x\n[p]\ncommonName=supplied\n[x]\nsubjectAltName=DNS:{host}\n"
    );
    folder.write("ca.cnf", settings);
    folder.write("index.txt", "");
    folder.write("serial", "01\n");
    let script = "openssl req -new -key \"$1\" -subj \"/CN=$2\" -out request.csr && openssl ca -batch -config ca.cnf -selfsign \
                  -notext -keyfile \"$1\" -in request.csr -out \"$0\" -startdate 200101000000Z -enddate 200103000000Z";
    let ran = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(&chain)
        .arg(&key)
        .arg(host)
        .current_dir(folder.path())
        .output();
    let ran = ran.unwrap_or_else(|error| panic!("cannot run openssl: {error}"));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    (chain, key)
}

fn made(folder: &Folder, name: &str, host: &str, by: &[&str]) -> (PathBuf, PathBuf) {
    let (chain, key) = (folder.path().join(format!("{name}.pem")), folder.path().join(format!("{name}.key")));
    let made = Command::new(program("openssl"))
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
        ])
        .args(["-subj", &format!("/CN={host}"), "-addext", &format!("subjectAltName=DNS:{host}")])
        .args(by)
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&chain)
        .output()
        .unwrap_or_else(|error| panic!("cannot run openssl: {error}"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (chain, key)
}

/// Where a gateway speaks TLS. Panics if its log does not say so.
pub fn tls_address(gateway: &mut Plimsoll) -> SocketAddr {
    gateway.process.wait_for("its TLS listener", |log| {
        let line = log.lines().find(|line| line.ends_with(" (TLS)"))?;
        line.strip_suffix(" (TLS)")?.rsplit(' ').next()?.parse().ok()
    })
}

/// Runs `openssl s_client` with these arguments, writes `input` to it, and returns all that it prints.
pub fn s_client(address: SocketAddr, arguments: &[&str], input: &str) -> String {
    let mut client = Command::new(program("openssl"))
        .args(["s_client", "-connect", &address.to_string(), "-ign_eof"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run openssl: {error}"));
    // The server may have left already.
    drop(client.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes())));
    let mut all = Vec::new();
    for pipe in [
        client.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read>),
        client.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read>),
    ] {
        drop(pipe.map(|mut pipe| pipe.read_to_end(&mut all)));
    }
    drop(client.wait());
    String::from_utf8_lossy(&all).into_owned()
}

/// Runs curl, which asks for `https://HOST/...` at this address; returns its exit code and what it prints.
pub fn curl(address: SocketAddr, host: &str, path: &str, arguments: &[&str]) -> (i32, String) {
    let ran = Command::new(program("curl"))
        .args(["--silent", "--show-error", "--max-time", "30", "--noproxy", "*"])
        .args(["--connect-to", &format!("{host}:443:{}:{}", address.ip(), address.port())])
        .args(arguments)
        .arg(format!("https://{host}{path}"))
        .output()
        .unwrap_or_else(|error| panic!("cannot run curl: {error}"));
    let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    (ran.status.code().unwrap_or(-1), text)
}
