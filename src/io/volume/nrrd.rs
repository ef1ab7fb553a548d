//! NRRD (teem.sourceforge.net/nrrd/format.html): a header of text lines, ended by an empty line, then the samples; or
//! the header alone, which names the files with the samples (`.nhdr`).
//!
//! World coordinates are those that `space` names; `space origin` is the centre of the first sample.

use super::{
    format::{Format, HeaderContent, ITK_UNITS, PlacementSupport, WriteSupport},
    header::{
        BoxError, Description, Encoding, Endian, HeaderReader, Skip, StoredType, checked_dims,
        excerpt,
    },
    text::{TextFields, data_files, sizes, units, vector, vectors},
};
use crate::data::{
    dtype::Dtype,
    placement::{Placement, Space},
};

/// The format.
pub const FORMAT: Format = Format {
    has_signature: |bytes| bytes.starts_with(b"NRRD000"),
    write: Some(WriteSupport {
        extensions: &["nrrd"],
        keeps_metadata,
        placement: PlacementSupport::Affine(None),
        units: ITK_UNITS,
        header: header_bytes,
        ..WriteSupport::BASE
    }),
    ..Format::new("NRRD", &["nrrd", "nhdr"], |input| input.with_header(parse))
};

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

/// Fields of the format that are reported but not written: as key/value pairs of the user, they would mean nothing to
/// other programs.
const NOT_WRITTEN: [&str; 9] = [
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

/// The name of a field in the form used to compare: `data file`, `datafile` and `Data File` are the same field.
fn key(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
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
        let version =
            magic.strip_prefix("NRRD").and_then(|version| version.trim().parse::<u32>().ok());
        if !version.is_some_and(|version| (1..=5).contains(&version)) {
            return Err("bad magic number; expected NRRD0001 to NRRD0005".into());
        }
        let mut all = Self::default();
        while let Some(line) = reader.line()?.filter(|line| !line.is_empty()) {
            if line.starts_with('#') {
                continue;
            }
            if let Some((name, value)) = line.split_once(":=") {
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
    dtype.map_err(|_| format!("samples of type `{}` are not supported", excerpt(name)).into())
}

/// Parses numbers separated by blanks; NaN for a word that is not a number.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|part| part.parse().unwrap_or(f64::NAN)).collect()
}

fn space(name: &str) -> Option<Space> {
    match name.to_ascii_lowercase().as_str() {
        "right-anterior-superior" | "ras" => Some(Space::Ras),
        "left-posterior-superior" | "lps" => Some(Space::Lps),
        "left-anterior-superior" | "las" => Some(Space::Las),
        _ => None,
    }
}

/// The axes of a file.
struct Axes {
    /// Samples along x, y and z.
    dims: [usize; 3],
    /// Number of volumes that follow each other.
    volumes: usize,
    /// The axes of the file that are x, y and z.
    spatial: Vec<usize>,
}

/// Finds the axes of space: those with a direction or of a spatial kind. Other axes count volumes, and must follow the
/// axes of space.
fn axes(fields: &TextFields, directions: &[Option<Vec<f64>>]) -> Result<Axes, BoxError> {
    let sizes =
        sizes(fields.require("sizes")?).ok_or("sizes: expected whole numbers greater than 0")?;
    let dimension = fields.count("dimension")? as usize;
    if dimension != sizes.len() || !(1..=16).contains(&dimension) {
        return Err(format!("dimension is {dimension}, but there are {} sizes", sizes.len()).into());
    }
    let kinds: Vec<String> = fields
        .get(&["kinds"])
        .map_or_else(Vec::new, |kinds| kinds.split_whitespace().map(key).collect());
    let is_spatial = |&axis: &usize| {
        let kind = kinds.get(axis).map_or("domain", String::as_str);
        match directions.get(axis) {
            Some(direction) => direction.is_some(),
            None => matches!(kind, "domain" | "space" | "???" | "none"),
        }
    };
    let mut spatial: Vec<usize> = (0..dimension).filter(is_spatial).collect();
    // A fourth axis of space is taken for time.
    spatial.truncate(3);
    let last = spatial.last().copied().unwrap_or(0);
    if let Some(axis) = (0..last).find(|axis| !spatial.contains(axis) && sizes[*axis] > 1) {
        let size = sizes[axis];
        return Err(format!("vectors of {size} numbers (axis {axis}) are not supported").into());
    }
    let size = |i: usize| spatial.get(i).map_or(1, |&axis| sizes[axis]);
    let others = (0..dimension).filter(|axis| !spatial.contains(axis)).map(|axis| sizes[axis]);
    let volumes = others.fold(1u64, u64::saturating_mul);
    Ok(Axes {
        dims: checked_dims([size(0), size(1), size(2)])?,
        volumes: usize::try_from(volumes)?,
        spatial,
    })
}

/// Names of the units of x, y and z.
type UnitNames<'a> = [Option<&'a str>; 3];

/// Placement by `space directions`, or else by `spacings` and `axis mins`, with the units of x, y and z; `None` without
/// these fields.
fn placement<'a>(
    fields: &'a TextFields,
    directions: &[Option<Vec<f64>>],
    spatial: &[usize],
    warnings: &mut Vec<String>,
) -> Result<Option<(Placement, UnitNames<'a>)>, BoxError> {
    let three = |v: &[f64]| match *v {
        [x] => Some([x, 0.0, 0.0]),
        [x, y] => Some([x, y, 0.0]),
        [x, y, z] => Some([x, y, z]),
        _ => None,
    };
    let units_in = |list: &str| fields.get(&[list]).map_or_else(Vec::new, units);
    if !directions.is_empty() {
        let mut steps = [[0.0; 3]; 3];
        for (i, step) in steps.iter_mut().enumerate() {
            let direction = spatial.get(i).and_then(|&axis| directions.get(axis)?.as_deref());
            // An axis that the file lacks has one sample; its direction does not matter.
            step[i] = 1.0;
            if let Some(direction) = direction {
                *step = three(direction)
                    .ok_or("space directions: expected at most three components")?;
            }
        }
        let origin = match fields.get(&["spaceorigin"]) {
            Some(text) => vector(text.trim())
                .as_deref()
                .and_then(three)
                .ok_or("space origin: expected a vector")?,
            None => [0.0; 3],
        };
        let space = fields.get(&["space"]).and_then(space);
        let units = units_in("spaceunits");
        // Axes that the file lacks have the unit of the first.
        let units = [0, 1, 2].map(|axis| units.get(axis).or(units.first()).copied());
        return Ok(Some((Placement { steps, first: origin, space, unit: None }, units)));
    }
    let Some(spacings) = fields.get(&["spacings"]).map(numbers) else { return Ok(None) };
    let value_at = |list: &[f64], axis: usize| list.get(axis).copied().filter(|v| v.is_finite());
    if spatial.iter().all(|&axis| value_at(&spacings, axis).is_none()) {
        return Ok(None);
    }
    let minima = fields.get(&["axismins"]).map_or_else(Vec::new, numbers);
    let cells = fields.get(&["centers", "centerings"]).unwrap_or_default().to_lowercase();
    let cells: Vec<&str> = cells.split_whitespace().collect();
    let (mut spacing, mut first) = ([1.0; 3], [0.0; 3]);
    for (i, &axis) in spatial.iter().enumerate() {
        match value_at(&spacings, axis) {
            Some(step) => spacing[i] = step,
            None => {
                warnings
                    .push(format!("spacing along {} is missing; assuming 1", ["x", "y", "z"][i]));
            }
        }
        // For cell-centred samples, the axis minimum is the border of the first sample, half a spacing before its
        // centre.
        let half = if cells.get(axis) == Some(&"cell") { 0.5 } else { 0.0 };
        first[i] = value_at(&minima, axis).map_or(0.0, |minimum| minimum + half * spacing[i]);
    }
    let units = units_in("units");
    let unit = |i: usize| units.get(*spatial.get(i).or(spatial.first())?).copied();
    Ok(Some((Placement::axis_aligned(spacing, first), [0, 1, 2].map(unit))))
}

fn parse(reader: &mut HeaderReader<'_>) -> Result<Description, BoxError> {
    let Lines { fields, pairs, others, files } = Lines::read(reader)?;
    let directions = fields.get(&["spacedirections"]).map_or_else(|| Ok(Vec::new()), vectors)?;
    let Axes { dims, volumes, spatial } = axes(&fields, &directions)?;
    let dtype = dtype(fields.require("type")?)?;
    let mut header = Description::new(dims, StoredType::As(dtype), reader.position);
    header.volumes = volumes;
    header.encoding = match fields.require("encoding")?.to_lowercase().as_str() {
        "raw" => Encoding::Raw,
        "gz" | "gzip" => Encoding::Gzip,
        "bz2" | "bzip2" => Encoding::Bzip2,
        "ascii" | "text" | "txt" => Encoding::Text,
        other => return Err(format!("encoding `{}` is not supported", excerpt(other)).into()),
    };
    header.endian = match fields.get(&["endian"]).map(str::to_lowercase).as_deref() {
        Some("big") => Endian::Big,
        Some("little") => Endian::Little,
        None if dtype.size() == 1 || header.encoding == Encoding::Text => Endian::Little,
        _ => return Err("endian: expected little or big".into()),
    };
    header.skip = Skip {
        from: reader.position,
        lines: fields.count("lineskip")?.try_into().map_err(|_| "line skip is out of range")?,
        bytes: match fields.count("byteskip")? {
            -1 if header.encoding == Encoding::Raw => None,
            bytes => Some(bytes.try_into().map_err(|_| "byte skip is out of range")?),
        },
    };
    if let Some(files) = files {
        header.skip.from = 0;
        header.files = Some(files);
    }
    let found = placement(&fields, &directions, &spatial, &mut header.warnings)?;
    if let Some((placement, units)) = found {
        header.set_placement_in(placement, units);
    }
    if let Some(content) = fields.get(&["content"]) {
        header.metadata.push(("content".into(), content.to_owned()));
    }
    if let Some(name) = fields.get(&["space"]).filter(|name| space(name).is_none()) {
        header.metadata.push(("space".into(), name.to_owned()));
    }
    if let Some(minima) = fields.get(&["axismins"]).filter(|_| header.placement.is_none()) {
        header.metadata.push(("axis mins".into(), minima.to_owned()));
    }
    header.metadata.extend(others);
    header.metadata.extend(pairs);
    Ok(header)
}

/// The header of a new file, including the empty line at its end.
fn header_bytes(content: &HeaderContent<'_>) -> Vec<u8> {
    let HeaderContent { dims: [x, y, z], dtype, placement, metadata } = content;
    let kind = match dtype {
        Dtype::F32 => "float",
        Dtype::F64 => "double",
        whole => whole.numpy_name(),
    };
    let mut text = format!(
        "NRRD0004\n# Complete NRRD file format specification at:\n# http://teem.sourceforge.net/nrrd/format.html\ntype: {kind}\ndimension: 3\n"
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
    text += &format!("sizes: {x} {y} {z}\n");
    if let Some(Placement { steps, .. }) = placement {
        let [x, y, z] = steps.map(vector);
        text += &format!("space directions: {x} {y} {z}\n");
    }
    text += "kinds: domain domain domain\nendian: little\nencoding: raw\n";
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
                let content =
                    HeaderContent { dims: [4, 5, 6], dtype, placement, metadata: metadata.clone() };
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
        assert!(with("3 4 5 6", "kinds: vector domain domain domain\n").is_err());
        assert!(with("3 4 5", "kinds: RGB-color domain domain\n").is_err());
        let none = "space dimension: 3\nspace directions: none (1,0,0) (0,1,0) (0,0,1)\n";
        assert!(with("3 4 5 6", none).is_err());
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
            let header = parse(&format!("{PLAIN}{minima}{name}: cell cell node\n")).unwrap();
            assert_eq!(header.placement.unwrap().first, [11.0, 0.0, 30.0], "{name}");
            assert!(header.metadata.is_empty());
        }
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
