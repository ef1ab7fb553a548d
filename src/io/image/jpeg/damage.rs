//! What of a picture is missing because its file is cut off or damaged.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The rows of MCUs of which some block in some scan could not be read. Scans are read by several threads.
#[derive(Debug)]
pub struct Damage {
    mcu_rows: Vec<AtomicBool>,
    /// Rows of pixels of a row of MCUs, and of the picture.
    mcu_height: usize,
    height: usize,
    /// Whether there are data behind those of the last block.
    leftover: AtomicBool,
}

impl Damage {
    /// Nothing is missing of a picture of `mcu_rows` rows of MCUs.
    pub fn none(mcu_rows: usize, mcu_height: usize, height: usize) -> Self {
        let mcu_rows = (0..mcu_rows).map(|_| AtomicBool::new(false)).collect();
        Self { mcu_rows, mcu_height, height, leftover: AtomicBool::new(false) }
    }

    /// A row of MCUs is missing, or a part of it.
    pub fn row(&self, mcu_row: usize) {
        self.mcu_rows[mcu_row].store(true, Relaxed);
    }

    /// There are more data than blocks.
    pub fn leftover(&self) {
        self.leftover.store(true, Relaxed);
    }

    /// Rows of pixels that are missing, or parts of them.
    pub fn rows(&self) -> usize {
        let rows = |y: usize| self.mcu_height.min(self.height - y * self.mcu_height);
        let missing = |y: &usize| self.mcu_rows[*y].load(Relaxed);
        (0..self.mcu_rows.len()).filter(missing).map(rows).sum()
    }

    /// In words; nothing where all is there. Of the coefficients of a block, no scan has `unsent` of `all`.
    pub fn in_words(&self, unsent: usize, all: usize) -> Option<String> {
        let height = self.height;
        match self.rows() {
            0 if unsent > 0 => Some(format!(
                "its last scans are missing: {unsent} of {all} coefficients are not as fine as they were"
            )),
            0 if self.leftover.load(Relaxed) => {
                Some("its data do not end where its rows do: some of it is damaged".into())
            }
            0 => None,
            rows => Some(format!("{rows} of its {height} rows are missing or damaged")),
        }
    }
}
