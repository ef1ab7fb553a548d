//! Emits the vertices on crossed edges.

use pulp::NullaryFnOnce;

use super::{
    super::{grid::CellGrid, voxel::Voxel},
    mesher::{Mesher, split_front},
    planes::BitPlanes,
};
use crate::util::cache;

/// Writes the vertices of slice `z`, in order.
pub(super) struct EmitVertices<'a, T> {
    pub(super) mesher: &'a Mesher<'a, T>,
    pub(super) planes: &'a BitPlanes,
    pub(super) z: usize,
    /// Part of the result that is not yet written.
    pub(super) positions: &'a mut [[f32; 3]],
    pub(super) normals: &'a mut [[f32; 3]],
}

/// How many rows ahead of the current one samples are prefetched.
const AHEAD: isize = 4;

impl<T: Voxel> NullaryFnOnce for EmitVertices<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        let Self { mesher, planes, z, .. } = self;
        for y in 0..planes.grid.points[1] {
            let rows = planes.rows(y, z);
            if planes.are_uniform(&rows) {
                continue;
            }
            let (y1, z1) = (y as isize + 1, z as isize + 1);
            let row = |y, z| mesher.grid.sample_row(y, z);
            let [here, next_row, above] = [row(y1 - 1, z1 - 1), row(y1, z1 - 1), row(y1 - 1, z1)];
            // The slice above was not read before, and only a few scattered samples of each row are used, which the
            // hardware prefetcher does not predict.
            if let Some(start) = row(y1 - 1 + AHEAD, z1) {
                cache::prefetch(&mesher.samples[start..][..mesher.grid.width]);
            }
            for word in 0..planes.words {
                let [along_x, along_y, along_z] = planes.crossed(&rows, word);
                if along_x | along_y | along_z == 0 {
                    continue;
                }
                for half in 0..2 {
                    let point = [64 * word + 32 * half, y, z];
                    let shift = 32 * half;
                    self.along::<0>((along_x >> shift) as u32, point, [here, here]);
                    self.along::<1>((along_y >> shift) as u32, point, [here, next_row]);
                    self.along::<2>((along_z >> shift) as u32, point, [here, above]);
                }
            }
        }
        debug_assert!(self.positions.is_empty());
    }
}

impl<T: Voxel> EmitVertices<'_, T> {
    /// Writes the vertices on the edges along `AXIS` between two `rows` of samples. The edges begin at the points
    /// `crossed`, counted from `point` on.
    #[inline(always)]
    fn along<const AXIS: usize>(
        &mut self,
        crossed: u32,
        point: [usize; 3],
        rows: [Option<usize>; 2],
    ) {
        if crossed == 0 {
            return;
        }
        let Mesher { kernel, grid, iso, samples, .. } = self.mesher;
        let (x, y, z) = (point[0] as isize, point[1] as isize, point[2] as isize);
        let ([sx, sy, sz], [ox, oy, oz]) = (kernel.spacing, kernel.origin);
        let (sx, sy, sz) = (sx as f32, sy as f32, sz as f32);
        let (ox, oy, oz) = (ox as f32, oy as f32, oz as f32);
        let pad = grid.pad as isize;
        let center = |i: isize| (i - pad) as f32 + 0.5;
        let (y_center, z_center) = (center(y), center(z + grid.first_layer as isize));
        let step = usize::from(AXIS == 0);
        // Samples from the first point of the word on, if all points are samples.
        let plain = match (pad, rows) {
            (0, [Some(a), Some(b)]) => {
                Some([&samples[a + point[0]..], &samples[b + point[0] + step..]])
            }
            _ => None,
        };
        let count = crossed.count_ones() as usize;
        let positions = split_front(&mut self.positions, count);
        let has_normals = count.min(self.normals.len());
        let mut normals = split_front(&mut self.normals, has_normals).iter_mut();
        let mut left = crossed;
        for position in positions {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            let at = x + bit as isize;
            let t = match plain {
                Some([a, b]) => T::crossing(a[bit].field(iso), b[bit].field(iso), iso.level),
                None => match (self.field(rows[0], at), self.field(rows[1], at + step as isize)) {
                    (Some(a), Some(b)) => T::crossing(a, b, iso.level),
                    // One end lies beyond the samples: the surface is closed on the volume's box.
                    _ => 0.5,
                },
            };
            let mut index = [center(at), y_center, z_center];
            index[AXIS] += t;
            *position = [index[0] * sx + ox, index[1] * sy + oy, index[2] * sz + oz];
            if let Some(normal) = normals.next() {
                *normal = self.mesher.normal([at, y, z], AXIS, t);
            }
        }
    }

    /// The field at point `x` of the row of samples that begins at `row`; `None` beyond the samples.
    #[inline]
    fn field(&self, row: Option<usize>, x: isize) -> Option<f32> {
        let Mesher { grid: CellGrid { pad, width, .. }, iso, samples, .. } = *self.mesher;
        let x = usize::try_from(x - pad as isize).ok().filter(|&x| x < width)?;
        Some(samples[row? + x].field(&iso))
    }
}
