//! Turns a configuration into the gateway's settings: names are looked up, and folders are found.

use crate::output::failure::{Failure, folder};
use crate::service::{certificates, own_listeners};
use plimsoll_config::{self as config, Configuration};
use plimsoll_core::promises::Plant;
use plimsoll_gateway::settings::{
    Address, AdminTokens, Backend, LogTarget, Settings, Signed, UpstreamSettings, UpstreamTls,
};
use std::net::ToSocketAddrs;
use std::path::Path;

/// The addresses of each upstream's servers: by backend, then in the order in which the servers are configured. A folder has
/// none.
pub(crate) type Found = Vec<Vec<Vec<Address>>>;

pub(crate) fn settings(configuration: &Configuration) -> Result<Settings, Failure> {
    own_listeners::refuse(configuration)?;
    settings_with(configuration, &look_all_up(configuration, |_| None)?)
}

/// Looks all names up. If a name is not found, it keeps the addresses that `known` has for it, and the log says so.
pub(crate) fn look_all_up(
    configuration: &Configuration,
    known: impl Fn(&str) -> Option<Vec<Address>>,
) -> Result<Found, Failure> {
    let Configuration { promises, gateway } = configuration;
    let of = |(plant, backend): (&Plant, &config::Backend)| match backend {
        config::Backend::Upstream { addresses, .. } => {
            let found = |address: &String| {
                let name = &plant.name;
                look_up(address).or_else(|why| {
                    if let Some(earlier) = known(address) {
                        let text = format!(
                            "`{address}` cannot be looked up: {why}; its earlier addresses stay in use"
                        );
                        tracing::warn!(upstream = name, "{text}");
                        return Ok(earlier);
                    }
                    let help = "Write an IP address, or see to the name.";
                    let text = format!("[upstream.{name}]: `{address}` cannot be looked up: {why}\n{help}");
                    Err(Failure::Failed(text))
                })
            };
            addresses.iter().map(found).collect()
        }
        config::Backend::Files(_) => Ok(Vec::new()),
    };
    promises.plants.iter().zip(&gateway.backends).map(of).collect()
}

/// The settings, with the addresses that were found.
pub(crate) fn settings_with(configuration: &Configuration, found: &Found) -> Result<Settings, Failure> {
    certificates::read_to_run(configuration)?;
    let Configuration { promises, gateway } = configuration;
    let backends = promises.plants.iter().zip(&gateway.backends).zip(found);
    let backends = backends
        .map(|((plant, backend), found)| self::backend(plant, backend, found))
        .collect::<Result<_, _>>()?;
    let hash_seed = gateway.seed.unwrap_or(gateway.settings.hash_seed);
    let signed = signed(configuration)?;
    let admin_tokens = admin_tokens(configuration)?;
    Ok(Settings { backends, hash_seed, signed, admin_tokens, ..gateway.settings.clone() })
}

/// Problems that may hinder the start of a gateway here: names that cannot be looked up, and folders that are missing.
pub(crate) fn missing_here(configuration: &Configuration) -> Vec<String> {
    let Configuration { promises, gateway } = configuration;
    let backends = promises.plants.iter().zip(&gateway.backends).flat_map(|(plant, backend)| match backend {
        config::Backend::Upstream { addresses, .. } => {
            let unknown = |address: &String| {
                let why = look_up(address).err()?;
                Some(format!("[upstream.{}]: `{address}` cannot be looked up here: {why}", plant.name))
            };
            addresses.iter().filter_map(unknown).collect()
        }
        config::Backend::Files(files) if files.root.is_dir() => Vec::new(),
        config::Backend::Files(files) => {
            vec![format!("[folder.{}]: there is no folder {} here", plant.name, files.root.display())]
        }
    });
    let logs = gateway.settings.access_log.targets().filter_map(|target| match target {
        LogTarget::File(path) if !folder(path).is_dir() => Some(format!(
            "there is no folder {} here for the access log {}",
            folder(path).display(),
            path.display()
        )),
        LogTarget::File(_) | LogTarget::Stdout => None,
    });
    let mut missing: Vec<String> = backends.chain(logs).collect();
    missing.dedup();
    missing.iter().map(|what| format!("{what}; `plimsoll run` does not start without it")).collect()
}

/// The tokens of the admin listener.
pub(crate) fn admin_tokens(configuration: &Configuration) -> Result<AdminTokens, Failure> {
    let file = configuration.gateway.admin_tokens.as_deref();
    file.map_or(Ok(AdminTokens::default()), |file| secrets(file, ADMIN_TOKEN_FILE, AdminTokens::read))
}

/// The signed headers and cookies, with the keys from the file of keys.
pub(crate) fn signed(configuration: &Configuration) -> Result<Signed, Failure> {
    let mut signed = configuration.gateway.settings.signed.clone();
    if let Some(file) = &configuration.gateway.signing_keys {
        secrets(file, "`signing_key_file` under [gateway]", |text| signed.set_keys(text))?;
    }
    Ok(signed)
}

/// The setting that names the file of the admin listener's tokens.
pub(crate) const ADMIN_TOKEN_FILE: &str = "`admin_token_file` under [gateway]";

/// Parses a file of secrets with `read`; `said_by` is the setting that names the file.
pub(crate) fn secrets<T>(
    file: &Path,
    said_by: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    text.and_then(|text| read(&text))
        .map_err(|wrong| Failure::Input(format!("{}: {wrong} ({said_by})", file.display())))
}

fn backend(plant: &Plant, backend: &config::Backend, found: &[Vec<Address>]) -> Result<Backend, Failure> {
    match backend {
        config::Backend::Upstream { settings, .. } => {
            let mut names = Vec::new();
            for (number, found) in found.iter().enumerate() {
                // Each address of a name must show a certificate for the name.
                let name = settings.tls.as_ref().and_then(|tls| tls.names.get(number)).cloned();
                names.resize(names.len() + found.len(), name.unwrap_or_default());
            }
            let addresses = found.concat();
            let tls = settings.tls.as_ref().map(|tls| UpstreamTls { names, ..tls.clone() });
            Ok(Backend::Upstream(UpstreamSettings { addresses, tls, ..(**settings).clone() }))
        }
        config::Backend::Files(files) if files.root.is_dir() => Ok(Backend::Files(files.clone())),
        config::Backend::Files(files) => Err(Failure::Input(format!(
            "[folder.{}]: there is no folder {}\nMake it, or write another `root`; a relative one is taken from the \
             configuration's own folder.",
            plant.name,
            files.root.display()
        ))),
    }
}

/// The addresses of one server, given as `host:port` or as the path of its Unix socket. If a name has several addresses, all of
/// them are members of the upstream.
pub(crate) fn look_up(address: &str) -> Result<Vec<Address>, String> {
    if let Some(path) = address.strip_prefix("unix:") {
        return Ok(vec![Address::Unix(path.into())]);
    }
    let found = address.to_socket_addrs().map_err(|error| error.to_string())?;
    let found: Vec<Address> = found.map(Address::Tcp).collect();
    if found.is_empty() { Err("it has no address".to_owned()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source::understand;
    use plimsoll_gateway::settings::{ForwardedFields, ReportMode};

    fn resolved(source: &str) -> Result<Settings, Failure> {
        settings(&understand(source, "test.toml").expect("the test's file is right"))
    }

    #[test]
    fn names_become_addresses_and_words_become_modes() {
        let settings = resolved(
            "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"off\"\nforwarded = \"both\"\nthreads = 3\nseed = 9\n\
             [report]\nwhen = \"always\"\nheader = \"x-level\"\n[timeouts]\ntunnel = \"5s\"\nbody = \"6s\"\n\
             [upstream.app]\naddress = [\"localhost:81\", \"127.0.0.2:82\"]\ncapacity = { workers = 2 }\n\
             [[site]]\nname = \"a\"\nupstream = \"app\"\n[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n\
             [[site.level]]\nname = \"full\"\n",
        )
        .unwrap();
        let Backend::Upstream(UpstreamSettings { addresses, .. }) = &settings.backends[0] else {
            panic!("{:?}", settings.backends)
        };
        let loopback = |address: &Address| matches!(address, Address::Tcp(at) if at.ip().is_loopback() && at.port() == 81);
        assert!(addresses.iter().any(loopback));
        assert!(addresses.contains(&Address::Tcp("127.0.0.2:82".parse().unwrap())));
        assert_eq!((settings.admin, settings.threads, settings.hash_seed), (None, 3, 9));
        assert_eq!(settings.forwarded, ForwardedFields::Both);
        assert_eq!((settings.report.mode, settings.report.name.as_str()), (ReportMode::Always, "x-level"));
        assert_eq!((settings.timeouts.tunnel_idle.as_secs(), settings.timeouts.body_idle.as_secs()), (5, 6));
        assert_eq!(
            (settings.rewrites[0][0].prefix.as_str(), settings.rewrites[0][1].prefix.as_str()),
            ("/light", "")
        );
    }

    #[test]
    fn what_hinders_a_start_is_reported_before() {
        // No name has so long a label, whatever a resolver says of others.
        let long = "a".repeat(64);
        let source = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[access_log]\nfile = \"/no/such/access.log\"\n\
             [upstream.app]\naddress = [\"{long}.example:81\", \"127.0.0.1:82\"]\n"
        );
        let [name, log] = &missing_here(&understand(&source, "test.toml").unwrap())[..] else {
            panic!("two")
        };
        let expected = format!("[upstream.app]: `{long}.example:81` cannot be looked up here: ");
        assert!(name.starts_with(&expected), "{name}");
        assert!(
            log.starts_with("there is no folder /no/such here for the access log /no/such/access.log; "),
            "{log}"
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_the_users_input() {
        let failure =
            resolved("[gateway]\nlisten = \"127.0.0.1:0\"\n[folder.www]\nroot = \"/no/such\"\n").unwrap_err();
        let Failure::Input(text) = failure else { panic!("{failure:?}") };
        assert!(text.contains("[folder.www]: there is no folder /no/such"), "{text}");
    }
}
