//! The facts of a simulation as a page: tables, which text output shows too, and charts.

use super::facts::{RunFacts, SimulationReport};
use super::{Simulated, charts, promises};
use crate::output::facts::{Facts, Figure, compare, list};
use crate::output::units::{grouped, short, span};
use plimsoll_report::{Block, Cell, Column, Fact, Page, Section, Table};

/// The most paths that the page shows, and that text shows.
const PATHS: [usize; 2] = [25, 8];

pub(crate) fn page(simulated: &Simulated, report: &SimulationReport) -> Page {
    let Simulated { inputs, runs, .. } = simulated;
    let mut tiles: Vec<_> = report.runs.iter().map(tiles).collect();
    // If several contenders are compared, the table comes first, and each has its own tiles below it.
    let lead = if tiles.len() == 1 { tiles.remove(0) } else { Vec::new() };
    let named = report.runs.iter().zip(tiles).map(|(run, tiles)| Block::Tiles(short(&run.name), tiles));
    let contenders = report.runs.iter().map(|run| &run.promised).zip(&inputs.contenders);
    let served = charts::against_each_other(simulated, report).into_iter().chain(charts::served(simulated));
    let promised = charts::promised(simulated, report);
    let promised = [Block::Table(promises::table(contenders))].into_iter().chain(promised);
    let section = |title: &str, blocks: Vec<Block>| Section { blocks, ..Section::new(title) };
    let mut sections = vec![
        section("What became of requests", [Block::Table(comparison(report))].into_iter().chain(named).collect()),
        section("The load line", charts::load_line(simulated, report)).text(
            "Utilization by the server's own busy time, one value for each control period or several.",
        ),
        section("What clients got", served.collect()),
        section("Response times", charts::response_times(simulated, report)).text(
            "From a request's arrival at the gateway to its last byte from the server, of requests that were served.",
        ),
        section("Promised response times", promised.collect()).text(
            "Each value covers one control period or several, so single values lie on both sides of a promise that is \
             kept over a longer time.",
        ),
        Section::new("Classes and paths").table(classes(report)).table(paths(simulated)),
        Section::new("Types that were found").table(to_paste(report)),
        report.notes.iter().fold(Section::new("What to know beside the figures"), Section::note),
    ];
    for section in &mut sections {
        section.blocks.retain(|block| !block.is_empty());
    }
    sections.retain(|section| !section.blocks.is_empty());
    Page {
        title: format!("{} under {}", short(&inputs.contenders[0].name), short(&inputs.arrivals)),
        subtitle: format!(
            "{}: {} requests in {} of virtual time (seed {}); offered: {}",
            inputs.arrivals,
            grouped(runs[0].requests),
            span(runs[0].ended.as_secs_f64()),
            simulated.seed,
            report.offered.0.iter().map(Figure::per_second).collect::<Vec<_>>().join(", ")
        ),
        assumptions: report.assumptions.clone(),
        lead,
        sections,
        footer: format!("plimsoll {} simulate, seed {}", env!("CARGO_PKG_VERSION"), simulated.seed),
    }
}

/// The main figures of one run.
fn tiles(run: &RunFacts) -> Vec<Fact> {
    let figures = run.upstreams.iter().chain([&run.total]).flat_map(Facts::tiles);
    figures.chain(run.promised.tiles()).collect()
}

/// The types that the engine found, to be pasted into the configuration's sites.
fn to_paste(report: &SimulationReport) -> Table {
    let title = "types that were found, to paste below their [[site]]";
    let table = Table::new("To paste", [Column::code(title)]);
    let lines = report.found_types.iter().flat_map(|text| text.lines());
    lines.fold(table, |table, line| table.row([Cell::from(line)]))
}

fn comparison(report: &SimulationReport) -> Table {
    let columns = report.runs.iter().map(|run| {
        let plants = run.upstreams.iter().flat_map(|plant| &plant.0);
        let all = plants.chain(&run.total.0).chain(&run.levels.0).cloned();
        (short(&run.name), Facts(all.collect()))
    });
    let columns: Vec<(String, Facts)> = columns.collect();
    let columns: Vec<(String, &Facts)> = columns.iter().map(|(name, facts)| (name.clone(), facts)).collect();
    compare("All figures", &columns)
}

fn classes(report: &SimulationReport) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for class in report.runs.iter().flat_map(|run| &run.classes) {
        if !names.contains(&class.name.as_str()) {
            names.push(&class.name);
        }
    }
    let several = report.runs.len() > 1;
    let rows = names.iter().flat_map(|name| {
        report.runs.iter().filter_map(move |run| {
            let class = run.classes.iter().find(|class| class.name == *name)?;
            let front = several.then(|| Cell::from(short(&run.name)));
            Some(([Cell::from(*name)].into_iter().chain(front).collect(), &class.figures))
        })
    });
    let names = if several { &["class", "in front"][..] } else { &["class"] };
    list("By class", names, &rows.collect::<Vec<_>>())
}

/// The paths with the most degraded and rejected requests under the first contender.
fn paths(simulated: &Simulated) -> Table {
    let top = &simulated.runs[0].top;
    let name = "less than full quality most often";
    let columns = [Column::code(name), Column::bars("degraded"), Column::bars("turned away")];
    let title = format!("Paths that got less than full quality most often, of {}", grouped(top.len() as u64));
    let table = Table { brief: Some(PATHS[1]), ..Table::new(title, columns) };
    top.iter().take(PATHS[0]).fold(table, |table, heavy| {
        table.row([Cell::from(heavy.path.clone()), heavy.degraded.into(), heavy.rejected.into()])
    })
}
