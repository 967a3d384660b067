//! Which site and class a request belongs to. Pure.
//!
//! A request belongs to the first site whose host matches, and there to the first class whose condition holds, else to
//! the built-in class `default`. If an exemption holds it belongs to the built-in class `exempt`.

use crate::promises::registry::{Registry, SiteNumbers};
use crate::promises::{Condition, Identity, Network, Promises, Site};
use crate::request::client_hash::{address_hash, client_hash};
use crate::request::explain::{Explanation, Identified, Part};
use crate::request::hosts::Hosts;
use crate::request::pattern::Pattern;
use crate::request::shape_table::ShapeTable;
use crate::request::type_rules::TypeRules;
use crate::request::work::CostFeatures;
use crate::request::{RequestView, Target};
use alloc::{string::String, sync::Arc, vec::Vec};
use core::net::IpAddr;

/// A [`Condition`], compiled.
pub(crate) struct Rule {
    paths: Vec<Pattern>,
    methods: Vec<String>,
    query: Vec<String>,
    headers: Vec<(String, Pattern)>,
    cookies: Vec<(String, Pattern)>,
    clients: Vec<Network>,
}

impl Rule {
    pub(crate) fn new(condition: &Condition) -> Self {
        let pairs = |pairs: &[(String, String)]| {
            pairs.iter().map(|(name, value)| (name.clone(), Pattern::new(value))).collect()
        };
        Rule {
            paths: condition.paths.iter().map(|p| Pattern::new(p)).collect(),
            methods: condition.methods.clone(),
            query: condition.query.clone(),
            headers: pairs(&condition.headers),
            cookies: pairs(&condition.cookies),
            clients: condition.clients.clone(),
        }
    }

    /// The first part of the condition that does not hold.
    fn miss(&self, request: &impl RequestView) -> Option<Part> {
        fn any<T>(alternatives: &[T], holds: impl FnMut(&T) -> bool) -> bool {
            alternatives.is_empty() || alternatives.iter().any(holds)
        }
        if !any(&self.methods, |method| method == request.method()) {
            Some(Part::Method)
        } else if !any(&self.paths, |path| path.matches(request.path())) {
            Some(Part::Path)
        } else if !any(&self.query, |key| has_key(request.query(), key)) {
            Some(Part::Query)
        } else if !any(&self.clients, |network| network.contains(request.client())) {
            Some(Part::Client)
        } else if !any(&self.headers, |(name, value)| request.header(name).is_some_and(|v| value.matches(v)))
        {
            Some(Part::Header)
        } else if !any(&self.cookies, |(name, value)| request.cookie(name).is_some_and(|v| value.matches(v)))
        {
            Some(Part::Cookie)
        } else {
            None
        }
    }

    pub(crate) fn holds(&self, request: &impl RequestView) -> bool {
        self.miss(request).is_none()
    }

    /// Whether the rule holds for each request of a client, or for none; `None` if that depends on the request.
    fn holds_for_client(&self, client: IpAddr) -> Option<bool> {
        let Rule { paths, methods, query, headers, cookies, clients } = self;
        if !clients.is_empty() && !clients.iter().any(|network| network.contains(client)) {
            return Some(false);
        }
        let by_client_alone = paths.is_empty()
            && methods.is_empty()
            && query.is_empty()
            && headers.is_empty()
            && cookies.is_empty();
        by_client_alone.then_some(true)
    }
}

/// Whether a query has a key of this name, with a value or without.
fn has_key(query: &str, name: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some(name))
}

struct SiteRules {
    hosts: Vec<Pattern>,
    exempt: Vec<Rule>,
    classes: Vec<Rule>,
    identity: Identity,
    numbers: SiteNumbers,
    /// The rules of request types, where one of the site's plants has deadlines to keep.
    types: Option<TypeRules>,
}

impl SiteRules {
    fn has_lower_case_host(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|pattern| pattern.matches(host))
    }

    fn has_host(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|pattern| pattern.matches_ignoring_case(host))
    }

    /// The class of each request of a client that is known by its address, if it is one and the same class.
    fn target_of_client(&self, client: IpAddr, key: (u64, u64)) -> Option<Target> {
        let mut own = self.classes.len();
        if !self.hosts.is_empty() || self.identity != Identity::Address {
            return None;
        }
        if self.exempt.iter().any(|rule| rule.holds_for_client(client) != Some(false)) {
            return None;
        }
        for (index, rule) in self.classes.iter().enumerate() {
            if rule.holds_for_client(client)? {
                own = index;
                break;
            }
        }
        let CostFeatures { request_type, announced_us, blocks, shape } = CostFeatures::default();
        Some(Target {
            class: self.numbers.classes[own],
            site: self.numbers.site,
            client: address_hash(client, key),
            exempt: false,
            streams: false,
            repeats: false,
            request_type,
            announced_us,
            blocks,
            shape,
        })
    }

    fn target(&self, request: &impl RequestView, key: (u64, u64)) -> Target {
        let exempt = self.exempt.iter().any(|rule| rule.holds(request));
        let own = self.classes.len();
        let index = match self.classes.iter().position(|rule| rule.holds(request)) {
            _ if exempt => own + 1,
            Some(class) => class,
            None => own,
        };
        let features =
            self.types.as_ref().map_or_else(CostFeatures::default, |types| types.features(request));
        Target {
            class: self.numbers.classes[index],
            site: self.numbers.site,
            client: client_hash(&self.identity, request, key),
            exempt,
            streams: false,
            repeats: false,
            request_type: features.request_type,
            announced_us: features.announced_us,
            blocks: features.blocks,
            shape: features.shape,
        }
    }
}

/// Finds where a request belongs: the rules of all sites, compiled. It is immutable, so threads share it.
pub struct Classifier {
    sites: Vec<SiteRules>,
    hosts: Hosts,
    key: (u64, u64),
}

impl Classifier {
    /// A classifier of these promises alone, with the numbers and hashes that an [`Engine`](crate::Engine) made from
    /// the same promises and seed has.
    ///
    /// # Errors
    /// The promises that contradict each other, one sentence each.
    pub fn new(promises: &Promises, seed: u64) -> Result<Self, Vec<String>> {
        promises.validate()?;
        Ok(Classifier::of(&Registry::default().next(promises)?, seed, |_| None))
    }

    /// A classifier with the numbers of this registry, and the types that were found at each site.
    pub(crate) fn of(registry: &Registry, seed: u64, found: impl Fn(u16) -> Option<Arc<ShapeTable>>) -> Self {
        let keeping = registry.promises.keeping_deadlines();
        let compile = |(site, numbers): (&Site, &SiteNumbers)| SiteRules {
            hosts: site.hosts.iter().map(|h| Pattern::new(&h.to_ascii_lowercase())).collect(),
            exempt: site.exempt.iter().map(Rule::new).collect(),
            classes: site.classes.iter().map(|class| Rule::new(&class.condition)).collect(),
            identity: site.identity.clone(),
            numbers: numbers.clone(),
            types: site
                .plants()
                .any(|plant| keeping[plant])
                .then(|| TypeRules::new(site, found(numbers.site))),
        };
        let mut random = crate::random::Random::new(seed);
        let sites = registry.promises.sites.iter().zip(&registry.sites);
        Classifier {
            hosts: Hosts::new(&registry.promises.sites),
            sites: sites.map(compile).collect(),
            key: (random.bits(), random.bits()),
        }
    }

    /// Where a request belongs; `None` if no site has its host, and none has an exemption for it and its client, whatever the
    /// host.
    pub fn classify(&self, request: &impl RequestView) -> Option<Target> {
        let site = self.hosts.site(request.host(), |site, host| self.sites[site].has_lower_case_host(host));
        let site = site.or_else(|| self.site_of_exempt(request))?;
        Some(self.sites[site].target(request, self.key))
    }

    /// The first site that has an exemption for this request from this client, whatever host the request names: a balancer
    /// that checks by address knows no host. An exemption that names no client holds for the site's own hosts alone, since
    /// any client may ask for its path.
    #[cold]
    fn site_of_exempt(&self, request: &impl RequestView) -> Option<usize> {
        let expects = |rule: &Rule| !rule.clients.is_empty() && rule.holds(request);
        self.sites.iter().position(|site| site.exempt.iter().any(expects))
    }

    /// Where each request from this address belongs, whatever it asks for; `None` if that depends on the request. Its features
    /// of cost are left out.
    pub fn classify_client(&self, client: IpAddr) -> Option<Target> {
        self.sites.first()?.target_of_client(client, self.key)
    }

    /// Classifies as [`classify`](Classifier::classify) does, and returns each step that led there.
    pub fn explain(&self, request: &impl RequestView) -> Option<Explanation> {
        let number = self.sites.iter().position(|site| site.has_host(request.host()));
        let number = number.or_else(|| self.site_of_exempt(request))?;
        let site = &self.sites[number];
        let misses = |rules: &[Rule]| rules.iter().map_while(|rule| rule.miss(request)).collect::<Vec<_>>();
        let holds = |rules: &[Rule], misses: &[Part]| Some(misses.len()).filter(|first| *first < rules.len());
        let not_exempt = misses(&site.exempt);
        let exempt = holds(&site.exempt, &not_exempt);
        let not_classes = if exempt.is_some() { Vec::new() } else { misses(&site.classes) };
        let class = if exempt.is_some() { None } else { holds(&site.classes, &not_classes) };
        let known = |name: &String, value: Option<&str>, by: fn(String) -> Identified| match value {
            Some(_) => by(name.clone()),
            None => Identified::AddressInPlaceOf(name.clone()),
        };
        let identified = match &site.identity {
            Identity::Address => Identified::Address,
            Identity::Header(name) => known(name, request.header(name), Identified::Header),
            Identity::Cookie(name) => known(name, request.cookie(name), Identified::Cookie),
        };
        let target = site.target(request, self.key);
        Some(Explanation { site: number, exempt, not_exempt, class, not_classes, identified, target })
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_hand::{Request, get};
    use super::*;
    use crate::actuator::service_level::FRACTION_ONE;
    use crate::promises::{Class, Plant, Promises};
    use alloc::boxed::Box;
    use alloc::vec;

    fn site(hosts: &[&str], classes: Vec<(&str, Condition)>) -> Site {
        Site {
            hosts: hosts.iter().map(|h| String::from(*h)).collect(),
            classes: classes.into_iter().map(|(n, condition)| Class::new(n, condition)).collect(),
            exempt: vec![Condition { paths: vec!["/healthz".into()], ..Condition::default() }],
            ..Site::new("site", &["full"])
        }
    }

    fn rules(sites: Vec<Site>) -> Classifier {
        let promises = Promises { plants: vec![Plant::new("app", 1)], sites, ..Promises::default() };
        Classifier::new(&promises, 7).expect("valid promises")
    }

    #[test]
    fn looking_a_host_up_finds_what_trying_all_sites_finds() {
        let hosts: [&[&'static str]; 8] = [
            &["a.example", "B.example"],
            &["*.shop.example", "a.example"],
            &["b.example"],
            &["a.shop.example"],
            &["c*"],
            &["cc.example", "d.example"],
            &[],
            &["late.example"],
        ];
        let asked = [
            "a.example",
            "A.Example",
            "b.example",
            "a.shop.example",
            "x.SHOP.example",
            "cc.example",
            "c",
            "d.example",
            "late.example",
            "",
            "nobody",
        ];
        for sites in [&hosts[..], &hosts[..6], &hosts[2..4], &hosts[3..5]] {
            let rules = rules(sites.iter().map(|hosts| site(hosts, vec![])).collect());
            for host in asked {
                let tried = rules.sites.iter().find(|site| site.has_host(host)).map(|site| site.numbers.site);
                let found = rules.classify(&get(host, "/")).map(|target| target.site);
                assert_eq!(found, tried, "{host} of {sites:?}");
            }
        }
        let long: &'static str = Box::leak("A".repeat(300).into_boxed_str());
        assert_eq!(rules(vec![site(&["a.example"], vec![])]).classify(&get(long, "/")), None);
        assert!(rules(vec![site(&[], vec![])]).classify(&get(long, "/")).is_some());
    }

    #[test]
    fn sites_by_host_classes_in_order_then_default() {
        let buy = Condition { paths: vec!["/buy/*".into()], ..Condition::default() };
        let gold = Condition {
            headers: vec![("X-Plan".into(), "gold*".into())],
            cookies: vec![("id".into(), "*".into())],
            clients: vec![Network { address: "10.0.0.0".parse().expect("an address"), prefix_bits: 8 }],
            ..Condition::default()
        };
        let rules = rules(vec![
            site(&["shop.example", "*.shop.example"], vec![("buy", buy), ("gold", gold)]),
            site(&["other.example"], vec![]),
        ]);
        let class = |request: &Request<'_>| rules.classify(request).map(|t| (t.site, t.class, t.exempt));
        assert_eq!(class(&get("shop.example", "/buy/1")), Some((0, 0, false)));
        assert_eq!(class(&get("WWW.Shop.Example", "/")), Some((0, 2, false)));
        assert_eq!(class(&get("shop.example", "/healthz")), Some((0, 3, true)));
        assert_eq!(class(&get("other.example", "/buy/1")), Some((1, 4, false)));
        assert_eq!(class(&get("third.example", "/")), None);
        let headers = [("x-plan", "gold-2"), ("cookie", "a=b; id=7")];
        let golden = Request { headers: &headers, ..get("shop.example", "/") };
        assert_eq!(class(&golden), Some((0, 1, false)));
        assert_eq!(class(&Request { client: "11.1.2.3", ..golden }), Some((0, 2, false)));
        let explained = rules.explain(&Request { client: "11.1.2.3", ..golden }).expect("a site");
        assert_eq!((explained.site, explained.class, explained.target.class), (0, None, 2));
        assert_eq!(
            (explained.not_exempt, explained.not_classes),
            (vec![Part::Path], vec![Part::Path, Part::Client])
        );
        let explained = rules.explain(&get("shop.example", "/healthz")).expect("a site");
        assert_eq!((explained.exempt, explained.target.exempt), (Some(0), true));
    }

    #[test]
    fn a_health_check_of_a_named_client_needs_no_host_of_a_site() {
        let exempt = |paths: &[&str], clients: Vec<Network>| Condition {
            paths: paths.iter().map(|path| String::from(*path)).collect(),
            clients,
            ..Condition::default()
        };
        let balancer = vec![Network { address: "10.0.0.0".parse().expect("an address"), prefix_bits: 8 }];
        let first = Site { exempt: vec![exempt(&["/open"], vec![])], ..site(&["a.example"], vec![]) };
        let second = Site { exempt: vec![exempt(&["/healthz"], balancer)], ..site(&["b.example"], vec![]) };
        let rules = rules(vec![first, second]);
        let found =
            |request: &Request<'_>| rules.classify(request).map(|target| (target.site, target.exempt));
        assert_eq!(found(&get("10.0.0.7", "/healthz")), Some((1, true)));
        assert_eq!(found(&get("", "/healthz")), Some((1, true)));
        assert_eq!(
            rules.explain(&get("10.0.0.7", "/healthz")).map(|found| (found.site, found.exempt)),
            Some((1, Some(0)))
        );
        assert_eq!(found(&get("a.example", "/healthz")), Some((0, false)), "a host of a site is that site's");
        assert_eq!(found(&get("10.0.0.7", "/page")), None);
        assert_eq!(found(&get("10.0.0.7", "/open")), None, "anybody may ask for it");
        assert_eq!(found(&Request { client: "11.1.2.3", ..get("10.0.0.7", "/healthz") }), None);
    }

    /// A client whose address alone determines its class has each of its requests in that class.
    #[test]
    fn the_address_determines_a_class_only_where_no_request_could_change_it() {
        let network =
            |address: &str| Network { address: address.parse().expect("an address"), prefix_bits: 8 };
        let of = |clients: &[&str], paths: &[&str]| Condition {
            clients: clients.iter().map(|address| network(address)).collect(),
            paths: paths.iter().map(|path| String::from(*path)).collect(),
            ..Condition::default()
        };
        let site = |classes| Site { exempt: vec![of(&["127.0.0.0"], &["/healthz"])], ..site(&[], classes) };
        let known = site(vec![("partner", of(&["10.0.0.0"], &[])), ("buy", of(&["11.0.0.0"], &["/buy"]))]);
        let found =
            |rules: &Classifier, client: &str| rules.classify_client(client.parse().expect("an address"));
        let rules = rules(vec![known.clone()]);
        for client in ["10.1.2.3", "12.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"] {
            for path in ["/", "/buy", "/healthz"] {
                let request = Request { client, ..get("any.example", path) };
                assert_eq!(found(&rules, client), rules.classify(&request), "{client} {path}");
            }
        }
        assert_eq!(found(&rules, "11.1.2.3"), None, "its path decides");
        assert_eq!(found(&rules, "127.0.0.1"), None, "it may be exempt");
        for unknown in [
            Site { hosts: vec!["a.example".into()], ..known.clone() },
            Site { identity: Identity::Cookie("id".into()), ..known.clone() },
            Site { exempt: vec![of(&[], &["/healthz"])], ..known },
        ] {
            let rules = super::tests::rules(vec![unknown]);
            assert_eq!(found(&rules, "10.1.2.3"), None);
        }
    }

    #[test]
    fn a_star_stands_for_any_run_and_never_overlaps() {
        let pattern = Pattern::new("/a*a");
        assert!(pattern.matches("/aa") && pattern.matches("/abba"));
        assert!(!pattern.matches("/a") && !pattern.matches("/ab"));
        assert!(Pattern::new("*").matches(""));
    }

    #[test]
    fn the_client_hash_is_uniform_and_of_the_household() {
        let rules = rules(vec![site(&[], vec![])]);
        let hash = |client: &str| {
            rules.classify(&Request { client, ..get("h", "/") }).expect("a site for every host").client
        };
        let below = (0..10_000u32)
            .filter(|i| hash(&alloc::format!("10.{}.{}.{}", i % 3, i / 256, i % 256)) < FRACTION_ONE / 4)
            .count();
        assert!((2_350..2_650).contains(&below), "{below} of 10,000 below a quarter");
        assert_eq!(hash("2001:db8::1"), hash("2001:db8::2"));
        assert_ne!(hash("2001:db8::1"), hash("2001:db8:0:1::1"));
        assert_eq!(hash("::ffff:10.1.2.3"), hash("10.1.2.3"));
    }
}
