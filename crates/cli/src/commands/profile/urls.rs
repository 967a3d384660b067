//! Splits the URLs of the command line into servers and paths, and finds out whether all servers are on this machine.

use crate::output::failure::Failure;
use plimsoll_load::Target;
use plimsoll_load::profile::Subject;
use std::net::{SocketAddr, ToSocketAddrs};

const SIZE: &str = "{size}";
const MOST: usize = 64;

pub(crate) fn subjects(urls: &[String], sizes: &[String]) -> Result<Vec<Subject>, Failure> {
    let (good, wrong): (Vec<_>, Vec<_>) =
        expand(urls, sizes)?.iter().map(|url| subject(url)).partition(Result::is_ok);
    let wrong: Vec<String> = wrong.into_iter().filter_map(Result::err).collect();
    if wrong.is_empty() { Ok(good.into_iter().flatten().collect()) } else { Err(refused(&wrong.join("\n"))) }
}

pub(crate) fn one(url: &str) -> Result<Subject, Failure> {
    subject(url).map_err(|what| refused(&what))
}

fn refused(what: &str) -> Failure {
    Failure::Input(format!("error: {what}\nSee `plimsoll profile --help`."))
}

/// Each URL with each size in its place.
fn expand(urls: &[String], sizes: &[String]) -> Result<Vec<String>, Failure> {
    let pattern = |url: &&String| url.contains(SIZE);
    match (urls.iter().find(pattern), sizes.is_empty()) {
        (Some(url), true) => {
            return Err(refused(&format!(
                "which sizes does `{SIZE}` in {url} stand for? Name them, such as `--sizes 1K,16K,256K`"
            )));
        }
        (None, false) => {
            return Err(refused(&format!(
                "`--sizes` are for URLs with `{SIZE}` in them, such as `{}`",
                example(urls)
            )));
        }
        _ => {}
    }
    let mut all = Vec::new();
    for url in urls {
        match url.contains(SIZE) {
            true => all.extend(sizes.iter().map(|size| url.replace(SIZE, size))),
            false => all.push(url.clone()),
        }
    }
    if all.len() > MOST {
        return Err(refused(&format!("{} sizes are more than {MOST}: five to ten will do", all.len())));
    }
    Ok(all)
}

fn example(urls: &[String]) -> String {
    let server = urls.first().and_then(|url| parts(url).ok()).map(|(server, _)| server);
    format!("http://{}/{SIZE}.html", server.unwrap_or("127.0.0.1:8000"))
}

/// Splits a URL into the server with its port, and the path with its query.
fn parts(url: &str) -> Result<(&str, String), String> {
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
            return Err(format!(
                "{url}: TLS is not spoken here; profile the server behind it, with `http://`"
            ));
        }
        _ => return Err(format!("{url}: this is no URL; write `http://127.0.0.1:8000/` with a path")),
    };
    let rest = rest.split('#').next().unwrap_or(rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (server, path) = rest.split_at(end);
    if server.is_empty() {
        return Err(format!("{url}: there is no server in it; write `http://127.0.0.1:8000/` with a path"));
    }
    if server.contains('@') {
        return Err(format!("{url}: names and passwords are not sent; leave out what is before the `@`"));
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((server, path))
}

fn subject(url: &str) -> Result<Subject, String> {
    let (server, path) = parts(url)?;
    let has_port =
        server.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let with_port = if has_port { server.to_owned() } else { format!("{server}:80") };
    let looked_up = with_port.to_socket_addrs().map_err(|error| error.to_string());
    let addresses: Vec<SocketAddr> =
        looked_up.map_err(|error| format!("{url}: cannot look up {server}: {error}"))?.collect();
    // IPv4 is preferred, because on loopback it gives each client an address of its own.
    let address = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    let address = *address.ok_or_else(|| format!("{url}: {server} has no address"))?;
    let target = Target { host: server.to_owned(), ..Target::new(address) };
    Ok(Subject { name: path.clone(), target, path })
}

/// The servers, each once, in the order of the command line.
pub(crate) fn servers<'a>(subjects: impl IntoIterator<Item = &'a Subject>) -> Vec<String> {
    let mut all: Vec<String> = subjects.into_iter().map(|subject| subject.target.host.clone()).collect();
    let mut seen = std::collections::HashSet::new();
    all.retain(|host| seen.insert(host.clone()));
    all
}

pub(crate) fn are_loopback<'a>(subjects: impl IntoIterator<Item = &'a Subject>) -> bool {
    subjects.into_iter().all(|subject| subject.target.address.ip().to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn said(urls: &[&str], sizes: &[&str]) -> String {
        match subjects(&owned(urls), &owned(sizes)) {
            Err(Failure::Input(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_url_is_a_server_and_a_path() {
        for (url, address, host, path) in [
            ("http://127.0.0.1:81/a?b=c#d", "127.0.0.1:81", "127.0.0.1:81", "/a?b=c"),
            ("HTTP://127.0.0.1", "127.0.0.1:80", "127.0.0.1", "/"),
            ("http://127.0.0.1?x", "127.0.0.1:80", "127.0.0.1", "/?x"),
            ("http://[::1]:82/", "[::1]:82", "[::1]:82", "/"),
            ("http://[::1]/", "[::1]:80", "[::1]", "/"),
        ] {
            let subject = one(url).unwrap();
            assert_eq!(subject.target.address, address.parse().unwrap(), "{url}");
            assert_eq!((subject.target.host.as_str(), subject.path.as_str()), (host, path), "{url}");
            assert!(are_loopback([&subject]));
        }
        assert!(!are_loopback([&one("http://192.0.2.1/").unwrap()]));
        assert!(are_loopback([&one("http://[::ffff:127.0.0.1]/").unwrap()]));
    }

    #[test]
    fn sizes_take_their_place_as_they_are_typed() {
        let urls = owned(&["http://127.0.0.1/{size}/{size}.html", "http://127.0.0.1/x"]);
        let all = subjects(&urls, &owned(&["1K", "64k"])).unwrap();
        let paths: Vec<&str> = all.iter().map(|subject| subject.path.as_str()).collect();
        assert_eq!(paths, ["/1K/1K.html", "/64k/64k.html", "/x"]);
        assert_eq!(servers(&all), ["127.0.0.1"]);
    }

    #[test]
    fn what_is_wrong_with_urls_is_said_of_all_at_once() {
        let text = said(&["https://127.0.0.1/", "127.0.0.1:80/x", "http:///a", "http://a@127.0.0.1/"], &[]);
        for part in ["TLS is not spoken", "this is no URL", "there is no server", "before the `@`"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        assert!(said(&["http://127.0.0.1/{size}"], &[]).contains("such as `--sizes 1K,16K,256K`"));
        let text = said(&["http://127.0.0.1:81/x"], &["1K"]);
        assert!(text.contains("such as `http://127.0.0.1:81/{size}.html`"), "{text}");
        assert!(said(&["http://127.0.0.1:port/"], &[]).contains("cannot look up"));
        assert!(said(&["http://127.0.0.1/{size}"], &["1"; 65]).contains("more than 64"));
    }
}
