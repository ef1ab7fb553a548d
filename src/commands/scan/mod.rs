//! `gpuproc scan`: prefix sums, minima, maxima and products.

mod flags;
mod keys;
mod line;
mod table;

pub use flags::Args;
use flags::Job;

use crate::{error::Result, session::Session};

/// Reads, scans, writes.
///
/// # Errors
/// Those of reading, of the kernel, and of writing.
pub fn run(args: &Args, session: &Session) -> Result<()> {
    match args.job()? {
        Job::Line(line) => line::run(&line, session),
        Job::Table(table) => table::run(&table, session),
    }
}
