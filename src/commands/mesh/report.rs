//! Messages about a mesh: counts, bounds and measures.

use serde::{Deserialize, Serialize};

use super::input::OpenVolume;
use crate::{
    data::{surface::Surface, vec3::union},
    engine::session::Session,
    io::{Sink, losses::report, plot::ColorBar},
    kernels::mesh::post::{Cleaned, Goal, Simplified, Size, Stats},
    util::error::Result,
};

/// Counts and bounds of a surface, summed up part by part.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Summary {
    pub(super) vertices: u64,
    pub(super) triangles: u64,
    nan_cells: u64,
    pub(super) bounds: Option<[[f32; 3]; 2]>,
    /// Measures of the surface, if requested.
    #[serde(skip)]
    pub(super) stats: Option<Stats>,
    /// Whether the surface had triangles before parts of it were left out.
    #[serde(skip)]
    pub(super) had_parts: bool,
    /// Distance that simplification has moved the surface, if known.
    #[serde(skip)]
    pub(super) moved: Option<f64>,
    /// Meaning of the colours of the vertices, if they have a value.
    #[serde(skip)]
    pub(super) color_bar: Option<ColorBar>,
}

impl Summary {
    pub(super) fn add(&mut self, part: &Surface) {
        self.vertices += part.positions.len() as u64;
        self.triangles += part.triangles.len() as u64;
        self.nan_cells += part.nan_cells;
        self.widen(part.bounds());
    }

    /// Counts and bounds of `surface` in place of those so far.
    pub(super) fn replace(&mut self, surface: &Surface) {
        (self.vertices, self.triangles, self.bounds) = (0, 0, None);
        self.add(surface);
    }

    fn widen(&mut self, bounds: Option<[[f32; 3]; 2]>) {
        self.bounds = match (self.bounds, bounds) {
            (Some(one), Some(other)) => Some(union(one, other)),
            (one, other) => one.or(other),
        };
    }

    /// The summary of two parts of a surface together.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.vertices += other.vertices;
        self.triangles += other.triangles;
        self.nan_cells += other.nan_cells;
        self.widen(other.bounds);
        self
    }

    /// Reports an empty surface, with the minimum and maximum of the samples. It is called before an output is written.
    /// With `--strict`, an empty surface is an error.
    pub(super) fn check_empty(&self, iso: f64, sink: &Sink, volume: &OpenVolume<'_>) -> Result<()> {
        if self.triangles > 0 {
            return Ok(());
        }
        let why = match (self.had_parts, volume.input.range(volume.session)?) {
            (true, _) => "none of its parts is large enough to be kept".to_owned(),
            (false, None) => format!("no cell has samples on both sides of the isovalue {iso}"),
            (false, Some([low, high])) => {
                format!("the isovalue is {iso}, but the samples range from {low} to {high}")
            }
        };
        report(sink, format_args!("the surface is empty: {why}"), volume.session.strict)
    }

    fn log(&self, sink: &Sink) {
        if self.nan_cells > 0 {
            log::warn!("{} cells left out: a corner is not a number (NaN)", self.nan_cells);
        }
        let bounds = match self.bounds {
            Some([[x, y, z], [x2, y2, z2]]) => format!("box {x},{y},{z} to {x2},{y2},{z2}"),
            None => "empty".to_owned(),
        };
        log::info!("{} vertices, {} triangles, {bounds}: {sink}", self.vertices, self.triangles);
    }

    /// Logs the summary and adds it to the results of `--timings=json`.
    pub(super) fn report(&self, iso: f64, sink: &Sink, session: &Session) {
        self.log(sink);
        session.timings.add_result(|| {
            serde_json::json!({
                "file": sink.to_string(),
                "iso": iso,
                "vertices": self.vertices,
                "triangles": self.triangles,
                "nan_cells": self.nan_cells,
                "box": self.bounds,
                "stats": self.stats,
                "distance": self.moved,
            })
        });
    }
}

/// Formats a number with six decimals, or a small number with seven digits.
fn format_number(number: f64) -> String {
    match number != 0.0 && number.abs() < 1e-3 {
        true => format!("{number:.6e}"),
        false => format!("{number:.6}"),
    }
}

/// Logs the measures of a surface, and the distance that simplification has moved it.
pub(super) fn report_stats(stats: &Stats, moved: Option<f64>) {
    let genus = match stats.genus {
        Some(genus) => format!(", genus {genus}"),
        None => String::new(),
    };
    let moved = match moved {
        Some(distance) => format!(", moved by at most {}", format_number(distance)),
        None => String::new(),
    };
    let flat = match stats.flat {
        0 => String::new(),
        count => format!(", {count} degenerate triangles (--clean leaves them out)"),
    };
    log::info!(
        "area {}, enclosed volume {}, {} connected {}, Euler number {}{genus}, {}{moved}{flat}",
        format_number(stats.area),
        format_number(stats.volume),
        stats.components,
        if stats.components == 1 { "part" } else { "parts" },
        stats.euler,
        if stats.closed { "closed" } else { "not closed" },
    );
}

/// The measures of a label, as a line of text and as JSON.
pub(super) fn label_stats(
    label: u64,
    voxels: u64,
    surface: &Surface,
) -> Result<(String, serde_json::Value)> {
    let stats = Stats::measure(surface)?;
    let Stats { area, volume, components, closed, .. } = stats;
    let parts = if components == 1 { "part" } else { "parts" };
    let closed = if closed { "closed" } else { "not closed" };
    let line = format!(
        "label {label}: {voxels} voxels, area {}, enclosed volume {}, {components} connected {parts}, {closed}",
        format_number(area),
        format_number(volume),
    );
    let mut json = serde_json::to_value(stats).unwrap_or_default();
    (json["label"], json["voxels"]) = (label.into(), voxels.into());
    Ok((line, json))
}

/// Logs what cleaning has removed.
pub(super) fn report_cleaned(cleaned: &Cleaned) {
    if cleaned.triangles > 0 {
        log::info!("{} degenerate triangles left out", cleaned.triangles);
    }
    report_flat_parts(cleaned.flat_parts);
}

fn report_flat_parts(count: u64) {
    match count {
        0 => {}
        1 => log::warn!("1 part of the surface left out: it had no area"),
        _ => log::warn!("{count} parts of the surface left out: they had no area"),
    }
}

/// Warns if simplification has stopped before its goal.
pub(super) fn report_simplified(goal: &Goal, simplified: &Simplified, surface: &Surface) {
    let left = surface.triangles.len();
    report_flat_parts(simplified.flat_parts);
    match goal.size {
        Size::Fewest => {}
        // A collapse removes two triangles, so one more than wanted may be left.
        _ if left <= simplified.wanted + 1 => {}
        _ => {
            let reason = match goal.max_error {
                Some(_) => "fewer would move the surface farther, or tear, fold or join its parts",
                None => "fewer would move the surface too far, or tear, fold or join its parts",
            };
            let distance = simplified.distance.unwrap_or_default();
            log::warn!(
                "simplified to {left} triangles instead of {}: {reason}; the surface has moved by at most {}",
                simplified.wanted,
                format_number(distance)
            );
        }
    }
}
