//! The `[upstream.NAME.capacity]` section to paste.

use super::Profiled;
use crate::output::failure::Failure;
use crate::output::new_file::NewFile;
use crate::output::units::{quantity, rate};
use plimsoll_load::profile::Highest;
use std::path::Path;

/// The section; none if no size was measured.
pub(crate) fn section(profiled: &Profiled) -> Option<String> {
    let Profiled { profile, upstream, .. } = profiled;
    let (fit, busy) = (profile.fit?, profile.busy_clients()?);
    let mut text = format!("[upstream.{upstream}.capacity]\n");
    text += &match profile.workers() {
        Some(workers) => {
            format!("workers = {workers}  # found; if you know what the server is set to, write that\n")
        }
        None if profile.is_bounded_by_clients() => {
            let tried = profile.highest.iter().map(Highest::most_tried).max().unwrap_or(busy);
            let more = if 2 * tried > profiled.most_clients { "--clients" } else { "--seconds-per-size" };
            format!(
                "workers = {busy}  # no finding: the rate rose with each of the {tried} clients that were tried; measure again with \
                 more `{more}`, or write what the server is set to\n"
            )
        }
        None => format!(
            "workers = {busy}  # a guess: so many requests at once kept it busy; write what the server is set to\n"
        ),
    };
    if let Some(link) = fit.link_per_byte_seconds {
        text += &format!("bandwidth = \"{}\"\n", rate(1.0 / link));
    }
    let mut costs = format!("request = \"{}\"", quantity(fit.per_request_seconds));
    if fit.per_byte_seconds > 0.0 {
        costs += &format!(", byte = \"{}\"", quantity(fit.per_byte_seconds));
    }
    let rejecting = profile.rejecting.as_ref();
    if let Some(rejecting) = rejecting {
        costs += &format!(", rejection = \"{}\"", quantity(rejecting.service_seconds()));
    }
    text += &format!("costs = {{ {costs} }}\n");
    if rejecting.is_some() {
        text += "# A rejection's cost counts only where the gateway is on the server's machine: same_host = true\n";
    }
    Some(text)
}

pub(crate) fn must_be_new(file: &Path) -> Result<(), Failure> {
    if !file.exists() {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "error: there is a {} already, and it is not overwritten\nName a new file after `--write`, or remove that one.",
        file.display()
    )))
}

/// Writes a file that was opened before the load, unless another file took its place meanwhile.
pub(crate) fn write(file: NewFile, text: &str) -> Result<(), Failure> {
    must_be_new(file.path())?;
    file.fill(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source;
    use crate::commands::profile::tests::profiled;

    #[test]
    fn it_is_what_the_configuration_takes() {
        let text = section(&profiled()).unwrap();
        assert!(text.contains("workers = 8  # found"), "{text}");
        let whole = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[upstream.app]\naddress = \"127.0.0.1:81\"\n{text}\
             [[site]]\nname = \"shop\"\nupstream = \"app\"\n"
        );
        let plant = source::understand(&whole, "x.toml").unwrap().promises.plants.remove(0);
        let costs = plant.costs.unwrap();
        let close =
            |value: f64, wanted: f64| assert!((value / wanted - 1.0).abs() < 1e-3, "{value} {wanted}");
        close(costs.per_request_seconds, 7.5e-4);
        close(costs.per_byte_seconds, 1.25e-8);
        close(costs.per_rejection_seconds, 3.75e-4);
        close(plant.bandwidth_bytes_per_second.unwrap(), 4e7);
        assert_eq!(plant.workers, 8);
    }

    #[test]
    fn a_number_that_is_that_of_its_own_clients_is_no_finding() {
        let mut few = profiled();
        few.most_clients = 8;
        for found in &mut few.profile.highest {
            found.climb.truncate(2);
            (found.clients, found.busy_clients) = (8, 8);
        }
        assert_eq!(few.profile.workers(), None);
        let text = section(&few).unwrap();
        assert!(
            text.contains("workers = 8  # no finding: the rate rose with each of the 8 clients"),
            "{text}"
        );
        assert!(text.contains("more `--clients`"), "{text}");
        few.most_clients = 256;
        assert!(section(&few).unwrap().contains("more `--seconds-per-size`"));
    }

    #[test]
    fn nothing_measured_is_no_section() {
        let mut nothing = profiled();
        nothing.profile.highest.clear();
        nothing.profile.fit = None;
        assert_eq!(section(&nothing), None);
    }

    #[test]
    fn a_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("section.toml");
        assert_eq!(must_be_new(&file), Ok(()));
        let write = |text| write(NewFile::begin(&file, &[]).unwrap(), text);
        write("a").unwrap();
        assert!(matches!(must_be_new(&file), Err(Failure::Input(text)) if text.contains("not overwritten")));
        assert!(matches!(write("b"), Err(Failure::Input(_))));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a");
    }
}
