//! A page of a content tree as a CGI program: what it is depends on the tree that it lies in, and nothing else.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let program = std::env::current_exe()?;
    let tree = program.parent().and_then(|folder| folder.file_name()).unwrap_or_default();
    std::io::stdout().write_all(&plimsoll_e2e::beside::make(tree == "light"))
}
