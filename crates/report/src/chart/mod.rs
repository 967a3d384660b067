//! A chart as plain data: series over virtual time or over a plain quantity.
//!
//! `ticks` finds round numbers for the axes, `plot` the ranges and the stack, `path` turns points into SVG, `data`
//! into text, and `figure` puts them together.

mod data;
mod figure;
mod path;
mod picture;
mod plot;
mod ticks;

pub(crate) use figure::Figures;

/// Series with one horizontal and one vertical axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// The chart's title.
    pub title: String,
    /// The unit of the vertical axis.
    pub unit: String,
    /// A sentence on what the chart shows, or empty.
    pub text: String,
    /// The horizontal axis.
    pub x: XAxis,
    /// The values that the vertical axis must include.
    pub y: YRange,
    /// The series, drawn in this order; areas stack in this order, the first at the bottom.
    pub series: Vec<Series>,
    /// A bound, drawn over the whole width.
    pub threshold: Option<Threshold>,
    /// Moments to be marked.
    pub marks: Vec<Mark>,
    /// The words in place of the lines if there are none, such as `nobody`; if empty, `no data`.
    pub nothing: String,
}

/// The horizontal axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum XAxis {
    /// Virtual time (s); ticks in s, min, h or d.
    #[default]
    Time,
    /// Any other quantity.
    Quantity {
        /// The name of the quantity.
        name: String,
        /// The unit of the quantity, or empty.
        unit: String,
    },
}

/// The values that the vertical axis must include; values beyond extend it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct YRange {
    /// Whether the axis starts at zero, for values that are compared by their height. With areas it always does.
    pub from_zero: bool,
    /// The axis reaches at least this value, such as 1 for a share.
    pub max: Option<f64>,
}

/// A series of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// (x, y). A y that is `None`, NaN or infinite is a gap; a point whose x is NaN or infinite is left out.
    pub points: Vec<(f64, Option<f64>)>,
    /// How the series is drawn.
    pub style: Style,
    /// The colour of the series' line or bars.
    pub color: Color,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Joins neighbouring points by straight lines.
    #[default]
    Line,
    /// Each value holds until the next x.
    Step,
    /// A dashed reference line, such as the set point.
    Dashed,
    /// An area stacked on the areas before it; at a gap it adds nothing, unless all areas have a gap.
    Area,
    /// Dots that are not joined.
    Points,
}

/// The colour of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// The next of eight colours that differ even with the common colour deficiencies; a dashed series is grey.
    #[default]
    Auto,
    /// For series with an order, such as levels: one ramp from dark to pale over the chart's ordered series.
    Ordered,
    /// Grey, for series that are shown for comparison.
    Muted,
    /// Red, for rejections and failures.
    Alarm,
}

/// A horizontal line with a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Threshold {
    /// The name of the bound.
    pub name: String,
    /// The value at which it is drawn.
    pub value: f64,
}

/// A vertical line with a name: a change of load, a pause.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// The place on the horizontal axis.
    pub x: f64,
    /// The event's name, as it is written beside its mark.
    pub name: String,
}

impl XAxis {
    /// The name and unit of the axis; `time_unit` is the unit in which the ticks write time.
    fn label(&self, time_unit: &str) -> String {
        match self {
            XAxis::Time => format!("time ({time_unit})"),
            XAxis::Quantity { name, unit } if unit.is_empty() => name.clone(),
            XAxis::Quantity { name, unit } => format!("{name} ({unit})"),
        }
    }
}

impl Chart {
    /// A chart over virtual time, without series.
    pub fn over_time(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { title: title.into(), unit: unit.into(), ..Self::default() }
    }

    /// A chart over another quantity, without series.
    pub fn over(x: XAxis, title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { x, ..Self::over_time(title, unit) }
    }

    /// The chart with one more series.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The chart with a sentence on what it shows.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// The chart with words to show if there is nothing to draw.
    #[must_use]
    pub fn nothing(self, words: impl Into<String>) -> Self {
        Self { nothing: words.into(), ..self }
    }

    /// Whether no series has a value.
    pub fn is_empty(&self) -> bool {
        let is_value = |point: &(f64, Option<f64>)| point.1.is_some_and(f64::is_finite);
        !self.series.iter().any(|series| series.points.iter().any(is_value))
    }

    /// The chart with a vertical axis that starts at zero.
    #[must_use]
    pub fn from_zero(mut self) -> Self {
        self.y.from_zero = true;
        self
    }

    /// The chart with a vertical axis that reaches at least this value.
    #[must_use]
    pub fn up_to(mut self, max: f64) -> Self {
        self.y.max = Some(max);
        self
    }

    /// The chart with a bound.
    #[must_use]
    pub fn threshold(self, name: impl Into<String>, value: f64) -> Self {
        Self { threshold: Some(Threshold { name: name.into(), value }), ..self }
    }

    /// The chart with one more marked moment.
    #[must_use]
    pub fn mark(mut self, x: f64, name: impl Into<String>) -> Self {
        self.marks.push(Mark { x, name: name.into() });
        self
    }
}

impl Series {
    /// A line through these points.
    pub fn new<Y: Into<Option<f64>>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, Y)>,
    ) -> Self {
        let points = points.into_iter().map(|(x, y)| (x, y.into())).collect();
        Self { name: name.into(), points, ..Self::default() }
    }

    /// A line through the values at 0, `period`, 2 · `period`, …
    pub fn every<Y: Into<Option<f64>>>(
        name: impl Into<String>,
        period: f64,
        values: impl IntoIterator<Item = Y>,
    ) -> Self {
        Self::new(name, values.into_iter().enumerate().map(|(index, value)| (index as f64 * period, value)))
    }

    /// The series drawn in this style.
    #[must_use]
    pub fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// The series in this colour.
    #[must_use]
    pub fn color(self, color: Color) -> Self {
        Self { color, ..self }
    }
}
