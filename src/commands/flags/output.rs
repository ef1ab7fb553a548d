//! Destination of results: `-o` and `--out-dir`, which mean the same in every command.
//!
//! | `-o` | destination of a result |
//! |---|---|
//! | `-` | standard output |
//! | `out/`, or an existing folder | a file in that folder, named like the input |
//! | a name with `{stem}`, `{ext}`, `{name}` or `{dir}` | that file, filled in for each input; its folder is created |
//! | a name that ends with `.zarr` or `.precomputed` | that folder |
//! | any other name | that file |

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::target::{Destination, FIELDS, KeptFolders, Target, check_fields};
use crate::{
    io::{
        Sink, Source, Sources,
        file_roles::{FileRoles, OUTPUT, replaces},
        image::ImageFormat,
        volume::{VolumeFormat, is_zarr_path},
    },
    util::error::{Error, Kind, Result},
};

/// Whether the name of an output is that of a volume.
pub fn is_volume_name(sink: &Sink) -> bool {
    is_zarr_path(sink) || matches!(VolumeFormat::for_output(sink), Ok(Some(_)))
}

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

/// The role of outputs that are named after their inputs.
const OUTPUTS: &str = "an output";

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
    /// Whether there are several inputs. Then an unusable name makes one input fail; it is not wrong usage.
    are_several: bool,
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
        let tree = if self.keep_tree { KeptFolders::All } else { tree };
        Some(Outputs { destination, tree, are_several: false })
    }

    /// Whether the output, or else the positional `output`, is named as a volume. A single TIFF counts as a volume; a
    /// TIFF for each input does not, since TIFF holds pictures as well.
    pub fn is_volume(&self, output: Option<&Target>) -> bool {
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
        match planned.makes_folder && replaces(&planned.sink, source) {
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

    /// The outputs of the inputs `sources`; `None` where no output is named. `output` is the positional one.
    ///
    /// # Errors
    /// `Kind::Usage` when several inputs have one file as output.
    pub fn plan(&self, sources: &Sources, output: Option<Target>) -> Result<Option<Outputs>> {
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
        outputs.are_several = sources.len() > 1;
        Ok(Some(outputs))
    }
}

impl Outputs {
    /// Each result replaces its input.
    pub fn in_place(sources: &Sources) -> Self {
        let are_several = sources.len() > 1;
        Self { destination: Destination::Inputs, tree: KeptFolders::Flat, are_several }
    }

    /// Whether each input has a separate output, in a folder that is created.
    pub fn has_output_per_input(&self) -> bool {
        self.destination.has_output_per_input()
    }

    /// Adds the outputs of `sources` to `roles`, after the inputs. `extension` returns the extension of a result where it
    /// differs from that of its input. If `is_one`, an output may replace its own input.
    ///
    /// # Errors
    /// `Kind::Usage` when an output is another output or an input, and as [`Destination::sink`].
    pub fn declare(
        &self,
        sources: &Sources,
        extension: impl Fn(&Source) -> Result<Option<String>>,
        roles: &mut FileRoles,
        is_one: bool,
    ) -> Result<()> {
        for source in sources.iter() {
            let extension = extension(&source)?;
            let planned = match self.output_for(source, extension.as_deref()) {
                Err(error) if self.is_of_one_input(&error) => continue,
                planned => planned?,
            };
            let PlannedOutput { source, sink, makes_folder } = planned;
            // Only outputs of several inputs have this role.
            let role = if makes_folder { OUTPUTS } else { OUTPUT };
            let is_taken = makes_folder && roles.is_written(OUTPUTS, &sink);
            if is_taken && is_one {
                let remedy = match (&self.destination, self.tree) {
                    (Destination::Inputs, _) => "",
                    (Destination::Template(_), _) => "; {dir} distinguishes them",
                    (_, KeptFolders::All) => "",
                    _ => "; --keep-tree distinguishes them",
                };
                return Err(Error::usage(format_args!("two inputs would become {sink}{remedy}")));
            }
            roles.writes_result(role, &sink, Some(&source).filter(|_| is_one))?;
        }
        Ok(())
    }

    /// The error that `source` cannot be used because of its name. For the only input, it is wrong usage.
    pub fn unusable_name(&self, source: &Source, error: Error) -> Error {
        let is_one_of_several = self.are_several && source.path().is_some();
        if is_one_of_several { Error::bad_input(error.one_line()) } else { error }
    }

    /// Whether `error` concerns one of several inputs, so that the others are processed.
    pub fn is_of_one_input(&self, error: &Error) -> bool {
        self.are_several && error.kind() == Kind::BadInput
    }

    /// The input `source` with its output. `extension` is that of the result where it differs from that of the input.
    ///
    /// # Errors
    /// As [`Destination::sink`].
    pub fn output_for(&self, source: Source, extension: Option<&str>) -> Result<PlannedOutput> {
        let sink = self.destination.sink(&source, extension, self.tree);
        let sink = sink.map_err(|error| self.unusable_name(&source, error))?;
        Ok(PlannedOutput { source, sink, makes_folder: self.destination.has_output_per_input() })
    }
}

impl PlannedOutput {
    /// The planned output, which may create its folder; standard output where none is planned.
    pub fn or_stdout(planned: Option<Self>) -> Sink {
        let Some(Self { sink, makes_folder, .. }) = planned else { return Sink::Stdout };
        if makes_folder {
            sink.want_folder();
        }
        sink
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
            args.plan(&sources, None).and_then(|outputs| {
                let outputs = outputs.unwrap();
                outputs.declare(&sources, |_| Ok(None), &mut FileRoles::default(), true)?;
                let sink = |source| outputs.output_for(source, None).unwrap().sink.to_string();
                Ok(sources.iter().map(sink).collect::<Vec<_>>().join(" "))
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
