//! Checks a configuration's certificates before they are used, and renews them when their files change.
//!
//! A tool that renews certificates replaces their files and may not know of the gateway. So a thread looks at the files. It has
//! them read again once they differ from those in force and have not changed for one look, because a chain and its key are not
//! written at the same moment.

use crate::output::failure::Failure;
use plimsoll_config::{Backend, Configuration};
use plimsoll_core::promises::Promises;
use plimsoll_gateway::Reloader;
use plimsoll_gateway::settings::{Certificate, SeenFile, TlsSettings, is_for};
use std::io;
use std::thread;
use std::time::Duration;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Reads all certificates, and the files of authorities for upstreams.
pub(crate) fn read(configuration: &Configuration) -> Result<Vec<Certificate>, Failure> {
    let Configuration { promises, gateway } = configuration;
    let own = gateway.settings.tls.as_ref().map_or(Ok(Vec::new()), TlsSettings::read);
    let wrong = own.as_ref().err().into_iter().flatten().map(|wrong| format!("error: {wrong} (under [tls])"));
    let upstreams =
        promises.plants.iter().zip(&gateway.backends).filter_map(|(plant, backend)| match backend {
            // The authorities that this system trusts are not read, because the gateway may run on another system.
            Backend::Upstream { settings, .. } => {
                let tls = settings.tls.as_ref().filter(|tls| tls.authorities.is_some())?;
                Some(format!("error: {} (`ca` under [upstream.{}.tls])", tls.check().err()?, plant.name))
            }
            Backend::Files(_) => None,
        });
    let wrong: Vec<String> = wrong.chain(upstreams).collect();
    if wrong.is_empty() { Ok(own.unwrap_or_default()) } else { Err(Failure::Input(wrong.join("\n"))) }
}

/// Reads the certificates for a gateway. An expired one is only reported, because most clients may not mind.
pub(crate) fn read_to_run(configuration: &Configuration) -> Result<(), Failure> {
    let untimely: Vec<String> = read(configuration)?.iter().filter_map(Certificate::untimely).collect();
    untimely.iter().for_each(|wrong| tracing::warn!("{wrong}"));
    Ok(())
}

/// Reads the certificates, and refuses wrong or expired ones.
pub(crate) fn check(configuration: &Configuration) -> Result<Vec<Certificate>, Failure> {
    let certificates = read(configuration)?;
    let untimely: Vec<String> = certificates.iter().filter_map(Certificate::untimely).collect();
    let errors: Vec<String> = untimely.iter().map(|wrong| format!("error: {wrong} (under [tls])")).collect();
    if errors.is_empty() { Ok(certificates) } else { Err(Failure::Input(errors.join("\n"))) }
}

/// Warnings about hosts of sites that no certificate covers.
pub(crate) fn warnings(certificates: &[Certificate], promises: &Promises) -> Vec<String> {
    let Some(first) = certificates.first() else { return Vec::new() };
    let covered = |host: &str| certificates.iter().any(|certificate| is_for(&certificate.names, host));
    let hosts = promises.sites.iter().flat_map(|site| site.hosts.iter().map(|host| (&site.name, host)));
    let bare = hosts.filter(|(_, host)| !covered(host));
    let warn = |(site, host)| {
        format!(
            "no certificate is for {host} of the site {site}: clients that ask for it by TLS get {}, which they refuse; add one \
             to `certificate` under [tls]",
            first.files.chain.display()
        )
    };
    bare.map(warn).collect()
}

/// Starts a thread that renews a gateway's certificates when their files change.
pub(crate) fn follow(gateway: Reloader) -> io::Result<()> {
    let run = move || {
        let (mut before, mut refused) = (None, None);
        loop {
            thread::sleep(LOOK);
            let changed = gateway.changed_tls_files();
            let is_steady = changed == before;
            before.clone_from(&changed);
            match changed {
                Some(seen) if is_steady => renew(&gateway, seen, &mut refused),
                Some(_) => {}
                None => refused = None,
            }
        }
    };
    thread::Builder::new().name("certificates".to_owned()).spawn(run).map(drop)
}

/// The files that could not be used, and what was wrong with them.
type Refused = (Vec<SeenFile>, Vec<String>);

/// Reads the certificates. If they are wrong, they are read again at each look until they are right, because a mended cause,
/// such as a permission, may leave no trace in the file. Each error is logged once.
fn renew(gateway: &Reloader, seen: Vec<SeenFile>, refused: &mut Option<Refused>) {
    match gateway.renew_certificates() {
        Ok(true) => {
            *refused = None;
            tracing::info!("the certificates have changed, and handshakes use the new ones");
        }
        Ok(false) => {}
        Err(wrong) => {
            let now = Some((seen, wrong));
            if let Some((_, wrong)) = now.as_ref().filter(|_| *refused != now) {
                tracing::error!(
                    "the certificates have changed and are wrong, and the earlier ones stay in use:\n{}",
                    wrong.join("\n")
                );
            }
            *refused = now;
        }
    }
}
