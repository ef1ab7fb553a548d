//! NRRD (teem.sourceforge.net/nrrd/format.html): a header of text lines, ended by an empty line, then the samples; or
//! the header alone, which names the files with the samples (`.nhdr`).
//!
//! World coordinates are those that `space` names; `space origin` is the centre of the first sample.

mod axes;

use self::axes::{axes, key, placement, space};
use super::{
    format::{Format, HeaderContent, ITK_UNITS, PlacementSupport, WriteSupport},
    header::{
        BoxError, Description, Encoding, Endian, HeaderReader, Skip, StoredType, VECTORS, excerpt,
    },
    text::{TextFields, data_files, vectors},
};
use crate::data::{
    dtype::Dtype,
    placement::{Placement, Space},
};

/// The format.
pub const FORMAT: Format = Format {
    has_signature: |bytes| bytes.starts_with(b"NRRD00"),
    write: Some(WriteSupport {
        extensions: &["nrrd"],
        keeps_metadata,
        placement: PlacementSupport::Affine(None),
        units: ITK_UNITS,
        holds_colors: |_, colors| matches!(colors, 3 | 4),
        header: header_bytes,
        ..WriteSupport::BASE
    }),
    ..Format::new("NRRD", &["nrrd", "nhdr"], |input| input.with_header(parse))
};

/// Fields that are understood, or that need not be kept.
const KNOWN: [&str; 22] = [
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
    "axismaxs",
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

/// Fields of the format that are reported but not written: as key/value pairs of the user, they would mean nothing to
/// other programs.
const NOT_WRITTEN: [&str; 10] = [
    "qform",
    "space",
    "axismins",
    "axismaxs",
    "thicknesses",
    "labels",
    "sampleunits",
    "oldmin",
    "oldmax",
    "measurementframe",
];

/// The lines of a header.
#[derive(Default)]
struct Lines {
    /// `name: value`, names as [`key`] returns them.
    fields: TextFields,
    /// `name:=value`, the user's own.
    pairs: Vec<(String, String)>,
    /// Fields that are not understood, with their names in the file.
    others: Vec<(String, String)>,
    /// The files with the samples, if the file of the header does not hold them.
    files: Option<Vec<String>>,
}

/// Whether a value states anything: `nan`, `none`, `???` and `""` stand for unknown ones.
fn is_stated(value: &str) -> bool {
    let is_unknown =
        |word: &str| ["nan", "none", "???", "\"\""].contains(&word.to_ascii_lowercase().as_str());
    !value.split_whitespace().all(is_unknown)
}

impl Lines {
    fn read(reader: &mut HeaderReader<'_>) -> Result<Self, BoxError> {
        let magic = reader.line()?.unwrap_or_default();
        let version = magic.strip_prefix("NRRD").map(str::trim).unwrap_or_default();
        // Teem reads files of the time before the first version, too.
        let is_known =
            version == "00.01" || version.parse().is_ok_and(|n: u32| (1..=5).contains(&n));
        if !is_known {
            return Err("bad magic number; expected NRRD0001 to NRRD0005".into());
        }
        let mut all = Self::default();
        while let Some(line) = reader.line()?.filter(|line| !line.is_empty()) {
            if line.starts_with('#') {
                continue;
            }
            // A value may contain `:=`.
            let is_field = |(name, _): (&str, &str)| {
                let name = key(name);
                KNOWN.contains(&name.as_str()) || NOT_WRITTEN.contains(&name.as_str())
            };
            if let Some((name, value)) = line.split_once(":=")
                && !line.split_once(": ").is_some_and(is_field)
            {
                all.pairs.push((name.to_owned(), value.to_owned()));
            } else if let Some((name, value)) = line.split_once(':') {
                let (own_name, name, value) = (name.trim(), key(name), value.trim().to_owned());
                if !KNOWN.contains(&name.as_str()) && is_stated(&value) {
                    all.others.push((own_name.to_owned(), value.clone()));
                }
                if name == "datafile" {
                    all.files = Some(data_files(&value, reader)?);
                }
                all.fields.0.push((name, value));
            } else {
                return Err(format!("invalid header line `{}`", excerpt(&line)).into());
            }
        }
        Ok(all)
    }
}

fn dtype(name: &str) -> Result<Dtype, BoxError> {
    let name = name.to_ascii_lowercase();
    // `signed long long int` is the same as `long long`, and `unsigned short int` as `ushort`.
    let (words, is_unsigned) = match name.split_whitespace().collect::<Vec<_>>()[..] {
        ["unsigned", ref words @ ..] => (words.join(" "), true),
        ["signed", ref words @ ..] => (words.join(" "), false),
        ref words => (words.join(" "), false),
    };
    let word = words.strip_suffix(" int").unwrap_or(&words);
    let word = match word.strip_suffix("_t").unwrap_or(word) {
        "long long" | "longlong" => "int64",
        "ulonglong" => "uint64",
        word => word,
    };
    let spelled = if is_unsigned { format!("u{word}") } else { word.to_owned() };
    let dtype = spelled.parse();
    dtype.map_err(|_| format!("samples of type `{}` are not supported", excerpt(&name)).into())
}

fn parse(reader: &mut HeaderReader<'_>) -> Result<Description, BoxError> {
    let Lines { fields, pairs, others, files } = Lines::read(reader)?;
    let directions = fields.get(&["spacedirections"]).map_or_else(|| Ok(Vec::new()), vectors)?;
    let axes = axes(&fields, &directions)?;
    let dtype = dtype(fields.require("type")?)?;
    let mut header = Description::new(axes.dims, StoredType::As(dtype), reader.position);
    if axes.has_vectors {
        header.volume_noun = VECTORS;
    }
    (header.volumes, header.inner_axes) = (axes.volumes, axes.inner.clone());
    if let Some(colors) = axes.colors {
        header.colors = colors;
        header.volumes /= colors;
        header.inner_axes.remove(0);
    }
    header.encoding = match fields.require("encoding")?.to_lowercase().as_str() {
        "raw" => Encoding::Raw,
        "gz" | "gzip" => Encoding::Gzip,
        "bz2" | "bzip2" => Encoding::Bzip2,
        "ascii" | "text" | "txt" => Encoding::Text,
        "hex" => Encoding::Hex,
        other => return Err(format!("encoding `{}` is not supported", excerpt(other)).into()),
    };
    header.endian = match fields.get(&["endian"]).map(str::to_lowercase).as_deref() {
        Some("big") => Endian::Big,
        Some("little") => Endian::Little,
        None if dtype.size() == 1 || header.encoding == Encoding::Text => Endian::Little,
        _ => return Err("endian: expected little or big".into()),
    };
    // From -1 on, samples are counted from the end: -3 means that two bytes follow them.
    let byte_skip = fields.count("byteskip")?;
    if byte_skip < 0 && matches!(header.encoding, Encoding::Text | Encoding::Hex) {
        return Err("byte skip: samples that are text cannot be counted from the end".into());
    }
    header.skip = Skip {
        from: reader.position,
        lines: fields.count("lineskip")?.try_into().map_err(|_| "line skip is out of range")?,
        bytes: u64::try_from(byte_skip).ok(),
        after: if byte_skip < 0 { !byte_skip as u64 } else { 0 },
    };
    if let Some(files) = files {
        header.skip.from = 0;
        header.files = Some(files);
    }
    let found = placement(&fields, &directions, &axes, &mut header.warnings)?;
    if let Some((placement, units)) = found {
        header.set_placement_in(placement, units);
    }
    if let Some(content) = fields.get(&["content"]) {
        header.metadata.push(("content".into(), content.to_owned()));
    }
    if let Some(name) = fields.get(&["space"]).filter(|name| space(name).is_none()) {
        header.metadata.push(("space".into(), name.to_owned()));
    }
    for (field, name) in [("axismins", "axis mins"), ("axismaxs", "axis maxs")] {
        let unused =
            fields.get(&[field]).filter(|text| header.placement.is_none() && is_stated(text));
        if let Some(text) = unused.map(str::to_owned) {
            header.metadata.push((name.into(), text));
        }
    }
    header.metadata.extend(others);
    header.metadata.extend(pairs);
    Ok(header)
}

/// The header of a new file, including the empty line at its end.
fn header_bytes(content: &HeaderContent<'_>) -> Vec<u8> {
    let HeaderContent { dims: [x, y, z], channels, dtype, placement, metadata, .. } = content;
    // The fastest axis is that of colours.
    let (axes, first_size, none, color_kind) = match channels {
        1 => (3, String::new(), "", ""),
        3 => (4, "3 ".to_owned(), "none ", "RGB-color "),
        more => (4, format!("{more} "), "none ", "RGBA-color "),
    };
    let kind = match dtype {
        Dtype::F32 => "float",
        Dtype::F64 => "double",
        whole => whole.numpy_name(),
    };
    let mut text = format!(
        "NRRD0004\n# Complete NRRD file format specification at:\n# http://teem.sourceforge.net/nrrd/format.html\ntype: {kind}\ndimension: {axes}\n"
    );
    let vector = |[x, y, z]: [f64; 3]| format!("({x},{y},{z})");
    if let Some(Placement { space, .. }) = placement {
        text += match space {
            Some(Space::Ras) => "space: right-anterior-superior\n",
            Some(Space::Lps) => "space: left-posterior-superior\n",
            Some(Space::Las) => "space: left-anterior-superior\n",
            None => "space dimension: 3\n",
        };
    }
    text += &format!("sizes: {first_size}{x} {y} {z}\n");
    if let Some(Placement { steps, .. }) = placement {
        let [x, y, z] = steps.map(vector);
        text += &format!("space directions: {none}{x} {y} {z}\n");
    }
    text += &format!("kinds: {color_kind}domain domain domain\nendian: little\nencoding: raw\n");
    if let Some(Placement { first, unit, .. }) = placement {
        if let Some(unit) = unit {
            text += &format!("space units: \"{unit}\" \"{unit}\" \"{unit}\"\n");
        }
        text += &format!("space origin: {}\n", vector(*first));
    }
    for (name, value) in metadata {
        text += &format!("{name}:={value}\n");
    }
    text.push('\n');
    text.into_bytes()
}

/// Whether an entry of metadata can be written as one line `name:=value` and read again.
fn keeps_metadata((name, value): &(String, String)) -> bool {
    let plain = |text: &str| !text.contains(char::is_control);
    plain(name)
        && plain(value)
        && !name.starts_with('#')
        && !name.contains(":=")
        && !name.ends_with(':')
        && !NOT_WRITTEN.contains(&key(name).as_str())
}

#[cfg(test)]
mod tests {
    use super::{
        super::{format::write_and_parse, header::parse_bytes},
        *,
    };

    fn parse(text: &str) -> Result<Description, BoxError> {
        parse_bytes(super::parse, text.as_bytes())
    }

    const PLAIN: &str =
        "NRRD0005\ntype: short\ndimension: 3\nsizes: 4 5 6\nendian: little\nencoding: raw\n";

    #[test]
    fn headers_come_back() {
        let steps = [[0.5, 0.25, 0.0], [-0.25, 0.5, 0.0], [0.0, 0.0, -2.0]];
        for space in [None, Some(Space::Ras), Some(Space::Lps), Some(Space::Las)] {
            for dtype in Dtype::SAMPLES {
                let unit = Some("mm".to_owned());
                let place = Placement { steps, first: [0.1, -20.0, 1e-9], space, unit };
                let metadata = vec![("my key".to_owned(), "my: value".to_owned())];
                let placement = Some(&place);
                let content = HeaderContent {
                    dims: [4, 5, 6],
                    channels: 1,
                    dtype,
                    placement,
                    metadata: metadata.clone(),
                    nifti: None,
                };
                let header = write_and_parse(&FORMAT, super::parse, &content);
                assert_eq!(header.placement.as_ref(), placement);
                assert_eq!(header.metadata, metadata);
            }
        }
    }

    #[test]
    fn axes_outside_of_space_count_volumes() {
        let with = |sizes: &str, more: &str| {
            let dimension = sizes.split(' ').count();
            let text = PLAIN.replace(
                "dimension: 3\nsizes: 4 5 6",
                &format!("dimension: {dimension}\nsizes: {sizes}\n{more}"),
            );
            parse(&text.replace("\n\n", "\n"))
        };
        let found = |sizes: &str, more: &str| {
            let header = with(sizes, more).unwrap();
            (header.dims, header.volumes)
        };
        assert_eq!(found("4 5 6", ""), ([4, 5, 6], 1));
        assert_eq!(found("4 5", ""), ([4, 5, 1], 1));
        assert_eq!(found("4 5 6 7", ""), ([4, 5, 6], 7));
        assert_eq!(found("1 4 5 6", "kinds: vector domain domain domain\n"), ([4, 5, 6], 1));
        assert_eq!(found("4 5 6 7", "kinds: domain domain domain list\n"), ([4, 5, 6], 7));
        assert_eq!(found("3 4 5 6", "kinds: vector domain domain domain\n"), ([4, 5, 6], 3));
        assert_eq!(found("3 4 5", "kinds: 3-vector domain domain\n"), ([4, 5, 1], 3));
        assert_eq!(with("3 4 5", "kinds: RGB-color domain domain\n").unwrap().colors, 3);
        assert_eq!(
            found("3 4 5 6 7", "kinds: RGB-color domain domain domain list\n"),
            ([4, 5, 6], 7)
        );
        let none = "space dimension: 3\nspace directions: none (1,0,0) (0,1,0) (0,0,1)\n";
        assert_eq!(found("3 4 5 6", none), ([4, 5, 6], 3));
        assert_eq!(found("1 4 5 6", none), ([4, 5, 6], 1));
        assert!(with("4 0 6", "").is_err() && with("4 x 6", "").is_err());
        assert!(with("99999999999999999999 5 6", "").is_err());
    }

    #[test]
    fn types_and_fields_have_many_spellings() {
        for (name, found) in [
            ("signed char", Dtype::I8),
            ("unsigned short int", Dtype::U16),
            ("long long int", Dtype::I64),
            ("unsigned long long", Dtype::U64),
            ("uint32_t", Dtype::U32),
            ("int", Dtype::I32),
        ] {
            assert_eq!(dtype(name).unwrap(), found, "{name}");
        }
        assert!(dtype("block").is_err() && dtype("").is_err());
        let header = parse(
            &(PLAIN.to_owned() + "spacings: 0.5 nan 2\nData File: a.raw\nmy key:=my: value\n"),
        );
        let header = header.unwrap();
        assert_eq!(header.placement.unwrap().spacing(), [0.5, 1.0, 2.0]);
        assert_eq!((header.files.unwrap(), header.skip.from), (vec!["a.raw".to_owned()], 0));
        assert_eq!(header.metadata, [("my key".to_owned(), "my: value".to_owned())]);
        for name in ["centers", "centerings"] {
            let minima = "spacings: 2 2 2\naxis mins: 10 nan 30\n";
            for (values, x) in
                [("cell cell node", 11.0), ("??? none node", 11.0), ("node node node", 10.0)]
            {
                let header = parse(&format!("{PLAIN}{minima}{name}: {values}\n")).unwrap();
                assert_eq!(header.placement.unwrap().first, [x, 0.0, 30.0], "{name}");
                assert!(header.metadata.is_empty());
            }
        }
        // Sizes are 4, 5 and 6.
        let limits = "axis mins: 0 0 0\naxis maxs: 8 10 30\ncenters: cell ??? node\n";
        let place = parse(&(PLAIN.to_owned() + limits)).unwrap().placement.unwrap();
        assert_eq!((place.spacing(), place.first), ([2.0, 2.0, 6.0], [1.0, 1.0, 0.0]));
        let colon = parse(&(PLAIN.to_owned() + "content: a:=b\n")).unwrap();
        assert_eq!(colon.metadata, [("content".to_owned(), "a:=b".to_owned())]);
    }

    /// Fields that are not understood are metadata, which the writer of another file does not pass on.
    #[test]
    fn unknown_fields_are_metadata() {
        let more = "thicknesses: nan NaN 2\nlabels: \"\" \"\" \"\"\nsample units: Kelvin\n\
                    Measurement Frame: (1,0,0) (0,1,0) (0,0,1)\nspace: scanner-xyz\naxis mins: 1 2 3\n\
                    my key:=mine\n";
        let header = parse(&format!("{PLAIN}{more}")).unwrap();
        let names: Vec<&str> = header.metadata.iter().map(|(name, _)| name.as_str()).collect();
        let others = ["space", "axis mins", "thicknesses", "sample units", "Measurement Frame"];
        assert_eq!(names, [&others[..], &["my key"]].concat());
        let kept: Vec<&str> = header
            .metadata
            .iter()
            .filter(|entry| keeps_metadata(entry))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(kept, ["my key"]);
    }

    #[test]
    fn units_are_those_of_the_axes_of_space() {
        let more = "kinds: vector domain domain domain\nspacings: nan 2 3 4\n\
                    units: \"s\" \"um\" \"um\" \"um\"\n";
        let text = PLAIN.replace("dimension: 3\nsizes: 4", "dimension: 4\nsizes: 1 4") + more;
        assert_eq!(parse(&text).unwrap().placement.unwrap().unit.as_deref(), Some("um"));
    }
}
