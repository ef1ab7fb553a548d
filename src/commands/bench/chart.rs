//! Sweeps as a picture, with a line for each algorithm: the median time over the parameter that is varied.

use super::figure::{Figure, Report, growth, series};
use crate::io::plot::{
    Anchor, Colour, Drawing, FAINT, LINES, Mark, PANEL, Paint, STRONG, Theme, decades,
    short_number, ticks,
};

const COLOURS: [Colour; 4] =
    [[0x4c, 0xa8, 0xe8], [0xf2, 0x9e, 0x4c], [0x5f, 0xc9, 0x8b], [0xe0, 0x6c, 0x9f]];

const WIDTH: f32 = 1280.0;
const LEFT: f32 = 90.0;
const RIGHT: f32 = 40.0;
/// Height of a panel, and the space above and below it.
const HEIGHT: f32 = 460.0;
const ABOVE: f32 = 56.0;
const BELOW: f32 = 64.0;
/// Space above the first panel.
const TOP: f32 = 40.0;

/// Draws a panel for each sweep of the report.
pub fn draw(report: &Report<'_>) -> Drawing {
    let mut panels: Vec<(&str, Vec<&Figure>)> = Vec::new();
    for figure in report.figures {
        let Some(parameter) = figure.along else { continue };
        match panels.iter_mut().find(|panel| panel.0 == parameter) {
            Some(panel) => panel.1.push(figure),
            None => panels.push((parameter, vec![figure])),
        }
    }
    let height = TOP + (ABOVE + HEIGHT + BELOW) * panels.len() as f32;
    let mut drawing = Drawing::new(WIDTH as usize, height as usize, Theme::DARK);
    let title = format!("gpuproc bench {} on {}", report.version, report.device);
    drawing.title(24.0, 32.0, &title, STRONG);
    let mut top = TOP + ABOVE;
    for (parameter, figures) in &panels {
        panel(&mut drawing, figures, parameter, top);
        top += HEIGHT + BELOW + ABOVE;
    }
    drawing
}

/// An axis from `low` to `high`.
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// An axis for `values`: logarithmic, in whole decades, where they differ much or `is_logarithmic` says so.
    fn new(values: impl Iterator<Item = f64> + Clone, is_logarithmic: bool) -> Self {
        let high = values.clone().fold(f64::MIN_POSITIVE, f64::max);
        let low = values.fold(f64::INFINITY, f64::min);
        if is_logarithmic || (low > 0.0 && high > 30.0 * low) {
            let [low, high] = [low.max(f64::MIN_POSITIVE).log10().floor(), high.log10().ceil()];
            let [low, high] = [low, high.max(low + 1.0)].map(|power| 10f64.powf(power));
            return Self { low, high, is_logarithmic: true };
        }
        let room = if high > low { (high - low) * 0.08 } else { 1.0 };
        Self { low: low - room, high: high + room, is_logarithmic: false }
    }

    /// The position of a value on the axis, from 0 to 1.
    fn position(&self, value: f64) -> f32 {
        let part = match self.is_logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0) as f32
    }

    fn marks(&self) -> Vec<f64> {
        match self.is_logarithmic {
            true => decades(self.low, self.high),
            false => ticks(self.low, self.high, 6),
        }
    }
}

fn panel(drawing: &mut Drawing, figures: &[&Figure], parameter: &str, top: f32) {
    let (width, base) = (WIDTH - RIGHT - LEFT, top + HEIGHT);
    let at = |figure: &&Figure| figure.at.unwrap_or(0.0);
    let across = Axis::new(figures.iter().map(at), false);
    let up = Axis::new(figures.iter().map(|figure| figure.median_ms), across.is_logarithmic);
    drawing.title(24.0, top - 22.0, figures[0].family, STRONG);
    drawing.rectangle(LEFT, top, width, HEIGHT, Paint::Over(PANEL, 1.0));
    for mark in up.marks() {
        let y = base - up.position(mark) * HEIGHT;
        drawing.rectangle(LEFT, y - 0.5, width, 1.0, Paint::Over(LINES, 1.0));
        drawing.text(LEFT - 10.0, y, Anchor::End, &short_number(mark), FAINT);
    }
    for mark in across.marks() {
        let x = LEFT + across.position(mark) * width;
        drawing.rectangle(x - 0.5, top, 1.0, HEIGHT + 6.0, Paint::Over(LINES, 1.0));
        drawing.text(x, base + 18.0, Anchor::Middle, &short_number(mark), FAINT);
    }
    drawing.text(LEFT + width / 2.0, base + 42.0, Anchor::Middle, parameter, STRONG);
    let axis = if up.is_logarithmic { "ms (logarithmic)" } else { "ms" };
    drawing.rising_text(22.0, top + HEIGHT / 2.0, axis, STRONG);
    let mut entries = Vec::new();
    for (series, colour) in series(figures).iter().zip(COLOURS.into_iter().cycle()) {
        let point = |figure: &&Figure| {
            let x = LEFT + across.position(at(figure)) * width;
            [x, base - up.position(figure.median_ms) * HEIGHT]
        };
        let points: Vec<[f32; 2]> = series.iter().map(point).collect();
        drawing.line(&points, 2.0, colour, series[0].baseline);
        let growth = growth(series).map_or(String::new(), |power| format!(" ~ x^{power:.1}"));
        entries.push((format!("{}{growth}", series[0].algorithm), colour));
    }
    let entries: Vec<(&str, Mark, Colour)> =
        entries.iter().map(|(name, colour)| (name.as_str(), Mark::Line, *colour)).collect();
    drawing.legend(LEFT + width, top - 22.0, &entries);
}
