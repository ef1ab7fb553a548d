//! `gpuproc mesh`: isosurfaces of a volume by marching cubes, or the surfaces of its labels by surface nets.

mod budget;
mod color;
mod color_by;
mod colored;
mod coordinates;
mod estimate;
mod flags;
mod input;
mod job;
mod label_list;
mod labels;
mod memory;
mod names;
mod outputs;
mod page;
mod parts;
mod preview;
mod region;
mod report;
mod slabs;
mod surfaces;
mod whole;

use std::mem;

use self::{
    budget::allow,
    flags::Jobs,
    input::{OpenVolume, VolumeInput},
    job::{Iso, MeshJob},
    memory::worst,
    names::scratch_folder,
    outputs::{Names, PlannedMesh},
    report::Summary,
    surfaces::surfaces,
};
use crate::{
    commands::flags::ShardArgs,
    device::{Estimate, sum_of_all},
    engine::{batch::Work, run_each, session::Session},
    io::{
        Output, Sink, Source, Sources, allow_broken_pipe,
        marker::Marker,
        mesh::{MeshFolder, MeshFormat, PlyWriter, write},
        volume::{VolumeFile, can_reopen},
    },
    util::error::{Error, Result},
};

pub use flags::Args;
pub use parts::merge;

/// Meshes one volume or several.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let mut runs = Vec::new();
    session.check_files(|roles| {
        for args in args.for_each_output()? {
            runs.push(args.work(roles, runs.is_empty(), session)?);
        }
        Ok(())
    })?;
    runs.into_iter().try_for_each(|(sources, jobs)| run_one(sources, jobs, session))
}

/// Meshes all volumes for one `-o`.
fn run_one(sources: Sources, jobs: Jobs, session: &Session) -> Result<()> {
    let sharding = jobs.sharding();
    if let (Some(shard), true) = (sharding.shard, jobs.is_alone()) {
        let job = jobs.job_for(sources.get(0))?;
        let (volume, output) = (job.volume.clone(), job.output.clone());
        return session.run_logged(&volume, Some(&output), || parts::write(job, shard, session));
    }
    let work = Volumes { jobs, session };
    // A single volume is estimated once it is open.
    let set_estimate = |left: &Sources| {
        let seconds = |source| {
            let job = work.job(source).ok()?;
            Some(estimate::seconds(&job, &describe(&job, session)?))
        };
        if left.len() > 1 {
            session.device.set_estimate(|| {
                let [cpu, gpu] = sum_of_all(left.iter(), seconds);
                Estimate::from_seconds(cpu, gpu)
            });
        }
    };
    run_each(("mesh", sharding.resume), &work, sources, session, set_estimate)
}

/// The work of [`run_each`], which meshes volumes side by side.
struct Volumes<'a> {
    jobs: Jobs,
    session: &'a Session,
}

impl Work for Volumes<'_> {
    type Job = MeshJob;
    type Out = ();

    fn job(&self, source: Source) -> Result<MeshJob> {
        self.jobs.job_for(source)
    }

    fn sink<'j>(&self, job: &'j MeshJob) -> Option<&'j Sink> {
        Some(&job.output)
    }

    /// `None` also if the name of an output contains an isovalue that is still to be found.
    fn marker(&self, job: &MeshJob) -> Result<Option<Marker>> {
        let names = (outputs::known_names(job), outputs::known_pictures(job));
        let (Some(mut outputs), Some(pictures)) = names else { return Ok(None) };
        outputs.extend(pictures);
        let side = job.steps.side_files(&job.volume, 3)?;
        outputs.extend(side.writes.into_iter().map(|(_, sink)| sink));
        let inputs = job.inputs().chain(side.reads.iter().map(|(_, source)| source));
        // The result does not depend on which shard meshes the volume.
        let sharding = ShardArgs { shard: None, ..job.sharding };
        sharding.marker(self.session, ("mesh", &job.parameters()), inputs, &outputs)
    }

    fn memory(&self, job: &MeshJob) -> Option<u64> {
        worst(job, &describe(job, self.session)?)
    }

    /// Creates the folder of the output and meshes the volume.
    fn run(&self, job: &MeshJob) -> Result<()> {
        if job.creates_folder {
            job.output.want_folder();
        }
        mesh_volume(job.clone(), self.session)
    }
}

/// The header of the volume of `job`; `None` for an input that can be read only once, such as a pipe.
fn describe(job: &MeshJob, session: &Session) -> Option<VolumeFile> {
    can_reopen(&job.volume).then(|| job.describe(session))?.ok()
}

/// Meshes one volume.
fn mesh_volume(mut job: MeshJob, session: &Session) -> Result<()> {
    let file = job.describe(session)?;
    if let Some(list) = &job.labels {
        return allow_broken_pipe(labels::mesh_labels(&job, list, file, session));
    }
    let mut coords = job.coordinates.apply(&mut job.kernel, &job.volume, &file)?;
    let color_by = job.color_by.clone();
    let colors = color_by.as_ref().map(|by| by.read(&file, &job.kernel, &coords, session));
    let colors = colors.transpose()?;
    job.region.place(&mut job.kernel, &mut coords);
    let job = job;
    file.check(session.limits(1))?;
    input::check(&job, &file, session)?;
    job.preview.as_ref().map_or(Ok(()), |preview| preview.check(session))?;
    session.device.set_estimate(|| estimate::for_job(&job, &file));
    let about = page::about(&file);
    let mut names = Names::new(&job, session)?;
    let targets = PlannedMesh::open_all(&job, session)?;
    let input = VolumeInput::open(&job, file, session)?;
    let volume = OpenVolume { job: &job, session, input, coords, colors, about };
    targets.into_iter().try_for_each(|target| volume.write_target(target, &mut names))
}

impl OpenVolume<'_> {
    /// Meshes the volume at the isovalues of `target` and writes its output. A reader that has closed its pipe is not
    /// an error, so that the other outputs are still written.
    fn write_target(&self, target: PlannedMesh, names: &mut Names<'_>) -> Result<()> {
        let Self { job, session, .. } = *self;
        let value = |iso: &Iso| match *iso {
            Iso::Value(iso) => Ok(iso),
            Iso::Auto(rule) => self.input.threshold(job, rule, session),
        };
        let isovalues = target.isovalues.iter().map(value).collect::<Result<Vec<f64>>>()?;
        let iso = isovalues[0];
        let (sink, (output, folder)) = target.open(iso, job, names, session)?;
        let is_colored = isovalues.len() > 1 || !job.colors.is_empty() || self.colors.is_some();
        let written = if job.format == MeshFormat::Html {
            page::write(self, &isovalues, &sink, output)
        } else if job.format == MeshFormat::Glb && is_colored {
            colored::write(self, &isovalues, &sink, output)
        } else {
            let summary = match job.needs_whole_surface() {
                Some(_) => self.mesh_whole(iso, &sink, output),
                None => self.mesh_parts(iso, &sink, output),
            };
            summary.and_then(|summary| {
                folder.map_or(Ok(()), MeshFolder::finish)?;
                summary.report(iso, &sink, session);
                Ok(())
            })
        };
        allow_broken_pipe(written)
    }

    /// Makes the surface of one isovalue in memory, draws its preview and writes it.
    fn mesh_whole(&self, iso: f64, sink: &Sink, mut output: Output) -> Result<Summary> {
        let Self { job, session, coords, .. } = self;
        let (mut surface, mut summary) = self.surface(iso)?;
        summary.check_empty(iso, sink, self)?;
        if let Some(preview) = job.preview(coords) {
            preview.draw(&preview.name(iso), &surface, summary.color_bar, session)?;
        }
        if let Some(factor) = coords.factor(job.format, sink, session)? {
            surface.scale(factor);
        }
        let bytes = job.format.bytes(&surface);
        if bytes > 0 {
            allow("packing a surface", &surface, bytes, session)?;
        }
        if let Some(step) = job.format.precision(&surface) {
            log::info!("positions rounded by at most {step} along each axis");
        }
        let left_out = job.format.skipped_triangles(&surface);
        if left_out > 0 {
            log::info!("{left_out} degenerate triangles left out of the file");
        }
        let is_read_back = job.printable && !sink.is_stream();
        if !is_read_back {
            self.check_closed(&surface, sink)?;
        }
        session.timings.time("write", || {
            write(&mut output, &surface, job.format, job.details(coords))
                .map_err(|error| Error::io("write", sink.to_string(), error))
        })?;
        if is_read_back {
            let surface = self.written(surface, &mut output, sink)?;
            summary.replace(&surface);
            self.check_closed(&surface, sink)?;
        }
        session.timings.time("write", || output.commit())?;
        Ok(summary)
    }

    /// Meshes and writes a surface part by part, so that the whole surface is never in memory.
    fn mesh_parts(&self, iso: f64, sink: &Sink, mut output: Output) -> Result<Summary> {
        let Self { job, session, input, coords, .. } = self;
        let failed = |error| Error::io("write", sink.to_string(), error);
        let held = input.plan().pending_bytes;
        let mut ply = PlyWriter::new(job.details(coords), held, scratch_folder(sink));
        let mut summary = Summary::default();
        surfaces(input, coords, &job.kernel(iso), session, |mut part| {
            summary.add(&part);
            let triangles = mem::take(&mut part.triangles);
            ply.push(part, triangles).map_err(failed)
        })?;
        summary.check_empty(iso, sink, self)?;
        session.timings.time("write", || {
            ply.finish(&mut output).map_err(failed)?;
            output.commit()
        })?;
        Ok(summary)
    }
}
