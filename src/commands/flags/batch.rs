//! The flags for work on many files and in many processes.

use std::{
    ffi::OsString,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use clap::Args;
use serde::Serialize;

use crate::{
    data::shard::Shard,
    engine::session::Session,
    io::{
        Limits, Sink, Source, Sources,
        file_roles::FileRoles,
        identity::Identity,
        image::has_image_name,
        marker::Marker,
        volume::{has_volume_extension, is_address},
    },
    util::error::{Error, Kind, Result},
};

/// Inputs that a file lists.
#[derive(Clone, Debug, Args)]
pub struct FilesFromArgs {
    /// Read further input names from this file, one per line
    ///
    /// Each name may also end with NUL, as find -print0 writes them. - is standard input.
    #[arg(long, value_name = "LIST", help_heading = "Many files, many processes")]
    pub files_from: Option<Source>,
}

impl FilesFromArgs {
    /// Adds the list to the files of a run.
    ///
    /// # Errors
    /// As [`FileRoles::reads`].
    pub fn declare(&self, roles: &mut FileRoles) -> Result<()> {
        self.files_from.as_ref().map_or(Ok(()), |list| roles.reads("--files-from", list))
    }

    /// Refuses several outputs if standard input is among `files`, or if the list can be read only once: each output
    /// reads them again.
    ///
    /// # Errors
    /// `Kind::Usage`.
    pub fn check_outputs(&self, outputs: usize, files: &[OsString]) -> Result<()> {
        let is_stream = |list: &Source| matches!(list.size(), Ok(None));
        let is_list = self.files_from.as_ref().is_some_and(is_stream);
        if outputs > 1 && (is_list || files.iter().any(|file| file == "-")) {
            let input = if is_list { "the list of --files-from" } else { "standard input" };
            return Err(Error::usage(format_args!("{input} can be read only once: give one -o")));
        }
        Ok(())
    }

    /// `inputs`, followed by the inputs that the list names. Standard input may occur only once among the list and all
    /// inputs.
    ///
    /// # Errors
    /// `Kind::Usage` when standard input is named twice, and an error when the list cannot be read or its names take
    /// too much memory.
    pub fn inputs<T: Into<Source>>(&self, inputs: Vec<T>, session: &Session) -> Result<Sources> {
        let mut all: Sources = inputs.into_iter().map(Into::into).collect();
        if let Some(source) = all.iter().find(is_file_on_the_web) {
            return Err(Error::usage(format_args!(
                "{source}: only Zarr stores are read from web addresses; download the file, or pipe it: \
                 curl -s {source} | gpuproc ... -"
            )));
        }
        let named = all.iter().chain(self.files_from.clone());
        if named.filter(|input| *input == Source::Stdin).count() > 1 {
            return Err(Error::usage("standard input can be read only once, but is named twice"));
        }
        if let Some(list) = &self.files_from {
            let wrong = |error: Error| error.context(list);
            let input = BufReader::new(list.open()?);
            add_names(input, &mut all, session.limits(8)).map_err(wrong)?;
        }
        Ok(all)
    }
}

/// Whether the input is an image or a volume in a single file at a web address.
fn is_file_on_the_web(source: &Source) -> bool {
    let is_address = source.path().is_some_and(is_address);
    is_address && (has_image_name(source) || has_volume_extension(source))
}

/// Longest name in a list, in bytes.
const MAX_NAME: u64 = 1 << 16;

/// Adds the names in a list to `all`, within the memory of `limits`. Each name is a line, or ends with NUL if there is a
/// NUL among the first `MAX_NAME + 1` bytes. A line `-` names a file, not standard input, so it becomes `./-`.
fn add_names(mut list: impl Read, all: &mut Sources, limits: Limits) -> Result<()> {
    let failed = |error| Error::new(Kind::Io, "cannot read the list").caused_by(error);
    let mut first = Vec::new();
    (&mut list).take(MAX_NAME + 1).read_to_end(&mut first).map_err(failed)?;
    let separator = if first.contains(&0) { 0 } else { b'\n' };
    let mut list = BufReader::new(first.chain(list));
    for number in 1.. {
        let mut name = Vec::new();
        let read = (&mut list).take(MAX_NAME + 1).read_until(separator, &mut name);
        if read.map_err(failed)? == 0 {
            break;
        }
        name.pop_if(|last| *last == separator);
        if separator == b'\n' {
            name.pop_if(|last| *last == b'\r');
        }
        match &name[..] {
            [] if separator == b'\n' => {}
            [] => return Err(Error::bad_input(format_args!("name {number} is empty"))),
            b"-" => all.push(&Source::from(Path::new("./-"))),
            name if name.len() as u64 > MAX_NAME => {
                let what =
                    format_args!("name {number} is longer than {MAX_NAME} bytes, the maximum");
                return Err(Error::bad_input(what));
            }
            name => all.push(&file_name(name).into()),
        }
        if all.bytes() > limits.bytes() {
            return Err(limits.exceeded("a list of input names", all.bytes()));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn file_name(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn file_name(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// Shard of a job, and whether finished work is skipped.
#[derive(Clone, Copy, Debug, Args)]
pub struct ShardArgs {
    /// Do only shard I of N, counted from 0, such as 3/64
    ///
    /// A shard is every N-th file of several inputs, or a range of one volume or array.
    #[arg(long, value_name = "I/N", help_heading = "Many files, many processes")]
    pub shard: Option<Shard>,

    /// Skip work that an earlier run with --resume has finished
    ///
    /// Inputs, outputs, parameters and version must be the same. A hidden file next to each output records them.
    #[arg(long, help_heading = "Many files, many processes")]
    pub resume: bool,
}

impl ShardArgs {
    /// The items of `files` that belong to the shard.
    pub fn files<T>(self, files: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        files.enumerate().filter_map(move |(number, file)| shard.has(number).then_some(file))
    }

    /// The marker file that records a finished job; `None` without `--resume` and where an input or an output is not a
    /// file.
    pub fn marker<'a>(
        self,
        session: &Session,
        (command, parameters): (&str, &impl Serialize),
        inputs: impl IntoIterator<Item = &'a Source>,
        outputs: impl IntoIterator<Item = &'a Sink>,
    ) -> Result<Option<Marker>> {
        let inputs: Vec<&Source> = inputs.into_iter().collect();
        if !self.resume || inputs.iter().any(|input| input.path().is_none()) {
            return Ok(None);
        }
        let parameters = (parameters, session.strict);
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        Ok(Marker::new(Identity::new(command, &parameters, inputs, shard)?, outputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lines_or_end_with_nul() {
        let of = |text: &str| {
            let mut all = Sources::default();
            add_names(text.as_bytes(), &mut all, Limits::from(1000))
                .map_err(|error| error.one_line())?;
            Ok::<_, String>(all.iter().map(|source| source.to_string()).collect::<Vec<_>>())
        };
        let names = |text| of(text).unwrap();
        assert_eq!(names("a b.png\n\nc\\d\n"), ["a b.png", "c\\d"]);
        assert_eq!(names("a\r\nb"), ["a", "b"]);
        assert_eq!(names("a\nb\0c\r\0"), ["a\nb", "c\r"]);
        assert_eq!(names("-\n#x\n--y"), ["./-", "#x", "--y"]);
        assert!(names("").is_empty() && names("\n\n").is_empty());
        assert_eq!(of("a\0\0b").unwrap_err(), "name 2 is empty");
        let long = "x".repeat(MAX_NAME as usize);
        for end in ["", "\n"] {
            let error = of(&format!("a\nx{long}{end}")).unwrap_err();
            assert_eq!(error, "name 2 is longer than 65536 bytes, the maximum");
        }
        assert!(of(&long).unwrap_err().ends_with("more than the limit of 1000 bytes"));
        assert!(of(&"a\n".repeat(200)).is_err() && names(&"a\n".repeat(100)).len() == 100);
    }

    #[test]
    fn a_shard_has_every_nth_file() {
        let sharding = |shard: &str| ShardArgs { shard: shard.parse().ok(), resume: true };
        let files = |text: &str| sharding(text).files(0..8).collect::<Vec<_>>();
        assert_eq!(files("1/3"), [1, 4, 7]);
        assert_eq!(files(""), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
