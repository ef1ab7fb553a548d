//! The plot of a histogram.

use super::{
    tally::{Counted, Outcome},
    view::{View, merged},
};
use crate::io::plot::{
    Anchor, Colour, Drawing, FAINT, GROUND, LINES, Mark, PANEL, Paint, STRONG, decades, grouped,
    short_number, ticks,
};

/// Width and height of the panel: 1,024 is a multiple of the usual numbers of bins.
const PANEL_SIZE: [f32; 2] = [1024.0, 440.0];
/// Space to the left, above, to the right and below.
const MARGINS: [f32; 4] = [96.0, 76.0, 32.0, 72.0];

/// How a component is drawn.
fn colour(name: &str) -> Colour {
    match name {
        "r" => [0xe0, 0x3c, 0x3c],
        "g" => [0x2f, 0xa8, 0x4a],
        "b" => [0x3b, 0x62, 0xe6],
        "a" => [0xd9, 0x7a, 0xe8],
        "grey" => [0xa8, 0xb0, 0xbc],
        _ => STRONG,
    }
}

fn long_name(name: &str) -> &str {
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

/// Draws axes, bars and legend.
pub fn draw(outcome: &Outcome, view: &View) -> Drawing {
    let [width, height_of_panel] = PANEL_SIZE;
    let [left, above, right, below] = MARGINS;
    let mut drawing =
        Drawing::new((left + width + right) as usize, (above + height_of_panel + below) as usize);
    let base = above + height_of_panel;
    let shown: Vec<Vec<f64>> =
        outcome.components.iter().map(|component| view.values(outcome, component)).collect();
    let top = view.top(outcome, &shown);
    drawing.rectangle(left, above, width, height_of_panel, Paint::Over(PANEL, 1.0));
    grid(&mut drawing, outcome, view, top);

    let bars: Vec<(&Counted, Vec<f32>)> = outcome
        .components
        .iter()
        .zip(&shown)
        .map(|(component, shown)| {
            let columns = merged(shown, width as usize);
            let y = |&v: &f64| base - view.height(v, top) as f32 * height_of_panel;
            (component, columns.iter().map(y).collect())
        })
        .collect();
    draw_bars(&mut drawing, &bars, base);
    drawing.rectangle(left, base, width, 1.0, Paint::Over(FAINT, 1.0));

    let cut = shown.iter().flatten().any(|&value| value > top * 1.000_001);
    let mut title = outcome.title();
    let room = 90;
    if title.chars().count() > room {
        let tail: Vec<char> = title.chars().rev().take(room - 3).collect();
        title = format!("...{}", tail.iter().rev().collect::<String>());
    }
    drawing.title(left, 26.0, &title, STRONG);
    let pixels = outcome.components.first().map_or(0.0, |c| outcome.pixels(c.counts.total()));
    let note = if cut { ", tallest bars cut off" } else { "" };
    let [pixels, bins] = [pixels.round() as u64, outcome.bins.count as u64].map(grouped);
    let note = format!("{pixels} samples, {bins} bins{note}");
    drawing.text(left, 52.0, Anchor::Start, &note, FAINT);
    let alone = bars.len() == 1;
    let entries: Vec<(&str, Mark, Colour)> = bars
        .iter()
        .map(|(component, _)| {
            let name = component.name;
            let mark = if is_line(name) && !alone { Mark::Line } else { Mark::Square };
            (long_name(name), mark, colour(name))
        })
        .collect();
    drawing.legend(left + width, 52.0, &entries);
    drawing
}

/// Draws the components' bars, then luminance and alpha as lines over them.
fn draw_bars(drawing: &mut Drawing, bars: &[(&Counted, Vec<f32>)], base: f32) {
    let ([width, _], left, alone) = (PANEL_SIZE, MARGINS[0], bars.len() == 1);
    for (component, tops) in bars.iter().filter(|(c, _)| alone || !is_line(c.name)) {
        let name = if alone && is_line(component.name) { "grey" } else { component.name };
        let paint = match alone {
            true => Paint::Over(colour(name), 1.0),
            false => Paint::Screen(colour(name)),
        };
        drawing.steps(left, width / tops.len() as f32, tops, base, paint);
    }
    for (component, tops) in bars.iter().filter(|(c, _)| !alone && is_line(c.name)) {
        let step = width / tops.len() as f32;
        // A dark rim keeps the line in sight over bright bars.
        drawing.outline(left, step, tops, 4.0, GROUND);
        drawing.outline(left, step, tops, 1.5, colour(component.name));
    }
}

/// Draws the axes with their numbers, titles and lines.
fn grid(drawing: &mut Drawing, outcome: &Outcome, view: &View, top: f64) {
    let [width, height_of_panel] = PANEL_SIZE;
    let [left, above, ..] = MARGINS;
    let base = above + height_of_panel;
    let marks = match view.log {
        false => ticks(0.0, top, 5),
        true => decades(view.least(top), top),
    };
    for mark in marks {
        let y = base - view.height(mark, top) as f32 * height_of_panel;
        drawing.rectangle(left, y - 0.5, width, 1.0, Paint::Over(LINES, 1.0));
        drawing.text(left - 10.0, y, Anchor::End, &short_number(mark), FAINT);
    }
    let bins = &outcome.bins;
    let mut marks = ticks(bins.low, bins.high, 10);
    // Both ends have numbers, and marks too near to them are left out.
    let near = (bins.high - bins.low) * 0.04;
    marks.retain(|mark| mark - bins.low > near && bins.high - mark > near);
    marks.extend([bins.low, bins.high]);
    for mark in marks {
        let x = left + ((mark - bins.low) / (bins.high - bins.low)) as f32 * width;
        drawing.rectangle(x - 0.5, base, 1.0, 6.0, Paint::Over(FAINT, 1.0));
        if mark > bins.low && mark < bins.high {
            drawing.rectangle(x - 0.5, above, 1.0, height_of_panel, Paint::Over(LINES, 0.6));
        }
        drawing.text(x, base + 18.0, Anchor::Middle, &sample_value(mark), FAINT);
    }
    let unit = format!("sample value ({})", outcome.dtype);
    drawing.text(left + width / 2.0, base + 46.0, Anchor::Middle, &unit, STRONG);
    let what = match (view.cumulative, view.normalize) {
        (false, false) => "samples a bin",
        (false, true) => "share of samples a bin",
        (true, false) => "samples up to the bin",
        (true, true) => "share of samples up to the bin",
    };
    let axis = if view.log { format!("{what} (logarithmic)") } else { what.to_owned() };
    drawing.rising_text(20.0, above + height_of_panel / 2.0, &axis, STRONG);
}

/// A sample value for an axis: whole numbers in full, where they are short.
pub fn sample_value(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e6 {
        true => value.to_string(),
        false => short_number(value),
    }
}
