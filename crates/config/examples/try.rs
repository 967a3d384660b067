//! try
fn main() { let s = std::fs::read_to_string("/dev/stdin").unwrap(); match plimsoll_config::parse(&s, "x.toml") { Ok(c) => println!("{c:#?}"), Err(e) => println!("{e}") } }
