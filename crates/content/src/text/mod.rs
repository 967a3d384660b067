//! The texts of a site: finds their references, and changes them by place.
//!
//! Input: the bytes of a page, a style sheet or an SVG image. Output: its elements and references with their places
//! ([`document`], [`css`], [`svg`]), each reference resolved to a path of the site ([`mod@reference`]), and the text with
//! changes ([`markup::Edits`]). What is not changed stays byte for byte, in its encoding ([`charset`]).

pub(crate) mod boxes;
pub(crate) mod charset;
pub(crate) mod css;
pub(crate) mod document;
pub(crate) mod markup;
pub(crate) mod reference;
pub(crate) mod svg;
