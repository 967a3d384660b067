//! Which comparator, with its parameters: as data, as text on the command line, and as a [`Front`].

use super::Front;
use super::aces::{self, Aces};
use super::form::{AT_LEAST_ONE, DURATION, NUMBER, POSITIVE, RATE, Span, Words, name_of};
use super::limit::{Aimd, AimdSettings, Gradient, Gradient2, Gradient2Settings, GradientSettings};
use super::limit::{Cac, Concurrency, Limited, Limiter, Rate, Sac, TailDrop, Unlimited};
use crate::workload::{Plant, Workload};
use plimsoll_core::promises::Promises;
use plimsoll_core::time::Duration;
use std::fmt;
use std::path::Path;

/// What other gateways do against overload, to compare with. The files of `front/limit` say how each works.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparator {
    /// Everything starts at once.
    None,
    /// Reject when so many are in the system.
    TailDrop {
        /// The most that are started and not released.
        most: u32,
    },
    /// A static limit of concurrency with a queue: nginx `max_conns`, HAProxy `maxconn` and `timeout queue`.
    Concurrency {
        /// The most in service.
        most: u32,
        /// The most that wait.
        queue: u32,
        /// The longest that one waits.
        wait: Duration,
    },
    /// A leaky bucket: nginx `limit_req` with `nodelay`.
    Rate {
        /// Requests per second.
        per_second: f64,
        /// How many may come early.
        burst: u32,
    },
    /// Simple admission control (AC, section 5): so many requests a period, whatever their type.
    Sac {
        /// T.
        period: Duration,
        /// The time of one request. `None`: the fixed part of the server's service.
        unit: Option<Duration>,
    },
    /// Conservative admission control (AC, section 5): so much work a period, of requests whose service is known.
    Cac {
        /// T.
        period: Duration,
    },
    /// AC's own scheme: so much estimated work a period and priority, two queues.
    Aces(aces::AcesSettings),
    /// Adaptive concurrency by gradient, as Envoy does it.
    Gradient {
        /// Between updates of the limit.
        update: Duration,
        /// Between measurements of the ideal round trip.
        probe: Duration,
    },
    /// Adaptive concurrency by gradient, as Netflix published it.
    Gradient2 {
        /// The bounds of the limit.
        limits: Limits,
        /// How long round trips are averaged; zero: each request counts.
        window: Duration,
    },
    /// Adaptive concurrency by additive increase and multiplicative decrease, as Netflix published it.
    Aimd {
        /// The bounds of the limit.
        limits: Limits,
        /// A round trip longer than this counts as lost.
        timeout: Duration,
    },
}

/// The bounds of a limit that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The limit at the start.
    pub initial: u32,
    /// Never lower.
    pub least: u32,
    /// Never higher.
    pub most: u32,
}

impl Limits {
    /// Netflix' own.
    pub(super) const PUBLISHED: Limits = Limits { initial: 20, least: 20, most: 200 };
}

const SECOND: Duration = Duration::from_secs(1);
/// Apache's and nginx' listen queues.
const TAIL_DROP: u32 = 511;
const QUEUE_WAIT: Duration = Duration::from_secs(60);
const UPDATE: Duration = Duration::from_millis(100);
const PROBE: Duration = Duration::from_secs(60);
const AIMD_TIMEOUT: Duration = Duration::from_secs(5);

impl Comparator {
    /// How each is written, and what it does: for a command's help.
    pub const FORMS: [(&str, &str); 10] = [
        ("none", "everything starts at once"),
        ("tail-drop:511", "reject when so many are in the system"),
        (
            "concurrency:64,queue=100,wait=1s",
            "so many at once, a bounded queue (nginx max_conns, HAProxy maxconn)",
        ),
        ("rate:200,burst=50", "so many per second (nginx limit_req, nodelay)"),
        ("sac:10ms,period=1s", "so many per period, each counted with this service time"),
        ("cac,period=1s", "so much work per period, service times known beforehand"),
        (
            "aces:1ms,period=1s,queue=1000,drop=all",
            "so much estimated work per period and priority, two queues",
        ),
        ("gradient,update=100ms,probe=60s", "adaptive concurrency as Envoy does it"),
        ("gradient2,initial=20,least=20,most=200,window=1s", "adaptive concurrency as Netflix published it"),
        (
            "aimd,initial=20,least=20,most=200,timeout=5s",
            "additive increase, multiplicative decrease (Netflix)",
        ),
    ];

    /// Reads one of [`FORMS`](Comparator::FORMS). What is left out has the default that stands there; `queue` and
    /// `burst` are 0, `wait` is 60 s, and the unit of `sac` and `aces` is the fixed part of the
    /// server's service.
    ///
    /// # Errors
    /// One sentence: what is wrong, and how a comparator is written.
    pub fn parse(text: &str) -> Result<Comparator, String> {
        let mut words = Words::new(text)?;
        let comparator = match words.name {
            "none" => Comparator::None,
            "tail-drop" => Comparator::TailDrop { most: words.value(NUMBER)?.unwrap_or(TAIL_DROP) },
            "concurrency" => Comparator::Concurrency {
                most: words.needed(AT_LEAST_ONE)?,
                queue: words.option("queue", NUMBER)?.unwrap_or(0),
                wait: words.option("wait", POSITIVE)?.unwrap_or(QUEUE_WAIT),
            },
            "rate" => Comparator::Rate {
                per_second: words.needed(RATE)?,
                burst: words.option("burst", NUMBER)?.unwrap_or(0),
            },
            "sac" => Comparator::Sac {
                unit: words.value(POSITIVE)?,
                period: words.option("period", POSITIVE)?.unwrap_or(SECOND),
            },
            "cac" => Comparator::Cac { period: words.option("period", POSITIVE)?.unwrap_or(SECOND) },
            "aces" => Comparator::Aces(aces::AcesSettings::read(&mut words)?),
            "gradient" => Comparator::Gradient {
                update: words.option("update", POSITIVE)?.unwrap_or(UPDATE),
                probe: words.option("probe", POSITIVE)?.unwrap_or(PROBE),
            },
            "gradient2" => Comparator::Gradient2 {
                limits: words.limits()?,
                window: words.option("window", DURATION)?.unwrap_or(SECOND),
            },
            "aimd" => Comparator::Aimd {
                limits: words.limits()?,
                timeout: words.option("timeout", POSITIVE)?.unwrap_or(AIMD_TIMEOUT),
            },
            name => {
                let all: Vec<&str> = Self::FORMS.iter().map(|(form, _)| name_of(form)).collect();
                let example = Self::FORMS[2].0;
                return Err(format!(
                    "there is no comparator \"{name}\"; there are {}; for example {example}",
                    all.join(", ")
                ));
            }
        };
        words.done()?;
        Ok(comparator)
    }

    /// Where what its front has [`learned`](Front::learned) is to be written when the run has ended.
    pub fn memory(&self) -> Option<&Path> {
        match self {
            Comparator::Aces(settings) => settings.trends.as_deref(),
            _ => None,
        }
    }

    /// The front that does it, before these plants. Classes are numbered as in an engine of the same promises and seed.
    ///
    /// # Errors
    /// Promises that contradict each other; plants that the workload does not describe; a `sac` whose unit is not
    /// known; a parameter that [`parse`](Comparator::parse) would refuse.
    pub fn front(
        &self,
        promises: &Promises,
        workload: &Workload,
        seed: u64,
    ) -> Result<Box<dyn Front>, Vec<String>> {
        // An interval of zero would never end.
        Comparator::parse(&self.to_string()).map_err(|wrong| vec![wrong])?;
        let build = Build { promises, workload, seed };
        match *self {
            Comparator::None => build.front(|_, _| Unlimited),
            Comparator::TailDrop { most } => build.front(|_, _| TailDrop::new(most)),
            Comparator::Concurrency { most, queue, wait } => {
                build.front(|_, _| Concurrency::new(most, queue, wait))
            }
            Comparator::Rate { per_second, burst } => build.front(|_, _| Rate::new(per_second, burst)),
            Comparator::Sac { period, unit } => {
                let unknown = workload.plants.iter().any(|plant| unit.unwrap_or(plant.service).is_zero());
                if unknown {
                    return Err(vec![
                        "sac needs the service time of one unit, and the server has no fixed one: write sac:10ms"
                            .into(),
                    ]);
                }
                build.front(|plant, _| {
                    Sac::new(plant.discipline.servers(), period, unit.unwrap_or(plant.service))
                })
            }
            Comparator::Cac { period } => {
                build.front(|plant, _| Cac::new(plant.discipline.servers(), period))
            }
            Comparator::Aces(ref settings) => Ok(Box::new(Aces::new(settings, promises, workload, seed)?)),
            Comparator::Gradient { update, probe } => {
                build.front(|_, seed| Gradient::new(GradientSettings { update, probe }, seed))
            }
            Comparator::Gradient2 { limits: Limits { initial, least, most }, window } => {
                build.front(|_, _| Gradient2::new(Gradient2Settings { initial, least, most, window }))
            }
            Comparator::Aimd { limits: Limits { initial, least, most }, timeout } => {
                build.front(|_, _| Aimd::new(AimdSettings { initial, least, most, timeout }))
            }
        }
    }
}

struct Build<'a> {
    promises: &'a Promises,
    workload: &'a Workload,
    seed: u64,
}

impl Build<'_> {
    /// Makes one limiter for each plant, from the plant's truth and a seed of its own.
    fn front<L: Limiter + 'static>(
        &self,
        limiter: impl Fn(&Plant, u64) -> L,
    ) -> Result<Box<dyn Front>, Vec<String>> {
        let of_plant = |plant: usize| {
            let seed = self.seed ^ (plant as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            limiter(&self.workload.plants[plant], seed)
        };
        Ok(Box::new(Limited::new(self.promises, self.workload, self.seed, of_plant)?))
    }
}

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Comparator::None => f.write_str("none"),
            Comparator::TailDrop { most } => write!(f, "tail-drop:{most}"),
            Comparator::Concurrency { most, queue, wait } => {
                write!(f, "concurrency:{most}")?;
                if queue > 0 { write!(f, ",queue={queue},wait={}", Span(wait)) } else { Ok(()) }
            }
            Comparator::Rate { per_second, burst } => {
                write!(f, "rate:{per_second}")?;
                if burst > 0 { write!(f, ",burst={burst}") } else { Ok(()) }
            }
            Comparator::Sac { period, unit } => {
                f.write_str("sac")?;
                if let Some(unit) = unit {
                    write!(f, ":{}", Span(unit))?;
                }
                option(f, "period", period, SECOND)
            }
            Comparator::Cac { period } => {
                f.write_str("cac")?;
                option(f, "period", period, SECOND)
            }
            Comparator::Aces(ref settings) => settings.fmt(f),
            Comparator::Gradient { update, probe } => {
                f.write_str("gradient")?;
                option(f, "update", update, UPDATE)?;
                option(f, "probe", probe, PROBE)
            }
            Comparator::Gradient2 { limits, window } => {
                write!(f, "gradient2{limits}")?;
                option(f, "window", window, SECOND)
            }
            Comparator::Aimd { limits, timeout } => {
                write!(f, "aimd{limits}")?;
                option(f, "timeout", timeout, AIMD_TIMEOUT)
            }
        }
    }
}

impl fmt::Display for Limits {
    /// What is not as published, each with a comma before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let published = Limits::PUBLISHED;
        let all = [
            ("initial", self.initial, published.initial),
            ("least", self.least, published.least),
            ("most", self.most, published.most),
        ];
        all.iter().filter(|(_, value, usual)| value != usual).try_for_each(|(k, v, _)| write!(f, ",{k}={v}"))
    }
}

fn option(f: &mut fmt::Formatter<'_>, key: &str, value: Duration, usual: Duration) -> fmt::Result {
    if value == usual { Ok(()) } else { write!(f, ",{key}={}", Span(value)) }
}

#[cfg(test)]
mod tests {
    use super::super::Gateway;
    use super::super::limit::tests::{promises, workload};
    use super::*;
    use crate::request::Request;

    fn parsed(text: &str) -> Comparator {
        Comparator::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn every_form_is_read_and_written_back() {
        for (form, _) in Comparator::FORMS {
            let comparator = parsed(form);
            assert_eq!(parsed(&comparator.to_string()), comparator, "{form}");
            if comparator.to_string() != form {
                // Only because what is usual is left out.
                assert!(form.starts_with(&comparator.to_string()), "{form}: {comparator}");
            }
        }
        let exact = [
            "concurrency:64",
            "concurrency:64,queue=100,wait=60s",
            "rate:0.5,burst=3",
            "sac",
            "sac:1500us",
            "cac,period=250ms",
            "aces,period=100ms,drop=oldest,trends=week.txt",
            "gradient,update=50ms",
            "gradient2,least=1,most=32,window=0s",
            "aimd,timeout=500ms",
        ];
        for text in exact {
            assert_eq!(parsed(text).to_string(), text);
        }
    }

    #[test]
    fn defaults() {
        let wait = Duration::from_secs(60);
        assert_eq!(parsed("concurrency:8"), Comparator::Concurrency { most: 8, queue: 0, wait });
        assert_eq!(parsed("tail-drop"), Comparator::TailDrop { most: 511 });
        assert_eq!(parsed("cac:period=2s"), Comparator::Cac { period: Duration::from_secs(2) });
        let limits = Limits { initial: 20, least: 5, most: 200 };
        assert_eq!(
            parsed(" aimd , least = 5 "),
            Comparator::Aimd { limits, timeout: Duration::from_secs(5) }
        );
    }

    #[test]
    fn errors_say_what_to_write() {
        let wrong = |text| Comparator::parse(text).unwrap_err();
        let all = "there are none, tail-drop, concurrency, rate, sac, cac, aces, gradient, gradient2, aimd; \
                   for example concurrency:64,queue=100,wait=1s";
        assert_eq!(wrong("red"), format!("there is no comparator \"red\"; {all}"));
        assert_eq!(wrong(""), format!("there is no comparator \"\"; {all}"));
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
        assert!(wrong("concurrency:0").starts_with("concurrency: \"0\" is not a whole number above 0"));
    }

    #[test]
    fn data_that_could_not_be_written_is_not_built() {
        let zero = Duration::ZERO;
        let limits = Limits { initial: 1, least: 2, most: 3 };
        let wrong = [
            Comparator::Cac { period: zero },
            Comparator::Aces(aces::AcesSettings { period: zero, ..aces::AcesSettings::default() }),
            Comparator::Concurrency { most: 8, queue: 1, wait: zero },
            Comparator::Gradient { update: zero, probe: zero },
            Comparator::Rate { per_second: f64::NAN, burst: 0 },
            Comparator::Aimd { limits, timeout: zero },
        ];
        for comparator in wrong {
            assert!(comparator.front(&promises(), &workload(), 1).is_err(), "{comparator:?}");
        }
    }

    #[test]
    fn classes_and_clients_are_numbered_as_in_the_gateway() {
        let request = Request { path: "/health".into(), ..Request::default() };
        let gateway = Gateway::new(&promises(), 5).unwrap().classify(&request);
        let of_seed =
            |seed| Comparator::None.front(&promises(), &workload(), seed).unwrap().classify(&request);
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
