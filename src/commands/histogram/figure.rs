//! The plot of a histogram.

use super::{Args, Counted, Outcome};
use crate::io::plot::{
    Anchor, Colour, Drawing, FAINT, GROUND, LINES, Mark, PANEL, Paint, STRONG, decades, grouped,
    short_number, ticks,
};

/// Width and height of the panel: 1,024 is a multiple of the usual numbers of bins.
const PANEL_SIZE: [f32; 2] = [1024.0, 440.0];
/// Space to the left, above, to the right and below.
const MARGINS: [f32; 4] = [96.0, 76.0, 32.0, 72.0];

/// How a row is drawn.
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

/// Whether a row is drawn as a line over the bars.
fn is_line(name: &str) -> bool {
    matches!(name, "luma" | "a")
}

/// The scale of the bars: the value that reaches the top. The tallest bar touches it, unless it
/// dwarfs the rest: a bar is worth max(1 / max, 0.2 * bins / pixels) of the height a count.
pub fn top(outcome: &Outcome, args: &Args, shown: &[Vec<f64>]) -> f64 {
    let max = shown.iter().flatten().copied().fold(0.0, f64::max);
    if args.cumulative || args.log {
        return if max > 0.0 { max } else { 1.0 };
    }
    let all = outcome.rows.iter().map(|row| row.counts.in_range()).max().unwrap_or(0);
    let all = if args.normalize { 1.0 } else { outcome.pixels(all) };
    let scale = (1.0 / max).max(0.2 * outcome.bins.count as f64 / all);
    // No sample at all makes both infinite.
    if scale.is_finite() { 1.0 / scale } else { 1.0 }
}

/// Where a logarithmic axis begins: shares six decades below the top, counts at one half, so that a
/// single sample shows.
fn least(top: f64, args: &Args) -> f64 {
    if args.normalize { (top * 1e-6).min(0.5) } else { 0.5 }
}

/// Height from 0 to 1 of a value on an axis that ends at `top`.
pub fn height(value: f64, top: f64, args: &Args) -> f64 {
    if !args.log {
        return (value / top).min(1.0);
    }
    let least = least(top, args);
    ((value / least).max(1.0).ln() / (top / least).ln()).clamp(0.0, 1.0)
}

/// The most of neighbouring bins, so that no more than `columns` are left and no peak is lost.
pub fn merged(values: &[f64], columns: usize) -> Vec<f64> {
    if values.len() <= columns {
        return values.to_vec();
    }
    let start = |column: usize| column * values.len() / columns;
    (0..columns)
        .map(|column| values[start(column)..start(column + 1)].iter().copied().fold(0.0, f64::max))
        .collect()
}

/// Draws axes, bars and legend.
pub fn figure(outcome: &Outcome, args: &Args) -> Drawing {
    let [width, height_of_panel] = PANEL_SIZE;
    let [left, above, right, below] = MARGINS;
    let mut drawing =
        Drawing::new((left + width + right) as usize, (above + height_of_panel + below) as usize);
    let base = above + height_of_panel;
    let shown: Vec<Vec<f64>> = outcome.rows.iter().map(|row| outcome.shown(row, args)).collect();
    let top = top(outcome, args, &shown);
    drawing.rectangle(left, above, width, height_of_panel, Paint::Over(PANEL, 1.0));
    grid(&mut drawing, outcome, args, top);

    let rows: Vec<(&Counted, Vec<f32>)> = outcome
        .rows
        .iter()
        .zip(&shown)
        .map(|(row, shown)| {
            let columns = merged(shown, width as usize);
            let y = |&v: &f64| base - height(v, top, args) as f32 * height_of_panel;
            (row, columns.iter().map(y).collect())
        })
        .collect();
    let alone = rows.len() == 1;
    for (row, tops) in rows.iter().filter(|(row, _)| alone || !is_line(row.name)) {
        let step = width / tops.len() as f32;
        let colour = if alone && is_line(row.name) { colour("grey") } else { colour(row.name) };
        let paint = if alone { Paint::Over(colour, 1.0) } else { Paint::Screen(colour) };
        drawing.steps(left, step, tops, base, paint);
    }
    for (row, tops) in rows.iter().filter(|(row, _)| !alone && is_line(row.name)) {
        let step = width / tops.len() as f32;
        // A dark rim keeps the line in sight over bright bars.
        drawing.outline(left, step, tops, 4.0, GROUND);
        drawing.outline(left, step, tops, 1.5, colour(row.name));
    }
    drawing.rectangle(left, base, width, 1.0, Paint::Over(FAINT, 1.0));

    let cut = rows.iter().zip(&shown).any(|(_, shown)| shown.iter().any(|&v| v > top * 1.000_001));
    let mut title = outcome.title();
    let room = 90;
    if title.chars().count() > room {
        let tail: Vec<char> = title.chars().rev().take(room - 3).collect();
        title = format!("...{}", tail.iter().rev().collect::<String>());
    }
    drawing.title(left, 26.0, &title, STRONG);
    let pixels = outcome.rows.first().map_or(0.0, |row| outcome.pixels(row.counts.total()));
    let note = if cut { ", tallest bars cut off" } else { "" };
    let [pixels, bins] = [pixels.round() as u64, outcome.bins.count as u64].map(grouped);
    let note = format!("{pixels} samples, {bins} bins{note}");
    drawing.text(left, 52.0, Anchor::Start, &note, FAINT);
    let entries: Vec<(&str, Mark, Colour)> = rows
        .iter()
        .map(|(row, _)| {
            let mark = if is_line(row.name) && !alone { Mark::Line } else { Mark::Square };
            (long_name(row.name), mark, colour(row.name))
        })
        .collect();
    drawing.legend(left + width, 52.0, &entries);
    drawing
}

fn grid(drawing: &mut Drawing, outcome: &Outcome, args: &Args, top: f64) {
    let [width, height_of_panel] = PANEL_SIZE;
    let [left, above, ..] = MARGINS;
    let base = above + height_of_panel;
    let marks = match args.log {
        false => ticks(0.0, top, 5),
        true => decades(least(top, args), top),
    };
    for mark in marks {
        let y = base - height(mark, top, args) as f32 * height_of_panel;
        drawing.rectangle(left, y - 0.5, width, 1.0, Paint::Over(LINES, 1.0));
        drawing.text(left - 10.0, y, Anchor::End, &short_number(mark), FAINT);
    }
    let bins = &outcome.bins;
    let mut marks = ticks(bins.low, bins.high, 10);
    // Both ends are told, and what would stand too near to them is left out.
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
    let what = match (args.cumulative, args.normalize) {
        (false, false) => "samples a bin",
        (false, true) => "share of samples a bin",
        (true, false) => "samples up to the bin",
        (true, true) => "share of samples up to the bin",
    };
    let axis = if args.log { format!("{what} (logarithmic)") } else { what.to_owned() };
    drawing.rising_text(20.0, above + height_of_panel / 2.0, &axis, STRONG);
}

/// A sample value for an axis: whole numbers in full, where they are short.
pub fn sample_value(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 1e6 {
        true => value.to_string(),
        false => short_number(value),
    }
}
