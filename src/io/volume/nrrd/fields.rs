//! The lines of the header of a NRRD.

use crate::io::volume::{
    format::{BoxError, Start, shown},
    text::data_files,
};

/// The lines of a header.
#[derive(Default)]
pub struct Fields {
    /// `name: value`, names as [`key`] returns them.
    pub fields: Vec<(String, String)>,
    /// `name:=value`, the user's own.
    pub pairs: Vec<(String, String)>,
    /// Fields that are not understood, under the names that they have in the file.
    pub others: Vec<(String, String)>,
    /// The files with the samples, where the file of the header does not hold them.
    pub files: Option<Vec<String>>,
}

/// Fields that are understood, or that need not be kept.
const KNOWN: [&str; 21] = [
    "type",
    "dimension",
    "sizes",
    "encoding",
    "endian",
    "space",
    "spacedimension",
    "spacedirections",
    "spaceorigin",
    "spaceunits",
    "spacings",
    "axismins",
    "centers",
    "centerings",
    "units",
    "kinds",
    "lineskip",
    "byteskip",
    "datafile",
    "content",
    "number",
];

/// The name of a field in the form used to compare: `data file`, `datafile` and `Data File` are the same field.
pub fn key(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

impl Fields {
    pub fn read(start: &mut Start<'_>) -> Result<Self, BoxError> {
        let magic = start.line()?.unwrap_or_default();
        let version =
            magic.strip_prefix("NRRD").and_then(|version| version.trim().parse::<u32>().ok());
        match version {
            Some(1..=5) => {}
            _ => return Err("it does not begin as one".into()),
        }
        let mut all = Self::default();
        while let Some(line) = start.line()? {
            if line.is_empty() {
                break;
            }
            if line.starts_with('#') {
                continue;
            }
            // A key/value pair of the user is written with `:=`.
            if let Some((name, value)) = line.split_once(":=") {
                all.pairs.push((name.to_owned(), value.to_owned()));
            } else if let Some((name, value)) = line.split_once(':') {
                let (own_name, name, value) = (name.trim(), key(name), value.trim().to_owned());
                if !KNOWN.contains(&name.as_str()) && says_something(&value) {
                    all.others.push((own_name.to_owned(), value.clone()));
                }
                if name == "datafile" {
                    all.files = Some(data_files(&value, start)?);
                }
                all.fields.push((name, value));
            } else {
                return Err(format!("its line `{}` is none of a header", shown(&line)).into());
            }
        }
        Ok(all)
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn need(&self, name: &str) -> Result<&str, BoxError> {
        self.get(name).ok_or_else(|| format!("its header has no field `{name}`").into())
    }
}

/// Whether a value of each axis is known: `nan`, `none`, `???` and `""` stand for unknown ones.
fn says_something(value: &str) -> bool {
    let is_unknown =
        |word: &str| ["nan", "none", "???", "\"\""].contains(&word.to_ascii_lowercase().as_str());
    !value.split_whitespace().all(is_unknown)
}
