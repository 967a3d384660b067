//! One self-contained HTML page from recorded runs: lead facts, charts and tables.
//!
//! The caller hands in plain data ([`Page`]) and gets the page as text. The page loads nothing: the charts are SVG drawn here,
//! and the style and a little script are inline, so that the file opens from a disk, an archive or a bug report years later.
//! Without script the page is complete; the script adds a cross-hair with the values, a legend that hides and shows series, and
//! data tables that open.
//!
//! ```
//! use plimsoll_report::{Chart, Fact, Page, Section, Series, Style, Verdict};
//!
//! let utilization = [Some(0.31), Some(0.55), Some(0.68), None, Some(0.71), Some(0.70)];
//! let page = Page {
//!     title: "demo.toml".into(),
//!     subtitle: "a step to three times the load; seed 7".into(),
//!     assumptions: vec!["requests cost the same".into()],
//!     lead: vec![Fact::new("Utilization", "0.70").verdict(Verdict::Good).note("set point 0.70")],
//!     sections: vec![Section::new("The loop").text("Once per period.").chart(
//!         Chart::over_time("Utilization", "of all workers")
//!             .series(Series::every("U", 5.0, utilization))
//!             .series(Series::new("set point", [(0.0, 0.7), (25.0, 0.7)]).style(Style::Dashed))
//!             .from_zero()
//!             .up_to(1.0),
//!     )],
//!     footer: "plimsoll simulate demo.toml --seed 7".into(),
//! };
//! let html = page.to_html();
//! assert!(html.starts_with("<!doctype html>") && html.contains("set point 0.70"));
//! ```
//!
//! # What holds
//!
//! - **No text from outside is markup.** Paths and names come from access logs, that is, from anyone. All text passes one
//!   function (`text::Escaped`), and is placed only in elements and quoted attributes, never in the script. Should that fail,
//!   the page's Content-Security-Policy still allows only its own script and style, by their SHA-256 digests, and loads
//!   nothing.
//! - **A gap is a gap.** `None`, NaN and infinities break a line; a value that was not measured is never drawn as zero.
//! - **Peaks stay.** If a series is longer than the plot is wide, it is reduced by columns that keep first, last, least and
//!   greatest (Jugel et al., "M4", VLDB 2014): the picture stays the same to the pixel, whereas an average would remove the
//!   peaks that a report on overload is about.
//! - **No meaning by colour alone**: colours differ even with the common colour deficiencies, verdicts have a sign, and every
//!   chart has a title, a description in words and its data as text.
//!
//! # Why drawn here, and not by a library in the page
//!
//! A charting library takes hundreds of kilobytes in every file, shows nothing without script or in print, and would be the
//! largest part of the code to be trusted. A report needs only lines, steps, stacked areas and points.
//!
//! The plot's frame has no `viewBox`: labels are placed at percentages and keep their size on a phone. Only the innermost
//! picture with the lines is stretched, with strokes that do not scale.

mod chart;
mod html;
mod number;
mod page;
mod table;
mod text;

pub use chart::{Chart, Color, Mark, Series, Style, Threshold, XAxis, YRange};
pub use page::{Block, Fact, Page, Picture, Section, Verdict};
pub use table::{Cell, Column, ColumnKind, Table};
