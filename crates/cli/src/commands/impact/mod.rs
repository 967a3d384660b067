//! `plimsoll impact SITE...`: how many more visitors adaptation allows.

mod facts;
mod page;
mod pictures;

use crate::args::ImpactArguments;
use crate::args::source;
use crate::commands::adapt::watch::SiteWatcher;
use crate::commands::adapt::{failed, policy::policy, views};
use crate::output::failure::Failure;
use crate::output::new_file::NewFile;
use crate::output::{json, text};
use crate::service::signals::{Interrupt, Signals};
use facts::ImpactReport;
use plimsoll_content::{Costs, Impact, Question, Ratios, ratios, text_ratios};
use std::path::{Path, PathBuf};

/// A site and its results.
pub(crate) struct Site {
    pub(crate) name: String,
    pub(crate) impact: Impact,
    /// By level: text in the paper's sense, then the levels of the trees.
    pub(crate) ratios: Vec<(&'static str, Ratios)>,
}

/// Finds out and prints how many more visitors adaptation allows for each site.
pub(crate) fn impact(arguments: &ImpactArguments) -> Result<(), Failure> {
    let interrupt = Interrupt::listen(Signals::block()?)?;
    let file = arguments.report.as_deref().map(|path| NewFile::begin(path, &files(arguments))).transpose()?;
    let costs = costs(arguments)?;
    let (policy, _) = policy(&arguments.policy)?;
    let views = arguments.log.as_deref().map(views).transpose()?;
    let mut sites = Vec::new();
    for site in &arguments.sites {
        let question = Question {
            site: site.clone(),
            adapted: arguments.adapted.clone(),
            policy: policy.clone(),
            views: views.clone(),
        };
        let bar = SiteWatcher::new("impact", &interrupt);
        let impact = plimsoll_content::impact(&question, &bar).map_err(failed)?;
        drop(bar);
        let mut all = vec![("text (CA)", text_ratios(&impact.full, costs))];
        all.extend(
            impact.levels.iter().map(|(level, figures)| (level.name(), ratios(&impact.full, figures, costs))),
        );
        sites.push(Site { name: site.display().to_string(), impact, ratios: all });
    }
    let report = ImpactReport::of(&sites, costs);
    let mut page = page::page(&sites, &report, costs);
    match arguments.json {
        true => json::print(&report)?,
        false => text::print(text::page(&page))?,
    }
    if let Some(file) = file {
        if let ([site], [folder], Some(trees)) = (&sites[..], &arguments.sites[..], &arguments.adapted) {
            page.sections.extend(pictures::pictures(folder, trees, &site.impact.examples));
        }
        file.fill(&page.to_html())?;
    }
    Ok(())
}

/// The files and folders that the command reads.
fn files(arguments: &ImpactArguments) -> Vec<PathBuf> {
    let named = [&arguments.adapted, &arguments.policy.file, &arguments.log, &arguments.costs];
    arguments.sites.iter().chain(named.into_iter().flatten()).cloned().collect()
}

fn costs(arguments: &ImpactArguments) -> Result<Costs, Failure> {
    if let Some(file) = &arguments.costs {
        return configured(file);
    }
    let default = Costs::default();
    Ok(Costs {
        per_request: arguments.per_request.map_or(default.per_request, |ms| ms / 1e3),
        per_byte: arguments.per_kb.map_or(default.per_byte, |ms| ms / 1e3 / 1024.0),
    })
}

/// The costs of the first upstream that states them.
fn configured(file: &Path) -> Result<Costs, Failure> {
    let configuration = source::read(file)?;
    let stated = configuration.promises.plants.iter().find_map(|plant| plant.costs);
    let stated = stated.ok_or_else(|| {
        let name = file.display();
        Failure::Input(format!(
            "error: {name}: no upstream of it states its costs; `plimsoll profile` measures them, or write \
             `--per-request 1.6 --per-kb 0.065`"
        ))
    })?;
    Ok(Costs { per_request: stated.per_request_seconds, per_byte: stated.per_byte_seconds })
}
