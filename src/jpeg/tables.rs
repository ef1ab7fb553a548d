//! Constants of ITU-T T.81: the zig-zag order, and quantization steps by quality.

/// The index in a block, row by row, of each coefficient in zig-zag order (T.81, figure A.6).
pub const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

/// Quantization steps of luma (T.81, table K.1), row by row.
const LUMA: [u16; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, //
    12, 12, 14, 19, 26, 58, 60, 55, //
    14, 13, 16, 24, 40, 57, 69, 56, //
    14, 17, 22, 29, 51, 87, 80, 62, //
    18, 22, 37, 56, 68, 109, 103, 77, //
    24, 35, 55, 64, 81, 104, 113, 92, //
    49, 64, 78, 87, 103, 121, 120, 101, //
    72, 92, 95, 98, 112, 100, 103, 99,
];

/// Quantization steps of chroma (T.81, table K.2), row by row.
const CHROMA: [u16; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, //
    18, 21, 26, 66, 99, 99, 99, 99, //
    24, 26, 56, 99, 99, 99, 99, 99, //
    47, 66, 99, 99, 99, 99, 99, 99, //
    99, 99, 99, 99, 99, 99, 99, 99, //
    99, 99, 99, 99, 99, 99, 99, 99, //
    99, 99, 99, 99, 99, 99, 99, 99, //
    99, 99, 99, 99, 99, 99, 99, 99,
];

/// A quality from 1 to 100, as libjpeg scales it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quality(pub u8);

/// How pixels are encoded.
#[derive(Clone, Copy, Debug)]
pub struct PixelEncoding {
    /// The quality.
    pub quality: Quality,
    /// Whether chroma has half the resolution along both axes.
    pub half_chroma: bool,
}

impl Quality {
    /// Quantization steps of luma, row by row.
    pub fn luma(self) -> [u16; 64] {
        self.scaled(&LUMA)
    }

    /// Quantization steps of chroma, row by row.
    pub fn chroma(self) -> [u16; 64] {
        self.scaled(&CHROMA)
    }

    /// Scales a table: quality 50 leaves the tables of annex K unchanged, and 100 makes every step 1.
    fn scaled(self, table: &[u16; 64]) -> [u16; 64] {
        let quality = u32::from(self.0.clamp(1, 100));
        let percent = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
        table.map(|step| ((u32::from(step) * percent + 50) / 100).clamp(1, 255) as u16)
    }
}
