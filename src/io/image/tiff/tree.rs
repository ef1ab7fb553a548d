//! Directories to be written: a tree, little-endian, with values after the entries.

use super::directory::{kind, sizes};

/// Values of a tag.
#[derive(Clone, Debug, PartialEq)]
pub struct TagValue {
    pub tag: u16,
    /// Type of the values, one of [`kind`].
    pub kind: u16,
    /// Values, with numbers in native byte order.
    pub bytes: Vec<u8>,
}

impl TagValue {
    pub fn shorts(tag: u16, values: &[u16]) -> Self {
        Self { tag, kind: kind::SHORT, bytes: bytemuck::cast_slice(values).to_vec() }
    }

    pub fn longs(tag: u16, values: &[u32]) -> Self {
        Self { tag, kind: kind::LONG, bytes: bytemuck::cast_slice(values).to_vec() }
    }

    /// Offsets or lengths: 64-bit numbers in BigTIFF, otherwise their low 32 bits.
    pub fn offsets(tag: u16, values: impl Iterator<Item = u64>, is_big_tiff: bool) -> Self {
        match is_big_tiff {
            true => {
                let bytes = values.flat_map(u64::to_ne_bytes).collect();
                Self { tag, kind: kind::LONG8, bytes }
            }
            false => Self::longs(tag, &values.map(|value| value as u32).collect::<Vec<_>>()),
        }
    }

    pub fn text(tag: u16, text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        Self { tag, kind: kind::ASCII, bytes }
    }

    /// A fraction close to `value`.
    pub fn fraction(tag: u16, value: f64) -> Self {
        let [numerator, denominator] = fraction(value);
        let bytes = [numerator, denominator].map(u32::to_ne_bytes).concat();
        Self { tag, kind: kind::RATIONAL, bytes }
    }
}

/// Best convergent of the continued fraction of `value` with a numerator and denominator of 32 bits.
fn fraction(value: f64) -> [u32; 2] {
    let value = if value.is_finite() { value.clamp(0.0, f64::from(u32::MAX)) } else { 0.0 };
    let (mut before, mut last) = ([0f64, 1f64], [1f64, 0f64]);
    let mut rest = value;
    for _ in 0..32 {
        let whole = rest.floor();
        let next = [whole * last[0] + before[0], whole * last[1] + before[1]];
        if next.iter().any(|&n| n > f64::from(u32::MAX)) {
            break;
        }
        (before, last) = (last, next);
        if rest - whole < 1e-12 || (last[0] / last[1] - value).abs() <= value * 1e-15 {
            break;
        }
        rest = 1.0 / (rest - whole);
    }
    // For values below any such fraction, this is 0.
    last.map(|n| n as u32)
}

/// A directory and the directories that it points to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectoryTree {
    pub values: Vec<TagValue>,
    /// Tags that point to other directories.
    pub children: Vec<(u16, DirectoryTree)>,
}

impl DirectoryTree {
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.children.is_empty()
    }

    /// Bytes of the directory with its values and children.
    pub fn len(&self, is_big_tiff: bool) -> u64 {
        let inline = if is_big_tiff { 8 } else { 4 };
        let far = |value: &TagValue| match value.bytes.len() as u64 {
            len if len <= inline => 0,
            len => len.next_multiple_of(2),
        };
        let children = self.children.iter().map(|(_, child)| child.len(is_big_tiff)).sum::<u64>();
        self.own_len(is_big_tiff) + self.values.iter().map(far).sum::<u64>() + children
    }

    /// Bytes of the directory without values after the entries and without children.
    fn own_len(&self, is_big_tiff: bool) -> u64 {
        let count = (self.values.len() + self.children.len()) as u64;
        if is_big_tiff { 8 + 20 * count + 8 } else { 2 + 12 * count + 4 }
    }

    /// Appends the tree to `file`, which starts at offset `start` of the whole file. The next directory is at offset
    /// `next`.
    pub fn write(&self, file: &mut Vec<u8>, start: u64, is_big_tiff: bool, next: u64) {
        let mut far_at = start + file.len() as u64 + self.own_len(is_big_tiff);
        let mut far = Vec::new();
        let offset = |at: u64| match is_big_tiff {
            true => at.to_le_bytes().to_vec(),
            false => (at as u32).to_le_bytes().to_vec(),
        };
        let mut entries: Vec<(u16, u16, u64, Vec<u8>)> = Vec::new();
        for TagValue { tag, kind, bytes } in &self.values {
            let [size, _] = sizes(*kind).unwrap_or([1, 1]);
            let count = (bytes.len() / size) as u64;
            let mut bytes = bytes.clone();
            let inline = offset(0).len();
            if bytes.len() > inline {
                bytes.resize(bytes.len().next_multiple_of(2), 0);
                let here = offset(far_at);
                far_at += bytes.len() as u64;
                far.append(&mut bytes);
                bytes = here;
            }
            bytes.resize(inline, 0);
            entries.push((*tag, *kind, count, bytes));
        }
        for (tag, child) in &self.children {
            let kind = if is_big_tiff { kind::LONG8 } else { kind::LONG };
            entries.push((*tag, kind, 1, offset(far_at)));
            far_at += child.len(is_big_tiff);
        }
        entries.sort_by_key(|entry| entry.0);
        match is_big_tiff {
            true => file.extend((entries.len() as u64).to_le_bytes()),
            false => file.extend((entries.len() as u16).to_le_bytes()),
        }
        for (tag, kind, count, mut value) in entries {
            file.extend(tag.to_le_bytes());
            file.extend(kind.to_le_bytes());
            file.extend(offset(count));
            value.resize(offset(0).len(), 0);
            file.extend(value);
        }
        file.extend(offset(next));
        file.extend(far);
        self.children.iter().for_each(|(_, child)| child.write(file, start, is_big_tiff, 0));
    }
}

/// Header of a file, and the offset of the first directory.
pub fn header(is_big_tiff: bool) -> (Vec<u8>, u64) {
    match is_big_tiff {
        true => (b"II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0".to_vec(), 16),
        false => (b"II*\0\x08\0\0\0".to_vec(), 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories of late pages of a large BigTIFF lie beyond 4 GiB.
    #[test]
    fn pointers_to_children_have_all_bits() {
        let child = DirectoryTree { values: vec![TagValue::shorts(1, &[7])], children: Vec::new() };
        let tree = DirectoryTree { values: Vec::new(), children: vec![(34665, child)] };
        for (start, is_big_tiff) in [(0, false), (0, true), (5 << 30, true)] {
            let mut file = Vec::new();
            tree.write(&mut file, start, is_big_tiff, 0);
            let own_len = tree.own_len(is_big_tiff);
            assert_eq!(file.len() as u64, tree.len(is_big_tiff));
            let pointer = match is_big_tiff {
                true => u64::from_le_bytes(*file[20..].first_chunk().unwrap()),
                false => u32::from_le_bytes(*file[10..].first_chunk().unwrap()).into(),
            };
            assert_eq!(pointer, start + own_len, "{start} {is_big_tiff}");
        }
    }

    #[test]
    fn fractions_are_near() {
        for (value, expected) in [
            (0.0, [0, 1]),
            (72.0, [72, 1]),
            (0.5, [1, 2]),
            (2.54, [127, 50]),
            (1e20, [u32::MAX, 1]),
        ] {
            assert_eq!(fraction(value), expected, "{value}");
        }
        for value in [std::f64::consts::PI, 1.0 / 0.3251, 12_345.678_9, 1e-5, 2e8 + 0.5] {
            let [n, d] = fraction(value);
            assert!((f64::from(n) / f64::from(d) / value - 1.0).abs() < 1e-8, "{value} {n}/{d}");
        }
        assert_eq!(fraction(f64::NAN), [0, 1]);
    }
}
