//! `gpuproc mesh --labels`: the surfaces of the labels of a volume.

mod list;
mod numbers;
mod slabs;

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

pub use list::LabelList;

use serde_json::Value;

use self::{
    numbers::Numbers,
    slabs::{LabelSlabs, Plan},
};
use super::{
    estimate,
    job::MeshJob,
    names::{labelled, scratch_folder},
    page,
    placing::Placed,
    report::label_stats,
};
use crate::{
    data::{
        label_mesh::{LabelMesh, Quad, UNIT},
        srgb,
        surface::Surface,
    },
    error::{Error, Hint, Result},
    io::{
        Output, Sink,
        mesh::{
            MeshFormat,
            labels::{LabelPart, LabelPly, LabelType, colour, write_glb, write_obj},
            write,
        },
        page::viewer::Shown,
        volume::VolumeFile,
    },
    kernels::mesh::{
        MarchingCubes, Slab,
        labels::{LabelSurfaces, Scratch, SurfaceNets, placed},
    },
    memory,
    parallel::Parallel,
    session::Session,
};

/// Default number of smoothing steps.
pub(super) const STEPS: u32 = 10;

/// The field in the name of an output that stands for the label.
pub(super) const PLACE: &str = "{label}";

/// Meshes the labels of `list` and writes them to the output of `job`.
pub(super) fn mesh_labels(
    job: &MeshJob,
    list: &LabelList,
    mut file: VolumeFile,
    session: &Session,
) -> Result<()> {
    let mut grid = MarchingCubes::new(0.0);
    let placed = job.placing.apply(&mut grid, &job.volume, &file)?;
    let place = Place { spacing: grid.spacing, origin: grid.origin, placed };
    let mut kernel = SurfaceNets::new(job.smooth);
    let mut numbers = Numbers::new(&job.volume, list, &mut file);
    file.check(session.limits(1))?;
    if let Some(preview) = &job.preview {
        preview.check(session)?;
    }
    let plan = Plan::new(&kernel, &file, numbers.size(&file), session)
        .map_err(|error| error.context(&job.volume))?;
    kernel.most_bytes = plan.part;
    session.device.expect(|| estimate::of_job(job, &file));
    let labels = Labels { job, list, file: &file, kernel, plan, place, session };
    let is_each = job.output.to_string().contains(PLACE);
    let output = match is_each {
        true => None,
        false => Some(job.output.create(session.no_clobber)?),
    };
    match output {
        Some(output) if job.format == MeshFormat::Ply && !job.stats && job.preview.is_none() => {
            labels.write_ply(&mut numbers, output)
        }
        output => labels.write_whole(&mut numbers, output),
    }
}

/// An estimate of the seconds per sample on one core, with `steps` smoothing steps.
pub(super) fn core_seconds(steps: u32) -> f64 {
    /// Meshing, per sample.
    const PER_SAMPLE: f64 = 8e-9;
    /// One smoothing step, per sample of the volume: only vertices, where labels meet, are smoothed.
    const PER_STEP: f64 = 6e-10;
    PER_SAMPLE + PER_STEP * f64::from(steps)
}

/// The map from coordinates of the grid to those of the mesh.
struct Place {
    spacing: [f64; 3],
    origin: [f64; 3],
    placed: Placed,
}

impl Place {
    fn at(&self, grid: [f64; 3]) -> [f32; 3] {
        match &self.placed.map {
            Some(placement) => placement.at(grid.map(|v| v - 0.5)).map(|v| v as f32),
            None => std::array::from_fn(|i| (grid[i] * self.spacing[i] + self.origin[i]) as f32),
        }
    }

    /// Whether the map is a reflection, which reverses the orientation of triangles.
    fn is_mirrored(&self) -> bool {
        self.placed.map.as_ref().is_some_and(|placement| placement.determinant() < 0.0)
    }

    fn positions(&self, mesh: &LabelMesh) -> Result<Vec<[f32; 3]>> {
        placed(&mesh.vertices, |grid| self.at(grid))
    }
}

/// A job that meshes labels, and all that its steps share.
struct Labels<'a> {
    job: &'a MeshJob,
    list: &'a LabelList,
    file: &'a VolumeFile,
    kernel: SurfaceNets,
    plan: Plan,
    place: Place,
    session: &'a Session,
}

/// Totals of the surfaces that were written.
#[derive(Default)]
struct Written {
    labels: BTreeSet<u64>,
    vertices: u64,
    triangles: u64,
    bounds: Option<[[f32; 3]; 2]>,
    stats: Vec<serde_json::Value>,
}

impl Written {
    fn widen(&mut self, surface: &Surface) {
        self.bounds = match (self.bounds, surface.bounds()) {
            (Some(one), Some(other)) => Some(joined(one, other)),
            (one, other) => one.or(other),
        };
    }
}

/// The box around two boxes.
fn joined([low, high]: [[f32; 3]; 2], [other_low, other_high]: [[f32; 3]; 2]) -> [[f32; 3]; 2] {
    [
        std::array::from_fn(|i| low[i].min(other_low[i])),
        std::array::from_fn(|i| high[i].max(other_high[i])),
    ]
}

/// The colour of a label in pictures and pages, in sRGB.
fn shown_colour(label: u64) -> [u8; 3] {
    colour(label).map(|v| (255.0 * srgb::from_linear_f32(v)).round() as u8)
}

impl Labels<'_> {
    /// Meshes the volume slab by slab and hands the faces of each slab to `consume`, with the number of its first
    /// vertex.
    fn for_each_part<'n>(
        &self,
        numbers: &'n mut Numbers<'n>,
        mut consume: impl FnMut(u64, LabelMesh) -> Result<()>,
    ) -> Result<&'n Numbers<'n>> {
        let Self { session, kernel, plan, file, .. } = self;
        let all = SurfaceNets::layers(file.dims[2]) as u64;
        let mut bar = session.progress.bar("mesh", all);
        let mut slabs = LabelSlabs::new(kernel, file, plan, numbers)?;
        let mut first_vertex = 0;
        while let Some(slab) = session.timings.time("read", || slabs.next(first_vertex))? {
            first_vertex += self.mesh(&slab, &mut consume)?;
            bar.advance(slab.layers.len() as u64);
        }
        Ok(slabs.numbers)
    }

    /// Meshes a slab, in halves where its faces take too much memory. Returns the number of its vertices.
    fn mesh(
        &self,
        slab: &Slab,
        consume: &mut dyn FnMut(u64, LabelMesh) -> Result<()>,
    ) -> Result<u64> {
        let layers = slab.layers.clone();
        let half =
            |layers, more| Slab { layers, first_vertex: slab.first_vertex + more, ..slab.clone() };
        match self.session.device.run(&self.kernel, slab) {
            Ok(part) => {
                let vertices = part.vertices.len() as u64;
                consume(slab.first_vertex, part).map(|()| vertices)
            }
            Err(error) if error.hint() == Some(Hint::Memory) && layers.len() > 1 => {
                let middle = layers.start + layers.len() / 2;
                let lower = self.mesh(&half(layers.start..middle, 0), consume)?;
                Ok(lower + self.mesh(&half(middle..layers.end, lower), consume)?)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes one PLY of all labels, slab by slab.
    fn write_ply<'n>(&self, numbers: &'n mut Numbers<'n>, mut output: Output) -> Result<()> {
        let Self { job, session, place, .. } = self;
        let failed = |error| Error::io("write", job.output.to_string(), error);
        let folder = scratch_folder(&job.output);
        let placed = (place.placed.space, place.is_mirrored());
        let mut ply = LabelPly::new(job.ascii, placed, self.plan.held, folder);
        let mut written = Written::default();
        let found = Found::new()?;
        let mut top = Top::default();
        let numbers = self.for_each_part(numbers, |first_vertex, mut part| {
            let positions = session.timings.time("faces", || {
                top.split(first_vertex, &mut part, Some(&found));
                place.positions(&part)
            })?;
            let surface = Surface { positions, ..Surface::default() };
            written.widen(&surface);
            written.vertices += surface.positions.len() as u64;
            written.triangles += 2 * part.quads.len() as u64;
            ply.push(surface.positions, part.quads).map_err(failed)
        })?;
        written.labels = found.all().map(|number| numbers.label(number)).collect();
        let label_type = self.label_type(numbers)?;
        session.timings.time("write", || {
            ply.finish(&mut output, &|number| numbers.label(number), label_type).map_err(failed)?;
            output.commit()
        })?;
        self.report(&written);
        Ok(())
    }

    fn label_type(&self, numbers: &Numbers<'_>) -> Result<LabelType> {
        LabelType::for_labels_up_to(numbers.most(self.file)).ok_or_else(|| {
            Error::usage(format_args!(
                "{}: PLY holds labels up to 9,007,199,254,740,992, and {} is greater: write a file a label, as \
                 'name-{PLACE}.ply', or GLB",
                self.job.volume,
                numbers.most(self.file)
            ))
        })
    }

    /// Writes outputs that need all faces in memory: a file for each label, or one file with a part for each label.
    fn write_whole<'n>(&self, numbers: &'n mut Numbers<'n>, output: Option<Output>) -> Result<()> {
        let Self { session, plan, .. } = self;
        let mut mesh = LabelMesh::default();
        let numbers = self.for_each_part(numbers, |_, part| {
            if mesh.bytes() + part.bytes() > plan.faces {
                return Err(Error::bad_input(format_args!(
                    "the faces between the labels take more than the {} bytes that --max-memory leaves for them; one \
                     PLY of all labels, without --stats and --preview, needs no memory for them",
                    plan.faces
                ))
                .with_hint(Hint::Memory));
            }
            mesh.append(part)
        })?;
        let positions = self.place.positions(&mesh)?;
        let surfaces = session.timings.time("labels", || LabelSurfaces::new(&mesh, &positions))?;
        let mut order: Vec<(u64, usize)> =
            surfaces.labels().map(|number| numbers.label(number)).zip(0..).collect();
        order.sort_unstable();
        let mut written = Written {
            labels: order.iter().map(|(label, _)| *label).collect(),
            ..Written::default()
        };
        let each = Each { labels: self, surfaces: &surfaces, scratch: Mutex::default() };
        if let Some(preview) = &self.job.preview {
            preview.draw_one(&each.all(&order)?, session)?;
        }
        match output {
            None => each.write_files(&order, &mut written)?,
            Some(output) if self.job.format == MeshFormat::Ply => {
                each.measure(&order, &mut written)?;
                drop(each);
                self.write_shared(mesh, positions, numbers, output, &mut written)?;
            }
            Some(output) if self.job.format == MeshFormat::Html => {
                let all = positions.iter().copied().map(|p| [p, p]).reduce(joined);
                each.write_page(&order, all, output, &mut written)?;
            }
            Some(output) => each.write_parts(&order, output, &mut written)?,
        }
        self.report(&written);
        Ok(())
    }

    /// Writes one PLY of all labels from a mesh in memory.
    fn write_shared(
        &self,
        mut mesh: LabelMesh,
        positions: Vec<[f32; 3]>,
        numbers: &Numbers<'_>,
        mut output: Output,
        written: &mut Written,
    ) -> Result<()> {
        let Self { job, place, session, .. } = self;
        let label_type = self.label_type(numbers)?;
        let failed = |error| Error::io("write", job.output.to_string(), error);
        let folder = scratch_folder(&job.output);
        let placed = (place.placed.space, place.is_mirrored());
        let mut ply = LabelPly::new(job.ascii, placed, u64::MAX, folder);
        Top::default().split(0, &mut mesh, None);
        (written.vertices, written.triangles) =
            (positions.len() as u64, 2 * mesh.quads.len() as u64);
        session.timings.time("write", || {
            ply.push(positions, mesh.quads).map_err(failed)?;
            ply.finish(&mut output, &|number| numbers.label(number), label_type).map_err(failed)?;
            output.commit()
        })
    }

    fn report(&self, written: &Written) {
        let Written { labels, vertices, triangles, bounds, stats } = written;
        for label in self.list.missing(labels) {
            log::warn!("{}: no sample has label {label}", self.job.volume);
        }
        let count = labels.len();
        let what = match (bounds, self.list) {
            (Some([[x, y, z], [x2, y2, z2]]), _) => {
                format!("box {x},{y},{z} to {x2},{y2},{z2}")
            }
            (None, LabelList::All) => "empty: all samples are 0".to_owned(),
            (None, _) => "empty: no sample has any of these labels".to_owned(),
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

/// Access to the surfaces of the labels one by one.
struct Each<'a, 'l> {
    labels: &'a Labels<'l>,
    surfaces: &'a LabelSurfaces<'a>,
    scratch: Mutex<Vec<Scratch>>,
}

impl Each<'_, '_> {
    /// The surface of the label with this index. Its triangles are turned around where the map to the mesh is a
    /// reflection.
    fn surface(&self, index: usize) -> Result<Surface> {
        let lock = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = lock().pop().unwrap_or_default();
        let surface = self.surfaces.surface(index, &mut scratch);
        lock().push(scratch);
        let mut surface = surface?;
        if self.labels.place.is_mirrored() {
            surface.triangles.iter_mut().for_each(|[_, b, c]| std::mem::swap(b, c));
        }
        Ok(surface)
    }

    /// Hands each surface to `consume`, on all threads, with its place in the order, its label and, where they are
    /// wanted,
    /// its measures. Adds the counts of all surfaces to `written`.
    fn for_each(
        &self,
        order: &[(u64, usize)],
        written: &mut Written,
        consume: impl Fn(usize, u64, Surface, Option<&Value>) -> Result<()> + Sync,
    ) -> Result<()> {
        let all = Mutex::new(Vec::new());
        let job = self.labels.job;
        // A page also shows the measures.
        let is_measured = job.stats || job.format == MeshFormat::Html;
        order.iter().enumerate().par_try_each(|(place, &(label, index))| {
            let surface = self.surface(index)?;
            let stats = match is_measured {
                true => Some(label_stats(label, self.surfaces.samples(index), &surface)?),
                false => None,
            };
            let mut one = Written::default();
            one.widen(&surface);
            (one.vertices, one.triangles) =
                (surface.positions.len() as u64, surface.triangles.len() as u64);
            consume(place, label, surface, stats.as_ref().map(|(_, json)| json))?;
            all.lock().unwrap_or_else(PoisonError::into_inner).push((place, one, stats));
            Ok(())
        })?;
        let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_unstable_by_key(|(place, ..)| *place);
        for (_, one, stats) in all {
            written.vertices += one.vertices;
            written.triangles += one.triangles;
            let corners = one.bounds.map(Vec::from).unwrap_or_default();
            written.widen(&Surface { positions: corners, ..Surface::default() });
            if let Some((line, json)) = stats {
                if job.stats {
                    log::info!("{line}");
                }
                written.stats.push(json);
            }
        }
        Ok(())
    }

    /// Fails where the surfaces of all labels together do not fit into the memory.
    fn check_bytes(&self, order: &[(u64, usize)]) -> Result<()> {
        let plan = &self.labels.plan;
        let needed: u64 = order.iter().map(|&(_, index)| self.surfaces.bytes(index)).sum();
        match needed <= plan.faces {
            true => Ok(()),
            false => Err(Error::bad_input(format_args!(
                "the surfaces of all labels take {needed} bytes, more than the {} that --max-memory leaves for them",
                plan.faces
            ))
            .with_hint(Hint::Memory)),
        }
    }

    /// One surface of all labels, each in its colour.
    fn all(&self, order: &[(u64, usize)]) -> Result<Surface> {
        self.check_bytes(order)?;
        let mut all = Surface::default();
        for &(label, index) in order {
            let mut surface = self.surface(index)?;
            let first = all.positions.len() as u32;
            surface.triangles.as_flattened_mut().iter_mut().for_each(|corner| *corner += first);
            surface.colors = memory::zeros(surface.positions.len())?;
            surface.colors.fill(shown_colour(label));
            all.append(surface)?;
        }
        Ok(all)
    }

    /// Measures all surfaces without writing them.
    fn measure(&self, order: &[(u64, usize)], written: &mut Written) -> Result<()> {
        self.labels
            .session
            .timings
            .time("stats", || self.for_each(order, written, |_, _, _, _| Ok(())))
    }

    /// Writes a file for each label.
    fn write_files(&self, order: &[(u64, usize)], written: &mut Written) -> Result<()> {
        let Labels { job, session, place, .. } = self.labels;
        let sinks: Vec<Sink> =
            order.iter().map(|&(label, _)| labelled(&job.output, PLACE, label)).collect();
        session.timings.time("write", || {
            self.for_each(order, written, |place_in_order, _, surface, _| {
                let sink = &sinks[place_in_order];
                let mut output = sink.create(session.no_clobber)?;
                write(&mut output, surface, job.format, job.ascii, place.placed.space)
                    .map_err(|error| Error::io("write", sink.to_string(), error))?;
                output.commit()
            })
        })
    }

    /// Writes a page of all labels. `bounds` is the box around all of them: coordinates are rounded to steps of it, so that
    /// vertices which labels share stay equal.
    fn write_page(
        &self,
        order: &[(u64, usize)],
        bounds: Option<[[f32; 3]; 2]>,
        mut output: Output,
        written: &mut Written,
    ) -> Result<()> {
        let Labels { job, session, place, file, .. } = self.labels;
        self.check_bytes(order)?;
        let mut viewer = page::viewer(job, (&place.placed, &page::about(file)), "Labels");
        let all: Vec<Mutex<Option<Shown>>> = order.iter().map(|_| Mutex::default()).collect();
        session.timings.time("labels", || {
            self.for_each(order, written, |place, label, surface, stats| {
                let [red, green, blue] = shown_colour(label);
                let facts = serde_json::json!({
                    "label": format!("Label {label}"), "stats": stats,
                    "colour": format!("#{red:02x}{green:02x}{blue:02x}"),
                });
                let shown = Shown::new(&label.to_string(), &surface, bounds, facts);
                *all[place].lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
                Ok(())
            })
        })?;
        let taken = |shown: Mutex<Option<Shown>>| {
            shown.into_inner().unwrap_or_else(PoisonError::into_inner)
        };
        viewer.surfaces = all.into_iter().filter_map(taken).collect();
        session.timings.time("write", || {
            viewer
                .write(&mut output)
                .map_err(|error| Error::io("write", job.output.to_string(), error))?;
            output.commit()
        })
    }

    /// Writes one file with a part for each label.
    fn write_parts(
        &self,
        order: &[(u64, usize)],
        mut output: Output,
        written: &mut Written,
    ) -> Result<()> {
        let Labels { job, session, place, .. } = self.labels;
        self.check_bytes(order)?;
        let parts: Vec<Mutex<Option<LabelPart>>> = order.iter().map(|_| Mutex::default()).collect();
        session.timings.time("labels", || {
            self.for_each(order, written, |place, label, surface, _| {
                let mut part = parts[place].lock().unwrap_or_else(PoisonError::into_inner);
                *part = Some((label, surface));
                Ok(())
            })
        })?;
        let taken = |part: Mutex<Option<LabelPart>>| {
            part.into_inner().unwrap_or_else(PoisonError::into_inner)
        };
        let parts: Vec<LabelPart> = parts.into_iter().filter_map(taken).collect();
        session.timings.time("write", || {
            match job.format {
                MeshFormat::Glb => write_glb(&mut output, &parts),
                _ => write_obj(&mut output, &parts, place.placed.space),
            }
            .map_err(|error| Error::io("write", job.output.to_string(), error))?;
            output.commit()
        })
    }
}

/// The set of numbers of labels that have faces.
struct Found {
    /// A bit for each number below [`SMALL`](Self::SMALL).
    small: Vec<AtomicU64>,
    others: Mutex<BTreeSet<u32>>,
}

impl Found {
    const SMALL: u32 = 1 << 24;

    fn new() -> Result<Self> {
        let small = memory::zeros::<u64>(Self::SMALL as usize / 64)?;
        let small = small.into_iter().map(AtomicU64::new).collect();
        Ok(Self { small, others: Mutex::default() })
    }

    fn add(&self, quads: &[Quad]) {
        let mut others = Vec::new();
        for label in quads.iter().flat_map(|quad| quad.labels) {
            if label >= Self::SMALL {
                others.push(label);
                continue;
            }
            let (word, bit) = (&self.small[label as usize / 64], 1 << (label % 64));
            if word.load(Relaxed) & bit == 0 {
                word.fetch_or(bit, Relaxed);
            }
        }
        if !others.is_empty() {
            others.sort_unstable();
            others.dedup();
            self.others.lock().unwrap_or_else(PoisonError::into_inner).extend(others);
        }
    }

    /// The numbers in ascending order, without 0.
    fn all(self) -> impl Iterator<Item = u32> {
        let Self { small, others } = self;
        let bit = move |label: &u32| small[*label as usize / 64].load(Relaxed) >> (label % 64) & 1;
        let small = (1..Self::SMALL).filter(move |label| bit(label) == 1);
        small.chain(others.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The vertices of the topmost layer so far, which faces of the next part may use.
#[derive(Default)]
struct Top {
    first: u64,
    vertices: Vec<[u32; 3]>,
}

impl Top {
    /// Splits each quad of the next part along its shorter diagonal, and adds its labels to `found`. `first_vertex` is
    /// the
    /// number of the first vertex of the part.
    fn split(&mut self, first_vertex: u64, part: &mut LabelMesh, found: Option<&Found>) {
        let LabelMesh { vertices, quads } = part;
        let corner = |number: u32| match u64::from(number).checked_sub(first_vertex) {
            Some(own) => vertices[own as usize],
            None => self.vertices[(u64::from(number) - self.first) as usize],
        };
        quads.chunks_mut(1 << 14).par_each(|quads| {
            if let Some(found) = found {
                found.add(quads);
            }
            for quad in quads {
                let [a, b, c, d] = quad.vertices;
                quad.split(Quad::is_first_shorter([corner(a), corner(b), corner(c), corner(d)]));
            }
        });
        let layer = |vertex: &[u32; 3]| (vertex[2] + UNIT / 2) / UNIT;
        let Some(top) = vertices.last().map(layer) else { return };
        let count = vertices.iter().rev().take_while(|vertex| layer(vertex) == top).count();
        let kept = vertices.len() - count;
        self.first = first_vertex + kept as u64;
        self.vertices = vertices[kept..].to_vec();
    }
}
