//! Comparators: what other gateways do against overload, read from the command line and built as a [`Front`].

use super::Front;
use super::aces::{Aces, AcesSettings};
use super::agent::{AgentFront, AgentSettings};
use super::form::{AT_LEAST_ONE, DURATION, NUMBER, POSITIVE, RATE, Words, name_of};
use super::limit::{Aimd, Cac, Gradient, Gradient2, Limited, Limiter, Queue, Rate, StaticLimit};
use super::pools::{PoolSettings, Pools};
use super::products;
use super::rules::MakeRules;
use super::sac::{Sac, SacSettings};
use super::shell::PlantRules;
use crate::workload::{Plant, Workload};
use plimsoll_core::promises::Promises;
use plimsoll_core::time::Duration;
use std::path::Path;

/// What stands in front of the plants for comparison. The files of `front/limit`, `front/aces`, `front/pools` and
/// `front/sac.rs` say how each works.
pub struct Comparator(Scheme);

enum Scheme {
    /// The paper AC's own scheme.
    Aces(AcesSettings),
    /// The agent beside a server, from its own file.
    Agent(Box<AgentSettings>),
    /// PR's process pools.
    Pools(PoolSettings),
    /// Rules for each plant: a limiter, or a product by its own directives.
    Rules(MakeRules),
    /// SAC, which the paper AC compares its scheme with.
    Sac(SacSettings),
}

impl Scheme {
    fn limit<L: Limiter + 'static>(make: impl Fn(&Plant, u64) -> L + 'static) -> Scheme {
        Scheme::Rules(Box::new(move |plant, seed| Box::new(Limited::new(make(plant, seed), false))))
    }
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// The default length of the listen queue of Apache and nginx.
const LISTEN_QUEUE: u32 = 511;

impl Comparator {
    /// How each comparator is written, and what it does, for a command's help.
    pub const FORMS: [(&str, &str); 15] = [
        ("none", "everything starts at once"),
        ("tail-drop:511", "reject when so many are in the system"),
        (
            "concurrency:64,queue=100,wait=1s",
            "so many at once, a bounded queue (nginx max_conns, HAProxy maxconn)",
        ),
        ("rate:200,burst=50", "so many per second (nginx limit_req, nodelay)"),
        (
            "sac:10ms,period=1s,queue=1000",
            "so many per period, each counted with this service time; served by priority",
        ),
        ("cac,period=1s", "so much work per period, service times known beforehand"),
        (
            "aces:1ms,period=1s,queue=1000,drop=all",
            "so much estimated work per period and priority, two queues",
        ),
        ("pools:16,period=1000,gain=1,idle=2", "a pool of processes for each class, by the classes' ratios"),
        ("gradient,update=100ms,probe=60s", "adaptive concurrency as Envoy does it"),
        ("gradient2,initial=20,least=20,most=200,window=1s", "adaptive concurrency as Netflix published it"),
        (
            "aimd,initial=20,least=20,most=200,timeout=5s",
            "additive increase, multiplicative decrease (Netflix)",
        ),
        (
            "haproxy: maxconn 64; timeout queue 5s; set-priority-class",
            "HAProxy's limit and queue before a server, by the classes' priority",
        ),
        (
            "nginx: limit_req rate=200r/s burst=50 nodelay; limit_conn 64",
            "nginx's leaky bucket and connections",
        ),
        ("envoy: adaptive_concurrency; admission_control sr_threshold=95", "Envoy's filters, in this order"),
        (
            "mod_qos: QS_SrvMaxConn 256; QS_SrvMaxConnPerIP 10; QS_LocRequestLimit /buy 10",
            "mod_qos of Apache: connections, and requests by location",
        ),
    ];

    /// Reads one of [`FORMS`](Comparator::FORMS). An option that is left out has the default shown there; `queue` and `burst`
    /// are 0, `wait` is 60 s, the unit of `sac` and `aces` is the fixed part of the server's service, and `pools` has a process
    /// for each worker, or 16 before shared cores.
    ///
    /// # Errors
    /// One sentence that says what is wrong, and how the comparator is written.
    pub fn parse(text: &str) -> Result<Comparator, String> {
        if let Some(rules) = products::parse(text) {
            return rules.map(|rules| Comparator(Scheme::Rules(rules)));
        }
        let mut words = Words::new(text)?;
        let scheme = read(&mut words)?;
        words.done()?;
        Ok(Comparator(scheme))
    }

    /// The agent as a comparator; its settings come from a file instead of a text.
    pub fn agent(settings: AgentSettings) -> Comparator {
        Comparator(Scheme::Agent(Box::new(settings)))
    }

    /// The file to which the caller writes what the front has [`learned`](Front::learned) when the run has ended.
    pub fn memory(&self) -> Option<&Path> {
        match &self.0 {
            Scheme::Aces(settings) => settings.rate_forecast.as_deref(),
            Scheme::Agent(_) | Scheme::Pools(_) | Scheme::Rules(_) | Scheme::Sac(_) => None,
        }
    }

    /// Builds the comparator's front before these plants. Classes are numbered as in an engine of the same promises and seed.
    ///
    /// # Errors
    /// Promises that contradict each other; plants that the workload does not describe; a `sac` or `aces` whose unit is
    /// not known; a file of rate forecasts that cannot be read.
    pub fn front(
        &self,
        promises: &Promises,
        workload: &Workload,
        seed: u64,
    ) -> Result<Box<dyn Front>, Vec<String>> {
        match &self.0 {
            Scheme::Aces(settings) => Ok(Box::new(Aces::new(settings, promises, workload, seed)?)),
            Scheme::Agent(settings) => Ok(Box::new(AgentFront::new(settings, promises, workload, seed)?)),
            Scheme::Pools(settings) => Ok(Box::new(Pools::new(settings, promises, workload, seed)?)),
            Scheme::Rules(make) => {
                let rules =
                    (1..).zip(&workload.plants).map(|(number, plant)| make(plant, own_seed(seed, number)));
                Ok(Box::new(PlantRules::front(promises, workload, seed, rules.collect())?))
            }
            Scheme::Sac(settings) => Ok(Box::new(Sac::new(*settings, promises, workload, seed)?)),
        }
    }
}

/// A seed of its own for each plant.
fn own_seed(seed: u64, number: u64) -> u64 {
    seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Reads the options of the comparator that the text names.
fn read(words: &mut Words<'_>) -> Result<Scheme, String> {
    Ok(match words.name {
        "none" => Scheme::limit(|_, _| StaticLimit { most: u32::MAX, queue: Queue::NONE }),
        "tail-drop" => {
            let most = words.value(NUMBER)?.unwrap_or(LISTEN_QUEUE);
            Scheme::limit(move |_, _| StaticLimit { most, queue: Queue::NONE })
        }
        "concurrency" => {
            let most = words.needed(AT_LEAST_ONE)?;
            let queue = words.option("queue", NUMBER, 0)?;
            let queue = Queue { most: queue, wait: words.option("wait", POSITIVE, MINUTE)? };
            Scheme::limit(move |_, _| StaticLimit { most, queue })
        }
        "rate" => {
            let (per_second, burst) = (words.needed(RATE)?, words.option("burst", NUMBER, 0)?);
            Scheme::limit(move |_, _| Rate::new(per_second, burst))
        }
        "sac" => Scheme::Sac(SacSettings {
            unit: words.value(POSITIVE)?,
            period: words.option("period", POSITIVE, SECOND)?,
            queue: words.option("queue", NUMBER, 1000)?,
        }),
        "cac" => {
            let period = words.option("period", POSITIVE, SECOND)?;
            Scheme::limit(move |plant, _| Cac::new(plant.discipline.servers(), period))
        }
        "aces" => Scheme::Aces(AcesSettings::read(words)?),
        "pools" => Scheme::Pools(PoolSettings::read(words)?),
        "gradient" => {
            let update = words.option("update", POSITIVE, Duration::from_millis(100))?;
            let probe = words.option("probe", POSITIVE, MINUTE)?;
            Scheme::limit(move |_, seed| Gradient::new(update, probe, seed))
        }
        "gradient2" => {
            let (bounds, window) = (words.limits()?, words.option("window", DURATION, SECOND)?);
            Scheme::limit(move |_, _| Gradient2::new(bounds, window))
        }
        "aimd" => {
            let (bounds, timeout) =
                (words.limits()?, words.option("timeout", POSITIVE, Duration::from_secs(5))?);
            Scheme::limit(move |_, _| Aimd::new(bounds, timeout))
        }
        name => {
            let product =
                |(form, _): &&(&'static str, &str)| form.split_once(": ").is_some_and(|(own, _)| own == name);
            if let Some((form, _)) = Comparator::FORMS.iter().find(product) {
                return Err(format!("{name} needs directives, such as {form}"));
            }
            let all: Vec<&str> = Comparator::FORMS.iter().map(|(form, _)| name_of(form)).collect();
            let (all, example) = (all.join(", "), Comparator::FORMS[2].0);
            return Err(format!("there is no comparator \"{name}\"; there are {all}; for example {example}"));
        }
    })
}

/// The service time of one unit: the one in the text, else the fixed part of the plant's service.
pub(super) fn known_unit(
    name: &str,
    what: &str,
    given: Option<Duration>,
    plant: &Plant,
) -> Result<Duration, String> {
    let unit = given.unwrap_or(plant.service);
    if unit.is_zero() {
        return Err(format!(
            "{name} needs the service time of one {what}, and the server has no fixed one: write {name}:10ms"
        ));
    }
    Ok(unit)
}

#[cfg(test)]
mod tests {
    use super::super::Gateway;
    use super::super::tests::{promises, workload};
    use super::*;
    use crate::request::Request;

    fn parsed(text: &str) -> Comparator {
        Comparator::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// What a text is parsed as, for a plant with a known seed.
    fn read_as(text: &str) -> String {
        match parsed(text).0 {
            Scheme::Aces(settings) => format!("{settings:?}"),
            Scheme::Agent(settings) => format!("{settings:?}"),
            Scheme::Pools(settings) => format!("{settings:?}"),
            Scheme::Rules(make) => format!("{:?}", make(&workload().plants[0], 7)),
            Scheme::Sac(settings) => format!("{settings:?}"),
        }
    }

    #[test]
    fn every_form_states_its_defaults() {
        let short = [
            "none",
            "tail-drop",
            "concurrency:64,queue=100,wait=1000ms",
            "rate:200.0,burst=50",
            "sac:10000us",
            "cac",
            "aces:1ms",
            "pools:16",
            "gradient",
            "gradient2",
            "aimd",
            "haproxy:set-priority-class;maxconn 64",
            "nginx:limit_conn 64; limit_req burst=50 nodelay rate=200r/s key=$server_name",
            "envoy:adaptive_concurrency min_rtt_interval=60s; admission_control aggression=1",
            "mod_qos: QS_LocRequestLimit /buy 10; QS_SrvMaxConnPerIP 10; QS_SrvMaxConn 256",
        ];
        assert_eq!(short.len(), Comparator::FORMS.len());
        for ((form, _), short) in Comparator::FORMS.iter().zip(short) {
            assert_eq!(read_as(form), read_as(short), "{form}");
        }
        assert_eq!(read_as("concurrency:8,queue=1"), read_as("concurrency:8,queue=1,wait=60s"));
        assert_eq!(read_as("cac:period=2s"), read_as("cac,period=2000ms"));
        assert_eq!(read_as("sac"), read_as("sac,period=1s,queue=1000"));
        assert_eq!(read_as(" aimd , least = 5 "), read_as("aimd,initial=20,least=5,most=200,timeout=5s"));
    }

    #[test]
    fn every_option_is_read() {
        let pairs = [
            ("tail-drop:3", "tail-drop"),
            ("concurrency:64,queue=3", "concurrency:64"),
            ("concurrency:64,wait=2s", "concurrency:64"),
            ("rate:0.5", "rate:1"),
            ("rate:0.5,burst=3", "rate:0.5"),
            ("sac:1500us", "sac"),
            ("sac,period=250ms", "sac"),
            ("sac,queue=10", "sac"),
            ("cac,period=250ms", "cac"),
            ("aces,period=100ms,drop=oldest,rate_forecast=week.txt", "aces,period=100ms,drop=oldest"),
            ("pools:8", "pools"),
            ("pools,period=600", "pools"),
            ("pools,gain=0", "pools"),
            ("pools,gain=0.5/1", "pools,gain=0.5"),
            ("pools,idle=0", "pools"),
            ("gradient,update=50ms", "gradient"),
            ("gradient,probe=50ms", "gradient"),
            ("gradient2,least=1", "gradient2"),
            ("gradient2,most=32", "gradient2"),
            ("gradient2,window=0s", "gradient2"),
            ("aimd,initial=30", "aimd"),
            ("aimd,timeout=500ms", "aimd"),
        ];
        for (one, other) in pairs {
            assert_ne!(read_as(one), read_as(other), "{one}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        let wrong = |text| Comparator::parse(text).err().expect("an error");
        let all = "there are none, tail-drop, concurrency, rate, sac, cac, aces, pools, gradient, gradient2, aimd, haproxy, nginx, envoy, \
                   mod_qos; for example concurrency:64,queue=100,wait=1s";
        assert_eq!(wrong("red"), format!("there is no comparator \"red\"; {all}"));
        assert_eq!(wrong(""), format!("there is no comparator \"\"; {all}"));
        for name in ["nginx", "haproxy", "envoy", "mod_qos"] {
            assert!(
                wrong(name).starts_with(&format!("{name} needs directives, such as {name}: ")),
                "{}",
                wrong(name)
            );
        }
        assert_eq!(wrong("rate"), "rate needs a rate above 0; it is written rate:200,burst=50");
        assert_eq!(wrong("rate:-1"), "rate: \"-1\" is not a rate above 0; it is written rate:200,burst=50");
        let form = "it is written concurrency:64,queue=100,wait=1s";
        assert_eq!(
            wrong("concurrency:8,wait=1"),
            format!("wait: \"1\" is not a time above 0 such as 500ms or 2s; {form}")
        );
        assert_eq!(
            wrong("concurrency:8,sleep=1s"),
            format!("concurrency has no option \"sleep\", or has it twice; {form}")
        );
        assert_eq!(wrong("concurrency:8,9"), format!("concurrency:8,9: \"9\" is not key=value; {form}"));
        assert_eq!(wrong("none:3"), "none takes no value, and has \"3\"; it is written none");
        assert!(
            wrong("aimd,least=50").starts_with("aimd: least=50, initial=20, most=200 are not in this order")
        );
        let gains = "is not a gain of 0 or more, or one of each class such as 0.5/1";
        for (text, gain) in [("pools,gain=1/", "1/"), ("pools,gain=1/-1", "1/-1"), ("pools,gain=", "")] {
            assert!(wrong(text).starts_with(&format!("gain: \"{gain}\" {gains}")), "{text}");
        }
        assert!(wrong("concurrency:0").starts_with("concurrency: \"0\" is not a whole number above 0"));
    }

    #[test]
    fn what_would_never_end_is_refused() {
        let wrong = [
            "cac,period=0s",
            "aces,period=0s",
            "concurrency:8,queue=1,wait=0s",
            "gradient,update=0s",
            "gradient,probe=0s",
            "rate:nan",
            "aimd,initial=1,least=2,most=3",
            "aimd,timeout=0s",
        ];
        for text in wrong {
            assert!(Comparator::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn classes_and_clients_are_numbered_as_in_the_gateway() {
        let request = Request { path: "/health".into(), ..Request::default() };
        let gateway = Gateway::new(&promises(), 5).unwrap().classify(&request);
        let of_seed = |seed| parsed("none").front(&promises(), &workload(), seed).unwrap().classify(&request);
        assert!(gateway.is_some_and(|target| target.exempt));
        assert_eq!(of_seed(5), gateway);
        assert_ne!(of_seed(6), gateway);
    }

    #[test]
    fn each_is_built_and_sac_wants_to_know_its_unit() {
        for (form, _) in Comparator::FORMS {
            assert!(parsed(form).front(&promises(), &workload(), 1).is_ok(), "{form}");
        }
        let mut workload = workload();
        workload.plants[0].service = Duration::ZERO;
        let error = parsed("sac").front(&promises(), &workload, 1).err().expect("an error");
        assert!(error[0].contains("write sac:10ms"), "{error:?}");
        assert!(parsed("sac:10ms").front(&promises(), &workload, 1).is_ok());
        let error = parsed("aces").front(&promises(), &workload, 1).err().expect("an error");
        assert!(error[0].contains("write aces:10ms"), "{error:?}");
    }
}
