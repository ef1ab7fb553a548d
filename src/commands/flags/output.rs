//! Destination of results: `-o` and `--out-dir`, which mean the same in every command.
//!
//! | `-o` | destination of a result |
//! |---|---|
//! | `-` | standard output |
//! | `out/`, or an existing folder | a file in that folder, named like the input |
//! | a name with `{stem}`, `{ext}`, `{name}` or `{dir}` | that file, filled in for each input; its folder is created |
//! | a name that ends with `.zarr` or `.precomputed` | that folder |
//! | any other name | that file |

use std::{collections::BTreeSet, path::PathBuf};

use clap::{Args, ValueHint};

use super::target::{Destination, FIELDS, KeptFolders, Target, check_fields};
use crate::{
    io::{
        Sink, Source, Sources,
        image::ImageFormat,
        volume::{VolumeFormat, is_zarr_path},
    },
    util::error::{Error, Result},
};

/// Destination of results.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Output file, folder, or template such as 'soft/{stem}.{ext}'; - is standard output
    ///
    /// An existing folder, or a name that ends with /, gets files named like the inputs. A template is made of
    /// {stem}, {ext}, {name} and {dir} of each input, such as 'soft/{stem}-blur.{ext}'.
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Vec<Target>,

    /// Like -o DIR/, but keep the folders of inputs with relative names
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "output")]
    #[arg(help_heading = "Output files")]
    out_dir: Option<PathBuf>,

    /// Create the folders of the inputs below the output folder
    #[arg(long, help_heading = "Output files")]
    keep_tree: bool,
}

/// An input and its output.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedOutput {
    /// The input.
    pub source: Source,
    /// Its output.
    pub sink: Sink,
    /// Whether the folder of the output is created if it is missing.
    pub makes_folder: bool,
}

/// Destination of the results of several inputs: a rule that gives each input its output, since the names of all outputs
/// would take more memory than those of the inputs.
#[derive(Clone, Debug)]
pub struct Outputs {
    destination: Destination,
    tree: KeptFolders,
}

impl OutputArgs {
    /// Whether a flag names the output, so that all positional arguments are inputs.
    pub fn is_given(&self) -> bool {
        !self.output.is_empty() || self.out_dir.is_some()
    }

    /// Splits the flags into one set for each `-o`.
    pub fn split(&self) -> Vec<Self> {
        let one = |target: &Target| Self { output: vec![target.clone()], ..self.clone() };
        if self.output.len() > 1 {
            self.output.iter().map(one).collect()
        } else {
            vec![self.clone()]
        }
    }

    /// The destination that the flags name, or else the positional `output`.
    fn outputs(&self, output: Option<Target>) -> Option<Outputs> {
        let (destination, tree) = match &self.out_dir {
            Some(folder) => (Destination::Folder(folder.clone()), KeptFolders::Relative),
            None => (self.output.first().or(output.as_ref())?.destination(), KeptFolders::Flat),
        };
        Some(Outputs { destination, tree: if self.keep_tree { KeptFolders::All } else { tree } })
    }

    /// Whether the output, or else the positional `output`, is named as a volume. A single TIFF counts as a volume; a
    /// TIFF for each input does not, since TIFF holds pictures as well.
    pub fn is_volume(&self, output: Option<&Target>) -> bool {
        let is_volume_name = |sink: &Sink| {
            is_zarr_path(sink) || matches!(VolumeFormat::for_output(sink), Ok(Some(_)))
        };
        match self.outputs(output.cloned()).map(|outputs| outputs.destination) {
            Some(Destination::One(sink)) => is_volume_name(&sink),
            Some(Destination::Template(template)) => {
                let sink = Sink::File(template.into());
                is_volume_name(&sink) && ImageFormat::for_output(&sink).is_err()
            }
            _ => false,
        }
    }

    /// Whether each input has a separate output.
    pub fn has_output_per_input(&self) -> bool {
        self.outputs(None).is_some_and(|outputs| outputs.has_output_per_input())
    }

    /// The output of a command with one input: named by a flag, else the positional `output`. `None` if
    /// neither is given.
    ///
    /// # Errors
    /// As [`Destination::sink`].
    pub fn sink(
        &self,
        source: &Source,
        output: Option<Target>,
        extension: Option<&str>,
    ) -> Result<Option<PlannedOutput>> {
        if self.output.len() > 1 {
            return Err(Error::usage("-o: an array has one output: give -o once"));
        }
        let Some(outputs) = self.outputs(output) else { return Ok(None) };
        let planned = outputs.output_for(source.clone(), extension)?;
        match planned.makes_folder && planned.sink.replaces(source) {
            true => Err(Error::usage(format_args!(
                "{source}: the output would replace the input; name another folder, or the file as the output"
            ))),
            false => Ok(Some(planned)),
        }
    }

    /// Refuses a name of the output, or of the positional `output`, with an unknown field: see [`check_fields`].
    ///
    /// # Errors
    /// `Kind::Usage`.
    pub fn check_fields(&self, output: Option<&Target>, more: &[&str]) -> Result<()> {
        let named = self.output.iter().chain(output);
        let known = [&FIELDS, more].concat();
        named.map(Target::name).try_for_each(|name| check_fields(name, &known))
    }

    /// The outputs of the inputs `sources`; `None` where no output is named. `output` is the positional one. `extension`
    /// returns the extension of a result where it differs from that of its input.
    ///
    /// # Errors
    /// `Kind::Usage` when two inputs have the same output, and as [`Destination::sink`].
    pub fn plan(
        &self,
        sources: &Sources,
        output: Option<Target>,
        extension: impl Fn(&Source) -> Result<Option<String>>,
    ) -> Result<Option<Outputs>> {
        let Some(mut outputs) = self.outputs(output) else { return Ok(None) };
        if let (Destination::One(sink), true) = (&outputs.destination, sources.len() > 1) {
            outputs.destination = match sink {
                // Several results need a folder: take a new name without an extension for one.
                Sink::File(path) if path.extension().is_none() && !path.exists() => {
                    Destination::Folder(path.clone())
                }
                _ => {
                    return Err(Error::usage(format_args!(
                        "{} inputs cannot all go to {sink}: name a folder, as -o out/",
                        sources.len()
                    )));
                }
            };
        }
        let mut taken = BTreeSet::new();
        for source in sources.iter() {
            let extension = extension(&source)?;
            let PlannedOutput { sink, makes_folder, .. } =
                outputs.output_for(source, extension.as_deref())?;
            if let (Sink::File(path), true) = (&sink, makes_folder) {
                // Two names may also lead to one existing file by symbolic links.
                let exists = path.symlink_metadata().is_ok();
                let found = exists.then(|| path.canonicalize().ok()).flatten();
                let found = found.filter(|found| found != path);
                let is_new = found.is_none_or(|found| taken.insert(found));
                if !taken.insert(path.clone()) || !is_new {
                    let remedy = match (&outputs.destination, outputs.tree) {
                        (Destination::Template(_), _) => "; {dir} distinguishes them",
                        (_, KeptFolders::All) => "",
                        _ => "; --keep-tree distinguishes them",
                    };
                    return Err(Error::usage(format_args!(
                        "two inputs would become {sink}{remedy}"
                    )));
                }
            }
        }
        Ok(Some(outputs))
    }
}

impl Outputs {
    /// Each result replaces its input.
    pub const IN_PLACE: Self = Self { destination: Destination::Inputs, tree: KeptFolders::Flat };

    /// Whether each input has a separate output, in a folder that is created.
    pub fn has_output_per_input(&self) -> bool {
        self.destination.has_output_per_input()
    }

    /// The input `source` with its output. `extension` is that of the result where it differs from that of the input.
    ///
    /// # Errors
    /// As [`Destination::sink`].
    pub fn output_for(&self, source: Source, extension: Option<&str>) -> Result<PlannedOutput> {
        let sink = self.destination.sink(&source, extension, self.tree)?;
        Ok(PlannedOutput { source, sink, makes_folder: self.destination.has_output_per_input() })
    }
}

impl PlannedOutput {
    /// The planned output, after its folder has been created if need be; standard output where none is planned.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn or_stdout(planned: Option<Self>) -> Result<Sink> {
        let Some(Self { sink, makes_folder, .. }) = planned else { return Ok(Sink::Stdout) };
        if makes_folder {
            sink.create_folder()?;
        }
        Ok(sink)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn several_inputs_have_several_outputs() {
        let plan = |output: &str, keep_tree: bool, inputs: &[&str]| {
            let output = vec![Target::from(OsString::from(output))];
            let args = OutputArgs { output, out_dir: None, keep_tree };
            let sources: Sources =
                inputs.iter().map(|&name| Source::from(OsString::from(name))).collect();
            args.plan(&sources, None, |_| Ok(None)).map(|outputs| {
                let outputs = outputs.unwrap();
                let sink = |source| outputs.output_for(source, None).unwrap().sink.to_string();
                sources.iter().map(sink).collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(plan("new", false, &["/a/b", "c"]).unwrap(), "new/b new/c");
        assert_eq!(plan("new/", true, &["/a/b", "c"]).unwrap(), "new/a/b new/c");
        let error = plan("new.png", false, &["a", "b"]).unwrap_err().one_line();
        assert_eq!(error, "2 inputs cannot all go to new.png: name a folder, as -o out/");
        let error = plan("new/", false, &["a/b", "c/b"]).unwrap_err().one_line();
        assert_eq!(error, "two inputs would become new/b; --keep-tree distinguishes them");
        assert_eq!(plan("{dir}/x-{name}", false, &["a/b", "c/b"]).unwrap(), "a/x-b c/x-b");
    }
}
