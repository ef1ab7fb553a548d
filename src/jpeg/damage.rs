//! Missing parts of pictures whose files are cut off or damaged.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use super::Frame;

/// Damage of a file that could be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Not a single row of blocks could be decoded as a whole.
    Empty,
    /// Rows of pixels are missing as a whole or in part.
    Rows { missing: usize, rows: usize },
    /// Scans are missing: `unsent` of the `coefficients` of one block of each component have bits that no scan
    /// contains.
    Scans { unsent: usize, coefficients: usize },
    /// There are data after the last block, or invalid segments after the first scan.
    Data,
    /// Number of bytes between segments that belong to no segment.
    Stray(usize),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "no complete row of image data after the header"),
            Self::Rows { missing, rows } => {
                write!(f, "{missing} of its {rows} rows are missing or damaged")
            }
            Self::Scans { unsent, coefficients } => {
                write!(
                    f,
                    "its last scans are missing: {unsent} of {coefficients} coefficients lack precision"
                )
            }
            Self::Data => write!(f, "its data are damaged: they end before or after its last row"),
            Self::Stray(1) => write!(f, "1 stray byte before a marker is skipped"),
            Self::Stray(bytes) => write!(f, "{bytes} stray bytes before markers are skipped"),
        }
    }
}

/// Rows of MCUs with blocks that a scan could not read. It is shared by threads.
#[derive(Debug)]
pub struct DamageMap {
    mcu_rows: Vec<AtomicBool>,
    has_rows: AtomicBool,
    has_leftover: AtomicBool,
}

impl DamageMap {
    /// No damage yet.
    pub fn new(frame: &Frame) -> Self {
        let mcu_rows = (0..frame.mcus()[1]).map(|_| AtomicBool::new(false)).collect();
        Self { mcu_rows, has_rows: false.into(), has_leftover: false.into() }
    }

    /// Records that a row of MCUs, or a part of it, is missing.
    pub fn add_row(&self, mcu_row: usize) {
        self.mcu_rows[mcu_row].store(true, Relaxed);
    }

    /// Records that at least one row of MCUs could be decoded.
    pub fn add_complete_rows(&self) {
        self.has_rows.store(true, Relaxed);
    }

    pub fn has_rows(&self) -> bool {
        self.has_rows.load(Relaxed)
    }

    /// Records that there are data after the last block of a scan or restart interval.
    pub fn add_leftover(&self) {
        self.has_leftover.store(true, Relaxed);
    }

    pub fn has_leftover(&self) -> bool {
        self.has_leftover.load(Relaxed)
    }

    /// Number of rows of pixels that are missing as a whole or in part.
    pub fn rows(&self, frame: &Frame) -> usize {
        let mcu = 8 * frame.max_sampling()[1];
        let rows = |y: usize| mcu.min(frame.size[1] - y * mcu);
        let is_missing = |y: &usize| self.mcu_rows[*y].load(Relaxed);
        (0..self.mcu_rows.len()).filter(is_missing).map(rows).sum()
    }
}
