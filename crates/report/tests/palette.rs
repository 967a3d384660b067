//! The colours of the series: far enough apart for those who see three kinds of light and for those who see two, and
//! far enough from the paper.
//!
//! Colour deficiencies by the matrices of Machado, Oliveira and Fernandes, "A physiologically-based model for
//! simulation of color vision deficiency", 2009, severity 1; distances in OKLab (times 100); contrast by WCAG 2.

use plimsoll_report::Page;

type Color = [f64; 3];

const SEEN: [(&str, [Color; 3]); 4] = [
    ("as it is", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    ("protanopia", [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    ("deuteranopia", [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    ("tritanopia", [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
];

fn times(matrix: &[Color; 3], color: Color) -> Color {
    matrix.map(|row| row.iter().zip(color).map(|(factor, part)| factor * part).sum())
}

fn linear(hex: &str) -> Color {
    [0, 2, 4].map(|place| {
        let byte = u8::from_str_radix(&hex[place..place + 2], 16).expect("two hexadecimal digits");
        let value = f64::from(byte) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn oklab(color: Color) -> Color {
    let cones = [[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]];
    let roots = times(&cones, color).map(|part| part.max(0.0).cbrt());
    times(&[[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]], roots)
}

fn distance(a: Color, b: Color) -> f64 {
    100.0 * a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn luminance(color: Color) -> f64 {
    times(&[[0.2126, 0.7152, 0.0722]; 3], color)[0]
}

/// The value of `--name` in each theme: light, dark.
fn values(name: &str) -> [Color; 2] {
    let html = Page::default().to_html();
    let key = format!("--{name}: #");
    let mut found = html.match_indices(&key).map(|(place, _)| {
        let hex = &html[place + key.len()..];
        let digits = &hex[..hex.find(';').expect("end of value")];
        linear(&if digits.len() == 3 { digits.repeat(2) } else { digits.to_owned() })
    });
    let values = [found.next().expect("light"), found.next().expect("dark")];
    assert_eq!(found.next(), None, "{name}");
    values
}

#[test]
fn series_differ_and_stand_out_in_both_themes() {
    let names = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "ca"];
    for (theme, paper) in values("paper").into_iter().enumerate() {
        let colors = names.map(|name| values(name)[theme]);
        for (name, color) in names.iter().zip(colors) {
            let (a, b) = (luminance(color) + 0.05, luminance(paper) + 0.05);
            assert!(a.max(b) / a.min(b) >= 3.0, "theme {theme}: {name} is too near to the paper");
        }
        for (seen, matrix) in &SEEN {
            let colors = colors.map(|color| oklab(times(matrix, color)));
            for (i, j) in (0..names.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
                // The first five are what most charts need.
                let least = if i < 5 { 8.0 } else { 6.0 };
                let apart = distance(colors[i], colors[j]);
                assert!(
                    apart >= least,
                    "theme {theme}, {seen}: {} and {} are {apart:.1} apart",
                    names[i],
                    names[j]
                );
            }
        }
    }
}

#[test]
fn colours_that_come_again_are_drawn_and_named_in_another_way() {
    let html = Page::default().to_html();
    for dash in ["d1", "d2", "d3"] {
        assert!(html.contains(&format!(".{dash} > i {{")), "{dash} in the legend");
        assert!(html.contains(&format!(".lines .{dash} path {{ stroke-dasharray:")), "{dash} in the plot");
    }
}
