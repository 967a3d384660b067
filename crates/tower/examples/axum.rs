//! A server of axum that serves a lighter page when more requests come than it can take.
//!
//! `cargo run -p plimsoll-tower --example axum` serves at <http://127.0.0.1:8080/>.

use axum::{Extension, Router, extract::ConnectInfo, routing::get};
use plimsoll_tower::{Decision, PlimsollLayer, core::promises::Condition};
use std::net::SocketAddr;
use std::time::Duration;

async fn page(Extension(decision): Extension<Decision>) -> &'static str {
    let (work, text) =
        if decision.level_name() == "light" { (10, "few words\n") } else { (40, "a long page\n") };
    tokio::time::sleep(Duration::from_millis(work)).await;
    text
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plimsoll = PlimsollLayer::builder()
        .workers(8)
        .levels(["light", "full"])
        .exempt(Condition::path("/healthz"))
        .client_address(|head| {
            head.extensions.get().map(|ConnectInfo(address): &ConnectInfo<SocketAddr>| address.ip())
        })
        .build()?;
    let app = Router::new().route("/", get(page)).route("/healthz", get(|| async { "ok\n" })).layer(plimsoll);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
