//! TIFF files made in code: any tags, smaller copies in SubIFDs.

/// Types of values of tags.
pub const SHORT: u16 = 3;
pub const LONG: u16 = 4;

/// A page.
#[derive(Clone)]
pub struct TiffPage {
    /// Tag, type, number of values, and values.
    entries: Vec<(u16, u16, u32, Vec<u8>)>,
    strips: Vec<Vec<u8>>,
    /// Pages to which tag 330 points.
    copies: Vec<TiffPage>,
}

impl TiffPage {
    /// An uncompressed grey page of unsigned samples of `bits` bits in one strip.
    pub fn grey(size: [usize; 2], bits: u16, strip: Vec<u8>) -> Self {
        let page = Self { entries: Vec::new(), strips: vec![strip], copies: Vec::new() };
        let [width, height] = size.map(|side| vec![side as u32]);
        page.longs(256, width)
            .longs(257, height)
            .shorts(258, [bits])
            .shorts(259, [1])
            .shorts(262, [1])
            .shorts(277, [1])
    }

    /// A page of u8 samples that are all `value`.
    pub fn flat(size: [usize; 2], value: u8) -> Self {
        Self::grey(size, 8, vec![value; size[0] * size[1]])
    }

    /// Sets the values of a tag: `count` values of the type `kind`.
    pub fn set(mut self, tag: u16, kind: u16, count: usize, values: Vec<u8>) -> Self {
        self.entries.retain(|entry| entry.0 != tag);
        self.entries.push((tag, kind, count as u32, values));
        self
    }

    pub fn shorts(self, tag: u16, values: impl AsRef<[u16]>) -> Self {
        let values = values.as_ref();
        self.set(tag, SHORT, values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    pub fn longs(self, tag: u16, values: impl AsRef<[u32]>) -> Self {
        let values = values.as_ref();
        self.set(tag, LONG, values.len(), values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// Replaces the strip by several, of `rows` rows each.
    pub fn with_strips(self, rows: u32, strips: Vec<Vec<u8>>) -> Self {
        Self { strips, ..self }.longs(278, [rows])
    }

    /// Sets the description, tag 270.
    pub fn described(self, text: &str) -> Self {
        let text = [text.as_bytes(), &[0]].concat();
        self.set(270, 2, text.len(), text)
    }

    /// Sets the resolution, in whole pixels per unit of the number `unit` in the tag.
    pub fn resolution(self, pixels: u32, unit: u16) -> Self {
        let fraction = [pixels, 1].map(u32::to_le_bytes).concat();
        self.set(282, 5, 1, fraction.clone()).set(283, 5, 1, fraction).shorts(296, [unit])
    }

    /// Adds a smaller copy.
    pub fn with_copy(mut self, copy: TiffPage) -> Self {
        self.copies.push(copy.longs(254, [1]));
        self
    }

    /// Appends the page, whose next page follows it, and returns the offset of its directory.
    fn write(&self, file: &mut Vec<u8>, is_last: bool) -> u32 {
        let copies: Vec<u32> = self.copies.iter().map(|copy| copy.write(file, true)).collect();
        let mut offsets = Vec::new();
        for strip in &self.strips {
            offsets.push(file.len() as u32);
            file.extend(strip);
        }
        let lengths: Vec<u32> = self.strips.iter().map(|strip| strip.len() as u32).collect();
        let mut page = self.clone().longs(273, offsets).longs(279, lengths);
        if !copies.is_empty() {
            page = page.longs(330, copies);
        }
        page.entries.sort_by_key(|entry| entry.0);
        for (.., values) in &mut page.entries {
            if values.len() > 4 {
                file.resize(file.len().next_multiple_of(2), 0);
                let at = file.len() as u32;
                file.append(values);
                *values = at.to_le_bytes().to_vec();
            }
            values.resize(4, 0);
        }
        file.resize(file.len().next_multiple_of(2), 0);
        let directory = file.len() as u32;
        file.extend((page.entries.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in &page.entries {
            file.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend([&count.to_le_bytes()[..], value].concat());
        }
        // The place of the next directory is known once that is written.
        file.extend(if is_last { [0; 4] } else { [0xff; 4] });
        directory
    }
}

/// A little-endian file of `pages`.
pub fn tiff(pages: &[TiffPage]) -> Vec<u8> {
    let mut file = b"II*\0\0\0\0\0".to_vec();
    let mut pointer = 4;
    for (number, page) in pages.iter().enumerate() {
        let at = page.write(&mut file, number + 1 == pages.len());
        file[pointer..pointer + 4].copy_from_slice(&at.to_le_bytes());
        pointer = file.len() - 4;
    }
    file
}
