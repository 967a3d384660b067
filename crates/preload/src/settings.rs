//! The settings in the environment. They are read when the library is loaded, since some servers clear the environment later.

use crate::tell::Once;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct PreloadSettings {
    /// `PLIMSOLL_STATE`: the file of the shared state.
    pub(crate) state: Option<PathBuf>,
    /// `PLIMSOLL_PORTS`: only connections to these ports are looked at; without it, all are.
    ports: Option<Vec<u16>>,
}

impl PreloadSettings {
    pub(crate) fn own() -> &'static PreloadSettings {
        static OWN: OnceLock<PreloadSettings> = OnceLock::new();
        OWN.get_or_init(|| {
            let get = |name: &str| std::env::var_os(name);
            PreloadSettings::read(get("PLIMSOLL_STATE"), get("PLIMSOLL_PORTS"))
        })
    }

    fn read(state: Option<OsString>, ports: Option<OsString>) -> PreloadSettings {
        static WRONG: Once = Once::new();
        let numbers = ports.map(|ports| {
            let text = ports.to_string_lossy().into_owned();
            let read: Result<Vec<u16>, _> = text.split(',').map(|port| port.trim().parse()).collect();
            read.unwrap_or_else(|_| {
                WRONG.tell(&format!(
                    "PLIMSOLL_PORTS is no list of ports, as in 80,8080, so no connection is looked at: {text}"
                ));
                Vec::new()
            })
        });
        PreloadSettings { state: state.filter(|state| !state.is_empty()).map(PathBuf::from), ports: numbers }
    }

    /// Whether connections to this port are looked at.
    pub(crate) fn watches(&self, port: u16) -> bool {
        self.state.is_some() && self.ports.as_ref().is_none_or(|ports| ports.contains(&port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_a_list_and_without_a_state_nothing_is_watched() {
        let watched = |state: Option<&str>, ports: Option<&str>| {
            let settings = PreloadSettings::read(state.map(Into::into), ports.map(Into::into));
            [80, 8080].map(|port| settings.watches(port))
        };
        assert_eq!(watched(Some("/state"), None), [true, true]);
        assert_eq!(watched(Some("/state"), Some("80")), [true, false]);
        assert_eq!(watched(Some("/state"), Some("8080, 80")), [true, true]);
        assert_eq!(watched(Some("/state"), Some("http")), [false, false]);
        assert_eq!((watched(None, None), watched(Some(""), None)), ([false; 2], [false; 2]));
    }
}
