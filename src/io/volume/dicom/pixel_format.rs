//! Storage of the pixels of a DICOM file (Image Pixel module; PS3.3, C.7.6.3).

use super::{
    attributes::{
        ALLOCATED, Attributes, COLUMNS, F32_PIXELS, F64_PIXELS, HIGH_BIT, LARGEST, PADDING,
        PHOTOMETRIC, PIXELS, PLANAR, ROWS, SAMPLES, SEGMENTATION, SIGNED, SMALLEST, STORED, Tag,
    },
    dataset::Pixels,
    palette,
};
use crate::{
    data::dtype::Dtype,
    io::volume::header::{BoxError, Scale, excerpt},
};

/// Storage of the pixels of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PixelFormat {
    pub columns: usize,
    pub rows: usize,
    /// Samples per pixel (0028,0002): 1 of grey, 3 of colours.
    pub samples: usize,
    /// Whether the samples of a colour are stored as three planes (Planar Configuration, 0028,0006).
    pub planar: bool,
    /// Bits of the colours of a palette, of which the samples are indices.
    pub palette: Option<u32>,
    /// Whether colours are stored as luminance and chroma, YCbCr.
    pub ybr: bool,
    /// Whether two pixels of a row share their chroma, stored as Y, Y, Cb, Cr. JPEG decoders undo that themselves.
    pub pairs: bool,
    /// Whether the smallest number is the brightest (MONOCHROME1).
    pub inverted: bool,
    /// Bits that a stored sample takes (Bits Allocated, 0028,0100): 1, 8, 16 or 32; 64 of floats.
    pub allocated: u32,
    /// Number of significant bits of a stored sample (Bits Stored, 0028,0101).
    pub stored: u32,
    /// Position of the highest significant bit (High Bit, 0028,0102).
    pub high_bit: u32,
    pub signed: bool,
    pub float: bool,
}

impl PixelFormat {
    /// Reads and checks the attributes of the Image Pixel module (PS3.3, C.7.6.3).
    pub fn new(top: &Attributes, pixels: &Pixels) -> Result<Self, BoxError> {
        let number = |tag: Tag| top.number(tag);
        let side = |tag: Tag, name: &str| {
            let side = number(tag).filter(|&side| (1.0..=65535.0).contains(&side));
            side.map(|side| side as usize)
                .ok_or_else(|| format!("missing or invalid number of {name}"))
        };
        let float = pixels.tag != PIXELS;
        let allocated = match (pixels.tag, number(ALLOCATED)) {
            (F32_PIXELS, _) => 32,
            (F64_PIXELS, _) => 64,
            (_, Some(bits)) if [1.0, 8.0, 16.0, 32.0].contains(&bits) => bits as u32,
            (_, Some(bits)) => {
                return Err(format!("samples of {bits} bits are not supported").into());
            }
            (_, None) => return Err("Bits Allocated is missing".into()),
        };
        let stored = number(STORED).map_or(allocated, |bits| bits as u32);
        let stored = if (1..=allocated).contains(&stored) { stored } else { allocated };
        let high_bit = number(HIGH_BIT).map_or(stored - 1, |bit| bit as u32);
        let high_bit =
            if (stored - 1..allocated).contains(&high_bit) { high_bit } else { stored - 1 };
        let photometric = top.text(PHOTOMETRIC).unwrap_or("MONOCHROME2");
        let samples = number(SAMPLES).unwrap_or(1.0);
        // The palette of a segmentation colours the numbers of its segments.
        let has_palette = photometric == "PALETTE COLOR" && !top.has(SEGMENTATION);
        let palette = has_palette.then(|| palette::bits(top)).transpose()?;
        let (samples, ybr) = match (photometric, samples) {
            ("MONOCHROME1" | "MONOCHROME2" | "PALETTE COLOR", 1.0) => (1, false),
            // JPEG 2000 decoders undo the colour transforms of JPEG 2000.
            ("RGB" | "YBR_ICT" | "YBR_RCT", 3.0) => (3, false),
            ("YBR_FULL" | "YBR_FULL_422" | "YBR_PARTIAL_420", 3.0) => (3, true),
            (other, samples) => {
                return Err(format!(
                    "{} with {samples} samples per pixel is not supported",
                    excerpt(other)
                )
                .into());
            }
        };
        if (samples == 3 || has_palette) && allocated == 1 {
            return Err("colours of 1 bit are not supported".into());
        }
        if float && samples != 1 {
            return Err("colours as floats are not supported".into());
        }
        Ok(Self {
            columns: side(COLUMNS, "columns")?,
            rows: side(ROWS, "rows")?,
            samples,
            planar: number(PLANAR) == Some(1.0),
            palette,
            ybr,
            pairs: ybr && photometric == "YBR_FULL_422",
            inverted: photometric == "MONOCHROME1",
            allocated,
            stored,
            high_bit,
            signed: number(SIGNED) == Some(1.0),
            float,
        })
    }

    /// Number of samples of a frame.
    pub fn count(&self) -> usize {
        self.rows * self.columns * self.samples
    }

    /// Bytes of a frame that is not compressed.
    pub fn frame_bytes(&self) -> usize {
        (self.count() * self.allocated as usize).div_ceil(8)
    }

    /// The minimum and maximum stored number that the file states, including padding (Smallest and Largest Image Pixel
    /// Value, Pixel Padding Value).
    pub fn stated_range(&self, top: &Attributes) -> Option<(f64, f64)> {
        let (min, max) = self.range();
        // Some writers state the range of signed pixels as unsigned numbers (US in place of SS).
        let wrapped = |v: f64| if v > max { v - 2.0 * (max + 1.0) } else { v };
        let number = |tag| top.number(tag).map(|v| if self.signed { wrapped(v) } else { v });
        let (low, high) = (number(SMALLEST)?, number(LARGEST)?);
        let padding = number(PADDING).unwrap_or(low);
        let is_valid = min <= low && low < high && high <= max && !self.float && !self.inverted;
        is_valid.then_some((low.min(padding), high.max(padding)))
    }

    /// The minimum and maximum number of that many significant bits.
    pub fn range(&self) -> (f64, f64) {
        match self.signed {
            true => (-(2f64.powi(self.stored as i32 - 1)), 2f64.powi(self.stored as i32 - 1) - 1.0),
            false => (0.0, 2f64.powi(self.stored as i32) - 1.0),
        }
    }

    /// The type of stored samples.
    pub fn dtype(&self) -> Dtype {
        match (self.float, self.allocated, self.signed) {
            (true, 64, _) => Dtype::F64,
            (true, ..) => Dtype::F32,
            (_, 32, true) => Dtype::I32,
            (_, 32, false) => Dtype::U32,
            (_, 16, true) => Dtype::I16,
            (_, 16, false) => Dtype::U16,
            (_, _, true) => Dtype::I8,
            (_, _, false) => Dtype::U8,
        }
    }

    /// The properties that must be equal in all slices of a volume; the others are set to fixed values.
    pub fn comparable(&self) -> Self {
        // Significant bits may differ: each file's samples are reduced to numbers by its own.
        Self { stored: 1, high_bit: 0, ..*self }
    }

    /// The format of slices, `side` of which lie in each row and column of a frame: grey, made of colours.
    pub fn of_slices(&self, side: usize) -> Self {
        let (columns, rows) = (self.columns / side, self.rows / side);
        let grey = Self { columns, rows, samples: 1, palette: None, ..*self };
        let grey = Self { planar: false, ybr: false, pairs: false, ..grey };
        match self.palette {
            Some(bits) => grey.with_bits(bits),
            None => grey,
        }
    }

    /// The same format with unsigned samples that have `bits` bits, all significant.
    pub fn with_bits(&self, bits: u32) -> Self {
        Self { allocated: bits, stored: bits, high_bit: bits - 1, signed: false, ..*self }
    }

    /// The type of rescaled values: that of the stored samples if it holds all values, else the first of a list that
    /// does. `stated` is the range of the stored numbers, if the file states one.
    pub fn value_dtype(&self, scale: Option<Scale>, stated: Option<(f64, f64)>) -> Dtype {
        let own = self.dtype();
        let Some(Scale { slope, intercept }) = scale else { return own };
        if self.float {
            return own;
        }
        if slope.fract() != 0.0 || intercept.fract() != 0.0 {
            return if self.stored > 24 { Dtype::F64 } else { Dtype::F32 };
        }
        let (low, high) = stated.unwrap_or_else(|| self.range());
        let ends = [slope * low + intercept, slope * high + intercept];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let holds = |dtype: &Dtype| {
            let bits = 8 * dtype.size() as i32;
            match dtype.is_signed() {
                true => low >= -(2f64.powi(bits - 1)) && high < 2f64.powi(bits - 1),
                false => low >= 0.0 && high < 2f64.powi(bits),
            }
        };
        let all = [own, Dtype::I16, Dtype::U16, Dtype::I32, Dtype::U32];
        all.into_iter().find(holds).unwrap_or(Dtype::F64)
    }
}
