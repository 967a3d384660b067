//! Keys that other gateways have in a section where Plimsoll has none, with advice on what to write instead.

/// The titles of sections, the keys, and the advice.
const ELSEWHERE: [(&str, &[&str], &str); 7] = [
    (
        "[upstream.NAME]",
        &["weight", "weights", "backup", "server", "servers", "sticky"],
        "the servers of an upstream are alike and have no weights: of two, the one with fewer requests under way is taken; list them \
         all in `address`",
    ),
    (
        "[upstream.NAME]",
        &["max_fails", "fail_timeout"],
        "leave it out: servers that fail are put out of use by themselves; `[upstream.NAME.health_check]` asks them besides",
    ),
    (
        "[[site]]",
        &["path", "paths", "location", "prefix", "match"],
        "a site is chosen by its `host`; its classes distinguish requests, as by path: `[[site.class]]` with \
         `match = { path = \"/buy/*\" }`; a `prefix` is for levels",
    ),
    (
        "[[site]]",
        &["timeouts", "limits", "connect", "first_byte"],
        "time-outs and limits are the same for all sites: write them at the top of the file, under `[timeouts]` and `[limits]`",
    ),
    (
        "[[site.class]]",
        &["path", "method", "query", "header", "cookie", "client", "host"],
        "say which requests belong to the class in its `match`: `match = { path = \"/buy/*\" }`",
    ),
    (
        "[[site.class]]",
        &["upstream", "folder", "address"],
        "all classes of a site are served by the site's upstream; levels may have others: `upstream` of `[[site.level]]`",
    ),
    (
        "[[site.class]]",
        &["timeouts", "limits", "rate"],
        "a class has no time-outs, limits or rates of its own: it has a `priority`, and a `delay`, `ratio` or `deadline`",
    ),
];

/// The advice for this key in this section, if it is known.
pub(super) fn instead(title: &str, key: &str) -> Option<&'static str> {
    let mut known = ELSEWHERE.iter();
    known.find(|(section, keys, _)| *section == title && keys.contains(&key)).map(|(_, _, help)| *help)
}
