//! The figures as a picture with a panel for each family: bars for cases, lines for sweeps.

use std::collections::BTreeMap;

use super::figure::{Figure, Report, exponent, short};
use crate::io::plot::{
    Anchor, Colour, Drawing, FAINT, LINES, Mark, PANEL, Paint, STRONG, Theme, decades,
    short_number, ticks,
};

/// Bars of gpuproc's own algorithms.
const OWN: Colour = [0x4c, 0xa8, 0xe8];
/// Bars of baselines, which are measured only for comparison.
const BASELINE: Colour = [0x7d, 0x86, 0x96];
/// Lines of a sweep.
const SERIES: [Colour; 6] = [
    [0x4c, 0xa8, 0xe8],
    [0xf2, 0x9e, 0x4c],
    [0x5f, 0xc9, 0x8b],
    [0xe0, 0x6c, 0x9f],
    [0xb7, 0x9c, 0xed],
    [0xe8, 0xd4, 0x6a],
];

const WIDTH: f32 = 1280.0;
const RIGHT: f32 = 40.0;
/// Left end of the bars. The names of the cases are to their left.
const BARS_LEFT: f32 = 580.0;
const BAR: f32 = 24.0;
const LINES_LEFT: f32 = 90.0;
const LINES_HEIGHT: f32 = 460.0;
/// Space above a panel.
const HEAD: f32 = 56.0;
/// Space below a panel.
const FOOT: f32 = 64.0;
/// Space above the first panel.
const TOP: f32 = 76.0;

/// Draws every family.
pub fn draw(report: &Report<'_>) -> Drawing {
    let mut panels: BTreeMap<(usize, bool), Vec<&Figure>> = BTreeMap::new();
    let families: Vec<&str> = report.figures.iter().map(|figure| figure.family).collect();
    for figure in report.figures {
        let first = families.iter().position(|family| *family == figure.family);
        panels.entry((first.unwrap_or(0), figure.along.is_some())).or_default().push(figure);
    }
    let height = |panel: &[&Figure]| match panel[0].along {
        Some(_) => LINES_HEIGHT,
        None => BAR * panel.len() as f32,
    };
    let all: f32 = panels.values().map(|panel| HEAD + height(panel) + FOOT).sum();
    let mut drawing = Drawing::new(WIDTH as usize, (TOP + all) as usize, Theme::DARK);
    drawing.title(24.0, 32.0, &format!("gpuproc bench on {}", report.device), STRONG);
    let runs = || report.figures.iter().map(|figure| figure.runs);
    let runs = match (runs().min(), runs().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (least, _) => least.unwrap_or(0).to_string(),
    };
    let checked = if report.checked { ", results checked" } else { "" };
    let note = format!(
        "medians of {runs} runs{checked}; a copy moves {} GB/s here; gpuproc {}",
        short(report.copy_gb_per_s),
        report.version
    );
    drawing.text(24.0, 60.0, Anchor::Start, &note, FAINT);
    let mut top = TOP + HEAD;
    for panel in panels.values() {
        let height = height(panel);
        match panel[0].along {
            Some(along) => lines(&mut drawing, panel, along, top, height),
            None => bars(&mut drawing, panel, top, height),
        }
        top += height + FOOT + HEAD;
    }
    drawing
}

/// An axis of positive numbers.
struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

impl Scale {
    /// A scale for `values`: logarithmic, in whole decades, where they differ much or `logarithmic` says so, else from
    /// 0.
    fn new(values: impl Iterator<Item = f64> + Clone, logarithmic: bool) -> Self {
        let high = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        let low = values.filter(|&value| value > 0.0).fold(high, f64::min);
        match logarithmic || high > 30.0 * low {
            true => {
                let power = |power: f64| 10f64.powf(power);
                let (low, high) = (power(low.log10().floor()), power(high.log10().ceil()));
                Self { low, high: high.max(low * 10.0), logarithmic: true }
            }
            false => Self { low: 0.0, high: high * 1.08, logarithmic: false },
        }
    }

    /// The position of a value on the axis, from 0 to 1.
    fn place(&self, value: f64) -> f32 {
        let part = match self.logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0) as f32
    }

    fn marks(&self) -> Vec<f64> {
        if self.logarithmic { decades(self.low, self.high) } else { ticks(self.low, self.high, 6) }
    }
}

/// Draws a bar for each case, as long as its median time, with a line between the quartiles.
fn bars(drawing: &mut Drawing, panel: &[&Figure], top: f32, height: f32) {
    // The times are written to the right of the bars.
    let width = WIDTH - RIGHT - BARS_LEFT - 190.0;
    let scale = Scale::new(panel.iter().map(|figure| figure.median_ms), false);
    drawing.title(24.0, top - 22.0, panel[0].family, STRONG);
    let legend = [("gpuproc", Mark::Square, OWN), ("for comparison", Mark::Square, BASELINE)];
    let entries = if panel.iter().any(|figure| figure.baseline) { 2 } else { 1 };
    drawing.legend(BARS_LEFT + width, top - 22.0, &legend[..entries]);
    drawing.rectangle(BARS_LEFT, top, width, height, Paint::Over(PANEL, 1.0));
    for mark in scale.marks() {
        let x = BARS_LEFT + scale.place(mark) * width;
        drawing.rectangle(x - 0.5, top, 1.0, height + 6.0, Paint::Over(LINES, 1.0));
        drawing.text(x, top + height + 18.0, Anchor::Middle, &short_number(mark), FAINT);
    }
    let axis = if scale.logarithmic { "ms (logarithmic)" } else { "ms" };
    drawing.text(BARS_LEFT + width / 2.0, top + height + 42.0, Anchor::Middle, axis, STRONG);
    for (i, figure) in panel.iter().enumerate() {
        let y = top + BAR * i as f32;
        let middle = y + BAR / 2.0;
        drawing.text(24.0, middle, Anchor::Start, figure.algorithm, STRONG);
        drawing.text(BARS_LEFT - 12.0, middle, Anchor::End, &figure.problem, FAINT);
        let Figure { lower_quartile_ms, median_ms, upper_quartile_ms, .. } = **figure;
        let [lower, median, upper] = [lower_quartile_ms, median_ms, upper_quartile_ms]
            .map(|ms| BARS_LEFT + scale.place(ms) * width);
        let colour = if figure.baseline { BASELINE } else { OWN };
        let long = (median - BARS_LEFT).max(1.0);
        drawing.rectangle(BARS_LEFT, y + 4.0, long, BAR - 8.0, Paint::Over(colour, 1.0));
        let half = (upper - lower).max(1.0);
        drawing.rectangle(lower, middle - 1.0, half, 2.0, Paint::Over(STRONG, 1.0));
        let speed = short(figure.gb_per_s);
        let text = format!("{} ms, {speed} GB/s", short(median_ms));
        drawing.text(upper + 8.0, middle, Anchor::Start, &text, FAINT);
    }
}

/// Draws a line for each algorithm: median time over the parameter of the sweep.
fn lines(drawing: &mut Drawing, panel: &[&Figure], along: &str, top: f32, height: f32) {
    let width = WIDTH - RIGHT - LINES_LEFT;
    let base = top + height;
    let at = |figure: &&Figure| figure.at.unwrap_or(0.0);
    let across = Scale::new(panel.iter().map(at), false);
    let up = Scale::new(panel.iter().map(|figure| figure.median_ms), across.logarithmic);
    let across = match across.logarithmic {
        true => across,
        // Not from 0, since isovalues may be far from 0.
        false => {
            let least = panel.iter().map(at).fold(f64::INFINITY, f64::min);
            let most = panel.iter().map(at).fold(f64::NEG_INFINITY, f64::max);
            let room = if most > least { (most - least) * 0.04 } else { 1.0 };
            Scale { low: least - room, high: most + room, logarithmic: false }
        }
    };
    drawing.title(24.0, top - 22.0, panel[0].family, STRONG);
    drawing.rectangle(LINES_LEFT, top, width, height, Paint::Over(PANEL, 1.0));
    for mark in up.marks() {
        let y = base - up.place(mark) * height;
        drawing.rectangle(LINES_LEFT, y - 0.5, width, 1.0, Paint::Over(LINES, 1.0));
        drawing.text(LINES_LEFT - 10.0, y, Anchor::End, &short_number(mark), FAINT);
    }
    for mark in across.marks() {
        let x = LINES_LEFT + across.place(mark) * width;
        drawing.rectangle(x - 0.5, top, 1.0, height + 6.0, Paint::Over(LINES, 1.0));
        drawing.text(x, base + 18.0, Anchor::Middle, &short_number(mark), FAINT);
    }
    drawing.text(LINES_LEFT + width / 2.0, base + 42.0, Anchor::Middle, along, STRONG);
    let axis = if up.logarithmic { "ms (logarithmic)" } else { "ms" };
    drawing.rising_text(22.0, top + height / 2.0, axis, STRONG);
    let mut entries = Vec::new();
    for (i, (name, series)) in series(panel).into_iter().enumerate() {
        let colour = SERIES[i % SERIES.len()];
        let points: Vec<[f32; 2]> = series
            .iter()
            .map(|figure| {
                let x = LINES_LEFT + across.place(at(figure)) * width;
                [x, base - up.place(figure.median_ms) * height]
            })
            .collect();
        drawing.line(&points, 2.0, colour, series[0].baseline);
        entries.push((name, colour));
    }
    let entries: Vec<(&str, Mark, Colour)> =
        entries.iter().map(|(name, colour)| (name.as_str(), Mark::Line, *colour)).collect();
    drawing.legend(LINES_LEFT + width, top - 22.0, &entries);
}

/// The figures of each algorithm in the order of the sweep, with its name and, for a wide sweep, the exponent by which
/// its time grows.
pub fn series<'a>(figures: &[&'a Figure]) -> Vec<(String, Vec<&'a Figure>)> {
    let mut names: Vec<&str> = Vec::new();
    for figure in figures {
        if !names.contains(&figure.algorithm) {
            names.push(figure.algorithm);
        }
    }
    let of = |name: &str| {
        let mut series: Vec<&Figure> =
            figures.iter().copied().filter(|figure| figure.algorithm == name).collect();
        series.sort_by(|a, b| a.at.unwrap_or(0.0).total_cmp(&b.at.unwrap_or(0.0)));
        let points: Vec<(f64, f64)> =
            series.iter().map(|figure| (figure.at.unwrap_or(0.0), figure.median_ms)).collect();
        let [least, most] = [points[0].0, points[points.len() - 1].0];
        let growth = exponent(&points).filter(|_| most >= 8.0 * least);
        let growth = growth.map_or(String::new(), |power| format!(" ~ x^{power:.1}"));
        (format!("{name}{growth}"), series)
    };
    names.into_iter().map(of).collect()
}
