//! Dynamic pages, stored as they are now, so that lower trees have what a program makes at full (CA 2).
//!
//! A page is fetched once and then adapted like any other. It is stored under its own path, so that its address leads to it at
//! every level: `/catalog.php` to the file `catalog.php`, `/catalog/` to `catalog/index.html`. The caller fetches it; TLS is
//! not needed, because the program is the site's own, and near.

use crate::parallel::refused;
use crate::text::reference::{Target, resolve};
use std::io;

/// The path in a tree for the page at an address.
///
/// # Errors
/// `InvalidInput`: the address cannot be that of a page of the site.
pub(crate) fn path(address: &str) -> io::Result<String> {
    let path = path_of(address).map_err(|what| refused(format!("{address}: {what}")))?;
    let what = "it leads to no file in a tree; write its path without `..` and doubled slashes";
    let file = file(path).ok_or_else(|| refused(format!("{address}: {what}")))?;
    if file.rsplit('/').next().is_some_and(|name| !name.contains('.')) {
        let what = "a server of files would not know it for a page: its name has no ending such as `.php`";
        return Err(refused(format!(
            "{address}: {what}; leave it to the program, or name `{path}/` if that is answered too"
        )));
    }
    Ok(file)
}

/// The path of an address, if it may be that of a page of the site; otherwise what to write instead.
fn path_of(address: &str) -> Result<&str, &'static str> {
    let rest = address.strip_prefix("http://");
    let rest =
        rest.ok_or("pages are fetched over plain HTTP: write it as `http://127.0.0.1:8000/catalog.php`")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if path.contains(['?', '#']) {
        return Err("a tree's file has no query: it answers every one; write the address without it");
    }
    let odd = |c: char| c.is_ascii_control() || c.is_ascii_whitespace() || !c.is_ascii();
    if host.is_empty() || host.contains('@') || address.contains(odd) {
        return Err("no address of a page; write it as `http://127.0.0.1:8000/catalog.php`");
    }
    Ok(if path.is_empty() { "/" } else { path })
}

/// The file of a tree that a server sends for this path.
fn file(path: &str) -> Option<String> {
    let Target::Local(file) = resolve("", path) else { return None };
    let plain = path[1..].split('/').rev().skip(1).all(|segment| !segment.is_empty() && segment != "..");
    let sound = plain && !file.split('/').any(|segment| segment.starts_with('.')) && !file.contains('\0');
    match sound {
        true if file.is_empty() || file.ends_with('/') => Some(format!("{file}index.html")),
        true => Some(file),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_stored_under_its_path() {
        for (address, file) in [
            ("/shop/list.php", "shop/list.php"),
            ("/", "index.html"),
            ("", "index.html"),
            ("/a%20b/", "a b/index.html"),
        ] {
            assert_eq!(path(&format!("http://127.0.0.1:8000{address}")).unwrap(), file);
        }
    }

    #[test]
    fn what_is_no_page_of_the_site_is_told() {
        for address in [
            "https://127.0.0.1/",
            "127.0.0.1/",
            "http:///x",
            "http://127.0.0.1:1/a?b=1",
            "http://127.0.0.1:1/a/../b",
            "http://127.0.0.1:1/a//b",
            "http://127.0.0.1:1/.git/x",
            "http://127.0.0.1:1/%2e%2e/x",
            "http://127.0.0.1:1/a b",
            "http://127.0.0.1:1/a.b/catalog",
        ] {
            assert_eq!(path(address).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{address}");
        }
    }
}
