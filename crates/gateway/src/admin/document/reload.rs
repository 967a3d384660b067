//! What a reload changed.

use crate::runtime::reload::Reloaded;
use plimsoll_core::Difference;
use serde::Serialize;

document! {
    /// What `POST /reload` answers with: what a reload changed.
    pub(in crate::admin) ReloadDocument<'a>(reloaded: &'a Reloaded) {
        /// Upstreams and folders.
        upstreams: DifferenceDocument<'a> = DifferenceDocument::new(&reloaded.changes.plants),
        /// Sites.
        sites: DifferenceDocument<'a> = DifferenceDocument::new(&reloaded.changes.sites),
        /// Classes.
        classes: DifferenceDocument<'a> = DifferenceDocument::new(&reloaded.changes.classes),
        /// Whether a key of `[control]` changed.
        control: bool = reloaded.changes.control,
        /// Sections of the settings that changed.
        settings: &'a [&'static str] = &reloaded.settings,
        /// What differs and stays as it is until a restart.
        needs_restart: &'a [&'static str] = &reloaded.needs_restart,
    }
}

document! {
    /// Names that a reload added, removed or changed.
    DifferenceDocument<'a>(difference: &'a Difference) {
        /// Names that are new.
        added: &'a [String] = &difference.added,
        /// Names that are gone.
        removed: &'a [String] = &difference.removed,
        /// Names whose keys changed.
        changed: &'a [String] = &difference.changed,
    }
}
