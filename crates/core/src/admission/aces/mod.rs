//! The paper AC's admission: a budget of work per period and priority, its shares by law, and the forecast of rates.

pub(crate) mod budget;
pub(crate) mod forecast;
pub(crate) mod formula;
pub(crate) mod periods;
