//! The fields that `gpuproc info` prints, as text and as JSON.

use std::fmt;

use serde::Serialize;

use crate::engine::progress::printable;

/// Minimum or maximum of an input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum End {
    /// A 64-bit integer, which f64 does not always hold exactly.
    Whole(i128),
    Real(f64),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(end) => end.fmt(f),
            Self::Real(end) => end.fmt(f),
        }
    }
}

/// Contents of a file. Fields that do not apply to the file are empty and do not appear in the output.
#[derive(Default, Serialize)]
pub struct Info {
    pub file: String,
    /// `image`, `volume`, `array`, `mesh` or `part`.
    pub kind: &'static str,
    pub format: String,
    /// Size of the file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Samples along each axis: x, y of an image; x, y, z of a volume; the axes of an array in C order, the last one
    /// fastest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub size: Vec<usize>,
    /// Type of the samples in memory.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Type of the samples in the file, if it differs from that in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_order: Option<&'static str>,
    /// Slope and intercept: value = slope * stored + intercept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<[f64; 2]>,
    /// Number of pages of an image, or of volumes in the file, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<usize>,
    /// Label of the row that shows `pages`.
    #[serde(skip)]
    pub pages_label: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spacing: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// World coordinates of the centre of the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<[f64; 3]>,
    /// Direction of each axis of the grid in world coordinates, as a unit vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directions: Option<[[f64; 3]; 3]>,
    /// The directions of the axes in letters, such as `RAS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orientation: Option<String>,
    /// Anatomical orientation of the world coordinates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vertices: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triangles: Option<u64>,
    /// The lowest and the highest coordinates of a mesh.
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[[f32; 3]; 2]>,
    /// Whether a mesh has triangles and no boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watertight: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<(String, String)>,
    /// Minimum and maximum of the finite samples, with `--range`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[End; 2]>,
    /// Size of the samples in memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Warnings: assumptions about the file, and parts of it that are not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Info {
    /// An element of a JSON array, with the comma or the bracket before it.
    pub fn element(&self, is_first: bool) -> String {
        let text = serde_json::to_string_pretty(self).expect("plain data");
        format!("{}\n  {}", if is_first { "[" } else { "," }, text.replace('\n', "\n  "))
    }

    /// A heading with name, format, size and type, and a line for each further field.
    pub fn text(&self) -> String {
        let join = |numbers: &[f64]| {
            // Six decimals, or more if the largest number has fewer than six digits: further digits of coordinates that
            // a header stores as f32 are noise. Adding 0.0 turns -0 into 0.
            let max = numbers.iter().fold(0.0, |max: f64, v| max.max(v.abs()));
            let digits = if max > 0.0 { 5.0 - max.log10().floor() } else { 6.0 };
            let unit = 10f64.powf(digits.clamp(6.0, 300.0));
            let short = |v: &f64| format!("{}", (v * unit).round() / unit + 0.0);
            numbers.iter().map(short).collect::<Vec<_>>().join(" ")
        };
        let size: Vec<String> = self.size.iter().map(ToString::to_string).collect();
        let mut head = format!("{}: {} {}", printable(&self.file), self.format, self.kind);
        if !size.is_empty() {
            head += &format!(", {}", size.join("x"));
        }
        if let Some(dtype) = &self.dtype {
            head += &format!(" of {dtype}");
        }
        let corner = |corner: [f32; 3]| join(&corner.map(f64::from));
        let mut rows = vec![
            ("channels", self.channels.clone()),
            ("stored as", self.stored.clone()),
            ("byte order", self.byte_order.map(|order| format!("{order}-endian"))),
            (
                "scaling",
                self.scale
                    .map(|[slope, intercept]| format!("value = {slope} * stored + {intercept}")),
            ),
            ("range", self.range.map(|[low, high]| format!("{low} to {high}"))),
            (self.pages_label, self.pages.map(|pages| pages.to_string())),
            ("spacing", self.spacing.map(|spacing| join(&spacing))),
            ("unit", self.unit.clone()),
            ("first sample", self.first.map(|first| join(&first))),
            ("x direction", self.directions.map(|directions| join(&directions[0]))),
            ("y direction", self.directions.map(|directions| join(&directions[1]))),
            ("z direction", self.directions.map(|directions| join(&directions[2]))),
            ("orientation", self.orientation.clone()),
            ("world space", self.space.map(str::to_owned)),
            ("vertices", self.vertices.map(|count| count.to_string())),
            ("triangles", self.triangles.map(|count| count.to_string())),
            (
                "bounding box",
                self.bounds.map(|[low, high]| format!("{} to {}", corner(low), corner(high))),
            ),
            ("watertight", self.watertight.map(|is_so| if is_so { "yes" } else { "no" }.into())),
            ("file size", self.bytes.map(|bytes| format!("{bytes} bytes"))),
            ("in memory", self.memory.map(|bytes| format!("{bytes} bytes"))),
        ];
        rows.extend(self.metadata.iter().map(|(name, value)| (name.as_str(), Some(value.clone()))));
        rows.extend(self.notes.iter().map(|note| ("note", Some(note.clone()))));
        let shown = rows.iter().filter(|(_, value)| value.is_some());
        let width = shown.map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(24);
        let line = |(name, value): (&str, Option<String>)| {
            Some(format!("  {:<width$}  {}\n", printable(name), printable(&value?)))
        };
        head + "\n" + &rows.into_iter().filter_map(line).collect::<String>()
    }
}
