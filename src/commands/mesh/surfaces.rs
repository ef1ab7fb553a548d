//! Meshes a volume, in memory or slab by slab, and hands on the surface in parts.

use std::{
    ops::Range,
    sync::mpsc::{channel, sync_channel},
    thread,
};

use super::{input::VolumeInput, memory::Plan, placing::Placed, slabs::Slabs};
use crate::{
    data::surface::Surface,
    engine::session::Session,
    io::volume::VolumeFile,
    kernels::mesh::{MarchingCubes, Slab},
    util::{
        error::{Error, Hint, Kind, Result},
        threads::spawn_in,
    },
};

/// Meshes the whole volume and hands its surface to `consume` part by part, in the coordinates of the mesh.
pub(super) fn surfaces(
    (input, placed): (&VolumeInput, &Placed),
    kernel: &MarchingCubes,
    session: &Session,
    consume: impl FnMut(Surface) -> Result<()> + Send,
) -> Result<()> {
    let all = 0..match input {
        VolumeInput::Whole(slab, _) => slab.layers.end,
        VolumeInput::Stream(file, _) => kernel.layers(file.dims[2]),
    };
    layers((input, placed), kernel, all, session, consume)
}

/// As [`surfaces`], for the layers of cells `own` only. Their vertices are numbered from 0.
pub(super) fn layers(
    (input, placed): (&VolumeInput, &Placed),
    kernel: &MarchingCubes,
    own: Range<usize>,
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
        VolumeInput::Whole(slab, plan) => {
            let kernel = MarchingCubes { most_bytes: plan.part(), ..kernel.clone() };
            let slab = Slab { layers: own, ..(**slab).clone() };
            mesh(&kernel, &slab, session, &mut consume).map(drop)
        }
        VolumeInput::Stream(file, plan) => {
            let kernel = MarchingCubes { most_bytes: plan.part(), ..kernel.clone() };
            stream((file, own), &kernel, *plan, session, consume)
        }
    }
}

/// Meshes a slab, in halves where its surface takes too much memory. Returns the number of its vertices.
fn mesh(
    kernel: &MarchingCubes,
    slab: &Slab,
    session: &Session,
    consume: &mut dyn FnMut(Surface) -> Result<()>,
) -> Result<u64> {
    let layers = slab.layers.clone();
    let half =
        |layers, more| Slab { layers, first_vertex: slab.first_vertex + more, ..slab.clone() };
    match session.device.run(kernel, slab) {
        Ok(part) => {
            let vertices = part.positions.len() as u64;
            consume(part).map(|()| vertices)
        }
        Err(error) if error.hint() == Some(Hint::Memory) && layers.len() > 1 => {
            let middle = layers.start + layers.len() / 2;
            let lower = mesh(kernel, &half(layers.start..middle, 0), session, consume)?;
            let upper = mesh(kernel, &half(middle..layers.end, lower), session, consume)?;
            Ok(lower + upper)
        }
        Err(error) => Err(error),
    }
}

/// Meshes layers of a volume slab by slab. Where memory allows, the next slab is read and the previous part is consumed
/// while a slab is meshed.
fn stream(
    (file, own): (&VolumeFile, Range<usize>),
    kernel: &MarchingCubes,
    plan: Plan,
    session: &Session,
    mut consume: impl FnMut(Surface) -> Result<()> + Send,
) -> Result<()> {
    let mut bar = session.progress.bar("mesh", own.len() as u64);
    let mut slabs = Slabs::new(kernel, file, own, plan.layers)?;
    let mut first_vertex = 0;
    if !plan.overlaps {
        while let Some(slab) = session.timings.time("read", || slabs.next()) {
            let slab = Slab { first_vertex, ..slab? };
            first_vertex += mesh(kernel, &slab, session, &mut consume)?;
            bar.advance(slab.layers.len() as u64);
            slabs.reuse(slab);
        }
        return Ok(());
    }
    thread::scope(|scope| {
        let (slab_in, slab_out) = sync_channel(1);
        let (done_in, done_out) = channel();
        spawn_in(scope, move || {
            while let Some(slab) = session.timings.time("read", || slabs.next()) {
                done_out.try_iter().for_each(|done| slabs.reuse(done));
                if slab_in.send(slab).is_err() {
                    break;
                }
            }
        })?;
        let (part_in, part_out) = sync_channel(1);
        let consumer = spawn_in(scope, move || part_out.into_iter().try_for_each(&mut consume))?;
        let mut send = |part| {
            // Without a receiver, the consumer has failed. Its own error is returned below.
            part_in.send(part).map_err(|_| Error::new(Kind::Failure, BROKEN_OFF))
        };
        let meshed = slab_out.into_iter().try_for_each(|slab| {
            let slab = Slab { first_vertex, ..slab? };
            first_vertex += mesh(kernel, &slab, session, &mut send)?;
            bar.advance(slab.layers.len() as u64);
            // Without a receiver, all slabs have been read.
            let _ = done_in.send(slab);
            Ok(())
        });
        drop(part_in);
        let consumed =
            consumer.join().unwrap_or_else(|_| Err(Error::new(Kind::Failure, BROKEN_OFF)));
        consumed.and(meshed)
    })
}

const BROKEN_OFF: &str = "writing the surface broke off";
