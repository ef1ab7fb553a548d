//! Meshes a volume, in memory or slab by slab, and passes the surface on in parts.

use std::ops::Range;

use super::{
    coordinates::MeshCoordinates,
    input::VolumeInput,
    slabs::{Slabs, mesh_slab, mesh_slabs},
};
use crate::{
    data::{reader::Reader, samples::Samples, surface::Surface},
    engine::session::Session,
    flow::{BlockSource, write_behind},
    kernels::mesh::{MarchingCubes, Slab},
    util::error::Result,
};

/// Meshes the whole volume and passes its surface to `consume` part by part, in the coordinates of the mesh.
pub(super) fn surfaces(
    input: &VolumeInput,
    coords: &MeshCoordinates,
    kernel: &MarchingCubes,
    session: &Session,
    consume: impl FnMut(Surface) -> Result<()> + Send,
) -> Result<()> {
    let all = 0..match input {
        VolumeInput::Whole(slab, _) => slab.layers.end,
        VolumeInput::Stream(file, _) => kernel.layers(file.dims[2]),
    };
    layers(input, coords, kernel, all, session, consume)
}

/// As [`surfaces`], for the layers of cells `own` only. Their vertices are numbered from 0.
pub(super) fn layers(
    input: &VolumeInput,
    coords: &MeshCoordinates,
    kernel: &MarchingCubes,
    own: Range<usize>,
    session: &Session,
    mut consume: impl FnMut(Surface) -> Result<()> + Send,
) -> Result<()> {
    let mut consume = |mut part: Surface| {
        if let Some(placement) = &coords.map {
            session.timings.time("place", || part.place(placement));
        }
        consume(part)
    };
    let kernel = &MarchingCubes { max_bytes: input.plan().part_bytes, ..kernel.clone() };
    let (file, plan) = match input {
        VolumeInput::Whole(slab, _) => {
            let slab = Slab { layers: own, ..(**slab).clone() };
            return mesh_slab(kernel, &slab, session, &mut |_, part| consume(part)).map(drop);
        }
        VolumeInput::Stream(file, plan) => (&**file, *plan),
    };
    let open = |first: usize| -> Result<Box<dyn Reader>> { Ok(Box::new(file.reader_at(first)?)) };
    let source = BlockSource::slices(file, &open);
    // With `--close`, missing samples inside the surface have faces at the sides of the volume.
    let leaves_out = |fill: &Samples| !(kernel.close && fill.first() >= Some(kernel.iso));
    let (height, overlaps) = (plan.layers, plan.overlaps);
    let slabs = Slabs { own, height, overlaps, leaves_out: &leaves_out };
    let mesh = |consume: &mut dyn FnMut(Surface) -> Result<()>| {
        mesh_slabs(kernel, &source, file, slabs, session, &mut |_, part| consume(part))
    };
    if overlaps { write_behind(consume, mesh) } else { mesh(&mut consume) }
}
