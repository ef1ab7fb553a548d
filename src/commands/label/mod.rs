//! `gpuproc label`: connected components.

mod table;

use std::{
    ffi::OsString,
    sync::{Arc, Mutex, PoisonError},
};

use self::table::Table;
use super::flags::{
    FIELDS, FilterArgs, FilterCommand, KeptFolders, SideFiles, Target, check_fields,
};
use crate::{
    engine::session::Session,
    io::{Sink, Source},
    kernels::{filter::Filter, label::Label},
    util::error::{Error, Result},
};

/// Number the connected components of masks and segmentations.
///
/// Neighbouring samples that are not 0 form a component. Components are numbered from 1 in the order of their first samples:
/// by row in images, by slice and row in volumes. Background is 0. The result has 16 bits, or 32 if there are more than
/// 65,535 components. It is the same on every device and for every division into blocks or shards.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Neighbours of a sample: 4 or 8 in images, 6, 18 or 26 in volumes [default: 8 or 26]
    ///
    /// 4 and 6 share a side. 8 and 26 share at least a corner, and 18 share at least an edge.
    #[arg(short = 'n', long, value_name = "N")]
    connectivity: Option<usize>,

    /// Only neighbours of equal value belong together
    ///
    /// Use it to split the labels or classes of a segmentation into connected parts. In colour images of 8 bits,
    /// neighbours of equal colour belong together.
    #[arg(long)]
    equal: bool,

    /// Make components of fewer than N samples background
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    min_size: u64,

    /// Write a table of the components: .csv or .json
    ///
    /// A row has the number of samples, the bounding box (the end is after the last sample) and the centroid, in
    /// positions that count from 0, and the physical volume if the distance of voxels is known. Several inputs need a
    /// folder or a template, such as tables/ or 'tables/{stem}.json'. With --shard, the first shard writes the table.
    #[arg(long, value_name = "FILE", help_heading = "Table")]
    table: Option<Target>,

    /// Add mean, minimum and maximum of this image or volume to the table
    #[arg(long, value_name = "FILE", requires = "table", help_heading = "Table")]
    intensity: Option<OsString>,

    #[command(flatten)]
    files: FilterArgs,
}

const EXAMPLES: &str = "\
Examples:
  gpuproc label mask.png labels.png
  gpuproc label cells.tif -o labels/ --connectivity 4 --min-size 20
  gpuproc label organs.nii.gz parts.nii.gz --equal --connectivity 6
  gpuproc label mask.png labels.png --table cells.csv --intensity page.png";

/// The table of one of several inputs, and whether its folder is created.
fn table_of(target: &Target, source: &Source) -> Result<(Sink, bool)> {
    let destination = target.destination();
    let sink = destination.sink(source, Some("csv"), KeptFolders::Flat)?;
    match sink.extension().as_str() {
        "csv" | "json" => Ok((sink, destination.has_output_per_input())),
        _ => Err(Error::usage(format_args!("--table {sink}: expected a name with .csv or .json"))),
    }
}

/// Labels one file or several.
pub fn filter(args: Args, session: &Session) -> Result<FilterCommand> {
    let Args { connectivity, equal, min_size, table, intensity, mut files } = args;
    files.makes_classes = true;
    let layout = files.layout();
    if let Some(target) = &table {
        check_fields(target.name(), &FIELDS)?;
    }
    let is_first_shard = files.is_first_shard();
    let owner: Mutex<Option<Source>> = Mutex::default();
    let (limits, no_clobber) = (session.limits(1), session.no_clobber);
    let timings = session.timings.clone();
    let make = move |source: &Source, axes| {
        let label = Label::new(connectivity, axes, equal, min_size);
        label.map_err(|error| error.context(source))
    };
    let Some(target) = table else {
        return Ok(FilterCommand::new(files, move |source, axes| {
            Ok(Box::new(make(source, axes)?))
        }));
    };
    let observed = move |source: &Source, axes| -> Result<(Box<dyn Filter>, SideFiles)> {
        let label = make(source, axes)?;
        let sink = table_of(&target, source)?;
        let mut owner = owner.lock().unwrap_or_else(PoisonError::into_inner);
        if !sink.1 && owner.get_or_insert_with(|| source.clone()) != source {
            return Err(Error::usage(format_args!(
                "--table {}: several inputs need a folder, such as --table tables/",
                sink.0
            )));
        }
        let intensity = intensity.clone().map(Source::from);
        let side = SideFiles {
            reads: intensity.iter().map(|source| ("--intensity", source.clone())).collect(),
            writes: vec![("--table", sink.0.clone())],
        };
        if !sink.1 && !is_first_shard {
            return Ok((Box::new(label), side));
        }
        let table = Table {
            sink,
            source: source.clone(),
            intensity,
            layout: (axes == 3).then(|| layout.clone()),
            limits,
            no_clobber,
            timings: timings.clone(),
            is_written: false.into(),
            output: Mutex::default(),
        };
        Ok((Box::new(label.observed(Arc::new(table))), side))
    };
    let plain = move |source: &Source, axes| -> Result<Box<dyn Filter>> {
        Ok(Box::new(make(source, axes)?))
    };
    Ok(FilterCommand::new(files, plain).observed(observed))
}
