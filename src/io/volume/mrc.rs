//! MRC2014 and CCP4 maps (ccpem.ac.uk/mrc-format): a header of 1,024 bytes, an extended header, samples.
//!
//! Lengths are in angstrom. `mapc`, `mapr` and `maps` name the world's axes of columns, rows and sections. The first
//! sample is at the header's origin; if that is zero, at `nxstart`, `nystart`, `nzstart`, as in ChimeraX.

use super::{
    fields::BinaryFields,
    format::{Format, HeaderContent, PlacementSupport, UnitSupport, WriteSupport},
    header::{BoxError, Description, Endian, HeaderReader, StoredType, checked_dims},
};
use crate::data::{dtype::Dtype, placement::Placement};

/// The format.
pub const FORMAT: Format = Format {
    has_signature: |bytes| bytes.get(208..212) == Some(b"MAP "),
    write: Some(WriteSupport {
        extensions: &["mrc", "map", "rec", "st", "mrcs", "ccp4"],
        can_gzip: true,
        dtypes: &[Dtype::I8, Dtype::U16, Dtype::I16, Dtype::F32],
        max_dims: [i32::MAX as usize; 3],
        placement: PlacementSupport::Straight,
        units: UnitSupport::Always("angstrom"),
        header: header_bytes,
        ..WriteSupport::BASE
    }),
    ..Format::new("MRC", &["mrc", "map", "rec", "st", "mrcs", "ccp4"], |input| {
        input.with_header(parse)
    })
};

const SIZE: usize = 1024;

/// IMOD's stamp in word 38 (words are counted from 0 here); its flags follow in word 39.
const IMOD: i32 = 1_146_047_817;

/// Sample types and their modes.
const MODES: [(i32, StoredType); 5] = [
    (0, StoredType::As(Dtype::I8)),
    (1, StoredType::As(Dtype::I16)),
    (2, StoredType::As(Dtype::F32)),
    (6, StoredType::As(Dtype::U16)),
    (12, StoredType::F16),
];

/// A header as words of four bytes.
struct Words<'a>(BinaryFields<'a>);

impl<'a> Words<'a> {
    fn new(bytes: &'a [u8; SIZE]) -> Self {
        // The machine stamp states the byte order. In old files without a stamp, the mode is a small number in one byte
        // order only.
        let endian = match [bytes[212], bytes[213]] {
            [0x44, 0x44 | 0x41] => Endian::Little,
            [0x11, 0x11] => Endian::Big,
            _ if bytes[12] == 0 && bytes[13] == 0 && bytes[15] != 0 => Endian::Big,
            _ => Endian::Little,
        };
        Self(BinaryFields { bytes, endian })
    }

    fn int(&self, word: usize) -> i32 {
        self.0.i32(4 * word)
    }

    fn real(&self, word: usize) -> f64 {
        self.0.f32(4 * word)
    }

    fn stored(&self) -> Result<StoredType, BoxError> {
        let mode = self.int(3);
        // Bit 0 of IMOD's flags: bytes are signed.
        if mode == 0 && self.int(38) == IMOD && self.int(39) & 1 == 0 {
            return Ok(StoredType::As(Dtype::U8));
        }
        let found = MODES.iter().find(|(known, _)| *known == mode);
        found.map(|(_, stored)| *stored).ok_or_else(|| match mode {
            3 | 4 => "complex numbers are not supported".into(),
            101 => "samples of 4 bits are not supported".into(),
            mode => format!("unknown mode {mode}").into(),
        })
    }

    /// The labels, texts of 80 bytes.
    fn labels(&self) -> impl Iterator<Item = String> {
        let count = usize::try_from(self.int(55)).unwrap_or(0).min(10);
        self.0.bytes[224..]
            .chunks(80)
            .take(count)
            .map(|label| String::from_utf8_lossy(label).trim_matches(['\0', ' ']).to_owned())
    }
}

fn parse(reader: &mut HeaderReader<'_>) -> Result<Description, BoxError> {
    let bytes = reader.bytes::<SIZE>()?;
    let words = Words::new(&bytes);
    let stored = words.stored()?;
    let [columns, rows, mut sections] = checked_dims([0, 1, 2].map(|word| words.int(word)))?;
    // A space group of 401 to 630 marks a stack of volumes of mz sections each.
    let (group, mz) = (words.int(22), usize::try_from(words.int(9)).unwrap_or(0));
    let mut volumes = 1;
    if (401..=630).contains(&group) && mz > 0 && sections.is_multiple_of(mz) {
        (volumes, sections) = (sections / mz, mz);
    }
    let extended =
        u64::try_from(words.int(23)).map_err(|_| "invalid size of the extended header")?;
    let mut header = Description::new([columns, rows, sections], stored, SIZE as u64 + extended);
    header.endian = words.0.endian;
    header.volumes = volumes;
    header.metadata.extend(words.labels().map(|label| ("label".into(), label)));
    if extended > 0 {
        header.metadata.push(("extended header".into(), format!("{extended} bytes")));
    }
    place(&mut header, &words);
    Ok(header)
}

/// Places the samples if the header states the size of the cell; warns of unsupported axes and angles.
fn place(header: &mut Description, words: &Words<'_>) {
    let axes = [16, 17, 18].map(|word| words.int(word));
    let mut sorted = axes;
    sorted.sort_unstable();
    let axes = match sorted {
        [1, 2, 3] => axes.map(|axis| axis as usize - 1),
        [0, 0, 0] => [0, 1, 2],
        _ => {
            header.warnings.push(format!("invalid axes {axes:?}; assuming [1, 2, 3]"));
            [0, 1, 2]
        }
    };
    let angles = [13, 14, 15].map(|word| words.real(word));
    if angles.iter().any(|&angle| angle != 90.0 && angle != 0.0) {
        header.warnings.push(format!("cell angles are {angles:?}; assuming a rectangular cell"));
    }
    let cell = [10, 11, 12].map(|word| words.real(word));
    if cell.iter().any(|&side| side != 0.0) {
        let intervals = [7, 8, 9].map(|word| words.int(word));
        let starts = [4, 5, 6].map(|word| words.int(word));
        let origin = [49, 50, 51].map(|word| words.real(word));
        header.set_placement(placement(axes, cell, intervals, starts, origin));
    }
}

/// Places samples in a rectangular cell. `axes` are the world's axes (0 to 2) of columns, rows and sections; `cell` is
/// the size of the cell and `intervals` the number of samples along it, both by world axis; `starts` are the numbers of
/// the first column, row and section.
fn placement(
    axes: [usize; 3],
    cell: [f64; 3],
    intervals: [i32; 3],
    starts: [i32; 3],
    origin: [f64; 3],
) -> Placement {
    let mut steps = [[0.0; 3]; 3];
    let mut first = origin;
    for (axis, &world) in axes.iter().enumerate() {
        let size = cell[world] / f64::from(intervals[world]);
        steps[axis][world] = size;
        if origin == [0.0; 3] {
            first[world] = f64::from(starts[axis]) * size;
        }
    }
    Placement { steps, first, space: None, unit: Some("angstrom".into()) }
}

fn header_bytes(content: &HeaderContent<'_>) -> Vec<u8> {
    let &HeaderContent { dims, dtype, placement, .. } = content;
    let mut bytes = vec![0; SIZE];
    let mut put = |word: usize, value: [u8; 4]| bytes[4 * word..][..4].copy_from_slice(&value);
    let mode = MODES.iter().find(|(_, stored)| *stored == StoredType::As(dtype));
    let mode = mode.expect("one of the types that are written").0;
    // A cell of size 0 has an unknown size.
    let spacing = placement.map_or([0.0; 3], Placement::spacing);
    for axis in 0..3 {
        let dim = dims[axis] as i32;
        put(axis, dim.to_le_bytes());
        put(7 + axis, dim.to_le_bytes());
        put(10 + axis, ((spacing[axis] * f64::from(dim)) as f32).to_le_bytes());
        put(13 + axis, 90f32.to_le_bytes());
        put(16 + axis, (axis as i32 + 1).to_le_bytes());
        let origin = placement.map_or(0.0, |placement| placement.first[axis]);
        put(49 + axis, (origin as f32).to_le_bytes());
    }
    put(3, mode.to_le_bytes());
    // Minimum 0 > maximum -1 > mean -2, and deviation -1: by the standard, they were not computed.
    put(19, 0f32.to_le_bytes());
    put(20, (-1f32).to_le_bytes());
    put(21, (-2f32).to_le_bytes());
    put(22, 1i32.to_le_bytes());
    put(27, 20140i32.to_le_bytes());
    put(52, *b"MAP ");
    put(53, [0x44, 0x44, 0, 0]);
    put(54, (-1f32).to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::{super::header::parse_bytes, *};

    #[test]
    fn axes_may_be_swapped() {
        let place = Placement::axis_aligned([1.0; 3], [0.0; 3]);
        let mut bytes = header_bytes(&HeaderContent {
            dims: [4, 5, 6],
            channels: 1,
            dtype: Dtype::I8,
            placement: Some(&place),
            metadata: Vec::new(),
            nifti: None,
        });
        // Columns along z, rows along x, sections along y; the first column is number 10.
        for (word, value) in [(16, 3i32), (17, 1), (18, 2), (4, 10), (7, 5), (8, 6), (9, 4)] {
            bytes[4 * word..][..4].copy_from_slice(&value.to_le_bytes());
        }
        let place = parse_bytes(parse, &bytes).unwrap().placement.unwrap();
        assert_eq!(place.first, [0.0, 0.0, 10.0 * 6.0 / 4.0]);
        assert_eq!(place.steps[0], [0.0, 0.0, 1.5]);
        assert_eq!(place.steps[1], [0.8, 0.0, 0.0]);
        bytes[64] = 7;
        assert_eq!(parse_bytes(parse, &bytes).unwrap().warnings.len(), 1);
        bytes[12] = 4;
        assert!(parse_bytes(parse, &bytes).is_err());
    }
}
