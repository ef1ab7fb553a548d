//! A job that meshes labels slab by slab.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    super::{
        coordinates::MeshCoordinates,
        job::MeshJob,
        label_list::LabelList,
        report::Summary,
        slabs::{Slabs, mesh_slabs},
    },
    numbers::Numbers,
    reader::LabelReader,
};
use crate::{
    data::{label_mesh::LabelMesh, reader::Reader, samples::Samples},
    engine::{plan::MeshPlan, session::Session},
    flow::BlockSource,
    io::volume::VolumeFile,
    kernels::mesh::labels::{SurfaceNets, world_positions},
    util::error::Result,
};

/// The map from the coordinates of the grid to those of the mesh.
pub(super) struct MeshTransform {
    pub(super) spacing: [f64; 3],
    pub(super) origin: [f64; 3],
    pub(super) coords: MeshCoordinates,
}

impl MeshTransform {
    fn apply(&self, grid: [f64; 3]) -> [f32; 3] {
        match &self.coords.map {
            Some(placement) => placement.at(grid.map(|v| v - 0.5)).map(|v| v as f32),
            None => std::array::from_fn(|i| (grid[i] * self.spacing[i] + self.origin[i]) as f32),
        }
    }

    /// Whether the map is a reflection, which reverses the orientation of triangles.
    pub(super) fn is_mirrored(&self) -> bool {
        self.coords.map.as_ref().is_some_and(|placement| placement.determinant() < 0.0)
    }

    pub(super) fn positions(&self, mesh: &LabelMesh) -> Result<Vec<[f32; 3]>> {
        world_positions(&mesh.vertices, |grid| self.apply(grid))
    }
}

/// A job that meshes labels, with everything that its steps share.
pub(super) struct LabelJob<'a> {
    pub(super) job: &'a MeshJob,
    pub(super) list: &'a LabelList,
    pub(super) file: &'a VolumeFile,
    pub(super) kernel: SurfaceNets,
    pub(super) plan: MeshPlan,
    pub(super) transform: MeshTransform,
    pub(super) numbers: Mutex<Numbers<'a>>,
    pub(super) session: &'a Session,
}

/// Totals of the surfaces that were written.
#[derive(Default)]
pub(super) struct LabelTotals {
    pub(super) labels: BTreeSet<u64>,
    pub(super) summary: Summary,
    pub(super) stats: Vec<serde_json::Value>,
}

impl<'a> LabelJob<'a> {
    /// Meshes the volume slab by slab and passes the faces of each slab to `consume`, with the number of its first
    /// vertex.
    pub(super) fn for_each_part(
        &self,
        mut consume: impl FnMut(u64, LabelMesh) -> Result<()>,
    ) -> Result<()> {
        let Self { file, plan, list, numbers, .. } = self;
        let open = |first: usize| -> Result<Box<dyn Reader + '_>> {
            Ok(Box::new(LabelReader::new(file, first, numbers)?))
        };
        let leaves_out = |fill: &Samples| Numbers::leaves_out(list, fill);
        let own = 0..SurfaceNets::layers(file.dims[2]);
        let slabs =
            Slabs { own, height: plan.layers, overlaps: plan.overlaps, leaves_out: &leaves_out };
        let source = BlockSource::slices(file, &open);
        mesh_slabs(&self.kernel, &source, file, slabs, self.session, &mut consume)
    }

    pub(super) fn numbers(&self) -> MutexGuard<'_, Numbers<'a>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
