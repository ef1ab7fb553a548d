//! `gpuproc mesh`: the surface of a volume, by marching cubes.

mod flags;
mod input;
mod job;
mod memory;
mod names;
mod outputs;
mod placing;
mod preview;
mod report;
mod slabs;
mod surfaces;

use self::{
    input::VolumeInput,
    job::{Iso, MeshJob},
    memory::allow,
    names::scratch_folder,
    outputs::{Names, Target},
    placing::Placed,
    report::{Summary, tell_stats},
    surfaces::surfaces,
};
use crate::{
    data::surface::Surface,
    device::Estimate,
    error::{Error, Result},
    io::{
        Output, Sink,
        mesh::{MeshFormat, PlyWriter, write},
        volume::VolumeFile,
    },
    kernels::mesh::{
        MarchingCubes,
        post::{Stats, Step, keep_largest, simplify, smooth},
    },
    session::Session,
};

pub use flags::Args;

/// Meshes the volume.
///
/// # Errors
/// When the volume cannot be read or the mesh cannot be written.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let mut job = args.job()?;
    let file = VolumeFile::describe(&job.volume, &job.layout)?;
    let placed = job.placing.apply(&mut job.kernel, &job.volume, &file)?;
    let job = job;
    file.check(session.limits(1))?;
    input::check(&job, &file, session)?;
    job.preview.as_ref().map_or(Ok(()), |preview| preview.check(session))?;
    session.device.expect(|| Estimate::of_seconds(job.cpu_seconds(&file), 0.0));
    let mut names = Names::new(&job);
    let targets = Target::open_all(&job, &mut names, session)?;
    let input = VolumeInput::open(&job, file, session)?;
    for target in targets {
        let iso = match target.iso {
            Iso::Value(iso) => iso,
            Iso::Auto => input.threshold(&job, session)?,
        };
        let (sink, output) = target.open(iso, &mut names, session)?;
        let summary = match job.needs_whole_surface() {
            true => job.mesh_whole((&input, &placed), iso, &sink, output, session),
            false => job.mesh_parts((&input, &placed), iso, &sink, output, session),
        };
        match summary {
            Ok(summary) => summary.report(iso, &sink, session),
            // Nobody reads this mesh; the others may be wanted.
            Err(error) if error.is_broken_pipe() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl MeshJob {
    /// About how long the CPU twins will take. A GPU, once it has started, takes next to nothing.
    fn cpu_seconds(&self, file: &VolumeFile) -> f64 {
        /// A sample of a CT, of which 2.5 % of the cells are crossed, on one core.
        const PER_SAMPLE: f64 = 3e-9;
        let samples = file.dims.iter().map(|&n| n as f64).product::<f64>();
        let cores = rayon::current_num_threads() as f64;
        let preview = self.preview.as_ref().map_or(0.0, |preview| preview.cpu_time(cores));
        (PER_SAMPLE * samples / cores + preview) * self.isovalues.len() as f64
    }

    /// Whether something is made of the whole surface. Only PLY can be written part by part.
    fn needs_whole_surface(&self) -> bool {
        self.largest
            || self.smooth > 0
            || self.simplify.is_some()
            || self.stats
            || self.preview.is_some()
            || self.format != MeshFormat::Ply
    }

    fn kernel(&self, iso: f64) -> MarchingCubes {
        MarchingCubes { iso, ..self.kernel.clone() }
    }

    /// Meshes, improves, measures, draws and writes a surface in memory.
    fn mesh_whole(
        &self,
        (input, placed): (&VolumeInput, &Placed),
        iso: f64,
        sink: &Sink,
        mut output: Output,
        session: &Session,
    ) -> Result<Summary> {
        let mut surface = Surface::default();
        let (allowed, mut largest) = (input.plan().surface, 0);
        surfaces((input, placed), &self.kernel(iso), session, |part| {
            // Two more parts may be under way.
            largest = part.bytes().max(largest);
            if surface.bytes() + part.bytes() + 2 * largest > allowed && largest > 0 {
                return Err(Error::bad_input(format_args!(
                    "the surface takes more than the {allowed} bytes that --max-memory leaves for it; binary \
                     PLY without further steps needs no memory for it"
                )));
            }
            surface.append(part)
        })?;
        self.improve(&mut surface, session)?;
        let mut summary = Summary::default();
        summary.add(&surface);
        if self.stats {
            allow("measuring a surface", &surface, Step::Stats.bytes(&surface), session)?;
            let stats = session.timings.time("stats", || Stats::of(&surface))?;
            tell_stats(&stats);
            summary.stats = Some(stats);
        }
        if let Some(preview) = &self.preview {
            preview.draw(iso, &surface, session)?;
        }
        session.timings.time("write", || {
            write(&mut output, surface, self.format, self.ascii, placed.space)
                .map_err(|error| Error::io("write", sink.to_string(), error))?;
            output.commit()
        })?;
        Ok(summary)
    }

    /// Meshes and writes a surface part by part, which takes no memory for all of it.
    fn mesh_parts(
        &self,
        (input, placed): (&VolumeInput, &Placed),
        iso: f64,
        sink: &Sink,
        mut output: Output,
        session: &Session,
    ) -> Result<Summary> {
        let failed = |error| Error::io("write", sink.to_string(), error);
        let held = input.plan().held;
        let mut ply = PlyWriter::new(self.ascii, placed.space, held, scratch_folder(sink));
        let mut summary = Summary::default();
        surfaces((input, placed), &self.kernel(iso), session, |part| {
            summary.add(&part);
            ply.push(part).map_err(failed)
        })?;
        session.timings.time("write", || {
            ply.finish(&mut output).map_err(failed)?;
            output.commit()
        })?;
        Ok(summary)
    }

    /// The steps that need the whole surface.
    fn improve(&self, surface: &mut Surface, session: &Session) -> Result<()> {
        let allowed = |what, surface: &Surface, step: Step| {
            allow(what, surface, step.bytes(surface), session)
        };
        if self.largest {
            allowed("the largest part", surface, Step::Largest)?;
            session.timings.time("largest", || keep_largest(surface))?;
        }
        if self.smooth > 0 {
            allowed("smoothing a surface", surface, Step::Smooth)?;
            session.timings.time("smooth", || smooth(surface, self.smooth))?;
        }
        if let Some(ratio) = self.simplify {
            allowed("simplifying a surface", surface, Step::Simplify)?;
            session.timings.time("simplify", || simplify(surface, ratio))?;
        }
        Ok(())
    }
}
