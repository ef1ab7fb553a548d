//! Names of outputs: files, folders and templates.

use std::{
    ffi::{OsStr, OsString},
    io::{IsTerminal, stdout},
    path::{Component, MAIN_SEPARATOR, Path, PathBuf, is_separator},
};

use crate::{
    io::{Sink, Source, mesh::FOLDER_EXTENSION, volume::is_zarr_path},
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
pub enum Destination {
    /// One file, or standard output.
    One(Sink),
    /// A folder.
    Folder(PathBuf),
    /// A name with fields.
    Template(String),
    /// The file of each input, which is replaced.
    Inputs,
}

/// Fields of a template.
pub const FIELDS: [&str; 4] = ["{stem}", "{ext}", "{name}", "{dir}"];

impl Target {
    /// The name that the user typed.
    pub fn name(&self) -> &OsStr {
        &self.0
    }

    /// The destination that the name stands for.
    pub fn destination(&self) -> Destination {
        let path = Path::new(&self.0);
        let text = path.to_string_lossy();
        if self.0 == "-" {
            Destination::One(Sink::Stdout)
        } else if FIELDS.iter().any(|field| text.contains(field)) {
            Destination::Template(text.into_owned())
        } else if is_zarr_path(&Sink::File(path.to_owned()))
            || path.extension().is_some_and(|extension| extension == FOLDER_EXTENSION)
        {
            // The result is one Zarr store or Neuroglancer mesh, though it is a folder on disk.
            Destination::One(Sink::File(path.to_owned()))
        } else if text.ends_with(['/', MAIN_SEPARATOR]) || path.is_dir() {
            Destination::Folder(path.to_owned())
        } else {
            Destination::One(Sink::File(path.to_owned()))
        }
    }
}

impl Destination {
    /// Whether each input gets a separate output.
    pub fn has_output_per_input(&self) -> bool {
        !matches!(self, Self::One(_))
    }

    /// The output for the result of `source`. Its name ends with `extension` if there is one, else like that of the
    /// input.
    ///
    /// # Errors
    /// `Kind::Usage` for an input without a name, such as standard input, and for a name that is not UTF-8 in a
    /// template.
    pub fn sink(
        &self,
        source: &Source,
        extension: Option<&str>,
        tree: KeptFolders,
    ) -> Result<Sink> {
        let named = |place: &dyn std::fmt::Display| {
            Error::usage(format_args!(
                "standard input has no file name to use in {place}: name the output file"
            ))
        };
        match self {
            Self::One(sink) => Ok(sink.clone()),
            Self::Inputs => {
                let path = source.path().ok_or_else(|| named(&"--in-place"))?;
                Ok(Sink::File(path.with_file_name(new_name(path, extension))))
            }
            Self::Folder(folder) => {
                let path = source.path().ok_or_else(|| named(&folder.display()))?;
                Ok(Sink::File(folder.join(tree.folder_for(path)).join(new_name(path, extension))))
            }
            Self::Template(template) => {
                let path = source.path().ok_or_else(|| named(template))?;
                let name = new_name(path, extension).into_string().map_err(|name| {
                    let name = name.display();
                    Error::usage(format_args!(
                        "{name}: the name is not UTF-8, so it cannot be used in a template"
                    ))
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

/// Refuses a name with a field other than the `known` ones.
///
/// # Errors
/// `Kind::Usage`.
pub fn check_fields(name: &OsStr, known: &[&str]) -> Result<()> {
    let name = name.to_string_lossy();
    let fields = name.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0));
    let is_word = |field: &&str| !field.is_empty() && field.chars().all(char::is_alphabetic);
    for field in fields.filter(is_word) {
        let field = format!("{{{field}}}");
        if !known.contains(&&*field) {
            return Err(Error::usage(format_args!(
                "{name}: unknown placeholder {field}, expected one of {}",
                known.join(" ")
            )));
        }
    }
    Ok(())
}

/// Refuses to print binary data on a terminal.
///
/// # Errors
/// `Kind::Usage` if `sink` is standard output, and that is a terminal.
pub fn refuse_terminal(sink: &Sink) -> Result<()> {
    match *sink == Sink::Stdout && stdout().is_terminal() {
        true => Err(Error::usage(
            "standard output is a terminal and the output is binary: redirect it, or name a file with -o",
        )),
        false => Ok(()),
    }
}

/// `template` with each field replaced by its value.
///
/// # Errors
/// `Kind::Usage` when the name of a folder or of the file would be empty, `.` or `..`: the path would leave the folders
/// that the template names.
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

/// Folders of an input's path that are repeated below the output folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptFolders {
    /// None.
    Flat,
    /// Those of a relative path.
    Relative,
    /// Those of every path.
    All,
}

impl KeptFolders {
    fn folder_for(self, path: &Path) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(name: &str) -> Destination {
        Target(name.into()).destination()
    }

    fn sink(
        destination: &Destination,
        source: &str,
        extension: Option<&str>,
        tree: KeptFolders,
    ) -> String {
        let source = Source::from(OsString::from(source));
        destination
            .sink(&source, extension, tree)
            .map_or_else(|e| e.one_line(), |sink| sink.to_string())
    }

    #[test]
    fn a_name_is_a_file_and_a_folder_takes_the_inputs_name() {
        assert_eq!(destination("-"), Destination::One(Sink::Stdout));
        assert_eq!(destination("new.png"), Destination::One(Sink::File("new.png".into())));
        let (there, new) = (destination("src"), destination("new/"));
        assert_eq!(sink(&there, "a/b.png", None, KeptFolders::Flat), "src/b.png");
        assert_eq!(sink(&new, "/a/b.png", None, KeptFolders::Flat), "new/b.png");
        assert_eq!(sink(&new, "/a/b.png", None, KeptFolders::Relative), "new/b.png");
        assert_eq!(sink(&new, "../a/b.png", None, KeptFolders::Relative), "new/a/b.png");
        assert_eq!(sink(&new, "/a/b.png", None, KeptFolders::All), "new/a/b.png");
        assert_eq!(sink(&new, "b.nii.gz", Some("ply"), KeptFolders::All), "new/b.ply");
        assert!(sink(&new, "-", None, KeptFolders::All).contains("has no file name"));
    }

    #[test]
    fn templates_are_filled_with_the_inputs_name() {
        let of =
            |template: &str, source| sink(&destination(template), source, None, KeptFolders::Flat);
        assert_eq!(of("soft/{stem}-blur.{ext}", "/x/a.b.png"), "soft/a.b-blur.png");
        assert_eq!(of("{dir}/{name}.bak", "x/y/head.nii.gz"), "x/y/head.nii.gz.bak");
        assert_eq!(of("{dir}/{stem}.{ext}", "head.nii.gz"), "./head.nii.gz");
        assert_eq!(of("{stem}-{iso}.ply", "head.nii.gz"), "head-{iso}.ply");
        assert_eq!(of("{{dir}-{stem}", "{name}/{ext}.png"), "{{name}-{ext}");
        assert_eq!(
            sink(&destination("{stem}.{ext}"), "a.tif", Some("jpg"), KeptFolders::Flat),
            "a.jpg"
        );
        assert_eq!(split_name(".hidden"), (".hidden", ""));
        assert_eq!(split_name("a.gz"), ("a", "gz"));
        assert_eq!(split_name("..a.gz"), ("..a", "gz"));
    }

    #[test]
    fn fields_never_lead_out_of_their_folders() {
        let of = |template: &str, source: &str| {
            sink(&destination(template), source, None, KeptFolders::Flat)
        };
        for (name, filled) in [
            ("...png", "od/...png/x."),
            ("..png", "od/..png/x."),
            ("....", "od/..../x."),
            ("..", "od/_/x."),
            ("a..", "od/a./x."),
            ("a.gz", "od/a/x.gz"),
        ] {
            assert_eq!(of("od/{stem}/x.{ext}", name), filled, "{name}");
            let below = format!("folder/../{name}");
            assert_eq!(of("od/{stem}/x.{ext}", &below), filled, "{name}");
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
}
