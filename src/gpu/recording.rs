//! Recordings of the passes of a kernel, to be measured with all data resident.

use std::cell::RefCell;

use super::{Batch, Buffer, Context, batch::Step};
use crate::util::error::Result;

thread_local! {
    /// Steps and uniforms of the recording in progress on this thread, if any.
    static RECORDING: RefCell<Option<(Vec<Step>, Vec<u8>)>> = const { RefCell::new(None) };
}

impl Context {
    /// Runs `work`. Returns its result, and a batch of all steps that `work` submitted on this thread. Instead of
    /// uploads, the batch has copies between buffers on the device.
    pub fn record<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Batch<'_>)> {
        RECORDING.set(Some(Default::default()));
        let result = work();
        let (steps, uniforms) = RECORDING.take().unwrap_or_default();
        result.map(|result| (result, Batch { context: self, steps, uniforms }))
    }

    /// Adds `batch` to the recording, if there is one.
    pub(super) fn record_batch(&self, batch: &Batch<'_>) {
        let Some((mut steps, mut uniforms)) = RECORDING.take() else { return };
        uniforms.resize(uniforms.len().next_multiple_of(self.uniform_alignment), 0);
        let start = uniforms.len() as u64;
        uniforms.extend(&batch.uniforms);
        steps.extend(batch.steps.iter().cloned().map(|mut step| {
            if let Step::Pass(pass) = &mut step {
                pass.uniforms.iter_mut().for_each(|(_, offset, _)| *offset += start);
            }
            step
        }));
        RECORDING.set(Some((steps, uniforms)));
    }

    /// Copies `bytes` bytes that were written to `buffer` from `offset` on, so that the recording can write them again.
    pub(super) fn record_write(&self, buffer: &Buffer, offset: u64, bytes: usize) -> Result<()> {
        // The recording pauses while the data are copied.
        let Some((mut steps, uniforms)) = RECORDING.take() else { return Ok(()) };
        if bytes > 0 {
            let to = buffer.slice(offset..(offset + bytes as u64).next_multiple_of(4));
            let from = self.allocate("recorded data", to.bytes)?;
            let mut batch = self.batch();
            batch.copy(&to, &from);
            batch.run()?;
            steps.push(Step::Copy { from, to });
        }
        RECORDING.set(Some((steps, uniforms)));
        Ok(())
    }
}

impl Batch<'_> {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}
