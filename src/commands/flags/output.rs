//! Where results go: `-o` and `--out-dir`, which mean the same in every command.
//!
//! | `-o` | destination of a result |
//! |---|---|
//! | `-` | standard output |
//! | `out/`, or an existing folder | a file in that folder, named like the input |
//! | a name with `{stem}`, `{ext}`, `{name}` or `{dir}` | that file, filled in for each input; its folder is created |
//! | a name that ends with `.zarr` or `.precomputed` | that folder |
//! | any other name | that file |

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::{Component, MAIN_SEPARATOR, Path, PathBuf, is_separator},
};

use clap::{Args, ValueHint};

use crate::{
    io::{Sink, Source, Sources, mesh::FOLDER_EXTENSION, volume::is_zarr_path},
    util::error::{Error, Result},
};

/// The value of `-o`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target(OsString);

impl From<OsString> for Target {
    fn from(name: OsString) -> Self {
        Self(name)
    }
}

/// The kind of destination that a [`Target`] names, which does not depend on the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// One file, or standard output.
    One(Sink),
    /// A folder.
    Folder(PathBuf),
    /// A name with fields.
    Template(String),
}

/// Fields of a template.
const FIELDS: [&str; 4] = ["{stem}", "{ext}", "{name}", "{dir}"];

impl Target {
    /// The destination that the name stands for, as the table above says.
    pub fn place(&self) -> Place {
        let path = Path::new(&self.0);
        let text = path.to_string_lossy();
        if self.0 == "-" {
            Place::One(Sink::Stdout)
        } else if FIELDS.iter().any(|field| text.contains(field)) {
            Place::Template(text.into_owned())
        } else if is_zarr_path(&Sink::File(path.to_owned()))
            || path.extension().is_some_and(|extension| extension == FOLDER_EXTENSION)
        {
            // The result is one Zarr store or Neuroglancer mesh, though it is a folder on disk.
            Place::One(Sink::File(path.to_owned()))
        } else if text.ends_with(['/', MAIN_SEPARATOR]) || path.is_dir() {
            Place::Folder(path.to_owned())
        } else {
            Place::One(Sink::File(path.to_owned()))
        }
    }
}

impl Place {
    /// Whether each input gets an output of its own.
    pub fn is_for_each(&self) -> bool {
        !matches!(self, Self::One(_))
    }

    /// The output for the result of `source`. Its name ends with `extension` where one is given, else as that of the
    /// input.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) for an input without a name, such as standard input, and for a name
    /// that is not UTF-8 in a template.
    pub fn sink(&self, source: &Source, extension: Option<&str>, tree: Tree) -> Result<Sink> {
        let named = |place: &dyn std::fmt::Display| {
            Error::usage(format_args!("standard input has no name for a file in {place}"))
        };
        match self {
            Self::One(sink) => Ok(sink.clone()),
            Self::Folder(folder) => {
                let path = source.path().ok_or_else(|| named(&folder.display()))?;
                Ok(Sink::File(folder.join(tree.folder_of(path)).join(new_name(path, extension))))
            }
            Self::Template(template) => {
                let path = source.path().ok_or_else(|| named(template))?;
                let name = new_name(path, extension).into_string().map_err(|name| {
                    let name = name.display();
                    Error::usage(format_args!("{name}: a name that is no UTF-8 fills no template"))
                })?;
                let (stem, ext) = split_name(&name);
                let dir = below_root(path.parent().unwrap_or(Path::new("")));
                let dir = match dir.as_os_str().is_empty() {
                    true => ".".into(),
                    false => dir.to_string_lossy().into_owned(),
                };
                let filled = filled(template, [stem, ext, &name, &dir]);
                let path = filled.map_err(|error| error.context(source))?;
                Ok(Sink::File(path.into()))
            }
        }
    }
}

/// `template` with each field replaced by its value.
///
/// # Errors
/// [`Kind::Usage`](crate::util::error::Kind::Usage) when the name of a folder or of the file would be empty, `.` or `..`: the
/// path would leave the folders that the template names.
fn filled(template: &str, values: [&str; FIELDS.len()]) -> Result<String> {
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    let fill = |part: &str| {
        let filled = fill(part, values);
        match part == "{dir}" || filled == part || filled.split(is_separator).all(is_name) {
            true => Ok(filled),
            false => Err(Error::usage(format_args!(
                "`{part}` becomes `{filled}`, which is not a file name"
            ))),
        }
    };
    let separators = template.matches(is_separator).chain([""]);
    let parts = template.split(is_separator).zip(separators);
    parts.map(|(part, separator)| Ok(fill(part)? + separator)).collect()
}

/// `text` with each field replaced by its value. Values are not searched for fields.
fn fill(text: &str, values: [&str; FIELDS.len()]) -> String {
    let (mut text, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('{') {
        text += &rest[..at];
        rest = &rest[at..];
        let field = FIELDS.iter().zip(values).find(|(field, _)| rest.starts_with(**field));
        let (length, value) = field.map_or((1, "{"), |(field, value)| (field.len(), value));
        text += value;
        rest = &rest[length..];
    }
    text + rest
}

/// Which folders of an input's path are repeated below the output folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// None.
    Flat,
    /// Those of a relative path.
    Relative,
    /// Those of every path.
    All,
}

impl Tree {
    fn folder_of(self, path: &Path) -> PathBuf {
        let folder = below_root(path.parent().unwrap_or(Path::new("")));
        match self {
            Self::All => folder,
            Self::Relative if path.is_relative() => folder,
            _ => PathBuf::new(),
        }
    }
}

/// A path without its root and without `..`.
fn below_root(path: &Path) -> PathBuf {
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

/// The file name of the result for the input `path`.
fn new_name(path: &Path, extension: Option<&str>) -> OsString {
    // A path such as `..` has no file name. Reading it fails later, with a better message.
    let name = path.file_name().unwrap_or(OsStr::new("_"));
    match (extension, name.to_str()) {
        (None, _) => name.to_owned(),
        (Some(extension), Some(name)) => format!("{}.{extension}", split_name(name).0).into(),
        (Some(extension), None) => Path::new(name).with_extension(extension).into(),
    }
}

/// Splits `head.nii.gz` into `head` and `nii.gz`. Dots at the beginning, as of `.hidden`, do not begin an extension.
fn split_name(name: &str) -> (&str, &str) {
    let split = |name: &str| name.rfind('.').filter(|&at| !name[..at].trim_matches('.').is_empty());
    let Some(mut at) = split(name) else { return (name, "") };
    if name[at..].eq_ignore_ascii_case(".gz") {
        at = split(&name[..at]).unwrap_or(at);
    }
    (&name[..at], &name[at + 1..])
}

/// Where results go.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Output file, folder, or pattern such as 'soft/{stem}.{ext}'; - is standard output
    ///
    /// An existing folder, or a name that ends with /, gets files named like the inputs. A pattern is made of {stem},
    /// {ext}, {name} and {dir} of each input, as 'soft/{stem}-blur.{ext}'.
    #[arg(short, long, value_name = "FILE|DIR")]
    output: Option<Target>,

    /// As -o DIR/, but inputs with relative names keep their folders below DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "output")]
    #[arg(help_heading = "Output files")]
    out_dir: Option<PathBuf>,

    /// Below the output folder, keep the folders of inputs
    #[arg(long, help_heading = "Output files")]
    keep_tree: bool,
}

/// An input and its output.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The input.
    pub source: Source,
    /// Its output.
    pub sink: Sink,
    /// Whether the folder of the output is created where it does not exist.
    pub makes_folder: bool,
}

/// Where the results of several inputs go: a rule by which each input has an output, since the names of all outputs
/// would take more memory than those of the inputs.
#[derive(Clone, Debug)]
pub struct Outputs {
    place: Place,
    tree: Tree,
}

impl OutputArgs {
    /// Whether a flag names the output, so that all positional arguments are inputs.
    pub fn is_given(&self) -> bool {
        self.output.is_some() || self.out_dir.is_some()
    }

    /// The destination that the flags name, or else the positional `output`.
    fn outputs(&self, output: Option<Target>) -> Option<Outputs> {
        let (place, tree) = match &self.out_dir {
            Some(folder) => (Place::Folder(folder.clone()), Tree::Relative),
            None => (self.output.clone().or(output)?.place(), Tree::Flat),
        };
        Some(Outputs { place, tree: if self.keep_tree { Tree::All } else { tree } })
    }

    /// Whether each input has an output of its own.
    pub fn is_for_each(&self) -> bool {
        self.outputs(None).is_some_and(|outputs| outputs.is_for_each())
    }

    /// The output of a command with one input: the one that a flag names, else the positional `output`. `None` where
    /// neither is given.
    ///
    /// # Errors
    /// As [`Place::sink`].
    pub fn sink(
        &self,
        source: &Source,
        output: Option<Target>,
        extension: Option<&str>,
    ) -> Result<Option<Planned>> {
        let outputs = self.outputs(output);
        outputs.map(|outputs| outputs.of(source.clone(), extension)).transpose()
    }

    /// The outputs of the inputs `sources`; `None` where no output is named. `output` is the positional one. `extension`
    /// returns the extension of a result where it differs from that of its input.
    ///
    /// # Errors
    /// [`Kind::Usage`](crate::util::error::Kind::Usage) when two inputs have the same output, and as [`Place::sink`].
    pub fn plan(
        &self,
        sources: &Sources,
        output: Option<Target>,
        extension: impl Fn(&Source) -> Result<Option<String>>,
    ) -> Result<Option<Outputs>> {
        let Some(mut outputs) = self.outputs(output) else { return Ok(None) };
        if let (Place::One(sink), true) = (&outputs.place, sources.len() > 1) {
            outputs.place = match sink {
                // Several results need a folder: take a new name without an extension for one.
                Sink::File(path) if path.extension().is_none() && !path.exists() => {
                    Place::Folder(path.clone())
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
            let Planned { sink, makes_folder, .. } = outputs.of(source, extension.as_deref())?;
            if let (Sink::File(path), true) = (&sink, makes_folder) {
                // Two names may also lead to one existing file by symbolic links.
                let exists = path.symlink_metadata().is_ok();
                let found = exists.then(|| path.canonicalize().ok()).flatten();
                let found = found.filter(|found| found != path);
                let is_new = found.is_none_or(|found| taken.insert(found));
                if !taken.insert(path.clone()) || !is_new {
                    let remedy = match (&outputs.place, outputs.tree) {
                        (Place::Template(_), _) => "; {dir} tells them apart",
                        (_, Tree::All) => "",
                        _ => "; --keep-tree tells them apart",
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
    /// Whether each input has an output of its own, in a folder that is created.
    pub fn is_for_each(&self) -> bool {
        self.place.is_for_each()
    }

    /// The input `source` with its output. `extension` is that of the result where it differs from that of the input.
    ///
    /// # Errors
    /// As [`Place::sink`].
    pub fn of(&self, source: Source, extension: Option<&str>) -> Result<Planned> {
        let sink = self.place.sink(&source, extension, self.tree)?;
        Ok(Planned { source, sink, makes_folder: self.place.is_for_each() })
    }
}

impl Planned {
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
    use super::*;

    fn place(name: &str) -> Place {
        Target(name.into()).place()
    }

    fn sink(place: &Place, source: &str, extension: Option<&str>, tree: Tree) -> String {
        let source = Source::from(OsString::from(source));
        place.sink(&source, extension, tree).map_or_else(|e| e.one_line(), |sink| sink.to_string())
    }

    #[test]
    fn a_name_is_a_file_and_a_folder_takes_the_inputs_name() {
        assert_eq!(place("-"), Place::One(Sink::Stdout));
        assert_eq!(place("new.png"), Place::One(Sink::File("new.png".into())));
        let (there, new) = (place("src"), place("new/"));
        assert_eq!(sink(&there, "a/b.png", None, Tree::Flat), "src/b.png");
        assert_eq!(sink(&new, "/a/b.png", None, Tree::Flat), "new/b.png");
        assert_eq!(sink(&new, "/a/b.png", None, Tree::Relative), "new/b.png");
        assert_eq!(sink(&new, "../a/b.png", None, Tree::Relative), "new/a/b.png");
        assert_eq!(sink(&new, "/a/b.png", None, Tree::All), "new/a/b.png");
        assert_eq!(sink(&new, "b.nii.gz", Some("ply"), Tree::All), "new/b.ply");
        assert!(sink(&new, "-", None, Tree::All).contains("standard input has no name"));
    }

    #[test]
    fn templates_are_filled_with_the_inputs_name() {
        let of = |template: &str, source| sink(&place(template), source, None, Tree::Flat);
        assert_eq!(of("soft/{stem}-blur.{ext}", "/x/a.b.png"), "soft/a.b-blur.png");
        assert_eq!(of("{dir}/{name}.bak", "x/y/head.nii.gz"), "x/y/head.nii.gz.bak");
        assert_eq!(of("{dir}/{stem}.{ext}", "head.nii.gz"), "./head.nii.gz");
        assert_eq!(of("{stem}-{iso}.ply", "head.nii.gz"), "head-{iso}.ply");
        assert_eq!(of("{{dir}-{stem}", "{name}/{ext}.png"), "{{name}-{ext}");
        assert_eq!(sink(&place("{stem}.{ext}"), "a.tif", Some("jpg"), Tree::Flat), "a.jpg");
        assert_eq!(split_name(".hidden"), (".hidden", ""));
        assert_eq!(split_name("a.gz"), ("a", "gz"));
        assert_eq!(split_name("..a.gz"), ("..a", "gz"));
    }

    #[test]
    fn fields_never_lead_out_of_their_folders() {
        let of = |template: &str, source: &str| sink(&place(template), source, None, Tree::Flat);
        for (name, filled) in [
            ("...png", "od/...png/x."),
            ("..png", "od/..png/x."),
            ("....", "od/..../x."),
            ("..", "od/_/x."),
            ("a..", "od/a./x."),
            ("a.gz", "od/a/x.gz"),
        ] {
            assert_eq!(of("od/{stem}/x.{ext}", name), filled, "{name}");
            let beside = format!("folder/../{name}");
            assert_eq!(of("od/{stem}/x.{ext}", &beside), filled, "{name}");
        }
        for (template, name, part) in [
            ("{ext}/{stem}", "a", "`{ext}` becomes ``"),
            ("od/{ext}", "a.", "`{ext}` becomes ``"),
            ("od/.{ext}/x", "a", "`.{ext}` becomes `.`"),
            ("od/.{dir}/{name}", "a", "`.{dir}` becomes `..`"),
            ("od/.{ext}.{ext}/x", "a", "`.{ext}.{ext}` becomes `..`"),
        ] {
            let error = of(template, name);
            assert_eq!(error, format!("{name}: {part}, which is not a file name"));
        }
        assert_eq!(of("../{name}", "a"), "../a");
    }

    #[test]
    fn several_inputs_have_several_outputs() {
        let plan = |output: &str, keep_tree: bool, inputs: &[&str]| {
            let output = Some(Target(output.into()));
            let args = OutputArgs { output, out_dir: None, keep_tree };
            let sources: Sources =
                inputs.iter().map(|&name| Source::from(OsString::from(name))).collect();
            args.plan(&sources, None, |_| Ok(None)).map(|outputs| {
                let outputs = outputs.unwrap();
                let sink = |source| outputs.of(source, None).unwrap().sink.to_string();
                sources.iter().map(sink).collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(plan("new", false, &["/a/b", "c"]).unwrap(), "new/b new/c");
        assert_eq!(plan("new/", true, &["/a/b", "c"]).unwrap(), "new/a/b new/c");
        let error = plan("new.png", false, &["a", "b"]).unwrap_err().one_line();
        assert_eq!(error, "2 inputs cannot all go to new.png: name a folder, as -o out/");
        let error = plan("new/", false, &["a/b", "c/b"]).unwrap_err().one_line();
        assert_eq!(error, "two inputs would become new/b; --keep-tree tells them apart");
        assert_eq!(plan("{dir}/x-{name}", false, &["a/b", "c/b"]).unwrap(), "a/x-b c/x-b");
    }
}
