//! PLY of the faces between labels, with both labels of each face; and the colours of labels.

use std::io;

use super::{Out, PlyWriter, chunks::write_each};
use crate::data::{label_mesh::Quad, surface::Surface};

/// Maps a label index, as in `Quad`, to the label in the input file.
pub type LabelOf<'a> = &'a (dyn Fn(u32) -> u64 + Sync);

/// The type of labels in a PLY: the smallest one that holds them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelType {
    name: &'static str,
    size: usize,
}

impl LabelType {
    /// The smallest type for labels up to `max`; `None` beyond 2^53. PLY has no 64-bit integers, so large labels are
    /// floats.
    pub fn for_labels_up_to(max: u64) -> Option<Self> {
        let (name, size) = match max {
            0..=0xff => ("uchar", 1),
            0x100..=0xffff => ("ushort", 2),
            0x1_0000..=0xffff_ffff => ("uint", 4),
            _ => ("double", 8),
        };
        (max <= 1 << 53).then_some(Self { name, size })
    }

    fn write(&self, label: u64, bytes: &mut Vec<u8>) {
        match self.size {
            8 => bytes.extend_from_slice(&(label as f64).to_le_bytes()),
            size => bytes.extend_from_slice(&label.to_le_bytes()[..size]),
        }
    }
}

/// A PLY of all faces between labels, each once, with the properties `label` and `neighbor`. A face points out of the
/// region of `label`. Each quad becomes two triangles.
pub type LabelPly = PlyWriter<Quad>;

impl LabelPly {
    /// Writes the header, all vertices and all faces. `is_mirrored`: the order of corners is reversed, because the
    /// placement mirrors.
    pub fn finish_labels(
        self,
        out: &mut Out<'_>,
        is_mirrored: bool,
        label_of: LabelOf<'_>,
        label_type: LabelType,
    ) -> io::Result<()> {
        let (kind, ascii) = (label_type.name, self.details.ascii);
        let properties = format!("property {kind} label\nproperty {kind} neighbor\n");
        let format = |quad: &Quad, bytes: &mut Vec<u8>| {
            let [label, neighbour] = quad.labels.map(label_of);
            // The order of indices may differ from that of the labels. The smaller label comes first, unless it is 0.
            let is_swapped = neighbour != 0 && neighbour < label;
            let labels = if is_swapped { [neighbour, label] } else { [label, neighbour] };
            for [a, b, c] in quad.triangles() {
                let triangle = if is_swapped != is_mirrored { [a, c, b] } else { [a, b, c] };
                if ascii {
                    let ([a, b, c], [label, neighbour]) = (triangle, labels);
                    let text = format!("3 {a} {b} {c} {label} {neighbour}\n");
                    bytes.extend_from_slice(text.as_bytes());
                } else {
                    bytes.push(3);
                    triangle
                        .iter()
                        .for_each(|corner| bytes.extend_from_slice(&corner.to_le_bytes()));
                    labels.iter().for_each(|&label| label_type.write(label, bytes));
                }
            }
        };
        self.finish_with(out, 2, &properties, |out, quads| write_each(out, quads, format))
    }
}

/// A label and its surface.
pub type LabelPart = (u64, Surface);

/// The linear RGB colour of a label: its hue is a multiple of the golden ratio, so that hues of consecutive labels
/// differ.
pub fn colour(label: u64) -> [f32; 3] {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let hue = (label.wrapping_mul(GOLDEN) >> 40) as f32 / (1 << 24) as f32;
    [0.0, 2.0, 4.0].map(|shift| {
        let distance = ((hue * 6.0 + shift) % 6.0 - 3.0).abs() - 1.0;
        0.1 + 0.8 * distance.clamp(0.0, 1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_take_the_smallest_type() {
        let name = |max| LabelType::for_labels_up_to(max).map(|found| found.name);
        assert_eq!([255, 256].map(name), [Some("uchar"), Some("ushort")]);
        assert_eq!([65536, 1 << 32].map(name), [Some("uint"), Some("double")]);
        assert_eq!([1 << 53, (1 << 53) + 1].map(name), [Some("double"), None]);
    }
}
