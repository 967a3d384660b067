//! The decision on a request, as its handler and the layers around this one see it.

use crate::running::names::PrefixedNames;
use plimsoll_core::request::{Permit, Reason, Target};
use std::fmt;
use std::sync::Arc;

/// The decision on a request. The layer puts it into the extensions of the request, for the handler, and into those of the
/// response, for logs and metrics.
#[derive(Clone)]
pub struct Decision {
    level: u8,
    reason: Reason,
    /// The numbers of the request's site and class.
    target: Option<(u16, u16)>,
    names: Arc<PrefixedNames>,
}

impl Decision {
    pub(crate) fn of(permit: &Permit, target: Target, names: Arc<PrefixedNames>) -> Self {
        let (level, reason) = (permit.level(), permit.reason());
        Decision { level, reason, target: Some((target.site, target.class)), names }
    }

    pub(crate) fn rejected(reason: Reason, target: Option<Target>, names: Arc<PrefixedNames>) -> Self {
        Decision { level: 0, reason, target: target.map(|target| (target.site, target.class)), names }
    }

    /// The decision on a request that has waited: it gets its level when it starts, with the level names in force then.
    pub(crate) fn started(&self, permit: &Permit, names: Arc<PrefixedNames>) -> Self {
        Decision { level: permit.level(), reason: permit.reason(), target: self.target, names }
    }

    pub(crate) fn dropped(&self, reason: Reason) -> Self {
        Decision { level: 0, reason, ..self.clone() }
    }

    /// The level of service, from 1 to the number of levels, which is full quality; 0 if the request was rejected.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// The level's name; empty if the request was rejected.
    pub fn level_name(&self) -> &str {
        self.target.and_then(|(site, _)| self.names.plain.level(site, self.level)).unwrap_or_default()
    }

    /// Why the request has this level.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The name of the request's class: one of your own, `default` or `exempt`; empty if no site has the request's host.
    pub fn class(&self) -> &str {
        self.target.and_then(|(_, class)| self.names.plain.class(class)).unwrap_or_default()
    }

    /// The prefix that is put before the paths of requests of this level. An exempt request gets none.
    pub(crate) fn prefix(&self) -> Option<&Arc<str>> {
        let (site, _) = self.target.filter(|_| self.reason != Reason::Exempt)?;
        self.names.prefix(site, self.level)
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decision")
            .field("level", &self.level)
            .field("level_name", &self.level_name())
            .field("reason", &self.reason)
            .field("class", &self.class())
            .finish()
    }
}
