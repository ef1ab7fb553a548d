//! `gpuproc mesh --labels`: the surfaces of the labels of a volume.

mod faces;
mod numbers;
mod reader;
mod task;
mod writer;

use std::{collections::BTreeSet, sync::Mutex};

use self::{
    faces::{LabelSet, TopLayer},
    numbers::Numbers,
    task::{LabelJob, LabelTotals, MeshTransform},
    writer::LabelWriter,
};
use super::{
    estimate,
    job::MeshJob,
    label_list::{LABEL_FIELD, LabelList},
    memory::plan_labels,
    names::{has_field, scratch_folder},
    report::Summary,
};
use crate::{
    data::{label_mesh::LabelMesh, surface::Surface, vec3::union},
    engine::session::Session,
    io::{
        Output,
        losses::report,
        mesh::{
            MeshFormat,
            labels::{LabelPly, LabelType},
        },
        volume::VolumeFile,
    },
    kernels::mesh::{
        MarchingCubes,
        labels::{LabelSurfaces, SurfaceNets},
    },
    util::{
        error::{Error, Hint, Result},
        memory,
    },
};

/// Meshes the labels of `list` and writes them to the output of `job`.
pub(super) fn mesh_labels(
    job: &MeshJob,
    list: &LabelList,
    mut file: VolumeFile,
    session: &Session,
) -> Result<()> {
    let mut grid = MarchingCubes::new(0.0);
    let coords = job.coordinates.apply(&mut grid, &job.volume, &file)?;
    let transform = MeshTransform { spacing: grid.spacing, origin: grid.origin, coords };
    let mut kernel = SurfaceNets::new(job.smooth);
    let numbers = Numbers::new(&job.volume, list, &mut file);
    file.check(session.limits(1))?;
    if let Some(preview) = &job.preview {
        preview.check(session)?;
    }
    let plan = plan_labels(job, &kernel, &file, numbers.size(&file), session)?;
    kernel.max_bytes = plan.part_bytes;
    session.device.set_estimate(|| estimate::for_job(job, &file));
    let numbers = numbers.into();
    let labels = LabelJob { job, list, file: &file, kernel, plan, transform, numbers, session };
    let is_each = has_field(&job.output, LABEL_FIELD);
    let output = if is_each { None } else { Some(job.output.create(session.no_clobber)?) };
    match output {
        Some(output) if job.format == MeshFormat::Ply && !job.stats && job.preview.is_none() => {
            labels.write_ply(output)
        }
        output => labels.write_whole(output),
    }
}

impl LabelJob<'_> {
    /// Writes one PLY of all labels, slab by slab.
    fn write_ply(&self, output: Output) -> Result<()> {
        let Self { job, session, transform, .. } = self;
        let failed = |error| Error::io("write", job.output.to_string(), error);
        let folder = scratch_folder(&job.output);
        let details = job.details(&transform.coords);
        let mut ply = LabelPly::new(details, self.plan.pending_bytes, folder);
        let mut totals = LabelTotals::default();
        let found = LabelSet::new()?;
        let mut top = TopLayer::default();
        self.for_each_part(|first_vertex, mut part| {
            let positions = session.timings.time("faces", || {
                top.split(first_vertex, &mut part, Some(&found));
                transform.positions(&part)
            })?;
            let surface = Surface { positions, ..Surface::default() };
            totals.summary.add(&surface);
            totals.summary.triangles += 2 * part.quads.len() as u64;
            ply.push(surface, part.quads).map_err(failed)
        })?;
        let numbers = self.numbers();
        totals.labels = found.into_labels().map(|number| numbers.label(number)).collect();
        self.check_found(&totals.labels)?;
        self.finish_ply(ply, &numbers, output)?;
        self.report(&totals);
        Ok(())
    }

    /// Reports labels that no sample has. It is an error if none of the listed labels is found; with `--strict`, also
    /// if one is missing or all samples are 0.
    fn check_found(&self, found: &BTreeSet<u64>) -> Result<()> {
        let (volume, strict) = (&self.job.volume, self.session.strict);
        match (found.is_empty(), self.list) {
            (true, LabelList::All) => report(volume, "no labels: all samples are 0", strict),
            (true, LabelList::Ranges(_)) => {
                Err(Error::bad_input(format_args!("{volume}: no sample has any of the --labels")))
            }
            (false, list) => list.missing(found).into_iter().try_for_each(|label| {
                report(volume, format_args!("no sample has label {label}"), strict)
            }),
        }
    }

    /// Completes a PLY of all labels.
    fn finish_ply(&self, ply: LabelPly, numbers: &Numbers<'_>, mut output: Output) -> Result<()> {
        let Self { job, session, .. } = self;
        let max = numbers.max_label(self.file);
        let label_type = LabelType::for_labels_up_to(max).ok_or_else(|| {
            Error::usage(format_args!(
                "{}: PLY holds labels up to 9,007,199,254,740,992, and {max} is greater: write one file per label, as \
                 'name-{LABEL_FIELD}.ply', or GLB",
                job.volume
            ))
        })?;
        session.timings.time("write", || {
            let is_mirrored = self.transform.is_mirrored();
            let label_of = |number| numbers.label(number);
            ply.finish_labels(&mut output, is_mirrored, &label_of, label_type)
                .map_err(|error| Error::io("write", job.output.to_string(), error))?;
            output.commit()
        })
    }

    /// Writes outputs that need all faces in memory: a file for each label, or one file with a part for each label.
    fn write_whole(&self, output: Option<Output>) -> Result<()> {
        let Self { session, plan, .. } = self;
        let mut mesh = LabelMesh::default();
        self.for_each_part(|_, part| {
            if mesh.bytes() + part.bytes() > plan.surface_bytes {
                let fact = memory::exceeds_rest("the mesh of all labels", plan.surface_bytes);
                return Err(fact.with_hint(Hint::WholeMesh));
            }
            mesh.append(part)
        })?;
        let positions = self.transform.positions(&mesh)?;
        let surfaces = session.timings.time("labels", || LabelSurfaces::new(&mesh, &positions))?;
        let numbers = self.numbers();
        let mut order: Vec<(u64, usize)> =
            surfaces.labels().map(|number| numbers.label(number)).zip(0..).collect();
        order.sort_unstable();
        let mut totals = LabelTotals {
            labels: order.iter().map(|(label, _)| *label).collect(),
            ..LabelTotals::default()
        };
        self.check_found(&totals.labels)?;
        let writer = LabelWriter { labels: self, surfaces: &surfaces, scratch: Mutex::default() };
        if let Some(preview) = self.job.preview(&self.transform.coords) {
            preview.draw(&preview.sink, &writer.merged_surface(&order)?, None, session)?;
        }
        match output {
            None => writer.write_files(&order, &mut totals)?,
            Some(output) if self.job.format == MeshFormat::Ply => {
                writer.measure(&order, &mut totals)?;
                drop(writer);
                self.write_shared(mesh, positions, &numbers, output, &mut totals)?;
            }
            Some(output) if self.job.format == MeshFormat::Html => {
                let all = positions.iter().copied().map(|p| [p, p]).reduce(union);
                writer.write_page(&order, all, output, &mut totals)?;
            }
            Some(output) => writer.write_parts(&order, output, &mut totals)?,
        }
        self.report(&totals);
        Ok(())
    }

    /// Writes one PLY of all labels from a mesh in memory.
    fn write_shared(
        &self,
        mut mesh: LabelMesh,
        positions: Vec<[f32; 3]>,
        numbers: &Numbers<'_>,
        output: Output,
        totals: &mut LabelTotals,
    ) -> Result<()> {
        let Self { job, transform, .. } = self;
        let folder = scratch_folder(&job.output);
        let mut ply = LabelPly::new(job.details(&transform.coords), u64::MAX, folder);
        TopLayer::default().split(0, &mut mesh, None);
        totals.summary.vertices = positions.len() as u64;
        totals.summary.triangles = 2 * mesh.quads.len() as u64;
        ply.push(Surface { positions, ..Surface::default() }, mesh.quads)
            .map_err(|error| Error::io("write", job.output.to_string(), error))?;
        self.finish_ply(ply, numbers, output)
    }

    fn report(&self, totals: &LabelTotals) {
        let LabelTotals { labels, summary: Summary { vertices, triangles, bounds, .. }, stats } =
            totals;
        let count = labels.len();
        let what = match bounds {
            Some([[x, y, z], [x2, y2, z2]]) => format!("box {x},{y},{z} to {x2},{y2},{z2}"),
            None => "empty".to_owned(),
        };
        let name = if count == 1 { "label" } else { "labels" };
        let output = &self.job.output;
        log::info!("{count} {name}, {vertices} vertices, {triangles} triangles, {what}: {output}");
        self.session.timings.add_result(|| {
            serde_json::json!({
                "file": output.to_string(),
                "labels": count,
                "vertices": vertices,
                "triangles": triangles,
                "box": bounds,
                "stats": stats,
            })
        });
    }
}
