//! `gpuproc label`: connected components.

mod table;

use std::{
    ffi::OsString,
    sync::{Arc, Mutex, PoisonError},
};

use self::table::Table;
use super::flags::{
    FIELDS, FilterCommand, KeptFolders, OperationArgs, SideFiles, Target, check_fields,
};
use crate::{
    api::Label,
    engine::session::Session,
    io::{Sink, Source},
    kernels::filter::Filter,
    util::error::{Error, Result},
};

#[expect(missing_docs, reason = "the help of the command is that of the declaration")]
#[derive(Debug, clap::Args)]
pub struct Args {
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
    label: OperationArgs<Label>,
}

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
    let Args { table, intensity, label } = args;
    let (label, files) = label.split();
    let layout = files.layout();
    if let Some(target) = &table {
        check_fields(target.name(), &FIELDS)?;
    }
    let is_first_shard = files.is_first_shard();
    let owner: Mutex<Option<Source>> = Mutex::default();
    let (limits, no_clobber) = (session.limits(1), session.no_clobber);
    let timings = session.timings.clone();
    let make = move |source: &Source, axes| label(axes).map_err(|error| error.context(source));
    let plain = make.clone();
    let command = FilterCommand::new(files, move |source, axes| Ok(plain(source, axes)?.into()));
    let Some(target) = table else { return Ok(command) };
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
            pending: Vec::new(),
        };
        if !sink.1 && !is_first_shard {
            return Ok((Box::new(label), side));
        }
        let table = Arc::new(Table {
            sink,
            source: source.clone(),
            intensity,
            layout: (axes == 3).then(|| layout.clone()),
            limits,
            no_clobber,
            timings: timings.clone(),
            is_written: false.into(),
            output: Mutex::default(),
        });
        let side = SideFiles { pending: vec![table.clone()], ..side };
        Ok((Box::new(label.observed(table)), side))
    };
    Ok(command.observed(observed))
}
