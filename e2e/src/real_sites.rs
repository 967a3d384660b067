//! Real sites from packages: themes with photographs from npm, a manual from Debian. `make deps` fetches them.
//!
//! They stand in `target/sites`, each in a folder with its version, so that a figure can be made again.

use std::path::{Path, PathBuf};

/// A site, and what its copies have to reach.
#[derive(Clone, Copy, Debug)]
pub struct RealSite {
    /// Its folder below `target/sites`.
    pub folder: &'static str,
    /// Pages that are looked at.
    pub pages: &'static [&'static str],
    /// How many times fewer bytes a view has at least than at full, compressed both: light, lean, text.
    pub factors: [f64; 3],
}

impl RealSite {
    /// Where it is. Panics if it was not fetched.
    pub fn path(&self) -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/sites").join(self.folder);
        assert!(path.is_dir(), "{} is not there, and this test needs it: run `make deps`", path.display());
        path
    }
}

/// The sites.
pub const SITES: &[RealSite] = &[
    RealSite {
        folder: "startbootstrap-agency@7.0.12/dist",
        pages: &["index.html"],
        factors: [2.5, 4.0, 40.0],
    },
    RealSite {
        folder: "startbootstrap-business-casual@7.0.9/dist",
        pages: &["index.html", "products.html"],
        factors: [2.5, 4.0, 40.0],
    },
    RealSite {
        folder: "startbootstrap-clean-blog@6.0.9/dist",
        pages: &["index.html", "post.html"],
        factors: [2.5, 4.0, 40.0],
    },
    RealSite {
        folder: "startbootstrap-creative@7.0.7/dist",
        pages: &["index.html"],
        factors: [2.5, 4.0, 40.0],
    },
    RealSite {
        folder: "startbootstrap-landing-page@6.0.6/dist",
        pages: &["index.html"],
        factors: [2.5, 4.0, 40.0],
    },
    // The same theme two years before, with its icons and scripts in its own folder.
    RealSite {
        folder: "startbootstrap-landing-page@5.0.9",
        pages: &["index.html"],
        factors: [2.5, 4.0, 40.0],
    },
    RealSite {
        folder: "startbootstrap-stylish-portfolio@6.0.6/dist",
        pages: &["index.html"],
        factors: [2.5, 4.0, 40.0],
    },
    // Text cannot be forty times less: the compressed pages alone are a twenty-fourth of the two views.
    RealSite { folder: "xfig-doc", pages: &["index.html", "drawing.html"], factors: [2.5, 4.0, 24.0] },
];

/// The site in this folder. Panics if there is none.
pub fn real_site(folder: &str) -> &'static RealSite {
    let found = SITES.iter().find(|site| site.folder == folder);
    found.unwrap_or_else(|| panic!("no site is called {folder}"))
}
