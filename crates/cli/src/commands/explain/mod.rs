//! `plimsoll explain FILE`: which site, class and level one request gets, and why.
//!
//! The engine itself decides ([`explain`](plimsoll_core::request::explain::explain)); this module puts the decision into
//! sentences.

mod request;

use crate::args::source;
use crate::args::{ExplainArguments, RequestLine};
use crate::output::facts::{Facts, Value, figure, hidden, list};
use crate::output::failure::Failure;
use crate::output::found_types::{self, Saved, SavedLimit};
use crate::output::promised::{self, Promised};
use crate::output::type_costs;
use crate::output::units::Unit;
use crate::output::{json, text};
use crate::service::{resolve, state};
use plimsoll_config::Configuration;
use plimsoll_core::promises::{Choice, Condition, DEFAULT_TYPES, Level, Mode, Network, Site};
use plimsoll_core::request::explain::{Explanation, Identified, Part};
use plimsoll_gateway::http1::Refusal;
use plimsoll_gateway::http1::request::RequestHead;
use request::{TypedRequest, head};
use std::time::SystemTime;

pub(crate) fn explain(arguments: &ExplainArguments) -> Result<(), Failure> {
    let mut configuration = source::read(&arguments.file)?;
    if let Err(refusal) = RequestHead::default().parse(&head(arguments)) {
        return refused(arguments, refusal);
    }
    let finds = configuration.promises.sites.iter().map(|site| site.types.is_empty()).collect();
    let saved = match &arguments.status {
        Some(status) => found_types::read_into(&mut configuration.promises, status)?,
        None => Saved::default(),
    };
    let promises = &configuration.promises;
    let seed = state::seed::find(&configuration, &arguments.file);
    let request = TypedRequest::new(arguments, resolve::signed(&configuration)?);
    let explanation = plimsoll_core::request::explain::explain(promises, seed.unwrap_or(0), &request)
        .map_err(|wrong| Failure::Input(wrong.join("\n")))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let explained = explanation.as_ref().map(|explanation| Explained {
        arguments,
        configuration: &configuration,
        hash: seed.map(|_| explanation.hash(now, promises.control.rekey)),
        explanation,
        finds: &finds,
        saved,
    });
    match (explained, arguments.json) {
        (Some(explained), true) => json::print_indented(&explained.facts()),
        (Some(explained), false) => text::print(explained.text().trim_end()),
        (None, true) => {
            json::print_indented(&Facts(vec![hidden("site", Value::Absent), hidden("status", 421u32)]))
        }
        (None, false) => text::print(no_site(arguments, &configuration)),
    }
}

fn refused(arguments: &ExplainArguments, Refusal { status, why }: Refusal) -> Result<(), Failure> {
    if arguments.json {
        let facts =
            vec![hidden("site", Value::Absent), hidden("status", u32::from(status)), hidden("why", why)];
        return json::print_indented(&Facts(facts));
    }
    let RequestLine { method, target } = &arguments.request;
    text::print(format!(
        "{method} {target}\n\nThe gateway answers {status} before it asks where the request belongs: {why}."
    ))
}

fn no_site(arguments: &ExplainArguments, configuration: &Configuration) -> String {
    let host = if arguments.host.is_empty() { "no host (see --host)" } else { &arguments.host };
    let sites = configuration.promises.sites.iter();
    let sites: Vec<String> = sites.map(|site| format!("  {}: {}", site.name, quoted(&site.hosts))).collect();
    format!(
        "No site has this host: the answer is 421. The request names {host}; the sites have\n{}",
        sites.join("\n")
    )
}

struct Explained<'a> {
    arguments: &'a ExplainArguments,
    configuration: &'a Configuration,
    explanation: &'a Explanation,
    /// The client's hash, if the seed is known.
    hash: Option<f64>,
    /// For each site, whether it names no type, so that types are found.
    finds: &'a Vec<bool>,
    /// The types and limits in a saved status.
    saved: Saved,
}

impl Explained<'_> {
    fn site(&self) -> &Site {
        &self.configuration.promises.sites[self.explanation.site]
    }

    fn class(&self) -> &str {
        match (self.explanation.exempt, self.explanation.class) {
            (Some(_), _) => "exempt",
            (None, Some(class)) => &self.site().classes[class].name,
            (None, None) => "default",
        }
    }

    /// The promised response times of the class; `None` for an exempt request.
    fn promised(&self) -> Option<Promised<'_>> {
        let class = self.class();
        promised::of(self.site())
            .find(|promised| self.explanation.exempt.is_none() && promised.class == class)
    }

    /// The request's type, if the site promises deadlines.
    fn request_type(&self) -> Option<&str> {
        let site = self.site();
        if !self.configuration.promises.has_deadlines(site.plant) {
            return None;
        }
        let number = usize::from(self.explanation.target.request_type);
        let own = site.types.get(number).map(|own| own.name.as_str());
        own.or_else(|| Some(DEFAULT_TYPES.get(number.checked_sub(site.types.len())?)?.0))
    }

    /// Why the costs of the request's type vary too much for its deadline, by a saved status; the last level is the highest.
    fn differs(&self) -> Option<String> {
        let (site, name) = (&self.site().name, self.request_type()?);
        let promised = self.site().in_time_of(self.explanation.class.unwrap_or(usize::MAX)) / 100.0;
        let (_, types) = self.saved.shares.iter().find(|(own, _)| own == site)?;
        let (_, in_time) = types.iter().rfind(|(own, _)| own == name)?;
        (*in_time < promised).then(|| type_costs::verdict(name, *in_time))
    }

    fn why_type(&self) -> String {
        let number = usize::from(self.explanation.target.request_type);
        let own = self.site().types.get(number).map(|own| condition(&own.condition) + "; ");
        let found = match (self.finds[self.explanation.site], &own, &self.arguments.status) {
            (false, ..) => "",
            (true, Some(_), _) => " (it was found)",
            (true, None, Some(_)) => " (none that was found has it)",
            (true, None, None) => ", unless a type is found that has it: see --status",
        };
        format!("{}by it what it will cost is estimated{found}", own.unwrap_or_default())
    }

    /// The conditions of earlier classes, which do not hold: their names, and why they do not hold.
    fn misses(&self) -> Vec<(String, String)> {
        let (site, explanation) = (self.site(), self.explanation);
        let exempt = site.exempt.iter().zip(&explanation.not_exempt).enumerate();
        let exempt = exempt.map(|(place, (condition, part))| {
            (format!("exempt, condition {}", place + 1), why_not(condition, *part))
        });
        let classes = site.classes.iter().zip(&explanation.not_classes);
        let classes = classes.map(|(class, part)| (class.name.clone(), why_not(&class.condition, *part)));
        exempt.chain(classes).collect()
    }

    fn why_class(&self) -> String {
        let (site, explanation) = (self.site(), self.explanation);
        match (explanation.exempt, explanation.class) {
            (Some(place), _) => condition(&site.exempt[place]),
            (None, Some(class)) => condition(&site.classes[class].condition),
            (None, None) => "what matches no class of its own".to_owned(),
        }
    }

    fn identity(&self) -> String {
        let address = self.arguments.client;
        match &self.explanation.identified {
            Identified::Address => format!("the address {address}"),
            Identified::AddressInPlaceOf(name) => {
                format!("the address {address}, since the request has no `{name}`")
            }
            Identified::Header(name) => format!("the header `{name}`"),
            Identified::Cookie(name) => format!("the cookie `{name}`"),
        }
    }

    /// Why the service level m and the hash do not decide the level; `None` if they do.
    fn not_by_hash(&self) -> Option<&'static str> {
        if self.explanation.exempt.is_some() {
            Some("always the highest level: it is exempt")
        } else if self.configuration.promises.control.mode != Mode::Control {
            Some("always the highest level: the mode is not control, so no decision is acted on")
        } else if self.site().choice == Choice::Random {
            Some("by chance, request by request: the site's choice is random")
        } else {
            None
        }
    }

    /// The levels from 0 to the highest: what a client gets at each, and from which m on, if m decides.
    fn levels(&self) -> Vec<Facts> {
        let (site, explanation) = (self.site(), self.explanation);
        let rewrites = &self.configuration.gateway.settings.rewrites[explanation.site];
        let by_hash = self.not_by_hash().is_none();
        let rejection = &self.configuration.gateway.settings.rejection;
        let by_hash = self.hash.filter(|_| by_hash);
        // What a lower upstream serves depends on what the upstreams above it pass down, so only the first upstream's m is
        // shown.
        let first = self.upstreams().first().map_or(0, |(_, base, _)| *base);
        let from = |place: usize, m: f64| {
            by_hash.filter(|_| place >= first).map(|_| Value::Number(m, Unit::Plain(4)))
        };
        let rejected = Facts(vec![
            figure("level", "level", 0u64),
            figure("name", "name", "rejection"),
            figure("from_m", "from m", from(0, 0.0)),
            figure("upstream", "upstream", Value::Absent),
            figure("request", "request", Value::Absent.said(format!("answered with {}", rejection.status))),
            hidden("headers", Facts::default()),
        ]);
        let served = site.levels.iter().enumerate().map(|(place, level)| {
            // An exempt request goes as it came.
            let rewrite =
                rewrites.get(place).filter(|_| explanation.exempt.is_none()).cloned().unwrap_or_default();
            let RequestLine { method, target } = &self.arguments.request;
            let request = format!("{method} {}{target}", rewrite.prefix);
            let plant = self.upstream(level);
            let set: String =
                rewrite.headers.iter().map(|(name, value)| format!(", {name}: {value}")).collect();
            let shown = format!("{request}{set}");
            let headers = rewrite.headers.into_iter().map(|(name, value)| figure(name, "", value));
            Facts(vec![
                figure("level", "level", place as u64 + 1),
                figure("name", "name", level.name.as_str()),
                figure("from_m", "from m", from(place, place as f64 + by_hash.unwrap_or(0.0))),
                figure("upstream", "upstream", plant),
                figure("request", "request", Value::Text(request).said(shown)),
                hidden("headers", Facts(headers.collect())),
            ])
        });
        std::iter::once(rejected).chain(served).collect()
    }

    fn text(&self) -> String {
        let ExplainArguments { request: RequestLine { method, target }, host, .. } = self.arguments;
        let of = if host.is_empty() { String::new() } else { format!(" of {host}") };
        let hosts = &self.site().hosts;
        let why_site = if hosts.is_empty() {
            "it has every host".to_owned()
        } else {
            format!("it has {}", quoted(hosts))
        };
        let before = &self.configuration.promises.sites[..self.explanation.site];
        let mut text = format!("{method} {target}{of}\n\nsite    {}: {why_site}\n", self.site().name);
        for site in before {
            text += &format!("        not {}, which has {}\n", site.name, quoted(&site.hosts));
        }
        text += &format!("class   {}: {}\n", self.class(), self.why_class());
        for (name, why) in self.misses() {
            text += &format!("        not {name}: {why}\n");
        }
        if let Some(promise) = self.promised().and_then(|promised| promised.sentence(self.site())) {
            text += &format!("promise {promise}\n");
        }
        if let Some(name) = self.request_type() {
            text += &format!("type    {name}: {}\n", self.why_type());
        }
        if let Some(differs) = self.differs() {
            text += &format!("        {differs}\n");
        }
        text += &format!("client  {}; {}\n", self.identity(), self.its_hash());
        let limits = self.saved.limits.iter().filter_map(SavedLimit::sentence);
        text += &limits.map(|limit| format!("limit   {limit}\n")).collect::<String>();
        text += "\n";
        let levels = self.levels();
        let levels: Vec<_> = levels.iter().map(|level| (Vec::new(), level)).collect();
        text += &text::table(&list("Levels", &[], &levels));
        let why = self.not_by_hash().map_or_else(|| self.why_level(), |why| format!("The level is {why}."));
        let as_it_came = match self.explanation.exempt {
            Some(_) => " It goes as it came, without a level's prefix and headers.",
            None => "",
        };
        text + "\n"
            + &why
            + as_it_came
            + &self.contract().map_or_else(String::new, |contract| format!("\n\n{contract}"))
    }

    fn its_hash(&self) -> String {
        match (self.hash, self.configuration.promises.control.rekey) {
            (None, _) => "its hash is not known until `plimsoll run` has drawn the seed".to_owned(),
            (Some(hash), None) => format!("its hash is {hash:.4} of 1"),
            (Some(hash), Some(rekey)) => {
                format!("its hash is {hash:.4} of 1 now, and goes once round in {} s", rekey.as_secs())
            }
        }
    }

    fn contract(&self) -> Option<String> {
        if self.explanation.exempt.is_some() || self.configuration.promises.control.mode != Mode::Control {
            return None;
        }
        self.site().guarantee.map(|guarantee| {
            format!(
                "While the site is inside its contract ({}/s, with bursts of {} s) the request gets the highest level\n\
                 whatever m and its hash are.",
                guarantee.rate,
                guarantee.burst.as_secs_f64()
            )
        })
    }

    fn upstream(&self, level: &Level) -> &str {
        &self.configuration.promises.plants[level.plant.unwrap_or(self.site().plant)].name
    }

    /// The upstreams of the site's levels, the highest levels' first: the name, the level below its own levels, and its highest
    /// level.
    fn upstreams(&self) -> Vec<(&str, usize, usize)> {
        let levels = &self.site().levels;
        let mut top = levels.len();
        let same = levels.chunk_by(|a, b| self.upstream(a) == self.upstream(b));
        let part = |levels: &[Level]| {
            let base = top - levels.len();
            (self.upstream(&levels[0]), base, std::mem::replace(&mut top, base))
        };
        same.rev().map(part).collect()
    }

    fn why_level(&self) -> String {
        let upstreams = self.upstreams();
        let [(first, base, top), lower @ ..] = &upstreams[..] else { return String::new() };
        if lower.is_empty() {
            return format!(
                "m is the service level that the loop sets, 0 to {top}. Between two whole levels the fraction of m is that of\n\
                 the clients served the higher one: those whose hash is below it. A client with more than a tenth of its\n\
                 class's load is served by chance instead."
            );
        }
        let lower: Vec<String> =
            lower.iter().map(|(name, base, top)| format!("{name} ({base} to {top})")).collect();
        format!(
            "Each upstream has an m of its own, which its loop sets: {first} ({base} to {top}), then {}.\n\
             Between two whole levels the fraction of m is that of the clients served the higher one: those whose hash is\n\
             below it. A client that gets no level of {first}, because its hash is at or above m - {base}, is passed down.\n\
             The next upstream divides such clients anew, and a client that the last one passes down is rejected.\n\
             \"From m\" is the m of {first}. A client with more than a tenth of its class's load is served by chance instead.",
            lower.join(", then ")
        )
    }

    fn facts(&self) -> Facts {
        let pair = |(name, why): (String, String)| Facts(vec![hidden("name", name), hidden("why", why)]);
        Facts(vec![
            hidden("site", self.site().name.as_str()),
            hidden("class", self.class()),
            hidden("why", self.why_class()),
            hidden("promise", self.promised().map(|promised| promised.facts())),
            hidden("type", self.request_type()),
            hidden("type_differs", self.differs()),
            // The conditions of earlier classes, which do not hold.
            hidden("not", self.misses().into_iter().map(pair).collect::<Vec<_>>()),
            hidden("exempt", self.explanation.exempt.is_some()),
            hidden("client", self.identity()),
            hidden("hash", self.hash),
            hidden("not_by_hash", self.not_by_hash()),
            hidden("levels", self.levels()),
            // From a saved status: upstreams whose limit is below the configured one.
            hidden("limits", self.saved.limits.iter().filter_map(SavedLimit::facts).collect::<Vec<_>>()),
            hidden("guaranteed_per_second", self.site().guarantee.map(|guarantee| guarantee.rate)),
        ])
    }
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn pairs(pairs: &[(String, String)], between: &str) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("{name}{between}{value}")).collect()
}

fn networks(networks: &[Network]) -> Vec<String> {
    networks.iter().map(|network| format!("{}/{}", network.address, network.prefix_bits)).collect()
}

/// A sentence about the part of a condition that does not hold.
fn why_not(condition: &Condition, part: Part) -> String {
    let (what, wanted) = described(condition, part);
    let is = if wanted.len() == 1 { "is not" } else { "is none of" };
    format!("{what} {is} {}", quoted(&wanted))
}

fn condition(condition: &Condition) -> String {
    let parts = [Part::Method, Part::Path, Part::Query, Part::Client, Part::Header, Part::Cookie];
    let parts =
        parts.map(|part| described(condition, part)).into_iter().filter(|(_, wanted)| !wanted.is_empty());
    let parts: Vec<String> = parts
        .map(|(what, wanted)| {
            let is = if wanted.len() == 1 { "is" } else { "is one of" };
            format!("{what} {is} {}", quoted(&wanted))
        })
        .collect();
    if parts.is_empty() { "its empty condition".to_owned() } else { parts.join(" and ") }
}

fn described(condition: &Condition, part: Part) -> (&'static str, Vec<String>) {
    match part {
        Part::Method => ("the method", condition.methods.clone()),
        Part::Path => ("the path", condition.paths.clone()),
        Part::Query => ("a key of the query", condition.query.clone()),
        Part::Client => ("the client", networks(&condition.clients)),
        Part::Header => ("the header", pairs(&condition.headers, ": ")),
        Part::Cookie => ("the cookie", pairs(&condition.cookies, "=")),
    }
}
