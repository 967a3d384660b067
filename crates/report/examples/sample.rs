//! Writes a page with each kind of block, of invented runs: `cargo run --example sample > page.html`.

use plimsoll_report::{
    Block, Cell, Chart, Color, Column, Fact, Page, Section, Series, Style, Table, Verdict, XAxis,
};

const PERIODS: usize = 61;
const PERIOD_SECONDS: f64 = 5.0;

/// Numbers in [-1, 1) that look random and are the same in each run.
fn noise(index: usize, stream: u64) -> f64 {
    let mut state =
        (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03);
    state = (state ^ (state >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((state ^ (state >> 29)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn every(name: &str, value: impl Fn(usize) -> f64) -> Series {
    Series::every(name, PERIOD_SECONDS, (0..PERIODS).map(value))
}

/// A step to three times the load at period 20, and back at period 50; settles in about two periods.
fn load(period: usize) -> f64 {
    if (20..50).contains(&period) { 3.0 } else { 1.0 }
}

fn service_level(period: usize) -> f64 {
    let settled = if load(period) > 1.0 { 1.35 } else { 3.0 };
    let since = if period >= 50 { period - 50 } else { period.saturating_sub(20) };
    let start = if load(period) > 1.0 { 3.0 } else { 1.35 };
    let start = if period < 20 { 3.0 } else { start };
    settled + (start - settled) * (-0.9 * since as f64).exp() + 0.02 * noise(period, 1)
}

fn utilization(period: usize, controlled: bool) -> f64 {
    let base = 0.42 + 0.015 * noise(period, 2);
    match (load(period) > 1.0, controlled) {
        (false, _) => base,
        (true, false) => (0.985 + 0.01 * noise(period, 3)).min(1.0),
        (true, true) => 0.70 + 0.28 * (-1.1 * (period - 20) as f64).exp() + 0.015 * noise(period, 4),
    }
}

fn share(level: usize, period: usize) -> f64 {
    // Level 0 is the full content; m between whole numbers mixes two neighbours.
    let place = 3.0 - service_level(period).clamp(0.0, 3.0);
    (1.0 - (place - level as f64).abs()).clamp(0.0, 1.0) * 100.0
}

fn control() -> Section {
    Section::new("The loop")
        .text("Once per period of 5 s the loop compares the utilization U with its set point and moves m.")
        .chart(
            Chart::over_time("Utilization", "share of workers")
                .series(every("U", |period| utilization(period, true)))
                .series(Series::new("set point", [(0.0, 0.7), (300.0, 0.7)]).style(Style::Dashed))
                .from_zero()
                .up_to(1.0)
                .mark(100.0, "load × 3")
                .mark(250.0, "load × 1"),
        )
        .chart(
            Chart::over_time("Service level m", "levels")
                .series(every("m", service_level).style(Style::Step))
                .from_zero()
                .mark(100.0, "load × 3")
                .mark(250.0, "load × 1"),
        )
}

fn served() -> Section {
    let names = ["full", "small images", "text only", "static page"];
    let levels = names.iter().enumerate().map(|(level, name)| {
        every(name, move |period| share(level, period)).style(Style::Area).color(Color::Ordered)
    });
    let reasons = [("queue-full", 1.0), ("quota", 3.0), ("heavy client", 0.6)];
    let mut shares = Chart::over_time("Levels served", "% of requests").from_zero().up_to(100.0);
    shares.series.extend(levels);
    let mut rejected = Chart::over_time("Rejections by reason", "requests/s").from_zero();
    rejected.series.extend(reasons.iter().enumerate().map(|(stream, (name, scale))| {
        let rate = move |period| {
            if load(period) > 1.0 && period < 26 {
                scale * (6.0 + noise(period, 20 + stream as u64))
            } else {
                0.0
            }
        };
        every(name, rate).style(Style::Area)
    }));
    Section::new("What was served").block(Block::Charts(vec![shares, rejected]))
}

fn delays() -> Section {
    let delay = |class: usize, scale: f64| {
        move |period: usize| {
            let idle = class == 2 && (8..12).contains(&period);
            let busy = if load(period) > 1.0 { 1.0 + class as f64 } else { 0.4 };
            (!idle).then(|| scale * busy * (40.0 + 6.0 * noise(period, class as u64 + 7)))
        }
    };
    let mut chart = Chart::over_time("Delay by class", "ms")
        .text("Solid: the median; dashed: the 99th percentile. A class without requests has a gap.")
        .from_zero()
        .threshold("promise to gold: 250 ms", 250.0);
    for (class, name) in ["gold", "silver", "basic"].into_iter().enumerate() {
        let slot = Color::Slot(class as u8);
        let values = |scale| (0..PERIODS).map(delay(class, scale));
        chart = chart
            .series(Series::every(format!("{name} p50"), PERIOD_SECONDS, values(1.0)).color(slot))
            .series(
                Series::every(format!("{name} p99"), PERIOD_SECONDS, values(3.4))
                    .color(slot)
                    .style(Style::Dashed),
            );
    }
    let long = Series::every(
        "requests/s",
        1.0,
        (0..20_000).map(|second| {
            let day = (f64::from(second) / 86_400.0 * 25.0).sin().abs();
            let burst = if second == 12_345 { 400.0 } else { 0.0 };
            80.0 + 120.0 * day + 40.0 * noise(second as usize, 11) + burst
        }),
    );
    let size = XAxis::Quantity { name: "response size".into(), unit: "KiB".into() };
    let cost = |index: usize| (index as f64 * 1.7, 2.0 + 0.051 * index as f64 * 1.7 + 0.8 * noise(index, 12));
    Section::new("Delays and costs")
        .chart(chart)
        .chart(Chart::over_time("A long log", "requests/s").series(long).from_zero())
        .chart(
            Chart::over(size, "Cost of a request", "ms")
                .series(Series::new("measured", (0..150).map(cost)).style(Style::Points))
                .series(Series::new("a + b · bytes", [(0.0, 2.0), (255.0, 15.0)]).color(Color::Slot(1)))
                .from_zero(),
        )
}

fn comparison() -> Section {
    let run = |title: &str, controlled: bool| {
        Chart::over_time(title, "share of workers")
            .series(every("U", move |period| utilization(period, controlled)))
            .series(Series::new("set point", [(0.0, 0.7), (300.0, 0.7)]).style(Style::Dashed))
            .from_zero()
    };
    Section::new("With and without control")
        .text("The same arrivals on both; one scale.")
        .block(Block::Multiples(vec![run("demo.toml", true), run("without.toml", false)]))
        .note("Without control 38 % of the requests waited longer than the client's patience of 3 s.")
}

fn paths() -> Section {
    let columns = [
        Column::code("path"),
        Column::number("requests", "", 0),
        Column::bars("degraded", "%", 1),
        Column::number("mean level", "", 2),
        Column::number("p99", "ms", 1),
    ];
    let rows: [(&str, u64, f64, f64, Option<f64>); 6] = [
        ("/shuttle/missions/sts-71/images/KSC-95EC-0423.jpg", 12_304, 61.2, 1.41, Some(812.4)),
        ("/", 9_811, 44.0, 2.02, Some(104.9)),
        ("/shuttle/countdown/video/livevideo.gif?frame=1&size=<large>", 4_120, 31.7, 2.31, Some(96.0)),
        ("/history/apollo/apollo-13/apollo-13.html", 2_209, 12.5, 2.71, Some(88.1)),
        ("/cgi-bin/imagemap/countdown70?181,284", 981, 2.1, 2.95, Some(1204.7)),
        ("/never/served.html", 12, 0.0, 3.0, None),
    ];
    let mut table = Table::new("Paths by requests degraded", columns);
    for (path, requests, degraded, level, delay) in rows {
        let delay = delay.map_or(Cell::Empty, Cell::from);
        table = table.row([path.into(), requests.into(), degraded.into(), level.into(), delay]);
    }
    Section::new("Who was degraded").table(table)
}

fn main() {
    let page = Page {
        title: "demo.toml at three times the load".into(),
        subtitle: "31,204 requests in 300 s of virtual time; step at 100 s; seed 7".into(),
        lead: vec![
            Fact::new("Utilization", "0.702").note("set point 0.70").verdict(Verdict::Good),
            Fact::new("Settling", "2").unit("periods").note("promised: 3").verdict(Verdict::Good),
            Fact::new("Served in full", "64.1").unit("%").note("61.2 % during the step"),
            Fact::new("Rejected", "0.9").unit("%").note("promised: 0").verdict(Verdict::Bad),
            Fact::new("Delay p99, gold", "131").unit("ms").note("promised: 250 ms").verdict(Verdict::Good),
        ],
        sections: vec![control(), served(), delays(), comparison(), paths()],
        footer:
            "plimsoll simulate demo.toml --workload step.toml --seed 7 --report step.html\nplimsoll 0.1.0"
                .into(),
    };
    print!("{}", page.to_html());
}
