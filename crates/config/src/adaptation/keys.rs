//! The table of a policy's keys, as those of the configuration are in `crate::gateway`.

use crate::syntax::{OneOrMany, Sections, Size, Text, Whole, numbers, section, words};

section! { "the file"
    /// How lighter copies of a site are made.
    AdaptationKeys {
        /// The content trees to make. Default: all.
        levels: OneOrMany<LevelWord>, optional;
        /// Steps to leave out of the light level.
        without: OneOrMany<StepWord>, optional;
        /// Images above this size are reduced. Default: 32 KiB.
        image_limit: Size, optional;
        /// Images above this size, up to `image_limit`, are of medium size: half the factor, half as far from the
        /// original at most. Default: 4 KiB.
        medium_limit: Size, optional;
        /// Images below this size are cosmetic and give way to their text. Default: 1 KiB.
        cosmetic_limit: Size, optional;
        /// The factor by which large images are reduced in bytes. Default: 8.
        factor: Factor, optional;
        /// The least structural similarity of a reduced image to its original; the factor gives way. Default: 0.9.
        similarity: Similarity, optional;
        /// Whether AVIF images are reduced too. It takes seconds for each, and libavif's programs `avifenc` and `avifdec`.
        /// Default: they are copied.
        avif: bool, optional;
        /// Pages more than so many links from the first are left out, and links to them become text. Default: none is.
        depth: Whole<0, { u32::MAX as u64 }>, optional;
        /// Whether lower trees have only what differs from the next. For servers that read the manifest: the gateway
        /// does. Default: every tree is whole.
        sparse: bool, optional;
        /// Addresses of dynamic pages, `"http://127.0.0.1:8000/catalog.php"`, that are fetched once and stored in the lower
        /// trees under their paths. A tree's file answers every query.
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
        /// What they are.
        tag: TagWord, required("write one of `expendable`, `degradable` and `important`: `tag = \"expendable\"`");
    }
}

numbers! {
    /// How many times fewer bytes.
    Factor: Included(1.0), to 100.0;
    /// A structural similarity.
    Similarity: Included(0.0), to 1.0;
}

words! {
    /// A level's name.
    enum LevelWord {
        "text" => Text, "pages without anything that a browser has to load";
        "light" => Light, "the steps below";
        "full" => Full, "the site as it is";
    }
}

words! {
    /// A step's name.
    enum StepWord {
        "images" => Images, "images above `image_limit` are written again in fewer bytes";
        "medium" => Medium, "images above `medium_limit` too, with more care";
        "photographs" => Photographs, "photographs that are PNG or GIF become JPEG or WebP under their name";
        "cosmetic" => Cosmetic, "icons, bullets, bars and all below `cosmetic_limit` give way to their text";
        "one-page" => OnePage, "an image on several pages stays on the most popular one";
        "backgrounds" => Backgrounds, "small backgrounds of style sheets go";
        "responsive" => Responsive, "of the candidates for several screens the smallest stays";
        "lazy" => Lazy, "images further down load when they are seen";
        "video" => Video, "videos load when they are started";
        "expendable" => Expendable, "what is tagged or ruled expendable goes";
        "compressed" => Compressed, "each text has a compressed copy beside it, at full too";
        "vector" => Vector, "what no browser draws goes from SVG images";
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
