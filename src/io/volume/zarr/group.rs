//! The content of a Zarr folder: an array, or an OME-NGFF image (0.1 to 0.5), whose metadata name the arrays of its levels
//! and their axes, units, spacings and positions.

use std::{
    io,
    path::{Component, Path},
    sync::Arc,
};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    array::{Array, object},
    store::{ByteRange, Store},
};
use crate::io::volume::header::{BoxError, excerpt};

/// Maximum size in bytes of metadata: parsed JSON takes up to twenty times as much memory as its text.
const MAX_TEXT: u64 = 4 << 20;

/// An axis of an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    pub name: String,
    pub kind: AxisKind,
    /// Unit, as NGFF spells it.
    pub unit: Option<String>,
    /// Distance between samples, if the metadata state it.
    pub scale: Option<f64>,
    /// Coordinate of the first sample, if the metadata state it.
    pub first: Option<f64>,
}

/// The dimension of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisKind {
    Space,
    Channel,
    Time,
    Other,
}

impl Axis {
    fn new(name: String, kind: Option<&str>, unit: Option<String>) -> Self {
        Self { kind: AxisKind::parse(&name, kind), name, unit, scale: None, first: None }
    }
}

impl AxisKind {
    fn parse(name: &str, kind: Option<&str>) -> Self {
        match (kind, name) {
            (Some("space"), _) => Self::Space,
            (Some("channel"), _) => Self::Channel,
            (Some("time"), _) => Self::Time,
            (Some(_), _) => Self::Other,
            (None, "x" | "y" | "z") => Self::Space,
            (None, "c" | "channel") => Self::Channel,
            (None, "t" | "time") => Self::Time,
            (None, _) => Self::Other,
        }
    }
}

/// An array with the metadata of the image that it belongs to.
#[derive(Debug)]
pub struct Image {
    /// The format's name.
    pub format: &'static str,
    /// The version of Zarr.
    pub version: u8,
    pub array: Arc<Array>,
    /// The folder of the array.
    pub store: Store,
    /// One axis for each dimension of the array.
    pub axes: Vec<Axis>,
    pub name: Option<String>,
    /// Rendering of channels (`omero`).
    pub omero: Option<Value>,
    /// Whether samples are labels of objects.
    pub is_labels: bool,
    /// Unknown attributes, and the names of the images of labels below the image.
    pub metadata: Vec<(String, String)>,
    /// Messages about content of the store that the image does not have.
    pub losses: Vec<String>,
}

impl Image {
    /// Opens level `level` of the image at `path`, or the array there.
    pub fn open(path: &Path, level: usize) -> Result<Self, BoxError> {
        let store = &Store::open(path)?;
        let node = Node::read(store)?.ok_or("no Zarr metadata found")?;
        if node.is_array {
            return Self::open_array(store.clone(), node, level);
        }
        let ngff = node.attributes.get("ome").and_then(Value::as_object);
        let attributes = ngff.unwrap_or(&node.attributes);
        let Some(multiscales) = attributes.get("multiscales") else {
            return Err(no_image(store, attributes).into());
        };
        let images = multiscales.as_array().ok_or("multiscales: expected an array")?;
        let image = images.first().ok_or("multiscales is empty")?;
        let image = object(image)?;
        let datasets = image.get("datasets").and_then(Value::as_array);
        let datasets =
            datasets.filter(|list| !list.is_empty()).ok_or("datasets is missing or empty")?;
        let dataset = datasets.get(level).ok_or_else(|| {
            format!("level {level} does not exist; expected 0 to {}", datasets.len() - 1)
        })?;
        let dataset = object(dataset)?;
        let path =
            dataset.get("path").and_then(Value::as_str).ok_or("path of a dataset is missing")?;
        let below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if path.is_empty() || !Path::new(path).components().all(below) {
            return Err(format!("path `{}` of a level is not in its folder", excerpt(path)).into());
        }
        let mut metadata = unknown_attributes(attributes, &KNOWN);
        if ngff.is_some() {
            metadata.extend(unknown_attributes(&node.attributes, &["ome"]));
        }
        let mut labels = store.folder("labels").stores();
        labels.sort();
        if !labels.is_empty() {
            metadata.push(("labels".into(), excerpt(&labels.join(", "))));
        }
        let version = attributes.get("version").or(image.get("version")).and_then(Value::as_str);
        if let Some(version) = version.filter(|version| !is_known(version)) {
            let version = excerpt(version);
            return Err(format!(
                "version {version} of OME-NGFF is not supported; expected 0.1 to 0.5"
            )
            .into());
        }
        let store = store.folder(path);
        let found = Node::read(&store)?.ok_or_else(|| format!("array `{path}` does not exist"))?;
        let array = found.array(&store)?;
        let mut axes = axes(image.get("axes"), &array)?;
        transform(dataset.get("coordinateTransformations"), &mut axes)?;
        transform(image.get("coordinateTransformations"), &mut axes)?;
        let mut losses = Vec::new();
        if images.len() > 1 {
            losses.push(format!("only the first of {} images is read", images.len()));
        }
        Ok(Self {
            version: node.version,
            format: match version {
                Some("0.4") => "OME-Zarr 0.4",
                Some("0.5") => "OME-Zarr 0.5",
                _ => "OME-Zarr",
            },
            array: array.into(),
            store,
            axes,
            name: image.get("name").and_then(Value::as_str).map(str::to_owned),
            omero: attributes.get("omero").cloned(),
            is_labels: attributes.contains_key("image-label"),
            metadata,
            losses,
        })
    }

    /// An array alone. Names of axes come from `dimension_names` or xarray's `_ARRAY_DIMENSIONS`. If none is x, the last
    /// three axes are z, y, x.
    fn open_array(store: Store, node: Node, level: usize) -> Result<Self, BoxError> {
        let array = node.array(&store)?;
        if level > 0 {
            return Err("a single array has no levels".into());
        }
        let dims = array.shape.len();
        let attribute = node.attributes.get("_ARRAY_DIMENSIONS").and_then(Value::as_array);
        let from_attribute = |list: &Vec<Value>| -> Vec<Option<String>> {
            list.iter().map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let names = array.names.clone().or(attribute.map(from_attribute));
        let named = |axis: usize| -> Option<String> {
            names.as_ref().filter(|names| names.len() == dims)?[axis].clone()
        };
        let is_named = (0..dims).any(|axis| named(axis).as_deref() == Some("x"));
        let usual = ["z", "y", "x"];
        let name = |axis: usize| match is_named {
            true => named(axis).unwrap_or_default(),
            false if axis + 3 >= dims => usual[axis + 3 - dims].to_owned(),
            false => String::new(),
        };
        Ok(Self {
            version: node.version,
            format: if node.version == 2 { "Zarr 2" } else { "Zarr 3" },
            axes: (0..dims).map(|axis| Axis::new(name(axis), None, None)).collect(),
            array: array.into(),
            store,
            name: None,
            omero: None,
            is_labels: false,
            metadata: unknown_attributes(&node.attributes, &["_ARRAY_DIMENSIONS"]),
            losses: Vec::new(),
        })
    }
}

/// Whether `version` of OME-NGFF is one of 0.1 to 0.5, perhaps with a suffix.
fn is_known(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']);
    numbers.next() == Some("0")
        && numbers.next().is_some_and(|minor| ["1", "2", "3", "4", "5"].contains(&minor))
}

/// Attributes of images that are read, or that state nothing else.
const KNOWN: [&str; 6] =
    ["multiscales", "omero", "image-label", "version", "labels", "bioformats2raw.layout"];

/// All attributes that are not `known`, with the beginnings of their values.
fn unknown_attributes(attributes: &Map<String, Value>, known: &[&str]) -> Vec<(String, String)> {
    let unknown = attributes.iter().filter(|(name, _)| !known.contains(&name.as_str()));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    unknown.map(|(name, value)| (name.clone(), excerpt(&text(value)))).collect()
}

/// The metadata of a folder: a group or an array.
struct Node {
    version: u8,
    is_array: bool,
    metadata: Value,
    attributes: Map<String, Value>,
}

impl Node {
    /// Reads the metadata of a folder; `None` if they are missing.
    fn read(store: &Store) -> Result<Option<Self>, BoxError> {
        if let Some(metadata) = json(store, "zarr.json")? {
            let attributes = metadata.get("attributes").and_then(Value::as_object);
            let attributes = attributes.cloned().unwrap_or_default();
            let kind = metadata.get("node_type").and_then(Value::as_str);
            let is_array = match kind {
                Some("array") => true,
                Some("group") => false,
                _ => return Err("node_type: expected group or array".into()),
            };
            return Ok(Some(Self { version: 3, is_array, metadata, attributes }));
        }
        let attributes = || -> Result<Map<String, Value>, BoxError> {
            let found = json(store, ".zattrs")?;
            Ok(found.and_then(|value| value.as_object().cloned()).unwrap_or_default())
        };
        for (name, is_array) in [(".zarray", true), (".zgroup", false)] {
            if let Some(metadata) = json(store, name)? {
                let attributes = attributes()?;
                return Ok(Some(Self { version: 2, is_array, metadata, attributes }));
            }
        }
        Ok(None)
    }

    fn array(&self, store: &Store) -> Result<Array, BoxError> {
        match (self.is_array, self.version) {
            (false, _) => {
                Err(format!("{} is a group; expected an array", store.display_name("")).into())
            }
            (true, 2) => Array::from_v2(&self.metadata),
            (true, _) => Array::from_v3(&self.metadata),
        }
    }
}

/// Parses a JSON file; `None` if the file is missing.
fn json(store: &Store, name: &str) -> Result<Option<Value>, BoxError> {
    let named = |error: BoxError| -> BoxError {
        let file = store.display_name(name);
        match error.downcast::<io::Error>() {
            Ok(error) => io::Error::new(error.kind(), format!("{file}: {error}")).into(),
            Err(error) => format!("{file}: {error}").into(),
        }
    };
    let Some(text) = store.get(name, ByteRange::Whole, MAX_TEXT).map_err(named)? else {
        return Ok(None);
    };
    let value = serde_json::from_slice(&text).or_else(|error| {
        // Python writes numbers of floats that JSON lacks.
        serde_json::from_slice(&quote_numbers(&text)).map_err(|_| error)
    });
    // As text: an error of parsing must not be taken for one of reading.
    Ok(Some(value.map_err(|error| named(error.to_string().into()))?))
}

/// The JSON `text` with quotes around `NaN`, `Infinity` and `-Infinity`.
fn quote_numbers(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len() + 64);
    let (mut rest, mut is_string) = (text, false);
    while let Some((&first, tail)) = rest.split_first() {
        let words: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];
        let word = words.into_iter().find(|word| !is_string && rest.starts_with(word));
        if let Some(word) = word {
            quoted.extend([b"\"", word, b"\""].concat());
            rest = &rest[word.len()..];
            continue;
        }
        is_string ^= first == b'"';
        let len = if is_string && first == b'\\' { rest.len().min(2) } else { 1 };
        quoted.extend_from_slice(&rest[..len]);
        rest = if len == 2 { &tail[1..] } else { tail };
    }
    quoted
}

/// The texts in the field `name` of the objects in the list `list`.
fn texts<'a>(list: Option<&'a Value>, name: &'a str) -> impl Iterator<Item = &'a str> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(move |entry| entry.get(name).and_then(Value::as_str))
}

/// A message that names the images below a group without one.
fn no_image(store: &Store, attributes: &Map<String, Value>) -> String {
    let field = |group: &str, list: &str| attributes.get(group).and_then(|group| group.get(list));
    let wells: Vec<String> = texts(field("plate", "wells"), "path").map(excerpt).collect();
    if !wells.is_empty() {
        let hint = format!("such as {}/0", wells[0]);
        return format!("a plate of wells; select an image of a well ({hint}): {}", listed(wells));
    }
    let fields: Vec<String> = texts(field("well", "images"), "path").map(excerpt).collect();
    if !fields.is_empty() {
        return format!("a well of a plate; select one of its images: {}", listed(fields));
    }
    let labels = attributes.get("labels").and_then(Value::as_array).map(|labels| {
        labels.iter().filter_map(Value::as_str).map(excerpt).collect::<Vec<String>>()
    });
    let below = || store.stores().iter().map(|name| excerpt(name)).collect();
    let mut names = labels.unwrap_or_else(below);
    names.sort();
    match names.len() {
        0 => "Zarr group without an image".into(),
        _ => format!("Zarr group without an image; select one below it: {}", listed(names)),
    }
}

/// The first of `names`, and how many there are.
fn listed(names: Vec<String>) -> String {
    match names.len() {
        0..=8 => names.join(", "),
        more => format!("{} ... ({more} in all)", names[..8].join(", ")),
    }
}

/// Parses the axes of an image: objects (from 0.4 on), or names (0.3). Without axes (0.1 and 0.2), they are the last of t,
/// c, z, y, x.
fn axes(value: Option<&Value>, array: &Array) -> Result<Vec<Axis>, BoxError> {
    let usual = ["t", "c", "z", "y", "x"];
    let dims = array.shape.len();
    let axes: Vec<Axis> = match value {
        Some(Value::Array(list)) => {
            let axis = |axis: &Value| {
                let text = |name: &str| axis.get(name).and_then(Value::as_str);
                let name = axis.as_str().or(text("name")).unwrap_or_default().to_owned();
                let unit = text("unit").map(str::to_owned);
                Axis::new(name, text("type"), unit)
            };
            list.iter().map(axis).collect()
        }
        _ => {
            let name = |axis: usize| usual[(axis + 5).saturating_sub(dims).min(4)];
            (0..dims).map(|at| Axis::new(name(at).into(), None, None)).collect()
        }
    };
    match axes.len() == dims {
        true => Ok(axes),
        false => Err(format!("image has {} axes, but its array has {dims}", axes.len()).into()),
    }
}

/// Applies a list of scales and translations, one after the other, to the axes.
fn transform(value: Option<&Value>, axes: &mut [Axis]) -> Result<(), BoxError> {
    let dims = axes.len();
    for step in value.and_then(Value::as_array).into_iter().flatten() {
        let kind = step.get("type").and_then(Value::as_str).unwrap_or_default();
        let numbers = |name: &str| -> Result<Vec<f64>, BoxError> {
            let list = step
                .get(name)
                .and_then(Value::as_array)
                .ok_or_else(|| format!("{name}: expected an array of numbers"))?;
            let numbers: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
            numbers
                .filter(|numbers| numbers.len() == dims)
                .ok_or_else(|| format!("{name}: expected one number per axis").into())
        };
        match kind {
            "scale" => {
                for (axis, factor) in axes.iter_mut().zip(numbers("scale")?) {
                    axis.scale = Some(axis.scale.unwrap_or(1.0) * factor);
                    axis.first = axis.first.map(|first| first * factor);
                }
            }
            "translation" => {
                for (axis, way) in axes.iter_mut().zip(numbers("translation")?) {
                    axis.first = Some(axis.first.unwrap_or(0.0) + way);
                }
            }
            "identity" => {}
            other => {
                return Err(format!("transformation `{}` is not supported", excerpt(other)).into());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_writes_numbers_that_json_lacks() {
        let quoted = |text: &str| String::from_utf8(quote_numbers(text.as_bytes())).unwrap();
        let text = r#"{"a": NaN, "NaN \" Infinity": [-Infinity, Infinity, "\\"], "b": NaN"#;
        let expected =
            r#"{"a": "NaN", "NaN \" Infinity": ["-Infinity", "Infinity", "\\"], "b": "NaN""#;
        assert_eq!(quoted(text), expected);
        assert_eq!(quoted(r#""\"#), r#""\"#);
    }
}
