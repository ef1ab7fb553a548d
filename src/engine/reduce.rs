//! Reductions: small results of all samples of an input, such as counts and sums. Several processes can compute one
//! together: each writes the part of its shard to a file, and `gpuproc merge` joins the parts.

use std::{ops::Range, sync::mpsc, thread};

use serde::Serialize;

use crate::{
    data::samples::Samples,
    engine::session::Session,
    io::{
        Sink, Source,
        identity::Identity,
        part_file::{self, PartWriter},
        volume::{SampleBatch, VolumeFile},
    },
    util::{error::Result, threads::spawn_in},
};

/// Bytes of a block of a volume.
const BLOCK: u64 = 16 << 20;
/// Bytes that a block may have however low `--max-memory` is. The counters of each block, up to 65,536, are added to
/// those of the others, so blocks must not be too small.
const MIN_BLOCK: u64 = 1 << 20;

/// Calls `consume` with all samples of the slices `own`, block by block in any order, and with the number of times that
/// the block occurs in the volume. The next block is read meanwhile. `consume` returns the samples for reuse. `title`
/// names the work in the progress bar.
///
/// # Errors
/// Those of reading and of `consume`.
pub fn for_each_block(
    file: &VolumeFile,
    own: Range<usize>,
    title: &'static str,
    session: &Session,
    mut consume: impl FnMut(Samples, u64) -> Result<Samples>,
) -> Result<()> {
    let all = file.bytes().unwrap_or(u64::MAX) / file.dims[2] as u64 * own.len() as u64;
    // Three blocks are in memory at once.
    let mut blocks = file.batches(own, BLOCK, (session.max_memory / 3).max(MIN_BLOCK))?;
    let mut bar = session.progress.bytes(title, all);
    thread::scope(|scope| {
        let (send, read) = mpsc::sync_channel(0);
        let (recycle, done) = mpsc::channel();
        let reading = spawn_in(scope, move || -> Result<()> {
            loop {
                done.try_iter().for_each(|block| blocks.reuse(block));
                let Some(block) = session.timings.time("read", || blocks.next_batch())? else {
                    return Ok(());
                };
                // Without a receiver, `consume` has failed.
                if send.send(block).is_err() {
                    return Ok(());
                }
            }
        })?;
        for SampleBatch { samples, times } in read {
            let block = SampleBatch { samples: consume(samples, times)?, times };
            bar.advance(block.bytes());
            // Without a receiver, reading has ended or failed.
            let _ = recycle.send(block);
        }
        reading.join().expect("the reader does not panic")
    })
}

/// Writes the part file `output` of the shard of `identity`. `write` writes the records of the part and returns its
/// totals. If `resumes` is set and the part exists, only logs that `inputs` are skipped.
///
/// # Errors
/// Those of `write`, and when the part cannot be written.
pub fn write_part<T: Serialize>(
    identity: &Identity,
    (inputs, output): (impl IntoIterator<Item = Source>, &Sink),
    resumes: bool,
    session: &Session,
    write: impl FnOnce(&mut PartWriter) -> Result<T>,
) -> Result<()> {
    if resumes && part_file::is_done(output, identity, session.max_memory) {
        inputs.into_iter().for_each(|input| session.events.skipped(&input, Some(output)));
        return Ok(());
    }
    let mut part = PartWriter::create(output, session.no_clobber, identity)?;
    let totals = write(&mut part)?;
    part.finish(&totals)
}
