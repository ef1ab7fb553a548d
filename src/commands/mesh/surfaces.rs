//! From the volume to the surface, part by part.

use std::{sync::mpsc::sync_channel, thread};

use super::{input::VolumeInput, placing::Placed, slabs::Slabs};
use crate::{
    data::surface::Surface,
    error::{Error, Kind, Result},
    io::volume::VolumeFile,
    kernels::mesh::{MarchingCubes, Slab},
    session::Session,
    threads::spawn_in,
};

/// Bytes of samples a slab, where memory allows.
const SLAB: u64 = 64 << 20;

/// Hands the surface to `consume`, part by part, where it is `placed`.
pub(super) fn surfaces(
    (input, placed): (&VolumeInput, &Placed),
    kernel: &MarchingCubes,
    session: &Session,
    mut consume: impl FnMut(Surface) -> Result<()> + Send,
) -> Result<()> {
    let mut consume = |mut part: Surface| {
        if let Some(placement) = &placed.map {
            session.timings.time("place", || part.place(placement));
        }
        consume(part)
    };
    match input {
        VolumeInput::Whole(slab) => consume(session.device.run(kernel, slab)?),
        VolumeInput::Stream(file) => stream(file, kernel, session, consume),
    }
}

/// Reads the next slab and consumes the last part while a slab is meshed.
fn stream(
    file: &VolumeFile,
    kernel: &MarchingCubes,
    session: &Session,
    mut consume: impl FnMut(Surface) -> Result<()> + Send,
) -> Result<()> {
    let mut slabs = Slabs::new(kernel, file, slab_layers(file, session))?;
    let mut bar = session.progress.bar("mesh", kernel.layers(file.dims[2]) as u64);
    thread::scope(|scope| {
        let (slab_in, slab_out) = sync_channel(1);
        spawn_in(scope, move || {
            while let Some(slab) = session.timings.time("read", || slabs.next()) {
                if slab_in.send(slab).is_err() {
                    break;
                }
            }
        })?;
        let (part_in, part_out) = sync_channel(1);
        let consumer = spawn_in(scope, move || part_out.into_iter().try_for_each(&mut consume))?;
        let mut first_vertex = 0;
        let meshed = slab_out.into_iter().try_for_each(|slab| {
            let slab = Slab { first_vertex, ..slab? };
            let part = session.device.run(kernel, &slab)?;
            bar.advance(slab.layers.len() as u64);
            first_vertex += part.positions.len() as u64;
            // Without a receiver, the consumer has failed and says why below.
            part_in.send(part).map_err(|_| Error::new(Kind::Failure, BROKEN_OFF))
        });
        drop(part_in);
        let consumed =
            consumer.join().unwrap_or_else(|_| Err(Error::new(Kind::Failure, BROKEN_OFF)));
        consumed.and(meshed)
    })
}

const BROKEN_OFF: &str = "writing the surface broke off";

/// Layers of cells a slab.
fn slab_layers(file: &VolumeFile, session: &Session) -> usize {
    let sample = file.dtype.size() as u64;
    let slice = file.dims[0] as u64 * file.dims[1] as u64 * sample;
    // Three parts of the surface are under way at a time, each of at most some 64 bytes a sample, and take
    // half of the memory.
    let worst = session.max_memory / (2 * 3 * 64) * sample;
    (SLAB.min(worst) / slice).max(1) as usize
}
