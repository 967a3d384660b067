//! The paper AC's experiments.

mod heard;
mod plant;

use heard::{Figures, Mean, comparator, listen, promises};
use plant::{BOUND, mean_service, mix, week};

#[test]
fn explore() {
    println!("mean {} capacity {}", mean_service(), 1.0 / mean_service());
    for load in [0.5, 0.8, 1.0, 1.5, 2.0, 2.5] {
        for front in ["none", "sac", "sac:1975us", "cac", "tail-drop:500", "aces:1ms", "aces:1245us", "aces:1245us,period=100ms", "aces:1245us,drop=oldest"] {
            let mut all: Vec<Figures> = vec![];
            for seed in 1..=3 {
                let workload = mix(load, 120.0);
                let (heard, _) = listen(&mut *comparator(front, &workload, seed), &promises(), &workload, seed);
                all.push(Figures::of(&heard, (20.0, 118.0), BOUND));
            }
            let of = |f: fn(&Figures) -> f64| { let m = Mean::of(&all.iter().map(f).collect::<Vec<_>>()); format!("{:.4}±{:.4}", m.mean, m.half) };
            println!("{load} {front:26} thr {} work {} mean {} max {} missed {} refused {}", of(|f| f.answered * mean_service()), of(|f| f.work), of(|f| f.mean), of(|f| f.longest), of(|f| f.missed), of(|f| f.refused));
        }
    }
}

#[test]
fn explore_week() {
    for load in [0.5, 1.0, 1.5, 2.5] {
        for front in ["none", "sac", "cac", "aces:1ms", "aces:1500us", "aces:2000us"] {
            let mut all: Vec<Figures> = vec![];
            for seed in 1..=2 {
                let (workload, hour) = week(load, 168, seed);
                let front = if front.starts_with("aces") { format!("{front},hour={}ms", (hour * 1e3) as u64) } else { front.to_owned() };
                let (heard, run) = listen(&mut *comparator(&front, &workload, seed), &promises(), &workload, seed);
                if seed == 1 { println!("{} s, hour {hour}, mean cost {}", run.ended.as_secs_f64(), heard.iter().map(|h| h.cost).sum::<f64>() / heard.len() as f64); }
                all.push(Figures::of(&heard, (0.0, hour * 168.0), BOUND));
            }
            let of = |f: fn(&Figures) -> f64| { let m = Mean::of(&all.iter().map(f).collect::<Vec<_>>()); format!("{:.4}±{:.4}", m.mean, m.half) };
            println!("{load} {front:26} thr {} work {} mean {} max {} missed {} refused {}", of(|f| f.answered), of(|f| f.work), of(|f| f.mean), of(|f| f.longest), of(|f| f.missed), of(|f| f.refused));
        }
    }
}
