//! What is said about a mesh.

use crate::{data::surface::Surface, io::Sink, kernels::mesh::post::Stats, session::Session};

/// Counts and bounds, part by part.
#[derive(Default)]
pub(super) struct Summary {
    vertices: u64,
    triangles: u64,
    nan_cells: u64,
    bounds: Option<[[f32; 3]; 2]>,
    /// Of a surface in memory, where they are wanted.
    pub(super) stats: Option<Stats>,
}

impl Summary {
    pub(super) fn add(&mut self, part: &Surface) {
        self.vertices += part.positions.len() as u64;
        self.triangles += part.triangles.len() as u64;
        self.nan_cells += part.nan_cells;
        self.bounds = match (self.bounds, part.bounds()) {
            (Some([low, high]), Some([other_low, other_high])) => Some([
                std::array::from_fn(|i| low[i].min(other_low[i])),
                std::array::from_fn(|i| high[i].max(other_high[i])),
            ]),
            (one, other) => one.or(other),
        };
    }

    /// Tells the user, and `--timings=json`.
    pub(super) fn report(&self, iso: f64, sink: &Sink, session: &Session) {
        if self.nan_cells > 0 {
            log::warn!("{} cells left out: a corner is not a number (NaN)", self.nan_cells);
        }
        let bounds = match self.bounds {
            Some([[x, y, z], [x2, y2, z2]]) => format!("box {x},{y},{z} to {x2},{y2},{z2}"),
            None => "empty: the isovalue parts no two neighbouring samples".to_owned(),
        };
        log::info!("{} vertices, {} triangles, {bounds}: {sink}", self.vertices, self.triangles);
        session.timings.add_result(serde_json::json!({
            "file": sink.to_string(),
            "iso": iso,
            "vertices": self.vertices,
            "triangles": self.triangles,
            "nan_cells": self.nan_cells,
            "box": self.bounds,
            "stats": self.stats,
        }));
    }
}

/// Tells the user the measures of a surface.
pub(super) fn tell_stats(stats: &Stats) {
    log::info!(
        "area {:.6}, enclosed volume {:.6}, {} connected parts, {}",
        stats.area,
        stats.volume,
        stats.components,
        if stats.closed { "closed" } else { "not closed" }
    );
}
