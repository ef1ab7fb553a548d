//! `gpuproc scan`: prefix sums, minima, maxima and products.

mod flags;
mod keys;
mod line;
mod parts;
mod table;

pub use flags::Args;
use flags::ScanJob;
pub use parts::merge;

use crate::{
    engine::session::Session,
    util::error::{Error, Result},
};

/// Reads, scans and writes an array or an image.
pub fn run(args: Args, session: &Session) -> Result<()> {
    let (sharding, carry) = args.sharding()?;
    match (args.job(session)?, sharding.shard) {
        (ScanJob::Line(line), Some(shard)) => {
            let scan = || parts::run(&line, shard, carry, session);
            session.run_logged(&line.input.source, Some(&line.output.sink), scan)
        }
        (ScanJob::Table(_), Some(_)) => Err(Error::usage(
            "--shard cannot divide a summed-area table: each sum depends on all rows above it",
        )),
        (ScanJob::Line(line), None) => {
            session.run_logged(&line.input.source, Some(&line.output.sink), || {
                line::run(&line, session)
            })
        }
        (ScanJob::Table(table), None) => table::run(&table, session),
    }
}
