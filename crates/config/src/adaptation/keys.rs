//! The table of a policy's keys, as those of the configuration are in `crate::gateway`.

use crate::syntax::{OneOrMany, Sections, Size, Text, Whole, numbers, section, words};

section! { "the file"
    /// How lighter copies of a site are made.
    AdaptationKeys {
        /// The content trees to make. Default: all.
        levels: OneOrMany<LevelWord>, optional;
        /// Steps to leave out of the light and the lean level.
        without: OneOrMany<StepWord>, optional;
        /// Images above this size are large: at the lean level they are reduced by `factor`. Default: 32 KiB.
        image_limit: Size, optional;
        /// Images above this size are written again. Up to `image_limit` they are of medium size: at the lean level half the
        /// factor, and at most one and a half times as far from the original as at the light level. Default: 1 KiB.
        medium_limit: Size, optional;
        /// Images below this size are cosmetic: the lean level goes without them. Default: 1 KiB.
        cosmetic_limit: Size, optional;
        /// The factor by which large images are reduced in bytes at the lean level. Default: 8.
        factor: Factor, optional;
        /// The least structural similarity of an image at the light level to its original, in colour and in the worst region
        /// of 32 by 32 pixels. At the lean level it may be twice as far from the original. Default: 0.85.
        similarity: Similarity, optional;
        /// Whether AVIF images are reduced too. It takes seconds for each, and libavif's programs `avifenc` and `avifdec`.
        /// Default: they are copied.
        avif: bool, optional;
        /// The number of links from the first page beyond which pages are left out; links to these become text. Default: no
        /// page is left out.
        depth: Whole<0, { u32::MAX as u64 }>, optional;
        /// Whether lower trees have only what differs from the next. For servers that read the manifest: the gateway
        /// does. Default: every tree is whole.
        sparse: bool, optional;
        /// Addresses of dynamic pages, `"http://127.0.0.1:8000/catalog.php"`, that are fetched once and stored in the lower
        /// trees under their paths, which end in a slash or in a name such as `catalog.php`. A tree's file answers every query.
        snapshot: OneOrMany<Text>, optional;
        /// What is expendable, degradable or important, by path; the last that fits counts.
        rule: Sections<RuleKeys>, default(Sections(Vec::new()));
    }
}

section! { "[[rule]]"
    /// A tag for every file whose path fits.
    RuleKeys {
        /// Paths in the site: `*` is any text within a name, `**` any text. Without a slash it is a file's name in any
        /// folder: `"*.woff2"`, `"ads/**"`.
        path: OneOrMany<Text>, required("write which files are meant: `path = \"*.woff2\"`");
        /// What files with this path are: expendable, degradable or important.
        tag: TagWord, required("write one of `expendable`, `degradable` and `important`: `tag = \"expendable\"`");
    }
}

numbers! {
    /// The factor by which an image loses bytes.
    Factor: Included(1.0), to 100.0;
    /// A structural similarity.
    Similarity: Included(0.0), to 1.0;
}

words! {
    /// A level's name.
    enum LevelWord {
        "text" => Text, "pages without anything that a browser has to load";
        "lean" => Lean, "content alone: no ornaments, each image on one page, in an eighth of its bytes";
        "light" => Light, "what a visitor takes for the site, in fewer bytes";
        "full" => Full, "the site as it is";
    }
}

words! {
    /// A step's name.
    enum StepWord {
        "images" => Images, "images above `image_limit` are written again in fewer bytes";
        "medium" => Medium, "images above `medium_limit` too; at the lean level with more care";
        "sizes" => Sizes, "images have the size at which pages show them, for plain screens and for those of twice the density";
        "webp" => Webp, "a WebP stands beside each image, for clients that take it";
        "photographs" => Photographs, "photographs that are PNG or GIF become JPEG or WebP under their name";
        "cosmetic" => Cosmetic, "icons, bullets, bars and what is cosmetic by `cosmetic_limit` go, and leave their text or a sign; lean only";
        "one-page" => OnePage, "an image on several pages stays on the most popular one, but the logo and products' pictures on all; lean only";
        "backgrounds" => Backgrounds, "small backgrounds of style sheets go; lean only";
        "responsive" => Responsive, "of the candidates for several screens the smallest stays; lean only";
        "lazy" => Lazy, "images further down load when they are seen";
        "video" => Video, "videos load when they are started";
        "embeds" => Embeds, "frames of other hosts, such as maps and films, show a link that loads them";
        "expendable" => Expendable, "what is tagged or ruled expendable goes";
        "compressed" => Compressed, "each text has a compressed copy beside it, at full too";
        "vector" => Vector, "what no browser draws goes from SVG images";
        "fonts" => Fonts, "web fonts have the characters that pages can show, and no others";
    }
}

words! {
    /// A tag.
    enum TagWord {
        "expendable" => Expendable, "they may go";
        "degradable" => Degradable, "they may be reduced, but stay";
        "important" => Important, "they are not touched";
    }
}
