//! The surfaces of several isovalues in one GLB, each with its colour.

use super::{color::Color, input::VolumeInput, job::MeshJob, placing::Placed};
use crate::{
    error::{Error, Hint, Result},
    io::{
        Output, Sink,
        mesh::{ColoredSurface, write_colored},
    },
    session::Session,
};

/// Alpha of the surfaces around the one with the greatest isovalue.
const SEE_THROUGH: f32 = 0.35;

/// Meshes the volume at `isovalues`, and writes all surfaces to one file.
pub(super) fn write(
    job: &MeshJob,
    (input, placed): (&VolumeInput, &Placed),
    isovalues: &[f64],
    sink: &Sink,
    mut output: Output,
    session: &Session,
) -> Result<()> {
    let greatest = isovalues.iter().copied().fold(f64::MIN, f64::max);
    let (mut surfaces, mut bytes) = (Vec::new(), 0);
    for (number, &iso) in isovalues.iter().enumerate() {
        let (surface, mut summary) = job.surface((input, placed), iso, session)?;
        bytes += surface.bytes();
        if bytes > input.plan().surface {
            return Err(Error::bad_input(
                "the surfaces of all isovalues do not fit the memory together",
            )
            .with_hint(Hint::Memory));
        }
        summary.find_range(input)?;
        summary.report(iso, sink, session);
        let color = job.colors.get(number).copied().unwrap_or(Color::of_number(number));
        let color = color.with_alpha(if iso < greatest { SEE_THROUGH } else { 1.0 });
        surfaces.push(ColoredSurface { name: format!("Isovalue {iso}"), color, surface });
    }
    session.timings.time("write", || {
        write_colored(&mut output, &surfaces)
            .map_err(|error| Error::io("write", sink.to_string(), error))?;
        output.commit()
    })
}
