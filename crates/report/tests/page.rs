//! The page as a whole: its structure, what it must not contain, its size.

use plimsoll_report::{
    Block, Cell, Chart, Color, Column, ColumnKind, Fact, Mark, Page, Picture, Section, Series, Style, Table,
    Verdict, XAxis,
};

/// The document without style and script: what depends on the data.
fn body(html: &str) -> String {
    let (head, rest) = html.split_once("<style>").expect("style");
    let (_, rest) = rest.split_once("</style>").expect("end of style");
    let (body, rest) = rest.split_once("<script>").expect("script");
    let (_, rest) = rest.split_once("</script>").expect("end of script");
    let policy = head.find("style-src").expect("policy")..head.find("; base-uri").expect("base");
    head.replace(&head[policy], "STYLE-AND-SCRIPT") + body + rest
}

fn small() -> Page {
    let chart = Chart::over_time("Utilization", "of all workers")
        .series(Series::every("U", 5.0, [Some(0.5), Some(0.75), None, Some(0.7)]))
        .series(Series::new("set point", [(0.0, 0.7), (15.0, 0.7)]).style(Style::Dashed))
        .from_zero()
        .up_to(1.0)
        .mark(5.0, "load × 3");
    let table = Table::new("Paths", [Column::code("path"), Column::bars("degraded")])
        .row(["/a".into(), 40.0.into()])
        .row(["/b".into(), Cell::Empty]);
    Page {
        title: "demo".into(),
        subtitle: "seed 7".into(),
        assumptions: Vec::new(),
        lead: vec![Fact::new("U", "0.70").unit("of s").note("set point 0.70").verdict(Verdict::Good)],
        sections: vec![
            Section::new("The loop").text("First.\n\nSecond.").chart(chart).note("Mind.").table(table),
        ],
        footer: "plimsoll 0.1.0".into(),
    }
}

#[test]
fn a_small_page_is_as_it_was() {
    let golden = include_str!("small.html");
    let html = body(&small().to_html());
    if html != golden {
        let now = concat!(env!("CARGO_TARGET_TMPDIR"), "/small.html");
        std::fs::write(now, &html).expect("the page is written");
        let lines = html.lines().zip(golden.lines()).take_while(|(is, was)| is == was).count();
        panic!("differs from tests/small.html from line {}; if meant, copy {now} there", lines + 1);
    }
}

/// Every text field of every kind of block, filled with `evil`.
fn everywhere(evil: &str) -> Page {
    let text = || evil.to_owned();
    let series = |style| Series { style, ..Series::every(text(), 1.0, [1.0, 2.0]) };
    let chart = |x| Chart {
        text: text(),
        x,
        series: [Style::Line, Style::Step, Style::Dashed, Style::Area, Style::Points].map(series).to_vec(),
        threshold: Some(plimsoll_report::Threshold { name: text(), value: 1.5 }),
        nothing: text(),
        marks: vec![Mark { x: 0.5, name: text() }],
        ..Chart::over_time(text(), text())
    };
    let column = |kind| Column { name: text(), kind };
    let table =
        Table::new(text(), [column(ColumnKind::Text), column(ColumnKind::Code), column(ColumnKind::Bars)])
            .row([text().into(), text().into(), text().into()]);
    let quantity = || XAxis::Quantity { name: text(), unit: text() };
    let section = Section::new(text())
        .text(text())
        .chart(chart(XAxis::Time))
        .block(Block::Multiples(vec![chart(quantity()), chart(XAxis::Time)]))
        .block(Block::Multiples(vec![chart(quantity()), chart(quantity())]))
        .table(table)
        .block(Block::Tiles(text(), vec![Fact::new(text(), text())]))
        .note(text());
    Page {
        title: text(),
        subtitle: text(),
        assumptions: vec![text()],
        lead: vec![Fact { verdict: Verdict::Bad, ..Fact::new(text(), text()).unit(text()).note(text()) }],
        sections: vec![section.clone(), section.clone(), section.clone(), section],
        footer: text(),
    }
}

#[test]
fn text_is_never_markup_in_any_field() {
    let marks =
        ["<script>alert(1)</script>", "</title></pre><img src=x onerror=alert(1)>", "\" onload=\"x", "' x='"];
    let plain = body(&everywhere("plain").to_html());
    for evil in marks {
        let html = body(&everywhere(evil).to_html());
        assert!(!html.contains(evil), "{evil}");
        for sign in ['<', '>', '"', '\''] {
            let (is, was) = (html.matches(sign).count(), plain.matches(sign).count());
            assert_eq!(is, was, "the page has other markup with {evil}: {sign}");
        }
        let mut shown = String::new();
        evil.chars().for_each(|character| match character {
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            _ => shown.push(character),
        });
        assert_eq!(
            html.matches(&shown).count(),
            plain.matches("plain").count() - axis_kinds(&plain),
            "{evil}"
        );
    }
}

/// `data-axis="plain"` is ours.
fn axis_kinds(html: &str) -> usize {
    html.matches("data-axis=\"plain\"").count()
}

#[test]
fn the_page_refers_to_nothing_outside() {
    let html = everywhere("plain").to_html();
    assert!(html.contains("default-src 'none'; style-src 'sha256-"));
    // The one address is the name of SVG's namespace, in the script; nothing is loaded from it.
    let html = html.replacen("http://www.w3.org/2000/svg", "", 1);
    for reference in
        ["http:", "https:", "url(", "@import", "src=", "<link", "<iframe", " style=", " onclick="]
    {
        assert!(!html.contains(reference), "{reference}");
    }
}

fn many(charts: usize, points: u32) -> Page {
    let series = |stream: u32| {
        let value = move |index: u32| f64::from(index.wrapping_mul(2_654_435_761).rotate_left(stream)) / 1e9;
        Series::every(format!("series {stream}"), 5.0, (0..points).map(value)).color(Color::Auto)
    };
    let chart = |_| (0..4).fold(Chart::over_time("t", "s"), |chart, stream| chart.series(series(stream)));
    let blocks = (0..charts).map(chart).map(Block::Chart).collect();
    Page { sections: vec![Section { blocks, ..Section::default() }], ..Page::default() }
}

#[test]
fn ten_charts_of_four_series_of_a_thousand_points_are_below_a_megabyte() {
    let size = many(10, 1000).to_html().len();
    assert!((200_000..1_000_000).contains(&size), "{size}");
}

#[test]
fn a_hundred_times_the_points_are_not_a_hundred_times_the_page() {
    let size = many(1, 100_000).to_html().len();
    assert!(size < 300_000, "{size}");
}

#[test]
fn pictures_are_in_the_page_and_nothing_else_is() {
    let picture =
        |caption: &str, bytes: &[u8]| Picture { caption: caption.to_owned(), bytes: bytes.to_vec() };
    let pictures = vec![
        picture("before \"<x>\"", b"\x89PNG\r\n"),
        picture("after", b"\xff\xd8\xff\xe0"),
        picture("a drawing", b"<svg onload=alert(1)>"),
    ];
    let section = Section::new("Pages").block(Block::Pictures(pictures));
    let html = Page { sections: vec![section], ..Page::default() }.to_html();
    assert!(html.contains("img-src data:;"));
    assert!(
        html.contains("<img src=\"data:image/png;base64,iVBORw0K\" alt=\"before &quot;&lt;x&gt;&quot;\">"),
        "{html}"
    );
    assert!(html.contains("data:image/jpeg;base64,/9j/4A==") && !html.contains("a drawing"));
    assert!(!Page::default().to_html().contains("img-src"), "without pictures none may be loaded");
}
