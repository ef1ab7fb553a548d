//! Which parts of a picture are missing because its file is cut off or damaged.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The rows of MCUs in which a block of any scan could not be read. Several threads read scans.
#[derive(Debug)]
pub struct Damage {
    mcu_rows: Vec<AtomicBool>,
    /// Height of a row of MCUs, and of the picture, in pixels.
    mcu_height: usize,
    height: usize,
    /// Whether there are data behind the last block of a scan or restart interval.
    leftover: AtomicBool,
}

impl Damage {
    /// No damage yet, of a picture with `mcu_rows` rows of MCUs.
    pub fn none(mcu_rows: usize, mcu_height: usize, height: usize) -> Self {
        let mcu_rows = (0..mcu_rows).map(|_| AtomicBool::new(false)).collect();
        Self { mcu_rows, mcu_height, height, leftover: AtomicBool::new(false) }
    }

    /// Notes that a row of MCUs, or a part of it, is missing.
    pub fn row(&self, mcu_row: usize) {
        self.mcu_rows[mcu_row].store(true, Relaxed);
    }

    /// Notes that there are data behind the last block.
    pub fn leftover(&self) {
        self.leftover.store(true, Relaxed);
    }

    /// Number of rows of pixels that are missing as a whole or in part.
    pub fn rows(&self) -> usize {
        let rows = |y: usize| self.mcu_height.min(self.height - y * self.mcu_height);
        let missing = |y: &usize| self.mcu_rows[*y].load(Relaxed);
        (0..self.mcu_rows.len()).filter(missing).map(rows).sum()
    }

    /// A message about the damage; `None` if there is none. Of `all` coefficients of the blocks of an MCU position,
    /// `unsent` have bits that no scan contains. `stray` bytes between the segments of the file belong to none.
    pub fn in_words(&self, [unsent, all]: [usize; 2], stray: usize) -> Option<String> {
        let height = self.height;
        match self.rows() {
            0 if unsent > 0 => Some(format!(
                "its last scans are missing: {unsent} of {all} coefficients are not as fine as they were"
            )),
            0 if self.leftover.load(Relaxed) => {
                Some("its data do not end where its rows do: some of it is damaged".into())
            }
            0 if stray == 1 => Some("1 stray byte before a marker is skipped".into()),
            0 if stray > 0 => Some(format!("{stray} stray bytes before markers are skipped")),
            0 => None,
            rows => Some(format!("{rows} of its {height} rows are missing or damaged")),
        }
    }
}
