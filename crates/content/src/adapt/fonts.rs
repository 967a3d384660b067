//! Web fonts, written again with only the characters that the site shows.

use super::Job;
use crate::font::{self, used};
use crate::parallel::{self, Watch};
use crate::policy::{Level, Step, Tag};
use crate::rewrite::decide::Decisions;
use crate::site::Site;
use crate::site::kind::Kind;
use std::collections::BTreeMap;
use std::io;

/// The results of reducing the fonts, which are the same at all levels below full.
#[derive(Default)]
pub(super) struct Fonts {
    /// The new bytes of each reduced font, by path.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Fonts that cannot be read, and why.
    pub(super) wrong: Vec<(String, String)>,
}

/// If the job's policy wants it, reduces the fonts that pages and sheets name, except important ones. If the site has no pages,
/// programs make them and their characters are not known, so no font is reduced.
pub(super) fn reduce(job: &Job, site: &Site, watch: &dyn Watch) -> io::Result<Fonts> {
    let decisions = Decisions::new(site, &job.policy, Level::Light, None);
    let files = site.tree.files.iter().filter(|(path, file)| {
        file.kind == Kind::Font
            && site.survey.usage.contains_key(*path)
            && decisions.file_tag(path) != Some(Tag::Important)
            && font::is_reducible(path)
    });
    let paths: Vec<&String> = files.map(|(path, _)| path).collect();
    let mut fonts = Fonts::default();
    if paths.is_empty()
        || site.survey.pages.is_empty()
        || !job.policy.takes(Step::Fonts)
        || job.levels.iter().all(|level| *level == Level::Full)
    {
        return Ok(fonts);
    }
    let characters = used::used(site, watch)?;
    let done =
        parallel::each(&paths, watch, |path| Ok(font::reduced(&site.tree.read_file(path)?, &characters)))?;
    for (path, reduced) in paths.into_iter().zip(done) {
        match reduced {
            Ok(bytes) => fonts.files.extend(bytes.map(|bytes| (path.clone(), bytes))),
            Err(what) => fonts.wrong.push((path.clone(), what)),
        }
    }
    Ok(fonts)
}
