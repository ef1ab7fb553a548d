//! `gpuproc info`: contents of files, from their headers.

mod fields;

use std::{fmt, mem::take};

use fields::{End, Info};

use super::flags::{FilesFromArgs, FolderArgs, VolumeArgs};
use crate::{
    data::{
        dtype::{Dtype, Scalar},
        image::Image,
        placement::Placement,
        surface::Surface,
    },
    engine::{hints, reduce::for_each_block, session::Session},
    flow::Host,
    for_number,
    io::{
        Source, Sources,
        array::{ArrayFormat, ArrayReader, npy},
        file_roles::INPUT,
        image::{probe, probe_piped, read_image},
        mesh::{Mesh, read_mesh},
        part_file::{PartReader, is_part},
        standard,
        volume::{Endian, Layout, VolumeFile, is_multi_file, is_volume},
    },
    kernels::{
        histogram::{Component, Moments, Pixels, moments},
        mesh::post::has_boundary,
    },
    util::{
        error::{Error, Result},
        memory,
        spill::Spill,
    },
};

/// Print what files contain: format, size, type, spacing, metadata.
///
/// Files are images, volumes (also folders of slices), arrays, meshes (PLY, STL, OBJ, OFF, GLB, VTP, 3MF, GIfTI, MZ3),
/// or parts for `gpuproc merge`. A folder of images stands for its images, unless these are grey and of one size, as
/// slices are. Of images, volumes and arrays, only headers are read. Coordinates are those of the file; x is the
/// fastest axis of a volume.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gpuproc info head.nii.gz scan.tif numbers.npy slices/
  gpuproc info head.nii.gz --range
  gpuproc info *.nrrd --json | jq '.[] | {file, spacing}'")]
pub struct Args {
    /// Files to describe; - is standard input
    #[arg(required_unless_present = "files_from", value_name = "FILE")]
    files: Vec<Source>,

    /// Print a JSON array instead of text
    #[arg(long)]
    json: bool,

    /// Read all samples and numbers, and print their minimum and maximum
    #[arg(long)]
    range: bool,

    #[command(flatten)]
    list: FilesFromArgs,

    #[command(flatten)]
    folders: FolderArgs,

    #[command(flatten)]
    volume: VolumeArgs,
}

/// Maximum number of bytes of text in memory. More go to a temporary file.
const MAX_TEXT: u64 = 256 << 10;

/// Prints the contents of the files.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let mut layout = args.volume.layout();
    // Without --volume, the first volume of a file stands for all.
    let is_chosen = layout.volume.is_some();
    layout.volume.get_or_insert(0);
    let (mut texts, mut described, mut failed) = (Spill::new(session.workspace(MAX_TEXT)), 0, 0);
    let mut add = |text: &str| texts.append(text.as_bytes());
    let files = listed(args.list.inputs(args.files, session)?, args.folders, &layout)?;
    session.check_files(|roles| {
        args.list.declare(roles)?;
        files.iter().try_for_each(|file| roles.reads(INPUT, &file))
    })?;
    memory::trim_heap();
    for source in files.iter() {
        let describe =
            || session.timings.time("files", || describe(&source, &layout, args.range, session));
        match session.run_logged(&source, None, describe) {
            Ok(mut info) => {
                if let (Some(volumes), Some(_), false, "volume") =
                    (info.pages, info.range, is_chosen, info.kind)
                {
                    info.notes.push(format!("the range is that of the first of {volumes} volumes; choose another with --volume"));
                }
                session.timings.add_result(|| serde_json::to_value(&info).expect("plain data"));
                add(&if args.json { info.element(described == 0) } else { info.text() })?;
                described += 1;
            }
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => {
                session.events.failed(&source, &error);
                failed += 1;
                log::error!("{}", hints::line(&error));
            }
        }
    }
    if args.json {
        add(if described == 0 { "[]\n" } else { "\n]\n" })?;
    }
    standard::print_with(|output| texts.copy_to(output))?;
    Error::if_any_failed(failed, files.len(), "files")
}

/// `files` with each folder replaced by its images, unless these are the slices of a volume.
fn listed(files: Sources, folders: FolderArgs, layout: &Layout) -> Result<Sources> {
    let is_volume = |source: &Source| {
        let described = VolumeFile::describe(source, layout);
        described.is_ok_and(|mut file| {
            file.keep_colors();
            file.colors == 1
        })
    };
    if layout.stack || !files.iter().any(|source| is_multi_file(&source)) {
        return Ok(files);
    }
    let mut all = Sources::default();
    for source in files.iter() {
        if !is_multi_file(&source) || is_volume(&source) {
            all.push(&source);
            continue;
        }
        let mut one = Sources::default();
        one.push(&source);
        folders.pictures(one, false)?.iter().for_each(|image| all.push(&image));
    }
    Ok(all)
}

/// Describes one file. Arrays and volumes are recognised by name; other files are tried as an image, then as a volume.
/// If `samples` is set, all samples are read for their range.
fn describe(source: &Source, layout: &Layout, samples: bool, session: &Session) -> Result<Info> {
    let many = is_multi_file(source);
    let bytes = if many { None } else { source.size()? };
    let array = ArrayFormat::for_input(source, None).ok();
    let by_name =
        array.filter(|&format| format != ArrayFormat::Raw && !source.extension().is_empty());
    let part = match source {
        Source::File(file) if !many && is_part(file) => Some(file),
        _ => None,
    };
    let mesh = if many || part.is_some() { None } else { read_mesh(source, session.limits(8))? };
    let mut info = match (mesh, by_name) {
        _ if let Some(path) = part => part_info(&PartReader::open(path, session.max_memory)?),
        (Some((format, mesh)), _) => mesh_info(format, mesh),
        (None, Some(format)) if !layout.is_raw() && !many => {
            array_info(source, format, samples, session)?
        }
        // The number of the volume is set for every file.
        _ if is_volume(source, &Layout { volume: None, ..layout.clone() }) => {
            volume_info(&VolumeFile::describe(source, layout)?, samples, session)?
        }
        _ => match image_info(source, samples, session) {
            Ok(info) => info,
            // Standard input has been read.
            Err(error) if source.path().is_none() => return Err(error),
            Err(error) => match VolumeFile::describe(source, layout) {
                Ok(file) => volume_info(&file, samples, session)?,
                Err(_) => return Err(error),
            },
        },
    };
    info.file = source.to_string();
    info.bytes = info.bytes.or(bytes);
    Ok(info)
}

fn part_info(part: &PartReader) -> Info {
    let identity = &part.identity;
    let field = |name: &str, value: &dyn fmt::Display| (name.to_owned(), value.to_string());
    let mut metadata = vec![
        field("command", &identity.command),
        field("shard", &identity.shard),
        field("gpuproc", &identity.version),
    ];
    metadata.extend(identity.inputs.iter().map(|input| field("input", &input.name)));
    Info { kind: "part", format: "gpuproc".into(), metadata, ..Info::default() }
}

fn mesh_info(format: &str, mesh: Mesh) -> Info {
    let Mesh { vertices, triangles, surface } = mesh;
    Info {
        kind: "mesh",
        format: format.into(),
        vertices: Some(vertices),
        triangles: Some(triangles),
        bounds: surface.as_ref().and_then(Surface::bounds),
        watertight: surface.map(|surface| triangles > 0 && !has_boundary(&surface)),
        ..Info::default()
    }
}

fn array_info(
    source: &Source,
    format: ArrayFormat,
    samples: bool,
    session: &Session,
) -> Result<Info> {
    let range = if samples { array_range(source, format, session)? } else { None };
    if format == ArrayFormat::Text {
        return Ok(Info { range, kind: "array", format: "text".into(), ..Info::default() });
    }
    let header = npy::Header::read(&mut source.open()?).map_err(|error| {
        Error::bad_input(format_args!("{source}: invalid .npy file")).caused_by(error)
    })?;
    let bytes = header.element.size();
    let order = if header.element.is_big_endian { "big" } else { "little" };
    let mut notes = Vec::new();
    if header.fortran {
        notes.push("Fortran order: the first axis varies fastest".into());
    }
    Ok(Info {
        range,
        kind: "array",
        format: ".npy".into(),
        memory: header.len.checked_mul(bytes as u64),
        size: header.shape,
        dtype: Some(header.element.name().to_owned()),
        byte_order: (bytes > 1).then_some(order),
        notes,
        ..Info::default()
    })
}

/// Minimum and maximum of the finite numbers of an array, which is read in parts. Numbers of a text are read as f64.
fn array_range(
    source: &Source,
    format: ArrayFormat,
    session: &Session,
) -> Result<Option<[End; 2]>> {
    /// Numbers that are read at a time.
    const PART: usize = 1 << 20;
    let wanted = (format == ArrayFormat::Text).then_some(Dtype::F64);
    let mut reader = ArrayReader::open(source, format, wanted, session.limits(1))?;
    #[allow(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
    let ends = for_number!(reader.dtype(), T => {
        let (mut part, mut ends) = (Vec::<T>::new(), None);
        loop {
            reader.read(&mut part, PART)?;
            if part.is_empty() {
                break;
            }
            for &number in part.iter().filter(|&&number| (number as f64).is_finite()) {
                let (low, high) = ends.unwrap_or((number, number));
                ends = Some((
                    if number < low { number } else { low },
                    if number > high { number } else { high },
                ));
            }
        }
        ends.map(|(low, high)| match <T as Scalar>::DTYPE {
            Dtype::U64 | Dtype::I64 => [low, high].map(|end| End::Whole(end as i128)),
            _ => [low, high].map(|end| End::Real(end as f64)),
        })
    });
    Ok(ends)
}

fn volume_info(file: &VolumeFile, samples: bool, session: &Session) -> Result<Info> {
    let placement = file.placement.as_ref();
    let stored = file.stored.name();
    let range = if samples { volume_range(file, session)? } else { None };
    Ok(Info {
        range,
        kind: "volume",
        format: file.format().into(),
        size: file.dims.to_vec(),
        dtype: Some(file.dtype.to_string()),
        channels: (file.colors > 1).then(|| if file.colors == 3 { "RGB" } else { "RGBA" }.into()),
        stored: (stored != file.dtype.name()).then(|| stored.into()),
        byte_order: (file.stored.size() > 1).then_some(match file.endian {
            Endian::Little => "little",
            Endian::Big => "big",
        }),
        scale: file.scale.map(|scale| [scale.slope, scale.intercept]),
        pages: (file.volumes > 1).then_some(file.volumes),
        pages_label: file.volume_noun,
        spacing: placement.map(Placement::spacing),
        unit: placement.and_then(|placement| placement.unit.clone()),
        first: placement.map(|placement| placement.first),
        directions: placement.map(Placement::directions),
        orientation: placement.and_then(Placement::orientation),
        space: placement.and_then(|placement| Some(placement.space?.name())),
        metadata: file.metadata.clone(),
        memory: file.bytes(),
        notes: file.warnings().collect(),
        bytes: file.file_bytes().ok().flatten(),
        ..Info::default()
    })
}

/// Minimum and maximum of the finite samples of a volume, which is read in parts.
fn volume_range(file: &VolumeFile, session: &Session) -> Result<Option<[End; 2]>> {
    file.allow(session.limits(2))?;
    let mut all = Moments::default();
    for_each_block(file, 0..file.dims[2], "range", session, |samples, _| {
        let pixels = Pixels { samples, channels: 1 };
        all = take(&mut all).merged(range(&pixels));
        Ok(pixels.samples)
    })?;
    Ok(ends(all))
}

/// The range of all samples of all channels.
fn range(pixels: &Pixels) -> Moments {
    let range = |channel| {
        let component = Component::Channel(channel);
        moments(pixels, component, f64::NEG_INFINITY, f64::INFINITY, false)
    };
    (1..pixels.channels).fold(range(0), |all, channel| all.merged(range(channel)))
}

fn ends(moments: Moments) -> Option<[End; 2]> {
    (moments.count > 0).then_some([moments.min, moments.max].map(End::Real))
}

fn image_info(source: &Source, samples: bool, session: &Session) -> Result<Info> {
    let range_in =
        |image: Image| ends(range(&Pixels { samples: image.samples, channels: image.channels }));
    let (probe, range) = if source.path().is_none() {
        let (probe, image) = probe_piped(source, session.limits(2))?;
        (probe, samples.then(|| range_in(image)).flatten())
    } else {
        let probe = probe(source, session.max_memory)?;
        let read = || read_image(source, session.limits(2), &session.timings);
        (probe, if samples { range_in(read()?) } else { None })
    };
    Ok(Info {
        range,
        kind: "image",
        format: probe.format.into(),
        size: probe.size.to_vec(),
        dtype: Some(probe.dtype),
        channels: Some(probe.channels),
        pages: probe.pages,
        pages_label: "pages",
        metadata: probe.metadata,
        memory: Some(probe.bytes),
        ..Info::default()
    })
}
