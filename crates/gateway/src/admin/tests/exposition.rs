//! The metrics against the rules of their format and Prometheus' naming conventions, as `promtool check metrics` has
//! them, and the names that dashboards depend on.

use super::*;
use plimsoll_core::telemetry::status::DurationHistogram;
use std::collections::BTreeSet;

/// What is wrong with an exposition; if nothing is, its families and series.
pub(super) fn lint(text: &str) -> Result<(Vec<&str>, Vec<&str>), String> {
    let (mut families, mut series) = (Vec::new(), Vec::new());
    let mut kind = "";
    let mut helped = "";
    if !text.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or("no help")?;
            check(help.ends_with('.') && !help.contains('\\'), "help is no sentence", line)?;
            helped = name;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, this) = rest.split_once(' ').ok_or("no type")?;
            check(name == helped, "type without help before it", line)?;
            check(!families.contains(&name), "a family twice", line)?;
            check(matches!(this, "counter" | "gauge" | "histogram"), "no such type", line)?;
            check((this == "counter") == name.ends_with("_total"), "_total is of counters", line)?;
            let strange =
                ["_ms", "_ns", "_us", "_percent", "_kb", "_count", "_sum", "_bucket", "_gauge", "_counter"];
            check(
                !strange.iter().any(|part| name.ends_with(part)),
                "a unit or suffix that is not used",
                line,
            )?;
            families.push(name);
            kind = this;
        } else {
            let (identity, value) = sample_line(line)?;
            let name = identity.split('{').next().unwrap_or_default();
            let parts = ["_sum", "_count", "_bucket"];
            let of_part = parts.into_iter().find_map(|part| name.strip_suffix(part));
            let family = if kind == "histogram" { of_part } else { Some(name) };
            check(families.last().copied() == family, "a sample outside its family", line)?;
            let has_bound = identity.contains("le=\"");
            check(
                has_bound == (kind == "histogram" && name.ends_with("_bucket")),
                "a bound is of buckets",
                line,
            )?;
            check(!series.contains(&identity), "a series twice", line)?;
            check(kind == "gauge" || value >= 0.0, "a counter below zero", line)?;
            series.push(identity);
        }
    }
    Ok((families, series))
}

fn check(holds: bool, what: &str, line: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what}: {line}")) }
}

fn sample_line(line: &str) -> Result<(&str, f64), String> {
    let (identity, value) = line.rsplit_once(' ').ok_or_else(|| format!("no value: {line}"))?;
    let is_number = !value.contains("inf") && !value.contains("nan");
    let value = value.parse().ok().filter(|_| is_number).ok_or_else(|| format!("no number: {line}"))?;
    let (name, labels) = match identity.split_once('{') {
        None => (identity, None),
        Some((name, labels)) => {
            (name, Some(labels.strip_suffix('}').ok_or_else(|| format!("no end: {line}"))?))
        }
    };
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let is_ours = name.starts_with("plimsoll_") || name.starts_with("process_");
    check(is_word(name) && is_ours, "name", line)?;
    let mut rest = labels.unwrap_or_default();
    let mut names = BTreeSet::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").ok_or_else(|| format!("label: {line}"))?;
        check(is_word(label) && names.insert(label), "label's name", line)?;
        let end = end_of_value(after).ok_or_else(|| format!("label's value: {line}"))?;
        rest = &after[end + 1..];
        check(rest.is_empty() || rest.len() > 1 && rest.starts_with(','), "label's end", line)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    check(labels != Some(""), "no labels in braces", line)?;
    Ok((identity, value))
}

/// Where the closing quote stands, all escapes before it being known ones.
fn end_of_value(text: &str) -> Option<usize> {
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (end, '"') => return Some(end),
            (_, '\\') if !matches!(characters.next()?.1, '\\' | '"' | 'n') => return None,
            _ => {}
        }
    }
}

#[test]
fn the_exposition_is_well_formed_and_complete() {
    let text = render_metrics(&sample());
    let (families, series) = lint(&text).unwrap();
    assert_eq!(families.len(), 62, "{families:#?}");
    for expected in [
        "plimsoll_certificate_end_timestamp_seconds{certificate=\"/etc/shop.pem\"} 1900000000.0",
        "plimsoll_requests_total{site=\"shop\",class=\"default\",reason=\"degraded\"} 60",
        "plimsoll_served_total{site=\"shop\",class=\"default\",level=\"1\",level_name=\"light\"} 60",
        "plimsoll_served_total{site=\"shop\",class=\"default\",level=\"2\",level_name=\"full\"} 20",
        "plimsoll_departures_total{site=\"shop\",class=\"default\",outcome=\"completed\"} 70",
        "plimsoll_arrivals_total{site=\"shop\",class=\"default\"} 100",
        "plimsoll_bytes_total{site=\"shop\",class=\"default\"} 9007199254740993",
        "plimsoll_utilization_ratio{upstream=\"origin\"} 0.84",
        "plimsoll_offered_utilization_ratio{upstream=\"origin\"} 2.5",
        "plimsoll_set_point_ratio{upstream=\"origin\"} 0.85",
        "plimsoll_service_level{site=\"shop\",class=\"default\"} 1.25",
        "plimsoll_service_level_by_upstream{site=\"shop\",class=\"default\",upstream=\"cache\"} 0.5",
        "plimsoll_site_promised_utilization_ratio{site=\"shop\"} 0.375",
        "plimsoll_guaranteed_ratio{site=\"shop\"} 0.75",
        "plimsoll_plan_ceiling_ratio{upstream=\"origin\"} 0.85",
        "plimsoll_in_service{upstream=\"origin\"} 7.0",
        "plimsoll_in_service_limit{upstream=\"origin\"} 8.0",
        "plimsoll_available_ratio{upstream=\"origin\"} 1.0",
        "plimsoll_upstream_lookup_failed{upstream=\"origin\"} 1.0",
        "plimsoll_set_point_reduction{upstream=\"origin\"} 0.125",
        "plimsoll_waiting{upstream=\"origin\"} 3.0",
        "plimsoll_cost_per_request_seconds{site=\"shop\",class=\"default\"} 0.005",
        "plimsoll_level_cost_seconds{site=\"shop\",class=\"default\",level=\"1\",level_name=\"light\"} 0.00075",
        "plimsoll_kernel_shed_failures_total 2",
        "plimsoll_mode{mode=\"control\"} 1.0",
        "plimsoll_mode{mode=\"observe\"} 0.0",
        "plimsoll_last_control_step_timestamp_seconds 1800000000.5",
        concat!("plimsoll_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1.0"),
        "plimsoll_responses_total{site=\"shop\",class=\"default\",code=\"2xx\"} 70",
        "plimsoll_service_level{site=\"\",class=\"a \\\"b\\\"\\\\\\nc\"} 0.0",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected}\nis not in\n{text}");
    }
    let unknown = "level=\"2\",level_name=\"full\"}";
    assert!(!series.iter().any(|one| one.starts_with("plimsoll_level_cost") && one.ends_with(unknown)));
    assert!(!text.contains("plimsoll_rejection_cost_seconds"), "what is not known is left out");
    let known = Status { rejection_cost_seconds: Some(1e-5), ..sample() };
    assert!(render_metrics(&known).contains("\nplimsoll_rejection_cost_seconds 0.00001\n"));
}

#[test]
fn reloads_are_counted_by_their_result_and_lost_lines_of_the_log() {
    let reloads =
        Reloads { applied: 3, refused: 1, in_force_since: Duration::from_millis(1_800_000_000_250) };
    let shell = ShellFigures::Gateway(Box::new(GatewayFigures { reloads, ..sample_gateway() }));
    let in_force_since = reloads.in_force_since;
    let text = metrics::render(Scrape { shell, in_force_since, log_lines_dropped: 7, ..scrape(sample()) });
    lint(&text).unwrap();
    for expected in [
        "plimsoll_reloads_total{result=\"applied\"} 3",
        "plimsoll_reloads_total{result=\"refused\"} 1",
        "plimsoll_configuration_in_force_timestamp_seconds 1800000000.25",
        "plimsoll_log_lines_dropped_total 7.0",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected}\nis not in\n{text}");
    }
}

#[test]
fn times_are_histograms_whose_buckets_add_up() {
    let mut status = sample();
    let times = &mut status.classes[0].response_times;
    (times.buckets[0], times.buckets[3], times.sum_ns) = (2, 5, 31_250_000);
    times.buckets[DurationHistogram::BOUNDS] = 1;
    let text = render_metrics(&status);
    lint(&text).unwrap();
    let of = |part: &str, bound: &str| {
        format!("plimsoll_response_seconds{part}{{{bound}site=\"shop\",class=\"default\"}} ")
    };
    for (part, bound, value) in [
        ("_sum", "", "0.03125"),
        ("_count", "", "8"),
        ("_bucket", "le=\"0.001\",", "2"),
        ("_bucket", "le=\"0.004\",", "2"),
        ("_bucket", "le=\"0.008\",", "7"),
        ("_bucket", "le=\"65.536\",", "7"),
        ("_bucket", "le=\"+Inf\",", "8"),
    ] {
        let expected = of(part, bound) + value;
        assert!(text.lines().any(|line| line == expected), "{expected}\nis not in\n{text}");
    }
    assert!(text.contains("plimsoll_service_seconds_count{site=\"shop\",class=\"default\"} 0\n"));
    assert!(text.contains("plimsoll_queue_seconds_count{site=\"shop\",class=\"default\"} 0\n"));
}

/// The lint finds the faults that it is made for.
#[test]
fn the_lint_can_fail() {
    let head = "# HELP plimsoll_a A.\n# TYPE plimsoll_a gauge\n";
    assert!(
        lint(&format!("{head}plimsoll_a 1\nplimsoll_a{{b=\"c\"}} NaN\nplimsoll_a{{b=\"\\\\\"}} +Inf\n"))
            .is_ok()
    );
    for (wrong, tail) in [
        ("no line end", "plimsoll_a 1"),
        ("no value", "plimsoll_a\n"),
        ("no number", "plimsoll_a one\n"),
        ("Rust's infinity", "plimsoll_a inf\n"),
        ("another family", "plimsoll_b 1\n"),
        ("twice", "plimsoll_a 1\nplimsoll_a 2\n"),
        ("a bare quote", "plimsoll_a{b=\"c\"d\"} 1\n"),
        ("an unknown escape", "plimsoll_a{b=\"\\t\"} 1\n"),
        ("no quotes", "plimsoll_a{b=c} 1\n"),
        ("a label twice", "plimsoll_a{b=\"c\",b=\"d\"} 1\n"),
        ("a comma at the end", "plimsoll_a{b=\"c\",} 1\n"),
        ("an empty line", "\n"),
        ("the family again", "# HELP plimsoll_a A.\n# TYPE plimsoll_a gauge\nplimsoll_a 1\n"),
        ("no help", "# TYPE plimsoll_b gauge\nplimsoll_b 1\n"),
        ("a counter without _total", "# HELP plimsoll_b B.\n# TYPE plimsoll_b counter\nplimsoll_b 1\n"),
        ("a histogram's own name", "# HELP plimsoll_b B.\n# TYPE plimsoll_b histogram\nplimsoll_b 1\n"),
        (
            "a bucket without a bound",
            "# HELP plimsoll_b B.\n# TYPE plimsoll_b histogram\nplimsoll_b_bucket 1\n",
        ),
        ("a bucket of a gauge", "plimsoll_a_bucket{le=\"1\"} 1\n"),
        ("milliseconds", "# HELP plimsoll_b_ms B.\n# TYPE plimsoll_b_ms gauge\nplimsoll_b_ms 1\n"),
    ] {
        assert!(lint(&format!("{head}{tail}")).is_err(), "{wrong}");
    }
}

/// The alert rules and the dashboard read only metrics that exist.
#[test]
fn rules_and_dashboard_name_metrics_of_the_table() {
    let rules = include_str!("../../../../../packaging/prometheus/plimsoll.rules.yml");
    let dashboard = include_str!("../../../../../packaging/prometheus/grafana.json");
    for (file, text) in [("rules", rules), ("dashboard", dashboard)] {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let named: BTreeSet<&str> = words.filter(|word| word.starts_with("plimsoll_")).collect();
        assert!(named.len() >= 8, "{file}: {named:?}");
        for name in named {
            let parts = ["_bucket", "_sum", "_count"];
            let family = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
            assert!(metrics::rows().any(|(metric, ..)| metric == family), "{file}: there is no {name}");
        }
    }
}

/// After a change of the table: `make generate`.
#[test]
fn the_reference_of_metrics_is_the_table() {
    let mut written = include_str!("metrics_head.md").to_owned();
    for (name, labels, help) in metrics::rows() {
        written += &format!("| `{name}` | {labels} | {help} |\n");
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(file, &written).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(kept == written, "docs/metrics.md says otherwise; run `make generate`:\n{written}");
}
