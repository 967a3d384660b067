//! Warns of levels that seem to be in the wrong order. Such a file is valid, but then even an idle server gives all clients the
//! light level.

use plimsoll_config::Configuration;
use plimsoll_core::promises::Site;
use plimsoll_gateway::settings::Rewrite;

/// The name by which a level claims to be the highest.
const FULL: &str = "full";

/// Warnings about sites whose last level, which is full quality, looks like a lower one.
pub(crate) fn warnings(Configuration { promises, gateway }: &Configuration) -> Vec<String> {
    promises
        .sites
        .iter()
        .zip(&gateway.settings.rewrites)
        .filter_map(|(site, rewrites)| of(site, rewrites))
        .collect()
}

fn of(site: &Site, rewrites: &[Rewrite]) -> Option<String> {
    let ((top, lower), (last, earlier)) = (site.levels.split_last()?, rewrites.split_last()?);
    let is_as_it_came = |rewrite: &Rewrite| rewrite.prefix.is_empty() && rewrite.headers.is_empty();
    let mut plain =
        lower.iter().zip(earlier).filter(|(level, rewrite)| level.plant.is_none() && is_as_it_came(rewrite));
    let why = if let Some(full) = lower.iter().find(|level| level.name == FULL).filter(|_| top.name != FULL) {
        format!("here that is {:?}, and {:?} stands before it", top.name, full.name)
    } else {
        let (as_it_came, _) = plain.next().filter(|_| !is_as_it_came(last))?;
        let what = if last.prefix.is_empty() { "`headers`" } else { "a `prefix`" };
        format!("here that is {:?}, which has {what}, and {:?} before it has none", top.name, as_it_came.name)
    };
    Some(format!(
        "site {}: its levels seem to stand in the wrong order: the lowest quality comes first and full quality last; {why}",
        site.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_config::parse;

    fn warned(levels: &str) -> Vec<String> {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[upstream.app]\naddress = \"127.0.0.1:1\"\n[[site]]\nname = \"shop\"\n{levels}"
        );
        warnings(&parse(&text, "site.toml").expect("a configuration"))
    }

    #[test]
    fn levels_that_look_reversed_are_reported() {
        let light = "[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n";
        let full = "[[site.level]]\nname = \"full\"\n";
        let rich = "[[site.level]]\nname = \"rich\"\nheaders = { x-rich = \"yes\" }\n";
        let plain = full.replace("full", "plain");
        assert_eq!(warned(""), Vec::<String>::new());
        assert_eq!(warned(&format!("{light}{full}")), Vec::<String>::new());
        assert_eq!(warned(&format!("{light}{rich}")), Vec::<String>::new());
        let warnings = warned(&format!("{full}{light}"));
        assert_eq!(
            warnings,
            [
                "site shop: its levels seem to stand in the wrong order: the lowest quality comes first and full quality last; \
              here that is \"light\", and \"full\" stands before it"
            ]
        );
        let warnings = warned(&format!("{plain}{rich}"));
        assert!(
            warnings[0]
                .ends_with("here that is \"rich\", which has `headers`, and \"plain\" before it has none"),
            "{warnings:?}"
        );
    }
}
