//! Lighter copies of a site, made beforehand, and how many more visitors they allow (CA 2 and 3; UC 4.2, 7.4).
//!
//! ```text
//! adapt/:  tree -> site (survey of pages, sheets, images) -> images and fonts reduced -> each level: decide, rewrite -> output
//! impact/: the same survey, at full and at each level -> Emb, H, I -> ratios
//! ```
//!
//! Both are built on these rooms: `site/` has what was read, `roles/` decides what each image is for, `text/`, `image/` and
//! `font/` change the bytes of a file, `rewrite/` decides what happens to each file at a level, `policy` has the user's wishes,
//! and `parallel` runs over many files.
//!
//! # What holds
//!
//! - The site is only read; the trees are exchanged when all are complete ([`adapt()`]).
//! - A page is changed in its text, by place; everything else stays as it was, byte for byte, in its encoding.
//! - No page gets a dead link or a broken image that it did not have before: what is taken out of a page stays in its tree.
//! - The same site and policy make the same trees; results of the last run are used again.

mod adapt;
mod font;
#[doc(hidden)]
pub mod fuzzing;
mod image;
mod impact;
mod parallel;
mod policy;
mod rewrite;
mod roles;
mod site;
mod text;
pub use adapt::manifest::{Image, Problem, TreeEntry};
pub use adapt::{Adapted, Fetch, Job, adapt};
pub use impact::{
    Costs, Examples, Figures, Impact, Question, Ratios, View, curve, impact, ratios, text_ratios,
};
pub use parallel::{Unwatched, Watch};
pub use policy::{Level, Policy, Rule, Step, Tag};
pub use roles::{Reason, Role};
