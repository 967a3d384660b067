//! `plimsoll top`: shows a running gateway or controller in the terminal. It reads `/status` and `/events` of the admin
//! listener, as any client may, and uses nothing else; the sentences are its own.

mod seen;
mod view;

use crate::args::{TopArguments, source};
use crate::output::failure::Failure;
use crate::output::terminal::{TerminalScreen, has_colours, is_end, not_drawn};
use crate::output::text;
use crate::service::page::PageClient;
use crate::service::resolve;
use crate::service::signals::{Interrupt, Signals};
use plimsoll_config::{HttpUrl, Scheme};
use ratatui::crossterm::event::{self, Event, KeyCode};
use seen::SeenGateway;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use view::TopView;

/// How often the gateway is asked.
const EACH: Duration = Duration::from_secs(1);
/// How long the gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// A key or a signal is noticed within this time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub(crate) fn top(arguments: &TopArguments) -> Result<(), Failure> {
    let desk = desk(arguments)?;
    // The first answer shows whether a gateway listens there at all.
    let first = ask(&desk).map_err(|what| not_answered(&desk.address, &what))?;
    let mut view = TopView::new(desk.address.clone(), has_colours());
    view.take(Ok(first));
    if arguments.once {
        return text::print(view.text());
    }
    let interrupt = Interrupt::listen(Signals::block()?)?;
    let Some(mut screen) = TerminalScreen::open()? else {
        return Err(Failure::Input("this is no terminal that can be drawn on: add `--once`".to_owned()));
    };
    let answers = follow(desk)?;
    while !interrupt.is_requested() {
        answers.try_iter().for_each(|answer| view.take(answer));
        screen.draw(|frame| view.draw(frame))?;
        if event::poll(LOOK_AGAIN).map_err(not_drawn)? {
            match event::read().map_err(not_drawn)? {
                Event::Key(key) if is_end(key) => break,
                Event::Key(key) => react(&mut view, key.code),
                _ => {}
            }
        }
    }
    Ok(())
}

fn react(view: &mut TopView, key: KeyCode) {
    match key {
        KeyCode::Char('p' | ' ') => view.is_paused = !view.is_paused,
        KeyCode::Up | KeyCode::Char('k') => view.scroll(-1),
        KeyCode::Down | KeyCode::Char('j') => view.scroll(1),
        KeyCode::PageUp => view.scroll(-20),
        KeyCode::PageDown => view.scroll(20),
        KeyCode::Home => view.scroll(i32::MIN),
        _ => {}
    }
}

/// Asks once a second on a thread of its own, which ends with the process.
fn follow(desk: AdminDesk) -> Result<Receiver<Result<SeenGateway, String>>, Failure> {
    let (sender, answers) = channel();
    let run = move || {
        while sender.send(ask(&desk)).is_ok() {
            thread::sleep(EACH);
        }
    };
    let thread = thread::Builder::new().name("asks".to_owned()).spawn(run);
    thread.map_err(|error| Failure::Failed(format!("cannot start a thread: {error}")))?;
    Ok(answers)
}

fn ask(desk: &AdminDesk) -> Result<SeenGateway, String> {
    Ok(SeenGateway { status: page(desk, "/status")?, journal: page(desk, "/events")? })
}

fn page<T: serde::de::DeserializeOwned>(desk: &AdminDesk, path: &str) -> Result<T, String> {
    let host = desk.address.clone();
    let url = HttpUrl { scheme: Scheme::Http, address: host.clone(), host, target: path.to_owned() };
    let client = PageClient::new(&url, PATIENCE).map_err(|error| error.to_string())?;
    let client = client.with_token(desk.token.as_deref());
    let page = client.get().map_err(|error| error.to_string())?;
    if page.status == 401 {
        let what = if desk.token.is_some() { "another token than this one" } else { "a token" };
        return Err(format!(
            "the admin listener asks for {what}: `--token-file FILE` shows the first one in FILE, the `admin_token_file` of the \
             gateway's configuration"
        ));
    }
    if page.status != 200 {
        return Err(format!("{path} answers {}: {}", page.status, page.body.trim_end()));
    }
    serde_json::from_str(&page.body)
        .map_err(|_| "what answers there is no Plimsoll, or one of another version".to_owned())
}

fn not_answered(address: &str, what: &str) -> Failure {
    Failure::Failed(format!(
        "nothing answers at {address}: {what}\n\
         Name the address of an admin listener (`admin` under [gateway], or `--admin` of `plimsoll control`), or the gateway's \
         configuration: `plimsoll top plimsoll.toml`."
    ))
}

/// An admin listener.
#[derive(Debug, PartialEq)]
struct AdminDesk {
    address: String,
    token: Option<String>,
}

/// The admin listener to ask: that of a configuration, with its token, or the address on the command line.
fn desk(arguments: &TopArguments) -> Result<AdminDesk, Failure> {
    let gateway = &arguments.gateway;
    let path = Path::new(gateway);
    let (address, tokens) = if path.is_file() {
        let gateway = source::read(path)?.gateway;
        (address_of(path, gateway.settings.admin)?, gateway.admin_tokens)
    } else {
        (written_address(gateway)?, None)
    };
    let token = match (&arguments.token_file, &tokens) {
        (Some(file), _) => Some(resolve::secrets(file, "`--token-file`", first_token)?),
        (None, Some(file)) => Some(resolve::secrets(file, resolve::ADMIN_TOKEN_FILE, first_token)?),
        (None, None) => None,
    };
    Ok(AdminDesk { address, token })
}

/// The first token in the text of a file.
fn first_token(text: &str) -> Result<String, String> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first.map(str::to_owned).ok_or_else(|| "there is no token in it".to_owned())
}

fn address_of(file: &Path, admin: Option<SocketAddr>) -> Result<String, Failure> {
    let admin = admin.ok_or_else(|| {
        Failure::Input(format!(
            "{} has no admin listener: write `admin = \"127.0.0.1:9090\"` under [gateway]",
            file.display()
        ))
    })?;
    Ok(reachable(admin).to_string())
}

fn written_address(gateway: &str) -> Result<String, Failure> {
    let written = gateway.trim_start_matches("http://").trim_end_matches('/');
    match written.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(written.to_owned()),
        _ => Err(Failure::Input(format!(
            "`{gateway}` is neither a file nor an address: write an address with its port, such as 127.0.0.1:9090, or \
             name a configuration"
        ))),
    }
}

/// If a listener has an unspecified address such as `0.0.0.0`, it is asked at loopback.
fn reachable(mut admin: SocketAddr) -> SocketAddr {
    if admin.ip().is_unspecified() {
        admin.set_ip(match admin {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    admin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desk_of(gateway: &str) -> Result<AdminDesk, Failure> {
        desk(&TopArguments { gateway: gateway.to_owned(), once: true, token_file: None })
    }

    #[test]
    fn an_address_is_written_or_read_from_a_file() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/demo.toml");
        for (written, meant) in [
            ("127.0.0.1:9090", "127.0.0.1:9090"),
            ("http://[::1]:9090/", "[::1]:9090"),
            ("gateway.internal:80", "gateway.internal:80"),
            (example, "127.0.0.1:9090"),
        ] {
            assert_eq!(desk_of(written).unwrap(), AdminDesk { address: meant.to_owned(), token: None });
        }
        for wrong in ["9090", "plimsoll.tmol", "a:b", ":80"] {
            assert!(desk_of(wrong).unwrap_err().text().contains("127.0.0.1:9090"), "{wrong}");
        }
        assert_eq!(reachable("0.0.0.0:80".parse().unwrap()).to_string(), "127.0.0.1:80");
    }

    #[test]
    fn a_token_is_that_of_the_configuration_or_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let in_folder = |name: &str| folder.path().join(name);
        std::fs::write(in_folder("admin.token"), format!("\n{}\nolder\n", "t".repeat(40))).unwrap();
        let example = include_str!("../../../../../examples/demo.toml");
        let admin = "admin = \"0.0.0.0:9090\"\nadmin_token_file = \"admin.token\"";
        let configuration = in_folder("plimsoll.toml");
        std::fs::write(&configuration, example.replace("admin = \"127.0.0.1:9090\"", admin)).unwrap();
        let meant = |address: &str| AdminDesk { address: address.to_owned(), token: Some("t".repeat(40)) };
        assert_eq!(desk_of(configuration.to_str().unwrap()).unwrap(), meant("127.0.0.1:9090"));
        let named = |file: &str| {
            let token_file = Some(in_folder(file));
            desk(&TopArguments { gateway: "gate:1".to_owned(), once: true, token_file })
        };
        assert_eq!(named("admin.token").unwrap(), meant("gate:1"));
        let missing = named("no.token").unwrap_err();
        assert!(missing.text().contains("(`--token-file`)"), "{}", missing.text());
    }
}
