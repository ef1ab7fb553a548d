//! One GLB with the surfaces of several isovalues, each with its own colour or with coloured vertices.

use super::{color::Color, input::OpenVolume, preview::Layer};
use crate::{
    io::{
        Output, Sink,
        mesh::{ColoredSurface, write_colored},
    },
    util::{
        error::{Error, Result},
        memory,
    },
};

/// Alpha of all surfaces except the innermost, that of the maximum isovalue.
const OUTER_ALPHA: f32 = 0.35;

/// Meshes the volume at `isovalues` and writes all surfaces to one file.
pub(super) fn write(
    volume: &OpenVolume<'_>,
    isovalues: &[f64],
    sink: &Sink,
    mut output: Output,
) -> Result<()> {
    let OpenVolume { job, session, input, coords, colors, .. } = volume;
    let innermost = isovalues.iter().copied().fold(f64::MIN, f64::max);
    let (mut surfaces, mut layers, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (number, &iso) in isovalues.iter().enumerate() {
        let (surface, summary) = volume.surface(iso)?;
        bytes += surface.bytes();
        if bytes > input.plan().surface_bytes {
            let what = "the surfaces of all isovalues together";
            return Err(memory::exceeds_rest(what, input.plan().surface_bytes));
        }
        summary.check_empty(iso, sink, volume)?;
        summary.report(iso, sink, session);
        let color = job.colors.get(number).copied().unwrap_or(Color::in_cycle(number));
        let alpha = if iso < innermost { OUTER_ALPHA } else { 1.0 };
        layers.push(Layer { iso, color: color.bytes(), alpha, bar: summary.color_bar });
        let color = match colors {
            Some(_) => [1.0, 1.0, 1.0, alpha],
            None => color.with_alpha(alpha),
        };
        surfaces.push(ColoredSurface { name: format!("Isovalue {iso}"), color, surface });
    }
    if let Some(preview) = job.preview(coords) {
        let surfaces = surfaces.iter_mut().map(|colored| &mut colored.surface);
        preview.draw_layers(&mut layers.into_iter().zip(surfaces).collect::<Vec<_>>(), session)?;
    }
    session.timings.time("write", || {
        write_colored(&mut output, &surfaces, job.details(coords))
            .map_err(|error| Error::io("write", sink.to_string(), error))?;
        output.commit()
    })
}
