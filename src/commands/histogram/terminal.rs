//! Histogram on the terminal: bars of Unicode block characters, and a table of statistics.

use super::{
    figure::sample_value,
    tally::Outcome,
    view::{View, merged},
};
use crate::{
    commands::table::{folded, window},
    engine::progress::has_colours,
    io::plot::grouped,
};

/// Minimum and maximum height of the bars of a component, in lines.
const LINES: [usize; 2] = [3, 5];
/// Block characters of 0 to 8 eighths of a line.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Maximum width of a picture in columns; more columns would not show more.
const MAX_COLUMNS: usize = 128;

/// ANSI escape sequence for the colour of a component.
fn paint(name: &str) -> &'static str {
    match name {
        "r" => "\x1b[31m",
        "g" => "\x1b[32m",
        "b" => "\x1b[34m",
        "a" => "\x1b[35m",
        _ => "",
    }
}

/// Bars of every component and a table of statistics, as text.
pub fn picture(outcome: &Outcome, view: &View) -> String {
    let outcome = &*view.cropped(outcome);
    let (width, height) = window();
    let columns = width.saturating_sub(2).clamp(16, MAX_COLUMNS);
    let statistics = statistics(outcome, view, width);
    // If the window is high enough, it shows the whole picture and the next prompt.
    let rest = statistics.lines().count() + outcome.components.len() + 3;
    let each = height.saturating_sub(rest) / outcome.components.len().max(1);
    let lines = each.clamp(LINES[0], LINES[1]);
    let colour = has_colours(&std::io::stdout());
    let shown: Vec<Vec<f64>> =
        outcome.components.iter().map(|component| view.values(outcome, component)).collect();
    let top = view.top(&shown);
    let title: String = outcome.title().chars().take(width).collect();
    let mut text = format!("{title}\n");
    for (component, shown) in outcome.components.iter().zip(&shown) {
        let bars = bars(shown, [columns, lines], top, view);
        let (start, end) = match colour {
            true if !paint(component.name).is_empty() => (paint(component.name), "\x1b[0m"),
            _ => ("", ""),
        };
        for line in bars {
            text += &format!("{start}{}{end}\n", line.trim_end());
        }
        let (low, high) = (sample_value(outcome.bins.low), sample_value(outcome.bins.high));
        let room = columns.saturating_sub(low.len() + high.len());
        text += &format!("{low}{:^room$}{high}\n", component.name);
    }
    text += &statistics;
    text.push('\n');
    text
}

fn bars(shown: &[f64], [columns, lines]: [usize; 2], top: f64, view: &View) -> Vec<String> {
    let merged = match shown.len() < columns {
        // Fewer bins than columns: each bin is several columns wide.
        true => {
            let at = |column: usize| column * shown.len() / columns;
            (0..columns).map(|column| shown[at(column)]).collect()
        }
        false => merged(shown, columns),
    };
    let eighths: Vec<usize> = merged
        .iter()
        .map(|&value| {
            let eighths = (view.height(value, top) * (lines * 8) as f64).round() as usize;
            // A single sample is visible.
            eighths.max(usize::from(value > 0.0))
        })
        .collect();
    let line = |line: usize| {
        let below = (lines - 1 - line) * 8;
        eighths.iter().map(|&e| BLOCKS[e.saturating_sub(below).min(8)]).collect()
    };
    (0..lines).map(line).collect()
}

/// A table with one line of statistics per component, then the counts of values outside the range.
fn statistics(outcome: &Outcome, view: &View, width: usize) -> String {
    let mut heads: Vec<String> =
        ["", "count", "min", "max", "mean", "median", "std dev", "mode", "entropy", "clipped"]
            .map(str::to_owned)
            .to_vec();
    heads.extend(view.percentages.iter().map(|p| format!("p{p}")));
    let mut lines = vec![heads];
    let mut outside = String::new();
    for component in &outcome.components {
        let (name, counts) = (component.name, &component.counts);
        for (n, what) in
            [(counts.below, "below"), (counts.above, "above"), (counts.nan, "not a number")]
        {
            if n > 0 {
                let n = grouped(outcome.pixels(n).round() as u64);
                outside += &format!("{name}: {n} {what}\n");
            }
        }
        let Some(s) = &component.statistics else {
            outside += &format!("{name}: no finite samples\n");
            continue;
        };
        let clipped = (s.clipped_low + s.clipped_high) * 100.0;
        let mut cells = vec![name.to_owned(), grouped(s.count.round() as u64)];
        cells.extend([s.min, s.max, s.mean, s.median, s.deviation, s.mode].map(rounded));
        cells.push(format!("{:.2}", s.entropy));
        cells.push(format!("{clipped:.1}%"));
        cells.extend(s.percentiles.iter().map(|&(_, value)| rounded(value)));
        lines.push(cells);
    }
    let table = if lines.len() > 1 { folded(&lines, 1, &[], width) } else { String::new() };
    table + &outside
}

/// A number with at most five significant digits; whole numbers are written in full.
fn rounded(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e9 {
        return format!("{value}");
    }
    match value.abs() {
        m if !(1e-3..1e7).contains(&m) => format!("{value:.3e}"),
        m => {
            let decimals = (4 - m.log10().floor() as i32).clamp(0, 7) as usize;
            format!("{value:.decimals$}")
        }
    }
}
