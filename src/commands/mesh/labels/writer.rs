//! Outputs that need the surface of each label: a file per label, one file with a part per label, a page, and a picture
//! of all labels.

use std::{
    mem::{swap, take},
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use super::{
    super::{
        label_list::LABEL_FIELD,
        names::fill_field,
        page,
        report::{Summary, label_stats},
    },
    task::{LabelJob, LabelTotals},
};
use crate::{
    data::{srgb, surface::Surface},
    io::{
        Output, Sink,
        file_roles::OUTPUT,
        mesh::{
            ColoredSurface, MeshFormat,
            labels::{LabelPart, colour},
            write, write_colored, write_obj_labels,
        },
        page::viewer::PackedMesh,
    },
    kernels::mesh::labels::{LabelSurfaces, Scratch},
    util::{
        error::{Error, Result},
        memory,
        parallel::Parallel,
    },
};

/// The colour of a label in pictures and pages, in sRGB.
fn display_colour(label: u64) -> [u8; 3] {
    colour(label).map(|v| (255.0 * srgb::from_linear_f32(v)).round() as u8)
}

/// Writes the surfaces of the labels, one by one.
pub(super) struct LabelWriter<'a, 'l> {
    pub(super) labels: &'a LabelJob<'l>,
    pub(super) surfaces: &'a LabelSurfaces<'a>,
    pub(super) scratch: Mutex<Vec<Scratch>>,
}

impl LabelWriter<'_, '_> {
    /// The surface of label `index`. Its triangles are reversed if the map to the mesh is a reflection.
    fn surface(&self, index: usize) -> Result<Surface> {
        let lock = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = lock().pop().unwrap_or_default();
        let surface = self.surfaces.surface(index, &mut scratch);
        lock().push(scratch);
        let mut surface = surface?;
        if self.labels.transform.is_mirrored() {
            surface.triangles.iter_mut().for_each(|[_, b, c]| swap(b, c));
        }
        Ok(surface)
    }

    /// Passes each surface to `make`, on all threads, with its index in `order`, its label and, if needed, its
    /// measures. Returns the results in order and adds the counts of all surfaces to `totals`.
    fn for_each<T: Send>(
        &self,
        order: &[(u64, usize)],
        totals: &mut LabelTotals,
        make: impl Fn(usize, u64, Surface, Option<&Value>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let job = self.labels.job;
        // Pages show the measures.
        let is_measured = job.stats || job.format == MeshFormat::Html;
        let results = order.iter().enumerate().par_map(|(at, &(label, index))| -> Result<_> {
            let surface = self.surface(index)?;
            let stats = match is_measured {
                true => Some(label_stats(label, self.surfaces.samples(index), &surface)?),
                false => None,
            };
            let mut one = Summary::default();
            one.add(&surface);
            let made = make(at, label, surface, stats.as_ref().map(|(_, json)| json))?;
            Ok((one, stats, made))
        });
        let mut all = Vec::with_capacity(order.len());
        for result in results {
            let (one, stats, made) = result?;
            totals.summary = take(&mut totals.summary).and(one);
            if let Some((line, json)) = stats {
                if job.stats {
                    log::info!("{line}");
                }
                totals.stats.push(json);
            }
            all.push(made);
        }
        Ok(all)
    }

    /// Fails if the surfaces of all labels together do not fit into memory.
    fn check_bytes(&self, order: &[(u64, usize)]) -> Result<()> {
        let plan = &self.labels.plan;
        let needed: u64 = order.iter().map(|&(_, index)| self.surfaces.bytes(index)).sum();
        match needed <= plan.surface_bytes {
            true => Ok(()),
            false => Err(memory::exceeds_rest("the mesh of all labels", plan.surface_bytes)),
        }
    }

    /// One surface of all labels, each in its colour.
    pub(super) fn merged_surface(&self, order: &[(u64, usize)]) -> Result<Surface> {
        self.check_bytes(order)?;
        let mut all = Surface::default();
        for &(label, index) in order {
            let mut surface = self.surface(index)?;
            let first = all.positions.len() as u32;
            surface.triangles.as_flattened_mut().iter_mut().for_each(|corner| *corner += first);
            surface.colors = memory::zeros(surface.positions.len())?;
            surface.colors.fill(display_colour(label));
            all.append(surface)?;
        }
        Ok(all)
    }

    /// Measures all surfaces without writing them.
    pub(super) fn measure(&self, order: &[(u64, usize)], totals: &mut LabelTotals) -> Result<()> {
        let measure = || self.for_each(order, totals, |_, _, _, _| Ok(()));
        self.labels.session.timings.time("stats", measure).map(drop)
    }

    pub(super) fn write_files(
        &self,
        order: &[(u64, usize)],
        totals: &mut LabelTotals,
    ) -> Result<()> {
        let LabelJob { job, session, transform, .. } = self.labels;
        let sinks: Vec<Sink> =
            order.iter().map(|&(label, _)| fill_field(&job.output, LABEL_FIELD, label)).collect();
        let mut roles = session.file_roles();
        job.declare_inputs(&mut roles)?;
        let picture = job.preview.as_ref().map(|preview| &preview.sink);
        sinks.iter().chain(picture).try_for_each(|sink| roles.writes(OUTPUT, sink))?;
        let factor = transform.coords.factor(job.format, &job.output, session)?;
        session.timings.time("write", || {
            self.for_each(order, totals, |at, _, mut surface, _| {
                let sink = &sinks[at];
                let mut output = sink.create(session.no_clobber)?;
                factor.iter().for_each(|&factor| surface.scale(factor));
                write(&mut output, &surface, job.format, job.details(&transform.coords))
                    .map_err(|error| Error::io("write", sink.to_string(), error))?;
                output.commit()
            })?;
            Ok(())
        })
    }

    /// Writes a page of all labels. `bounds` is the box around all of them: coordinates are rounded to steps of it, so
    /// that vertices which labels share stay equal.
    pub(super) fn write_page(
        &self,
        order: &[(u64, usize)],
        bounds: Option<[[f32; 3]; 2]>,
        mut output: Output,
        totals: &mut LabelTotals,
    ) -> Result<()> {
        let LabelJob { job, session, transform, file, .. } = self.labels;
        self.check_bytes(order)?;
        let mut viewer = page::viewer(job, &transform.coords, &page::about(file), "Labels");
        viewer.surfaces = session.timings.time("labels", || {
            self.for_each(order, totals, |_, label, surface, stats| {
                let [red, green, blue] = display_colour(label);
                let facts = serde_json::json!({
                    "label": format!("Label {label}"), "stats": stats,
                    "colour": format!("#{red:02x}{green:02x}{blue:02x}"),
                });
                Ok(PackedMesh::new(&label.to_string(), &surface, bounds, facts))
            })
        })?;
        session.timings.time("write", || {
            viewer
                .write(&mut output)
                .map_err(|error| Error::io("write", job.output.to_string(), error))?;
            output.commit()
        })
    }

    /// Writes one file with a part for each label.
    pub(super) fn write_parts(
        &self,
        order: &[(u64, usize)],
        mut output: Output,
        totals: &mut LabelTotals,
    ) -> Result<()> {
        let LabelJob { job, session, transform, .. } = self.labels;
        self.check_bytes(order)?;
        let parts: Vec<LabelPart> = session.timings.time("labels", || {
            self.for_each(order, totals, |_, label, surface, _| Ok((label, surface)))
        })?;
        session.timings.time("write", || {
            match job.format {
                MeshFormat::Glb => {
                    let colored = |(label, surface)| {
                        let [red, green, blue] = colour(label);
                        let (name, color) = (format!("label {label}"), [red, green, blue, 1.0]);
                        ColoredSurface { name, color, surface }
                    };
                    let surfaces: Vec<_> = parts.into_iter().map(colored).collect();
                    write_colored(&mut output, &surfaces, job.details(&transform.coords))
                }
                _ => write_obj_labels(&mut output, &parts, job.details(&transform.coords)),
            }
            .map_err(|error| Error::io("write", job.output.to_string(), error))?;
            output.commit()
        })
    }
}
