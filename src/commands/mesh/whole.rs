//! Makes the surface of one isovalue in memory, with the steps that need the whole surface.

use super::{
    budget::allow,
    input::OpenVolume,
    report::{Summary, report_cleaned, report_simplified, report_stats},
    surfaces::surfaces,
};
use crate::{
    data::surface::Surface,
    io::{
        Output, Sink,
        mesh::{MeshFormat, parse_mesh},
    },
    kernels::mesh::post::{
        Stats, Step, clean, has_boundary, keep_parts, separate, simplify, smooth,
    },
    util::{
        error::{Error, Hint, Result},
        memory,
    },
};

impl OpenVolume<'_> {
    /// Makes the surface of one isovalue in memory: meshes, improves, measures and colours it.
    pub(super) fn surface(&self, iso: f64) -> Result<(Surface, Summary)> {
        let Self { job, session, input, coords, colors, .. } = self;
        let mut surface = Surface::default();
        let (allowed, mut largest) = (input.plan().surface_bytes, 0);
        surfaces(input, coords, &job.kernel(iso), session, |part| {
            // Two further parts may be in memory at the same time.
            largest = part.bytes().max(largest);
            if surface.bytes() + part.bytes() + 2 * largest > allowed && largest > 0 {
                let fact = memory::exceeds_rest("the surface", allowed);
                return Err(fact.with_hint(Hint::WholeMesh));
            }
            surface.append(part)
        })?;
        let had_parts = !surface.triangles.is_empty();
        let moved = self.improve(&mut surface)?;
        let mut summary = Summary::default();
        (summary.moved, summary.had_parts) = (moved, had_parts);
        summary.add(&surface);
        // Pages show the measures.
        if job.stats || job.format == MeshFormat::Html {
            allow("measuring a surface", &surface, Step::Stats.bytes(&surface), session)?;
            let stats = session.timings.time("stats", || Stats::measure(&surface))?;
            if job.stats {
                report_stats(&stats, moved);
            }
            summary.stats = Some(stats);
        }
        if let Some(colors) = colors {
            summary.color_bar =
                session.timings.time("colours", || colors.paint(&mut surface, session))?;
        }
        Ok((surface, summary))
    }

    /// Applies the steps that need the whole surface. Returns the distance that simplification has moved it, if known.
    fn improve(&self, surface: &mut Surface) -> Result<Option<f64>> {
        let Self { job, session, .. } = *self;
        let allowed = |what, surface: &Surface, step: Step| {
            allow(what, surface, step.bytes(surface), session)
        };
        // Readers of STL merge vertices by position.
        let merges = job.printable || job.format == MeshFormat::Stl;
        if job.cleans || merges {
            allowed("cleaning a surface", surface, Step::Clean)?;
            report_cleaned(&session.timings.time("clean", || clean(surface))?);
        }
        if !job.parts.keeps_all() {
            allowed("finding the parts of a surface", surface, Step::Parts)?;
            session.timings.time("parts", || keep_parts(surface, &job.parts))?;
        }
        if job.smooth > 0 {
            allowed("smoothing a surface", surface, Step::Smooth)?;
            session.timings.time("smooth", || smooth(surface, job.smooth))?;
        }
        let mut distance = None;
        if let Some(goal) = job.simplify {
            allowed("simplifying a surface", surface, Step::Simplify(goal))?;
            let simplified = session.timings.time("simplify", || simplify(surface, &goal))?;
            report_simplified(&goal, &simplified, surface);
            distance = simplified.distance;
        }
        if merges && (job.smooth > 0 || job.simplify.is_some()) {
            session.timings.time("clean", || separate(surface))?;
        }
        Ok(distance)
    }

    /// Reads `surface` back from the output that it was written to, in place of the one in memory.
    pub(super) fn written(
        &self,
        surface: Surface,
        output: &mut Output,
        sink: &Sink,
    ) -> Result<Surface> {
        /// Bytes for each triangle of an STL or 3MF: the file, its text, and the surface in it.
        const BYTES: u64 = 130;
        let Self { job, session, .. } = *self;
        let bytes = BYTES * surface.triangles.len() as u64;
        allow("reading back a file", &surface, bytes, session)?;
        let failed = |error| Error::io("read", sink.to_string(), error);
        let Some(bytes) = output.read_back().map_err(failed)? else { return Ok(surface) };
        drop(surface);
        let read = parse_mesh(sink, job.format.extension(), &bytes, session.max_memory)?;
        Ok(read.and_then(|(_, mesh)| mesh.surface).unwrap_or_default())
    }

    /// Reports a surface that is not closed in a format for 3D printing: a warning, or an error with `--printable`.
    pub(super) fn check_closed(&self, surface: &Surface, sink: &Sink) -> Result<()> {
        let Self { job, session, .. } = *self;
        if !job.format.is_for_printing() {
            return Ok(());
        }
        let reason = match (has_boundary(surface), job.kernel.close) {
            (true, true) => "cells with NaN samples were left out",
            (true, false) => "it ends at the border of the volume (--close closes it there)",
            (false, _) => {
                if job.printable {
                    allow("measuring a surface", surface, Step::Stats.bytes(surface), session)?;
                }
                if !job.printable || Stats::measure(surface)?.closed {
                    return Ok(());
                }
                "some edges have more than two triangles"
            }
        };
        let message = format!("{sink}: the surface is not closed: {reason}");
        if job.printable {
            return Err(Error::bad_input(message));
        }
        log::warn!("{message}");
        Ok(())
    }
}
