//! Plot of one histogram, or of several overlaid.

use super::{
    tally::{ComponentOutcome, Outcome},
    view::{View, merged},
};
use crate::{
    io::plot::{
        Anchor, Colour, Drawing, LETTERS, Mark, Paint, TITLE, Theme, decades, grouped,
        short_number, text_width, ticks,
    },
    util::error::{Error, Result},
};

/// Space above the panel, to its right and below it, in pixels.
const MARGINS: [f32; 3] = [82.0, 32.0, 72.0];
/// Height of a line of the legend, in pixels.
const LEGEND_LINE: f32 = 24.0;
/// Minimum distance between two texts, in pixels.
const GAP: f32 = 12.0;
/// Maximum number of inputs in one plot.
pub const MAX_INPUTS: usize = 16;

/// Colours of inputs that share a plot.
const SEVERAL: [Colour; 8] = [
    [0x4c, 0x8d, 0xf6],
    [0xe8, 0x7a, 0x2a],
    [0x2f, 0xa8, 0x4a],
    [0xd6, 0x3f, 0x5f],
    [0x8e, 0x6c, 0xe0],
    [0x17, 0xa3, 0xb5],
    [0xb8, 0x92, 0x20],
    [0xd3, 0x62, 0xc0],
];

/// Colour of a component.
fn colour(name: &str, theme: &Theme) -> Colour {
    match name {
        "r" => [0xe0, 0x3c, 0x3c],
        "g" => [0x2f, 0xa8, 0x4a],
        "b" => [0x3b, 0x62, 0xe6],
        "a" => [0xd9, 0x7a, 0xe8],
        "grey" if theme.is_dark() => [0xa8, 0xb0, 0xbc],
        "grey" => [0x6b, 0x75, 0x84],
        _ => theme.strong,
    }
}

pub fn long_name(name: &str) -> &str {
    match name {
        "r" => "red",
        "g" => "green",
        "b" => "blue",
        "a" => "alpha",
        "luma" => "luminance",
        other => other,
    }
}

/// Whether a component is drawn as a line over the bars.
fn is_line(name: &str) -> bool {
    matches!(name, "luma" | "a")
}

/// A component drawn as bars or as a line.
struct Series<'a> {
    name: String,
    colour: Colour,
    /// Whether it is drawn as a line rather than bars.
    is_line: bool,
    /// Value of each bin in the plot.
    values: Vec<f64>,
    component: &'a ComponentOutcome,
}

/// A plot being drawn. Positions are in pixels.
struct Plot<'a> {
    drawing: Drawing,
    theme: Theme,
    view: &'a View,
    /// Left end, top, width and height of the area of the data.
    panel: [f32; 4],
    /// Value at the upper end of the axis.
    top: f64,
}

/// Draws the plot of one input.
pub fn draw(outcome: &Outcome, view: &View) -> Drawing {
    let theme = view.style.theme.unwrap_or_default().colours();
    let alone = outcome.components.len() == 1;
    let series = outcome.components.iter().map(|component| {
        let is_line = is_line(component.name) && !alone;
        let bars_of_luma = alone && self::is_line(component.name);
        let name = if bars_of_luma { "grey" } else { component.name };
        Series {
            name: long_name(component.name).to_owned(),
            colour: colour(name, &theme),
            is_line,
            values: view.values(outcome, component),
            component,
        }
    });
    let pixels = outcome.components.first().map_or(0.0, |c| outcome.pixels(c.counts.total()));
    let [pixels, bins] = [pixels.round() as u64, outcome.bins.count as u64].map(grouped);
    let note = format!("{pixels} samples, {bins} bins");
    plot(outcome, &outcome.title(), &note, &series.collect::<Vec<_>>(), view)
}

/// Draws one plot of several inputs: the luminance or grey values of each, else its first component. The bins must be
/// the same, and the inputs at most [`MAX_INPUTS`].
pub fn draw_all(outcomes: &[Outcome], view: &View) -> Result<Drawing> {
    let first = &outcomes[0];
    if outcomes.len() > MAX_INPUTS {
        return Err(Error::usage(format_args!(
            "a plot shows at most {MAX_INPUTS} inputs, found {}: add them up with --sum, or name plots as {{stem}}.png",
            outcomes.len()
        )));
    }
    if let Some(other) = outcomes.iter().find(|other| other.bins != first.bins) {
        return Err(Error::bad_input(format_args!(
            "{} and {} have different ranges: give one --range for all",
            first.name(),
            other.name()
        )));
    }
    let series: Vec<Series<'_>> = outcomes
        .iter()
        .enumerate()
        .map(|(number, outcome)| {
            let luma = outcome.components.iter().find(|c| matches!(c.name, "luma" | "grey"));
            let component = luma.unwrap_or(&outcome.components[0]);
            Series {
                name: outcome.title(),
                colour: SEVERAL[number % SEVERAL.len()],
                is_line: true,
                values: view.values(outcome, component),
                component,
            }
        })
        .collect();
    let name = long_name(series[0].component.name);
    let title = format!("{} of {} inputs", name, outcomes.len());
    let note = format!("{} bins", grouped(first.bins.count as u64));
    Ok(plot(first, &title, &note, &series, view))
}

/// `text`, shortened at its start to fit into `room` pixels.
fn fitted(text: &str, size: f32, room: f32) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let mut rest = text;
    while !rest.is_empty() && text_width(&format!("...{rest}"), size) > room {
        rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
    }
    format!("...{rest}")
}

fn plot(outcome: &Outcome, title: &str, note: &str, series: &[Series<'_>], view: &View) -> Drawing {
    let theme = view.style.theme.unwrap_or_default().colours();
    let [width, height] = view.style.size.unwrap_or_default().sides().map(f32::from);
    let values: Vec<Vec<f64>> = series.iter().map(|series| series.values.clone()).collect();
    let top = view.top(&values);
    let marks = match view.log {
        false => ticks(0.0, top, 5),
        true => decades(view.log_start(top), top),
    };
    let widest = marks.iter().map(|&mark| text_width(&short_number(mark), LETTERS));
    // Room for the title of the axis, its numbers, and the space between them.
    let left = (56.0 + widest.fold(0.0, f32::max)).ceil().max(72.0);
    let [above, right, below] = MARGINS;
    let right = right.max(text_width(&sample_value(outcome.bins.high), LETTERS) / 2.0 + GAP);
    let data_width = width - left - right;
    let lines = legend_lines(series, text_width(note, LETTERS), data_width);
    let above = above + LEGEND_LINE * (lines.len() - 1) as f32;
    let panel = [left, above, data_width, height - above - below];
    let drawing = Drawing::new(width as usize, height as usize, theme);
    let mut plot = Plot { drawing, theme, view, panel, top };
    plot.grid(outcome, &marks);
    plot.data(series);
    let title = view.style.title.as_deref().unwrap_or(title);
    plot.drawing.title(left, 26.0, &fitted(title, TITLE, data_width), theme.strong);
    plot.drawing.text(left, 52.0, Anchor::Start, note, theme.faint);
    for (number, line) in lines.iter().enumerate() {
        let entries: Vec<(&str, Mark, Colour)> = line
            .iter()
            .map(|series| {
                let mark = if series.is_line { Mark::Line } else { Mark::Square };
                (series.name.as_str(), mark, series.colour)
            })
            .collect();
        let y = 52.0 + LEGEND_LINE * number as f32;
        plot.drawing.legend(left + data_width, y, &entries);
    }
    plot.drawing
}

/// Breaks the legend into lines of at most `room` pixels. Other text takes `taken` pixels of the first line.
fn legend_lines<'s, 'a>(
    series: &'s [Series<'a>],
    taken: f32,
    room: f32,
) -> Vec<Vec<&'s Series<'a>>> {
    let mut lines: Vec<Vec<&Series<'_>>> = vec![Vec::new()];
    for one in series {
        let first = if lines.len() == 1 { taken + 2.0 * GAP } else { 0.0 };
        let line = lines.last_mut().expect("there is one");
        let names: Vec<&str> = line.iter().chain([&one]).map(|series| &*series.name).collect();
        match first + Drawing::legend_width(&names) <= room {
            true => line.push(one),
            false => lines.push(vec![one]),
        }
    }
    lines
}

impl Plot<'_> {
    /// The y coordinate of a value, in pixels from the top of the plot.
    fn y(&self, value: f64) -> f32 {
        let [_, above, _, height] = self.panel;
        above + height - self.view.height(value, self.top) as f32 * height
    }

    /// Draws the axes with their numbers, titles and lines.
    fn grid(&mut self, outcome: &Outcome, marks: &[f64]) {
        let ([left, above, width, height], theme) = (self.panel, self.theme);
        let base = above + height;
        self.drawing.rectangle(left, above, width, height, Paint::Over(theme.panel, 1.0));
        let mut last = f32::INFINITY;
        for &mark in marks {
            let y = self.y(mark);
            self.drawing.rectangle(left, y - 0.5, width, 1.0, Paint::Over(theme.lines, 1.0));
            // A number that would touch the number below it is left out.
            if last - y >= LETTERS {
                let number = short_number(mark);
                self.drawing.text(left - 10.0, y, Anchor::End, &number, theme.faint);
                last = y;
            }
        }
        let bins = &outcome.bins;
        let position =
            |mark: f64| left + ((mark - bins.low) / (bins.high - bins.low)) as f32 * width;
        for mark in marks_between(bins.low, bins.high, width) {
            let x = position(mark);
            self.drawing.rectangle(x - 0.5, base, 1.0, 6.0, Paint::Over(theme.faint, 1.0));
            if mark > bins.low && mark < bins.high {
                self.drawing.rectangle(x - 0.5, above, 1.0, height, Paint::Over(theme.lines, 0.6));
            }
            let number = sample_value(mark);
            self.drawing.text(x, base + 18.0, Anchor::Middle, &number, theme.faint);
        }
        let unit = format!("sample value ({})", outcome.dtype);
        self.drawing.text(left + width / 2.0, base + 46.0, Anchor::Middle, &unit, theme.strong);
        let what = match (self.view.cumulative, self.view.normalize) {
            (false, false) => "samples per bin",
            (false, true) => "share of samples per bin",
            (true, false) => "samples up to the bin",
            (true, true) => "share of samples up to the bin",
        };
        let axis = if self.view.log { format!("{what} (logarithmic)") } else { what.to_owned() };
        let axis = if text_width(&axis, LETTERS) > height + 60.0 { what } else { &axis };
        self.drawing.rising_text(20.0, above + height / 2.0, axis, theme.strong);
    }

    /// Draws bars, then lines over them, then marks at bars that are cut off at the top.
    fn data(&mut self, series: &[Series<'_>]) {
        let ([left, above, width, height], theme) = (self.panel, self.theme);
        let base = above + height;
        let columns = |series: &Series<'_>| merged(&series.values, width as usize);
        let bars = series.iter().filter(|series| !series.is_line).count();
        let mut cut: Vec<(f32, f64)> = Vec::new();
        // Outlines distinguish printed bars that overlap.
        let has_outlines = theme == Theme::PRINT && bars > 1;
        for lines in [false, true] {
            let is_drawn =
                |series: &&Series<'_>| series.is_line == lines || (lines && has_outlines);
            for one in series.iter().filter(is_drawn) {
                let columns = columns(one);
                let step = width / columns.len() as f32;
                let tops: Vec<f32> = columns.iter().map(|&value| self.y(value)).collect();
                if lines {
                    if bars > 0 && one.is_line {
                        // A rim in the colour of the background separates the line from the bars.
                        self.drawing.outline(left, step, &tops, 4.0, theme.ground);
                    }
                    self.drawing.outline(left, step, &tops, 1.5, one.colour);
                } else {
                    let paint = match (bars, theme.is_dark()) {
                        (1, _) => Paint::Over(one.colour, 1.0),
                        (_, true) => Paint::Screen(one.colour),
                        (_, false) => Paint::Multiply(lighter(one.colour)),
                    };
                    self.drawing.steps(left, step, &tops, base, paint);
                }
                let is_cut = |&(_, value): &(usize, f64)| value > self.top * 1.000_001;
                let places = columns.iter().copied().enumerate().filter(is_cut);
                cut.extend(places.map(|(at, value)| (left + (at as f32 + 0.5) * step, value)));
            }
        }
        self.drawing.rectangle(left, base, width, 1.0, Paint::Over(theme.faint, 1.0));
        self.mark_cut(cut);
    }

    /// Marks bars that are higher than the panel. Of neighbouring bars, only the highest is labelled with its value.
    fn mark_cut(&mut self, mut cut: Vec<(f32, f64)>) {
        let ([left, above, width, _], theme) = (self.panel, self.theme);
        cut.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut groups: Vec<(f32, f64)> = Vec::new();
        for (x, value) in cut {
            match groups.last_mut() {
                Some((at, max)) if x - *at < 16.0 => {
                    if value > *max {
                        (*at, *max) = (x, value);
                    }
                }
                _ => groups.push((x, value)),
            }
        }
        let mut free = left - GAP;
        for (x, value) in groups {
            // Two strokes in the colour of the panel across the bar, the usual sign of a broken axis.
            for y in [above + 6.0, above + 12.0] {
                let points = [[x - 7.0, y + 3.0], [x + 7.0, y - 3.0]];
                self.drawing.stroke(&points, 2.0, theme.panel);
            }
            let number = short_number(value);
            let half = text_width(&number, LETTERS) / 2.0;
            let middle = x.clamp(left + half, left + width - half);
            if middle - half >= free + GAP {
                self.drawing.text(middle, above - 10.0, Anchor::Middle, &number, theme.faint);
                free = middle + half;
            }
        }
    }
}

/// A lighter colour: where three bars overlap, the product of their colours is then not black.
fn lighter(colour: Colour) -> Colour {
    colour.map(|channel| channel + (255 - channel) / 4)
}

/// Labelled values of an axis of `width` pixels: both ends, and as many round numbers as fit between them.
fn marks_between(low: f64, high: f64, width: f32) -> Vec<f64> {
    let text = |mark: f64| text_width(&sample_value(mark), LETTERS);
    let position = |mark: f64| ((mark - low) / (high - low)) as f32 * width;
    let apart = |a: f64, b: f64| position(b) - position(a) >= (text(a) + text(b)) / 2.0 + GAP;
    for count in (1..=10).rev() {
        let mut marks = ticks(low, high, count);
        // Both ends are labelled, so round numbers too close to them are dropped.
        marks.retain(|&mark| mark > low && mark < high && apart(low, mark) && apart(mark, high));
        marks.insert(0, low);
        marks.push(high);
        if marks.len() == 2 || marks.windows(2).all(|pair| apart(pair[0], pair[1])) {
            return marks;
        }
    }
    vec![low, high]
}

/// A sample value as the label of an axis; short whole numbers are written in full.
pub fn sample_value(value: f64) -> String {
    match value.abs() {
        magnitude if magnitude >= 1e6 => short_number(value),
        magnitude if magnitude >= 1e3 => format!("{value:.0}"),
        _ if value.fract() == 0.0 => value.to_string(),
        _ => short_number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_the_axis_do_not_touch() {
        for (low, high) in [(0.0, 255.0), (0.0, 65_535.0), (-1024.0, 3071.0), (0.001, 0.0042)] {
            for width in [150.0, 300.0, 1024.0, 4000.0] {
                let marks = marks_between(low, high, width);
                let position = |mark: f64| ((mark - low) / (high - low)) as f32 * width;
                let half = |mark: f64| text_width(&sample_value(mark), LETTERS) / 2.0;
                for pair in marks.windows(2) {
                    let gap = position(pair[1]) - half(pair[1]) - position(pair[0]) - half(pair[0]);
                    assert!(gap > 0.0, "{low} {high} {width} {marks:?}");
                }
            }
        }
    }

    #[test]
    fn long_texts_keep_their_end() {
        assert_eq!(fitted("short", LETTERS, 200.0), "short");
        let text = fitted(&"x".repeat(500), LETTERS, 200.0);
        assert!(text.starts_with("...x") && text_width(&text, LETTERS) <= 200.0);
    }
}
