//! From what the configuration says to what the gateway is told: names are looked up, folders are found.

use crate::output::failure::Failure;
use plimsoll_config::{self as config, Configuration, Forwarded, ReportWhen};
use plimsoll_core::promises::Plant;
use plimsoll_gateway::files::FilesSettings;
use plimsoll_gateway::settings::{
    Backend, ForwardedFields, Limits, Rejection, Report, ReportMode, Rewrite, Settings, Timeouts,
};
use std::net::{SocketAddr, ToSocketAddrs};

/// The gateway's settings.
///
/// # Errors
/// Every folder that is missing and every upstream whose name cannot be looked up.
pub(crate) fn settings(configuration: &Configuration) -> Result<Settings, Failure> {
    let Configuration { promises, gateway } = configuration;
    let backends = promises.plants.iter().zip(&gateway.backends);
    Ok(Settings {
        listen: gateway.listen.clone(),
        admin: gateway.admin,
        threads: gateway.threads.unwrap_or(0),
        trusted_proxies: gateway.trusted_proxies.clone(),
        forwarded: forwarded(gateway.forwarded),
        report: report(&gateway.report),
        rejection: rejection(&gateway.rejection),
        limits: limits(gateway.limits),
        timeouts: timeouts(gateway.timeouts),
        backends: backends.map(|(plant, backend)| self::backend(plant, backend)).collect::<Result<_, _>>()?,
        rewrites: gateway.rewrites.iter().map(|levels| levels.iter().map(rewrite).collect()).collect(),
        hash_seed: gateway.seed,
    })
}

fn backend(plant: &Plant, backend: &config::Backend) -> Result<Backend, Failure> {
    match backend {
        config::Backend::Upstream { addresses, .. } => {
            let mut all = Vec::new();
            for address in addresses {
                all.extend(look_up(&plant.name, address)?);
            }
            Ok(Backend::Upstream { addresses: all })
        }
        config::Backend::Files { root, index, follow_symlinks, cache_bytes } => {
            if !root.is_dir() {
                return Err(Failure::Input(format!(
                    "[folder.{}]: there is no folder {}\nMake it, or write another `root`; a relative one is taken \
                     from the configuration's own folder.",
                    plant.name,
                    root.display()
                )));
            }
            Ok(Backend::Files(FilesSettings {
                root: root.clone(),
                index: index.clone(),
                follow_symlinks: *follow_symlinks,
                cache_bytes: usize::try_from(*cache_bytes).unwrap_or(usize::MAX),
            }))
        }
    }
}

/// The addresses of one server, `host:port`. A name may have several: they are members of the upstream alike.
fn look_up(upstream: &str, address: &str) -> Result<Vec<SocketAddr>, Failure> {
    let unknown = |why: String| {
        Failure::Failed(format!(
            "[upstream.{upstream}]: `{address}` cannot be looked up: {why}\nWrite an IP address, or see to the name."
        ))
    };
    let found = address.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() { Err(unknown("it has no address".to_owned())) } else { Ok(found) }
}

fn forwarded(fields: Forwarded) -> ForwardedFields {
    match fields {
        Forwarded::XForwarded => ForwardedFields::XForwarded,
        Forwarded::Standard => ForwardedFields::Forwarded,
        Forwarded::Both => ForwardedFields::Both,
        Forwarded::None => ForwardedFields::None,
    }
}

fn report(report: &config::Report) -> Report {
    let mode = match report.when {
        ReportWhen::Rejections => ReportMode::Rejections,
        ReportWhen::Always => ReportMode::Always,
        ReportWhen::Never => ReportMode::Off,
    };
    Report { mode, name: report.header.clone() }
}

fn rejection(rejection: &config::Rejection) -> Rejection {
    Rejection {
        status: rejection.status,
        content_type: rejection.content_type.clone(),
        body: rejection.body.clone(),
    }
}

fn limits(limits: config::Limits) -> Limits {
    Limits {
        head_bytes: usize::try_from(limits.head_bytes).unwrap_or(usize::MAX),
        body_bytes: limits.body_bytes,
        connections: usize::try_from(limits.connections).unwrap_or(usize::MAX),
    }
}

fn timeouts(timeouts: config::Timeouts) -> Timeouts {
    Timeouts {
        head: timeouts.head,
        body_idle: timeouts.body,
        keep_alive: timeouts.keep_alive,
        send: timeouts.send,
        connect: timeouts.connect,
        first_byte: timeouts.first_byte,
        upstream_idle: timeouts.upstream_idle,
        upstream_keep_alive: timeouts.upstream_keep_alive,
        tunnel_idle: timeouts.tunnel,
    }
}

fn rewrite(rewrite: &config::Rewrite) -> Rewrite {
    Rewrite {
        prefix: rewrite.prefix.clone().unwrap_or_default(),
        headers: rewrite.headers.clone(),
        falls_back: rewrite.falls_back,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source::understand;

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
        let Backend::Upstream { addresses } = &settings.backends[0] else {
            panic!("{:?}", settings.backends)
        };
        assert!(addresses.iter().any(|address| address.ip().is_loopback() && address.port() == 81));
        assert!(addresses.contains(&"127.0.0.2:82".parse().unwrap()));
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
    fn a_folder_that_is_not_there_is_the_users_input() {
        let failure =
            resolved("[gateway]\nlisten = \"127.0.0.1:0\"\n[folder.www]\nroot = \"/no/such\"\n").unwrap_err();
        let Failure::Input(text) = failure else { panic!("{failure:?}") };
        assert!(text.contains("[folder.www]: there is no folder /no/such"), "{text}");
    }
}
