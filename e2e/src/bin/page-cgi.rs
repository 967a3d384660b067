//! The page as a CGI program, for Apache: one process for each request.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let path = std::env::var("SCRIPT_NAME").unwrap_or_default();
    std::io::stdout().write_all(&plimsoll_e2e::page::make(&path))
}
