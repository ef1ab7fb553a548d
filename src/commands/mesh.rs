//! `gpuproc mesh`: the surface of a volume, by marching cubes.

mod preview;

use std::path::Path;

use crate::{
    cli::Session,
    error::{Error, Result},
    io::{
        Sink, Source,
        mesh::write_ply,
        volume::{Triple, VolumeArgs, VolumeFile},
    },
    kernels::mesh::{MarchingCubes, Slab, Surface},
};

use preview::PreviewArgs;

/// Mesh the surface in a volume where its samples pass an isovalue (marching cubes).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Volume of raw samples, x fastest: a name like skull_256x256x256_uint8.raw tells its shape
    volume: Source,

    /// Mesh to write [default: the volume's name with .ply, in the current folder]
    output: Option<Sink>,

    /// Isovalue: samples above it are inside
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    #[arg(value_parser = isovalue)]
    iso: f64,

    /// Distance between samples along x, y and z
    #[arg(long, value_name = "X,Y,Z", default_value = "1,1,1", value_parser = spacing)]
    spacing: Triple,

    /// Corner of the volume's box; the first sample sits half a spacing from it
    #[arg(long, value_name = "X,Y,Z", default_value = "0,0,0", allow_negative_numbers = true)]
    origin: Triple,

    /// Close the surface where it leaves the volume
    #[arg(long)]
    close: bool,

    /// Give every vertex a normal, from the volume's gradient
    #[arg(long)]
    normals: bool,

    /// Write PLY as text
    #[arg(long)]
    ascii: bool,

    #[command(flatten)]
    preview: PreviewArgs,

    #[command(flatten)]
    raw: VolumeArgs,
}

fn isovalue(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| format!("`{text}` is not a number"))
}

fn spacing(text: &str) -> Result<Triple, String> {
    let spacing: Triple = text.parse()?;
    match spacing.0.iter().all(|&step| step > 0.0) {
        true => Ok(spacing),
        false => Err(format!("`{text}` has a step that is not greater than 0")),
    }
}

/// Meshes the volume.
///
/// # Errors
/// When the volume cannot be read or the mesh cannot be written.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    let file = VolumeFile::describe(&args.volume, &args.raw)?;
    let sink = match &args.output {
        Some(sink) => sink.clone(),
        None => Sink::File(default_output(&args.volume)?.into()),
    };
    if !matches!(sink.extension().as_str(), "ply" | "") {
        return Err(Error::usage(format_args!(
            "{sink}: `{}` is no format for meshes; use .ply",
            sink.extension()
        )));
    }
    args.preview.check()?;
    let kernel = MarchingCubes {
        iso: args.iso,
        spacing: args.spacing.0,
        origin: args.origin.0,
        close: args.close,
        normals: args.normals,
    };
    let output = sink.create(session.no_clobber)?;
    let volume = file.read(session.max_memory, &session.timings)?;
    let slab = Slab::whole(volume, &kernel);
    let surface = session.device.run(&kernel, &slab)?;
    session.timings.time("write", || {
        let mut output = output;
        let failed = |error| Error::io("write", sink.to_string(), error);
        write_ply(&mut output, &surface, args.ascii).map_err(failed)?;
        output.commit()
    })?;
    report(&surface, &sink);
    args.preview.preview.as_ref().map_or(Ok(()), |sink| args.preview.draw(sink, &surface, session))
}

fn report(surface: &Surface, sink: &Sink) {
    let bounds = surface.bounds().map_or_else(
        || "the surface is empty: no sample is above or none is below the isovalue".to_owned(),
        |[low, high]| format!("from {low:?} to {high:?}"),
    );
    log::info!(
        "{} vertices, {} triangles, {bounds}: {sink}",
        surface.positions.len(),
        surface.triangles.len()
    );
}

/// The input's name with the extension `ply`.
fn default_output(source: &Source) -> Result<String> {
    let Some(name) = source.path().and_then(Path::file_name) else {
        return Err(Error::usage("name an output: standard input has no name to make one from"));
    };
    let name = name.to_string_lossy();
    let stem = name.strip_suffix(".gz").unwrap_or(&name);
    Ok(Path::new(stem).with_extension("ply").to_string_lossy().into_owned())
}
