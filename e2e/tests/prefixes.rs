//! A real nginx whose trees lie under prefixes: what a client sees of them.

use plimsoll_e2e::{Folder, Nginx, Plimsoll, Response, exchange, get, open_to_all};
use std::net::SocketAddr;

fn trees() -> Folder {
    let folder = Folder::new();
    for level in ["light", "full"] {
        folder.write(&format!("trees/{level}/images/index.html"), format!("<p>{level} images"));
    }
    open_to_all(folder.path());
    folder
}

fn before(nginx: &Nginx) -> Plimsoll {
    let level = |name: &str| format!("[[site.level]]\nname = \"{name}\"\nprefix = \"/{name}\"\n");
    Plimsoll::run(&format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\n\n\
         [upstream.web]\naddress = \"{}\"\n\n[[site]]\nname = \"shop\"\n\
         exempt = [{{ path = \"/healthz\", client = \"127.0.0.0/8\" }}]\n{}{}",
        nginx.address,
        level("light"),
        level("full")
    ))
}

fn get_as(gateway: SocketAddr, host: &str, path: &str) -> Response {
    exchange(gateway, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

/// nginx names its own port and the prefix in the redirect to a folder; the client sees neither, whatever host it asked.
#[test]
fn a_redirect_leads_back_to_the_gateway_without_the_prefix() {
    let trees = trees();
    let nginx = Nginx::trees(&trees.path().join("trees"));
    let gateway = before(&nginx);
    let own = format!(":{}/full/images/", nginx.address.port());
    let named = get(nginx.address, "/full/images");
    assert!(named.header("location").is_some_and(|place| place.ends_with(&own)), "{named:?}");
    for host in ["shop.example", "Shop.example", "shop.example:8080", &gateway.address.to_string()] {
        let answer = get_as(gateway.address, host, "/images");
        assert_eq!((answer.status, answer.header("location")), (301, Some("/images/")), "{host}");
    }
    let followed = get(gateway.address, "/images/");
    assert_eq!((followed.status, followed.text().contains("<p>full images")), (200, true));
}

/// A health check knows nothing of levels: its page lies beside the trees.
#[test]
fn an_exempt_request_goes_without_the_prefix() {
    let trees = trees();
    let nginx = Nginx::trees(&trees.path().join("trees"));
    let gateway = before(&nginx);
    assert_eq!(get(nginx.address, "/full/healthz").status, 404);
    let answer = get(gateway.address, "/healthz");
    assert_eq!((answer.status, answer.text().contains("healthy")), (200, true));
}

/// nginx compresses nothing for a request that names a proxy in `Via`, unless it is told to: the gateway's mark is none.
#[test]
fn nginx_compresses_as_it_does_without_the_gateway() {
    let trees = trees();
    let nginx = Nginx::trees(&trees.path().join("trees"));
    let gateway = before(&nginx);
    let encoding = |server: SocketAddr, path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\nAccept-Encoding: gzip\r\n");
        let answer = exchange(server, head + "Connection: close\r\n\r\n");
        (answer.status, answer.header("content-encoding").map(str::to_owned))
    };
    let direct = encoding(nginx.address, "/full/images/");
    assert_eq!(direct, (200, Some("gzip".to_owned())));
    assert_eq!(encoding(gateway.address, "/images/"), direct);
}
