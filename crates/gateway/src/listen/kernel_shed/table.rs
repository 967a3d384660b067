//! The table of nftables: its name, its rules, and the calls of the program nft.
//!
//! **Its name** is made from all addresses that it guards: `plimsoll_PORT_HASH`, with the port of the first address and a hash
//! of all. So gateways at different addresses never share a table, even at the same port, and a process that replaces this one
//! at the same addresses has the same table.
//!
//! **Its owner** is named in it, by an empty chain. A table is removed together with the chain of its owner in one transaction,
//! which fails as a whole if another process has made the table anew.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::thread::{CapabilitySet, capabilities};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where the program nft is looked for besides `PATH`, which often has no `sbin` for users.
const NFT: [&str; 3] = ["nft", "/usr/sbin/nft", "/sbin/nft"];

/// What the kernel's headers (`linux/netlink.h`, `linux/netfilter/nf_tables.h`) say of a message that asks for a table, and of
/// the one that describes it.
const HEADER: usize = 16;
const FAMILY: usize = 4;
const TABLE: u16 = 10 << 8;
const ASK: u16 = TABLE | 1;
const IS_REQUEST: u16 = 1;
const INET: u8 = 1;
const NAME: u16 = 1;

/// The gateway's table.
#[derive(Clone, Debug)]
pub(crate) struct ShedTable {
    pub name: String,
    addresses: Vec<SocketAddr>,
    /// The chain that names the table's owner.
    owner: String,
}

impl ShedTable {
    /// The table for these addresses; `None` if there are none.
    pub(crate) fn of(mut addresses: Vec<SocketAddr>) -> Option<Self> {
        addresses.sort_unstable();
        let port = addresses.first()?.port();
        let mut hash = Sha256::new();
        addresses.iter().for_each(|address| hash.update(format!("{address}\n")));
        let mut name = format!("plimsoll_{port}_");
        hash.finalize().iter().take(6).for_each(|byte| name += &format!("{byte:02x}"));
        let owner = format!("owner_{:016x}", RandomState::new().hash_one(0_u8));
        Some(ShedTable { name, addresses, owner })
    }

    /// Makes the table anew, whether or not it exists.
    pub(super) fn make(&self) -> Result<(), String> {
        run(&self.made()).map(drop)
    }

    /// Removes it, if it is this process's own. Nobody is left to report it to if that fails; entries end by themselves.
    pub(super) fn remove_own(&self) {
        let ShedTable { name, owner, .. } = self;
        let _ = run(&format!("delete chain inet {name} {owner}\ndelete table inet {name}\n"));
    }

    /// For a gateway without `shed`: removes a table of this name that a crash has left. If this process may not change rules,
    /// it has made none.
    pub(crate) fn remove_left(&self) {
        let may_be = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::NET_ADMIN));
        // Mostly there is no such table, which the kernel reports faster than nft would start.
        if may_be && self.is_there() {
            let _ = run(&format!("delete table inet {}\n", self.name));
        }
    }

    /// Whether a table of this name exists, whoever has made it. False if the kernel has no nftables.
    pub(super) fn is_there(&self) -> bool {
        let ask = || {
            let flags = SocketFlags::CLOEXEC;
            let socket =
                socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::NETFILTER))?;
            // Nobody else's answer comes there; the kernel answers before `send` returns.
            send(&socket, &self.question(), SendFlags::empty())?;
            let mut answer = [0; 1024];
            let (length, _) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
            rustix::io::Result::Ok(length >= HEADER && answer[4..6] == TABLE.to_ne_bytes())
        };
        ask().unwrap_or(false)
    }

    /// The netlink message that asks for the table: a header, the family, and the table's name as the only attribute.
    fn question(&self) -> Vec<u8> {
        let attribute = 4 + self.name.len() + 1;
        let length = (HEADER + FAMILY + attribute).next_multiple_of(4);
        let mut message = Vec::with_capacity(length);
        message.extend_from_slice(&(length as u32).to_ne_bytes());
        message.extend_from_slice(&ASK.to_ne_bytes());
        message.extend_from_slice(&IS_REQUEST.to_ne_bytes());
        // The sequence number and port of the header, and the version and resource number behind the family, are all 0.
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(&[INET, 0, 0, 0]);
        message.extend_from_slice(&(attribute as u16).to_ne_bytes());
        message.extend_from_slice(&NAME.to_ne_bytes());
        message.extend_from_slice(self.name.as_bytes());
        message.resize(length, 0);
        message
    }

    /// How many connections the table has reset since the last call.
    pub(super) fn take_resets(&self) -> Result<u64, String> {
        run(&format!("reset counter inet {} turned_away\n", self.name)).map(|text| packets(&text))
    }

    /// Puts clients into the set, and takes others out.
    pub(super) fn change(&self, added: &[(IpAddr, Duration)], lifted: &[IpAddr]) -> Result<(), String> {
        let script = self.changed(added, lifted);
        if script.is_empty() { Ok(()) } else { run(&script).map(drop) }
    }

    fn made(&self) -> String {
        let ShedTable { name, owner, .. } = self;
        let mut rules = String::new();
        for address in &self.addresses {
            let port = address.port();
            let here = |family: &str| match address.ip().is_unspecified() {
                true => String::new(),
                false => format!("{family} daddr {} ", address.ip()),
            };
            let reset = "counter name turned_away reject with tcp reset";
            let begins = format!("tcp dport {port} tcp flags & (fin|syn|rst|ack) == syn");
            if address.is_ipv4() || address.ip().is_unspecified() {
                let _ = writeln!(rules, "{}{begins} ip saddr @clients4 {reset}", here("ip"));
            }
            if address.is_ipv6() {
                let masked = "ip6 saddr & ffff:ffff:ffff:ffff::";
                let _ = writeln!(rules, "{}{begins} {masked} @clients6 {reset}", here("ip6"));
            }
        }
        format!(
            "add table inet {name}\ndelete table inet {name}\ntable inet {name} {{\n\
             set clients4 {{ type ipv4_addr; size 65535; flags timeout; }}\n\
             set clients6 {{ type ipv6_addr; size 65535; flags timeout; }}\n\
             counter turned_away {{ packets 0 bytes 0 }}\n\
             chain {owner} {{ }}\n\
             chain arrivals {{ type filter hook input priority -150; policy accept;\n{rules}}}\n}}\n"
        )
    }

    /// The script that adds clients to the set and removes others. Since removing a missing entry is an error, each entry is
    /// added first, which changes nothing if it is there.
    fn changed(&self, added: &[(IpAddr, Duration)], lifted: &[IpAddr]) -> String {
        let mut script = String::new();
        let mut line = |what: &str, client: &IpAddr, timeout: &str| {
            let set = if client.is_ipv4() { "clients4" } else { "clients6" };
            let _ = writeln!(script, "{what} element inet {} {set} {{ {client}{timeout} }}", self.name);
        };
        for (client, wait) in added {
            line("add", client, &format!(" timeout {}ms", wait.as_millis()));
        }
        for client in lifted {
            line("add", client, " timeout 1s");
            line("delete", client, "");
        }
        script
    }
}

/// How many packets a counter has counted, as nft prints it.
pub(super) fn packets(text: &str) -> u64 {
    let after = text.split("packets ").nth(1).and_then(|rest| rest.split_whitespace().next());
    after.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Runs nft with a script; returns its output, or why it failed.
fn run(script: &str) -> Result<String, String> {
    let start = |program: &&str| {
        let command = &mut Command::new(program);
        command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let mut started = NFT.iter().map(start);
    let is_there =
        |result: &io::Result<_>| !matches!(result, Err(error) if error.kind() == ErrorKind::NotFound);
    let mut child = match started.find(is_there) {
        Some(Ok(child)) => child,
        Some(Err(error)) => return Err(format!("it cannot be started: {error}")),
        None => return Err("there is no program nft".to_owned()),
    };
    // nft prints nothing before it has read the whole script.
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(script.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() && written.is_ok() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().next().unwrap_or("it failed and did not say why").to_owned())
}
