//! mod_plimsoll in virtual hosts: one with the server's state, one with a state of its own, one with none, and what
//! `/server-status` shows of both states.

use crate::module::configuration;
use nix::sys::signal::Signal;
use plimsoll_e2e::{Apache, Control, Folder, Response, exchange, module, open_to_all, wait_until};
use std::time::Duration;

/// One level, so that what is served tells whose state it is.
fn only_light() -> String {
    let light = configuration().replace("[[site.level]]\nname = \"full\"\n", "");
    light.replace("name = \"www\"", "name = \"lean\"")
}

/// Before the other site, one that has no more than its contract.
fn with_a_closed_site() -> String {
    let closed = "[[site]]\nname = \"closed\"\nhost = \"closed.test\"\nupstream = \"server\"\nshare_excess = false\n\
                  guarantee = { rate = \"0.01/s\", burst = \"1s\" }\n";
    // A number that Apache has no words for.
    "[rejection]\nstatus = 450\n".to_owned()
        + &configuration().replacen("[[site]]\n", &format!("{closed}[[site]]\n"), 1)
}

/// Three hosts; the first has the state of the whole server.
fn apache(server: &Control, own: &Control) -> Apache {
    let folder = Folder::new();
    open_to_all(folder.path());
    std::fs::create_dir(folder.path().join("light")).expect("a folder");
    open_to_all(&folder.path().join("light"));
    folder.write("page.html", "full");
    folder.write("light/page.html", "light");
    let each = format!(
        "DocumentRoot {}\nHeader set X-Plimsoll \"level=%{{PLIMSOLL_LEVEL}}e\"\n\
         <Location /server-status>\nSetHandler server-status\nRequire local\n</Location>\n",
        folder.path().display()
    );
    let content = format!(
        "LoadModule plimsoll_module {}/mod_plimsoll.so\n{each}</VirtualHost>\nPlimsollState {}\n\
         <VirtualHost *:{{port}}>\nServerName own.test\nPlimsollState {}\n{each}</VirtualHost>\n\
         <VirtualHost *:{{port}}>\nServerName off.test\nPlimsollState off\n{each}",
        module().display(),
        server.state().display(),
        own.state().display()
    );
    Apache::with(folder, (4, 64), &["status", "headers"], &content)
}

fn ask(apache: &Apache, host: &str, path: &str) -> Response {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(apache.direct, request)
}

/// The lines for machines that the module tells of a state; the host that asks has none, so that it is not counted.
fn told(apache: &Apache, control: &Control) -> String {
    let all = ask(apache, "off.test", "/server-status?auto").text();
    let begin = format!("PlimsollState: {}\n", control.state().display());
    let own = all.split_once(&begin).unwrap_or_else(|| panic!("{all}")).1;
    own.split("PlimsollState:").next().unwrap_or_default().to_owned()
}

#[test]
fn virtual_hosts_have_the_state_of_the_server_their_own_or_none() {
    let (server, mut own) = (Control::start(&with_a_closed_site()), Control::start(&only_light()));
    let apache = apache(&server, &own);
    for (host, times, page, level) in [
        ("e2e.test", 3, "full", "level=2"),
        ("own.test", 2, "light", "level=1"),
        ("off.test", 4, "full", "level=(null)"),
    ] {
        for _ in 0..times {
            let answer = ask(&apache, host, "/page.html");
            assert_eq!((answer.text().as_str(), answer.header("x-plimsoll")), (page, Some(level)), "{host}");
        }
    }
    // A request departs when it is logged, which is after its answer.
    let ended = |control: &Control, count: u32| {
        let lines = format!(
            "PlimsollArrived: {count}\nPlimsollRejected: 0\nPlimsollEnded: {count}\nPlimsollInService: 0\n"
        );
        let all =
            wait_until(Duration::from_secs(60), || told(&apache, control).contains(&lines).then_some(()));
        assert!(all.is_some(), "{count}: {}", told(&apache, control));
    };
    ended(&server, 3);
    ended(&own, 2);

    let shown = ask(&apache, "off.test", "/server-status").text();
    let section = |control: &Control| {
        let begin = format!("<h2>Plimsoll: {}</h2>", control.state().display());
        let section = shown.split_once(&begin).unwrap_or_else(|| panic!("{shown}")).1;
        section.split_once("</table>").unwrap_or_else(|| panic!("{shown}")).0.to_owned()
    };
    let whole = section(&server);
    assert!(whole.contains(&format!("Controller: process {}. ", server.process.pid())), "{whole}");
    assert!(whole.contains("of 64 lanes are in use; 0 requests are in service. 0 processes died"), "{whole}");
    // m, the highest level, arrived, rejected, ended, bytes.
    let row = "<tr><td>www</td><td>default</td><td>2.000</td><td>2</td><td>3</td><td>0</td><td>3</td><td>12</td></tr>";
    assert!(whole.contains(row), "{whole}");
    let row = "<tr><td>lean</td><td>default</td><td>1.000</td><td>1</td><td>2</td><td>0</td><td>2</td><td>10</td></tr>";
    assert!(section(&own).contains(row), "{}", section(&own));

    // What is rejected without a load is told a time, too.
    let rejected = wait_until(Duration::from_secs(60), || {
        let answer = ask(&apache, "closed.test", "/page.html");
        (answer.status == 450).then_some(answer)
    });
    let after = rejected.and_then(|answer| answer.header("retry-after")?.parse::<u32>().ok());
    assert!(after.is_some_and(|seconds| seconds >= 1), "{after:?}");

    own.process.signal(Signal::SIGKILL);
    own.process.wait();
    let said = wait_until(Duration::from_secs(60), || {
        let shown = ask(&apache, "off.test", "/server-status").text();
        (shown.matches("No controller is awake: levels stand still.").count() == 1).then_some(())
    });
    assert!(said.is_some(), "the page says that a controller is gone");
    assert_eq!(ask(&apache, "own.test", "/page.html").text(), "light", "levels stay as they are");
}
