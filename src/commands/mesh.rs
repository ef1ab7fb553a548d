//! `gpuproc mesh`: the surface of a volume, by marching cubes.

mod preview;
mod slabs;

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::mpsc::sync_channel,
    thread,
    time::Duration,
};

use crate::{
    commands::flags::{Triple, VolumeArgs},
    data::surface::Surface,
    error::{Error, Kind, Result},
    io::{
        Output, Sink, Source,
        mesh::{MeshFormat, PlyWriter, write},
        volume::VolumeFile,
    },
    kernels::mesh::{
        MarchingCubes, Otsu, Slab,
        post::{Stats, keep_largest, simplify, smooth},
    },
    session::Session,
};

use preview::PreviewArgs;
use slabs::Slabs;

/// Mesh the surface in a volume where its samples pass an isovalue (marching cubes).
///
/// The volume is raw samples, x fastest. The mesh has shared vertices and triangles whose normals
/// point to lower values; the same bytes come out on every device. Volumes of any size go through in
/// slabs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc mesh skull_256x256x256_uint8.raw --iso 80
  gpuproc mesh ct.raw --dims 512x512x300 --dtype i16 --iso 300 --spacing 0.7,0.7,1.25 bone.stl
  gpuproc mesh engine_256x256x128_uint8.raw --iso 60,120 'engine-{iso}.ply'
  gpuproc mesh head_256x256x225_uint16.raw.gz --iso auto --close --largest --smooth 10 head.glb
  gpuproc mesh skull_256x256x256_uint8.raw --iso 80 --preview skull.png --view 215,12
  gpuproc mesh field_200x100x50_float32.raw --iso 0.5 --stats - | meshlab /dev/stdin")]
pub struct Args {
    /// Volume of raw samples: a name like skull_256x256x256_uint8.raw tells its shape and type; .gz
    /// is unpacked; - is standard input
    volume: Source,

    /// Mesh to write: .ply, .stl, .obj or .glb; {iso} becomes the isovalue; - is standard output
    /// [default: the volume's name with .ply, in the current folder]
    output: Option<Sink>,

    /// Isovalue, in the samples' units: samples above it are inside. Several, separated by commas,
    /// make a file each; auto takes Otsu's threshold of the volume's histogram
    #[arg(long, value_name = "VALUE", required = true, value_delimiter = ',')]
    #[arg(allow_negative_numbers = true)]
    iso: Vec<Iso>,

    /// Distance between samples along x, y and z, in any unit
    #[arg(long, value_name = "X,Y,Z", default_value = "1,1,1", value_parser = spacing)]
    spacing: Triple,

    /// Corner of the volume's box, in the same unit; the first sample sits half a spacing from it
    #[arg(long, value_name = "X,Y,Z", default_value = "0,0,0", allow_negative_numbers = true)]
    origin: Triple,

    /// Close the surface where it leaves the volume, on the volume's box
    #[arg(long)]
    close: bool,

    /// Give every vertex a normal, from the volume's gradient
    #[arg(long)]
    normals: bool,

    /// Keep only the connected part with the most triangles
    #[arg(long)]
    largest: bool,

    /// Smooth by N pairs of steps that do not shrink the surface (Taubin); 10 is a good start
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1000))]
    smooth: u32,

    /// Leave about this share of the triangles, greater than 0 and at most 1
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    simplify: Option<f64>,

    /// Say area, enclosed volume, connected parts, and whether the surface is closed
    #[arg(long)]
    stats: bool,

    /// Format of the mesh [default: by the output's extension, else ply]
    #[arg(long, value_enum)]
    format: Option<MeshFormat>,

    /// Write PLY as text
    #[arg(long)]
    ascii: bool,

    #[command(flatten)]
    preview: PreviewArgs,

    #[command(flatten)]
    raw: VolumeArgs,
}

/// What `--iso` takes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Iso {
    Auto,
    Value(f64),
}

impl FromStr for Iso {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            text => {
                let value = text.parse().ok().filter(|value: &f64| value.is_finite());
                value
                    .map(Self::Value)
                    .ok_or_else(|| format!("`{text}` is neither auto nor a number"))
            }
        }
    }
}

fn spacing(text: &str) -> Result<Triple, String> {
    let spacing: Triple = text.parse()?;
    match spacing.0.iter().all(|&step| step > 0.0) {
        true => Ok(spacing),
        false => Err(format!("`{text}` has a step that is not greater than 0")),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|&ratio: &f64| ratio > 0.0 && ratio <= 1.0);
    ratio.ok_or_else(|| format!("`{text}` is not greater than 0 and at most 1"))
}

/// Larger volumes go through slab by slab, whatever memory there is.
const WHOLE: u64 = 256 << 20;
/// Bytes of samples a slab, where memory allows.
const SLAB: u64 = 64 << 20;

/// Meshes the volume.
///
/// # Errors
/// When the volume cannot be read or the mesh cannot be written.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let file = VolumeFile::describe(&args.volume, &args.raw.layout())?;
    file.check(session.limits(1))?;
    let format = args.format()?;
    args.preview.check(args.iso.len() > 1, session)?;
    session.device.expect(args.cpu_time(&file));
    // Wrong names fail before the work.
    let sinks = args.sinks(&file, session)?;
    let input = args.input(file, session)?;
    for (sink, output, iso) in sinks {
        let iso = match iso {
            Iso::Value(iso) => iso,
            Iso::Auto => automatic(&input, args, session)?,
        };
        let (sink, output) = match output {
            Some(output) => (sink, output),
            None => {
                let sink = named(&sink, iso);
                let output = sink.create(session.no_clobber)?;
                (sink, output)
            }
        };
        args.mesh(&input, iso, format, &sink, output, session)?;
    }
    Ok(())
}

/// Where the samples come from.
enum Input {
    /// All of them, in memory.
    Whole(Box<Slab>),
    /// Slab by slab.
    Stream(VolumeFile),
}

/// What is said about a mesh.
#[derive(Default)]
struct Summary {
    vertices: u64,
    triangles: u64,
    nan_cells: u64,
    bounds: Option<[[f32; 3]; 2]>,
    stats: Option<Stats>,
}

/// What the CPU twin takes for a sample, on one core: that of a CT, of which 2.5 % of the cells are
/// crossed.
const PER_SAMPLE: Duration = Duration::from_nanos(3);

impl Args {
    /// About how long the CPU twins will take.
    fn cpu_time(&self, file: &VolumeFile) -> Duration {
        let samples = file.dims.iter().map(|&n| n as f64).product::<f64>();
        let cores = rayon::current_num_threads() as f64;
        let one = PER_SAMPLE.as_secs_f64() * samples / cores + self.preview.cpu_time(cores);
        Duration::try_from_secs_f64(one * self.iso.len() as f64).unwrap_or(Duration::MAX)
    }

    fn format(&self) -> Result<MeshFormat> {
        let format = match (self.format, &self.output) {
            (Some(format), _) => format,
            (None, Some(sink)) if !sink.extension().is_empty() => {
                sink.extension().parse().map_err(|error| {
                    Error::usage(format_args!("{sink}: {error}; name the format with --format"))
                })?
            }
            _ => MeshFormat::Ply,
        };
        match self.ascii && format != MeshFormat::Ply {
            true => Err(Error::usage("--ascii is for PLY only")),
            false => Ok(format),
        }
    }

    /// The outputs, opened unless their name depends on a value that is still to be found.
    fn sinks(
        &self,
        file: &VolumeFile,
        session: &Session,
    ) -> Result<Vec<(Sink, Option<Output>, Iso)>> {
        let several = self.iso.len() > 1;
        let pattern = match &self.output {
            Some(Sink::Stdout) if several => {
                return Err(Error::usage("several --iso need an output each: name a file"));
            }
            Some(sink) => sink.clone(),
            None => Sink::File(default_output(&self.volume, self.format)?.into()),
        };
        let reread = several || self.iso.contains(&Iso::Auto);
        if reread && !file.can_reopen() && file.bytes() > Some(session.max_memory) {
            return Err(Error::usage(
                "this input can be read only once, and --max-memory cannot hold it: give one --iso",
            ));
        }
        let has_place = pattern.to_string().contains("{iso}");
        self.iso
            .iter()
            .enumerate()
            .map(|(i, &iso)| {
                let sink = match several && !has_place {
                    true => numbered(&pattern, i + 1),
                    false => pattern.clone(),
                };
                let sink = match iso {
                    Iso::Value(value) => named(&sink, value),
                    Iso::Auto if has_place => return Ok((sink, None, iso)),
                    Iso::Auto => sink,
                };
                let output = sink.create(session.no_clobber)?;
                Ok((sink, Some(output), iso))
            })
            .collect()
    }

    fn input(&self, file: VolumeFile, session: &Session) -> Result<Input> {
        let bytes = file.bytes().unwrap_or(u64::MAX);
        let reread = self.iso.len() > 1 || self.iso.contains(&Iso::Auto);
        let limit = match reread && !file.can_reopen() {
            true => session.max_memory,
            // In noise, a sample makes a surface of so many bytes.
            false => WHOLE.min(session.max_memory / 64 * file.dtype.size() as u64),
        };
        if bytes > limit {
            return Ok(Input::Stream(file));
        }
        let volume = file.read(limit, &session.timings)?;
        Ok(Input::Whole(Box::new(Slab::whole(volume, &self.kernel(0.0)))))
    }

    fn kernel(&self, iso: f64) -> MarchingCubes {
        MarchingCubes {
            iso,
            spacing: self.spacing.0,
            origin: self.origin.0,
            close: self.close,
            normals: self.normals,
        }
    }

    fn mesh(
        &self,
        input: &Input,
        iso: f64,
        format: MeshFormat,
        sink: &Sink,
        mut output: Output,
        session: &Session,
    ) -> Result<()> {
        let failed = |error| Error::io("write", sink.to_string(), error);
        let kernel = self.kernel(iso);
        let needs_all = self.largest
            || self.smooth > 0
            || self.simplify.is_some()
            || self.stats
            || self.preview.is_wanted()
            || format != MeshFormat::Ply;
        let mut summary = Summary::default();
        let mut nan_cells = 0;
        if needs_all {
            let mut surface = Surface::default();
            surfaces(input, &kernel, session, |part| {
                surface.append(part)?;
                match surface.bytes() > session.max_memory {
                    true => Err(Error::bad_input(format_args!(
                        "the surface takes more than the {} bytes that --max-memory allows; binary \
                         PLY without further steps needs no memory for it",
                        session.max_memory
                    ))),
                    false => Ok(()),
                }
            })?;
            nan_cells = surface.nan_cells;
            surface.nan_cells = 0;
            self.improve(&mut surface, session)?;
            summary.add(&surface);
            if self.stats {
                let stats = session.timings.time("stats", || Stats::of(&surface))?;
                summary.stats = Some(stats);
                log::info!(
                    "area {:.6}, enclosed volume {:.6}, {} connected parts, {}",
                    stats.area,
                    stats.volume,
                    stats.components,
                    if stats.closed { "closed" } else { "not closed" }
                );
            }
            self.preview.draw(iso, &surface, session)?;
            session.timings.time("write", || {
                write(&mut output, surface, format, self.ascii).map_err(failed)?;
                output.commit()
            })?;
        } else {
            let mut ply = PlyWriter::new(
                self.ascii,
                (session.max_memory / 4).min(WHOLE),
                scratch_folder(sink),
            );
            surfaces(input, &kernel, session, |part| {
                summary.add(&part);
                ply.push(part).map_err(failed)
            })?;
            session.timings.time("write", || {
                ply.finish(&mut output).map_err(failed)?;
                output.commit()
            })?;
        }
        summary.nan_cells += nan_cells;
        summary.report(sink);
        session.timings.add_result(summary.facts(iso, sink));
        Ok(())
    }

    /// The steps that need the whole surface.
    fn improve(&self, surface: &mut Surface, session: &Session) -> Result<()> {
        if self.largest {
            session.timings.time("largest", || keep_largest(surface))?;
        }
        if self.smooth > 0 {
            session.timings.time("smooth", || smooth(surface, self.smooth))?;
        }
        if let Some(ratio) = self.simplify {
            session.timings.time("simplify", || simplify(surface, ratio))?;
        }
        Ok(())
    }
}

/// Hands the surface to `consume`, part by part. Of a stream, the next slab is read and the last
/// part consumed while a slab is meshed.
fn surfaces(
    input: &Input,
    kernel: &MarchingCubes,
    session: &Session,
    mut consume: impl FnMut(Surface) -> Result<()> + Send,
) -> Result<()> {
    let file = match input {
        Input::Whole(slab) => return consume(session.device.run(kernel, slab)?),
        Input::Stream(file) => file,
    };
    let slice = file.dims[0] as u64 * file.dims[1] as u64 * file.dtype.size() as u64;
    // Three parts of the surface are under way at a time, and the worst is some 64 bytes a sample.
    let worst = session.max_memory / (2 * 3 * 64) * file.dtype.size() as u64;
    let height = (SLAB.min(worst) / slice).max(1) as usize;
    let mut slabs = Slabs::new(kernel, file, height)?;
    let layers = kernel.layers(file.dims[2]);
    let mut bar = session.progress.bar("mesh", layers as u64);
    thread::scope(|scope| {
        let (slab_in, slab_out) = sync_channel(1);
        scope.spawn(move || {
            while let Some(slab) = session.timings.time("read", || slabs.next()) {
                if slab_in.send(slab).is_err() {
                    break;
                }
            }
        });
        let (part_in, part_out) = sync_channel(1);
        let consumer = scope.spawn(move || part_out.into_iter().try_for_each(&mut consume));
        let mut first_vertex = 0;
        let mut result = Ok(());
        for slab in slab_out {
            let part = slab.and_then(|slab| {
                let slab = Slab { first_vertex, ..slab };
                let part = session.device.run(kernel, &slab)?;
                bar.advance(slab.layers.len() as u64);
                Ok(part)
            });
            match part {
                Ok(part) => {
                    first_vertex += part.positions.len() as u64;
                    if part_in.send(part).is_err() {
                        break;
                    }
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        drop(part_in);
        let consumed = consumer
            .join()
            .unwrap_or_else(|_| Err(Error::new(Kind::Failure, "writing the surface broke off")));
        result.and(consumed)
    })
}

/// Otsu's threshold of the samples.
fn automatic(input: &Input, args: &Args, session: &Session) -> Result<f64> {
    let threshold = session.timings.time("threshold", || {
        let mut otsu;
        match input {
            Input::Whole(slab) => {
                let samples = &slab.volume.samples;
                otsu = Otsu::new(samples.dtype());
                if otsu.needs_range() {
                    otsu.range(samples);
                }
                otsu.count(samples);
            }
            Input::Stream(file) => {
                otsu = Otsu::new(file.dtype);
                let otsu_needs_range = otsu.needs_range();
                // One slice a time, whatever the kernel needs.
                let mut sweep =
                    |step: fn(&mut Otsu, &crate::data::samples::Samples)| -> Result<()> {
                        let mut reader = file.reader()?;
                        for _ in 0..file.dims[2] {
                            step(&mut otsu, &reader.read(1)?);
                        }
                        Ok(())
                    };
                if otsu_needs_range {
                    sweep(Otsu::range)?;
                }
                sweep(Otsu::count)?;
            }
        }
        Ok(otsu.threshold())
    })?;
    let iso = threshold.ok_or_else(|| {
        Error::bad_input(format_args!(
            "{}: all samples are equal, so there is no threshold between them",
            args.volume
        ))
    })?;
    log::info!("--iso auto: {iso}");
    Ok(iso)
}

impl Summary {
    fn add(&mut self, part: &Surface) {
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

    /// For `--timings=json`.
    fn facts(&self, iso: f64, sink: &Sink) -> serde_json::Value {
        serde_json::json!({
            "file": sink.to_string(),
            "iso": iso,
            "vertices": self.vertices,
            "triangles": self.triangles,
            "nan_cells": self.nan_cells,
            "box": self.bounds,
            "stats": self.stats,
        })
    }

    fn report(&self, sink: &Sink) {
        if self.nan_cells > 0 {
            log::warn!("{} cells left out: a corner is not a number (NaN)", self.nan_cells);
        }
        let bounds = match self.bounds {
            Some([[x, y, z], [x2, y2, z2]]) => format!("box {x},{y},{z} to {x2},{y2},{z2}"),
            None => "empty: the isovalue parts no two neighbouring samples".to_owned(),
        };
        log::info!("{} vertices, {} triangles, {bounds}: {sink}", self.vertices, self.triangles);
    }
}

/// The volume's name with the extension of the mesh, in the current folder.
fn default_output(source: &Source, format: Option<MeshFormat>) -> Result<String> {
    let Some(name) = source.path().and_then(Path::file_name) else {
        return Err(Error::usage("name an output: standard input has no name to make one from"));
    };
    let name = name.to_string_lossy();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    let extension = match format.unwrap_or(MeshFormat::Ply) {
        MeshFormat::Ply => "ply",
        MeshFormat::Stl => "stl",
        MeshFormat::Obj => "obj",
        MeshFormat::Glb => "glb",
    };
    Ok(Path::new(stem).with_extension(extension).to_string_lossy().into_owned())
}

/// The name with `{iso}` replaced.
fn named(sink: &Sink, iso: f64) -> Sink {
    match sink {
        Sink::Stdout => Sink::Stdout,
        Sink::File(path) => {
            Sink::File(path.to_string_lossy().replace("{iso}", &iso.to_string()).into())
        }
    }
}

/// `mesh.ply` as `mesh-2.ply`.
fn numbered(sink: &Sink, number: usize) -> Sink {
    let Sink::File(path) = sink else { return sink.clone() };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|e| format!(".{}", e.to_string_lossy()));
    Sink::File(path.with_file_name(format!("{stem}-{number}{}", extension.unwrap_or_default())))
}

/// Where parts of a mesh wait for their place: beside the output, else where temporary files go.
fn scratch_folder(sink: &Sink) -> PathBuf {
    let folder = match sink {
        Sink::File(path) => path.parent().map(Path::to_owned),
        Sink::Stdout => None,
    };
    match folder {
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) if !folder.starts_with("/dev") => folder,
        _ => std::env::temp_dir(),
    }
}
