//! The native twin: bits, counts, then every slice writes its own part of the result, in parallel.

use pulp::{Arch, NullaryFnOnce, Scalar};
use rayon::prelude::*;

use super::{
    Grid, Level, MarchingCubes, Sample, Slab, Surface, check_count,
    planes::{Counts, Emit, Faces, Lanes, Planes},
};
use crate::{error::Result, for_samples, memory, simd};

pub(super) fn mesh(kernel: &MarchingCubes, slab: &Slab) -> Result<Surface> {
    let Some(grid) = Grid::new(kernel, slab) else { return Ok(Surface::default()) };
    let level = kernel.level(&slab.volume.samples);
    for_samples!(&slab.volume.samples, samples => {
        let job = Job { kernel, grid, level, samples, first_vertex: slab.first_vertex };
        match simd::arch() {
            // What V4 has beyond V3 made it 3 % faster: not worth another copy of everything.
            #[cfg(target_arch = "x86_64")]
            Arch::V4(simd) => job.run(*simd),
            #[cfg(target_arch = "x86_64")]
            Arch::V3(simd) => job.run(simd),
            _ => job.run(Scalar::new()),
        }
    })
}

/// One slab being meshed.
struct Job<'a, T> {
    kernel: &'a MarchingCubes,
    grid: Grid,
    level: Level,
    samples: &'a [T],
    first_vertex: u64,
}

/// Slices that one thread emits one after another, so that each is numbered for both of its layers.
const TASK: usize = 4;

impl<T: Sample> Job<'_, T> {
    fn run<S: Lanes>(&self, simd: S) -> Result<Surface> {
        let Self { grid, .. } = *self;
        let planes = self.planes(simd)?;
        let counts = planes.counts(simd);
        check_count(self.first_vertex, counts.iter().map(|c| c.vertices).sum())?;
        let owned = &counts[..grid.owned()];
        let total = |count: fn(&Counts) -> u64| owned.iter().map(count).sum::<u64>() as usize;
        let vertices = total(|c| c.vertices);
        let mut surface = Surface {
            positions: memory::zeros(vertices)?,
            normals: memory::zeros(if self.kernel.normals { vertices } else { 0 })?,
            triangles: memory::zeros(total(|c| c.triangles))?,
            nan_cells: total(|c| c.nan_cells) as u64,
        };
        let mut positions = surface.positions.as_mut_slice();
        let mut normals = surface.normals.as_mut_slice();
        let mut triangles = surface.triangles.as_mut_slice();
        let mut first = self.first_vertex;
        let tasks: Vec<_> = (0..owned.len())
            .step_by(TASK)
            .map(|start| {
                let slices = start..(start + TASK).min(owned.len());
                let part = |(z, count): (usize, &Counts)| {
                    let vertices = count.vertices as usize;
                    let vertices = Vertices {
                        job: self,
                        planes: &planes,
                        z,
                        positions: positions.split_off_mut(..vertices).expect("summed above"),
                        normals: normals
                            .split_off_mut(..vertices.min(normals.len()))
                            .expect("as long"),
                    };
                    let triangles =
                        triangles.split_off_mut(..count.triangles as usize).expect("summed above");
                    let end = first + count.vertices;
                    let faces = Faces { z, first, end, triangles };
                    first = end;
                    (vertices, faces)
                };
                slices.clone().zip(&owned[slices]).map(part).unzip::<_, _, Vec<_>, Vec<_>>()
            })
            .collect();
        tasks.into_par_iter().try_for_each(|(vertices, slices)| {
            vertices.into_iter().for_each(|slice| simd.vectorize(slice));
            let numbers = || memory::zeros(2 * planes.words * grid.points[1]);
            let starts = [numbers()?, numbers()?];
            simd.vectorize(Emit { planes: &planes, simd, slices, starts });
            Ok(())
        })?;
        Ok(surface)
    }

    /// Compares every sample with the isovalue.
    fn planes<S: Lanes>(&self, simd: S) -> Result<Planes> {
        let Self { grid, level, samples, .. } = *self;
        let words = grid.points[0].div_ceil(64);
        let inside = self.plane(simd, words, 0, T::is_inside, false)?;
        let mut planes = Planes { grid, words, inside, valid: Vec::new() };
        let has_nan = T::MAY_BE_NAN
            && samples
                .par_chunks(1 << 16)
                .any(|chunk| chunk.iter().fold(false, |nan, v| nan | !v.is_number(&level)));
        if has_nan {
            let numbers = self.plane(simd, words, 1, T::is_number, true)?;
            planes.valid = planes.whole_cells(&numbers)?;
        }
        Ok(planes)
    }

    /// A bit a point of all slices at hand and of `below` more, as `is_set` tells of samples, and
    /// `beyond` them.
    fn plane<S: Lanes>(
        &self,
        simd: S,
        words: usize,
        below: usize,
        is_set: impl Fn(T, &Level) -> bool + Copy + Sync,
        beyond: bool,
    ) -> Result<Vec<u64>> {
        let Self { grid, .. } = *self;
        let slice_words = words * grid.points[1];
        let mut plane = memory::zeros::<u64>((grid.slices + below) * slice_words)?;
        plane.par_chunks_mut(slice_words).enumerate().for_each(|(z, slice)| {
            for (y, row) in slice.chunks_exact_mut(words).enumerate() {
                match self.row(y as isize, z as isize - below as isize) {
                    None => row.fill(if beyond { u64::MAX } else { 0 }),
                    Some(start) => {
                        let samples = &self.samples[start..start + grid.width];
                        simd.vectorize(Pack {
                            level: &self.level,
                            simd,
                            samples,
                            is_set,
                            row: &mut *row,
                        });
                        if grid.pad == 1 {
                            shift(row, beyond, grid.width);
                        }
                    }
                }
            }
        });
        Ok(plane)
    }

    /// Where the samples of row `y` of slice `z` of the slab begin, unless the row is beyond them.
    #[inline(always)]
    fn row(&self, y: isize, z: isize) -> Option<usize> {
        let Grid { width, height, pad, first, sample_z, points, .. } = self.grid;
        let y = usize::try_from(y - pad as isize).ok().filter(|&y| y < height)?;
        let z = z + first as isize;
        if z < pad as isize || z >= (points[2] - pad) as isize {
            return None;
        }
        let z = (z + sample_z) as usize;
        Some((z * height + y) * width)
    }
}

/// Turns a row of samples into bits.
struct Pack<'a, T, S, F> {
    level: &'a Level,
    simd: S,
    samples: &'a [T],
    is_set: F,
    row: &'a mut [u64],
}

impl<T: Sample, S: Lanes, F: Fn(T, &Level) -> bool> NullaryFnOnce for Pack<'_, T, S, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { level, simd, samples, is_set, row } = self;
        let (whole, rest) = samples.as_chunks::<64>();
        for (word, values) in row.iter_mut().zip(whole) {
            let mut flags = [0; 64];
            for (flag, &value) in flags.iter_mut().zip(values) {
                *flag = u8::from(is_set(value, level));
            }
            *word = simd.mask(flags);
        }
        for (i, &value) in rest.iter().enumerate() {
            row[whole.len()] |= u64::from(is_set(value, level)) << i;
        }
    }
}

/// Writes the vertices of a slice, in order.
struct Vertices<'a, T> {
    job: &'a Job<'a, T>,
    planes: &'a Planes,
    z: usize,
    /// Those still to be written.
    positions: &'a mut [[f32; 3]],
    normals: &'a mut [[f32; 3]],
}

impl<T: Sample> NullaryFnOnce for Vertices<'_, T> {
    type Output = ();

    #[inline(always)]
    fn call(mut self) {
        let Self { job, planes, z, .. } = self;
        for y in 0..planes.grid.points[1] {
            let rows = planes.rows(y, z);
            if planes.are_uniform(&rows) {
                continue;
            }
            let (y1, z1) = (y as isize + 1, z as isize + 1);
            let samples = [job.row(y1 - 1, z1 - 1), job.row(y1, z1 - 1), job.row(y1 - 1, z1)];
            for word in 0..planes.words {
                let [along_x, along_y, along_z] = planes.crossed(&rows, word);
                if along_x | along_y | along_z == 0 {
                    continue;
                }
                for half in 0..2 {
                    let point = [64 * word + 32 * half, y, z];
                    let down = 32 * half;
                    self.along::<0>((along_x >> down) as u32, point, [samples[0], samples[0]]);
                    self.along::<1>((along_y >> down) as u32, point, [samples[0], samples[1]]);
                    self.along::<2>((along_z >> down) as u32, point, [samples[0], samples[2]]);
                }
            }
        }
        debug_assert!(self.positions.is_empty());
    }
}

impl<T: Sample> Vertices<'_, T> {
    /// The vertices on the edges along `AXIS` that begin at the points `crossed` from `point` on, and
    /// run between two `rows` of samples.
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
        let Job { kernel, grid, level, samples, .. } = self.job;
        let (x, y, z) = (point[0] as isize, point[1] as isize, point[2] as isize);
        let ([sx, sy, sz], [ox, oy, oz]) = (kernel.spacing, kernel.origin);
        let (sx, sy, sz) = (sx as f32, sy as f32, sz as f32);
        let (ox, oy, oz) = (ox as f32, oy as f32, oz as f32);
        let pad = grid.pad as isize;
        let place = |i: isize| (i - pad) as f32 + 0.5;
        let (y_place, z_place) = (place(y), place(z + grid.first as isize));
        let step = usize::from(AXIS == 0);
        // From the first point of the word on, where no point is beyond the samples.
        let plain = match (pad, rows) {
            (0, [Some(a), Some(b)]) => {
                Some([&samples[a + point[0]..], &samples[b + point[0] + step..]])
            }
            _ => None,
        };
        let count = crossed.count_ones() as usize;
        let positions = self.positions.split_off_mut(..count).expect("counted before");
        let mut normals = self.normals.split_off_mut(..count).into_iter().flatten();
        let mut left = crossed;
        for position in positions {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            let at = x + bit as isize;
            let t = match plain {
                Some([a, b]) => T::crossing(a[bit].field(level), b[bit].field(level), level.level),
                None => match (self.field(rows[0], at), self.field(rows[1], at + step as isize)) {
                    (Some(a), Some(b)) => T::crossing(a, b, level.level),
                    // Beyond the samples: the surface closes on the volume's box.
                    _ => 0.5,
                },
            };
            let mut place = [place(at), y_place, z_place];
            place[AXIS] += t;
            *position = [place[0] * sx + ox, place[1] * sy + oy, place[2] * sz + oz];
            if let Some(normal) = normals.next() {
                *normal = self.job.normal([at, y, z], AXIS, t);
            }
        }
    }

    #[inline]
    fn field(&self, row: Option<usize>, x: isize) -> Option<f32> {
        let Job { grid, level, samples, .. } = self.job;
        let x = usize::try_from(x - grid.pad as isize).ok().filter(|&x| x < grid.width)?;
        Some(samples[row? + x].field(level))
    }
}

impl<T: Sample> Job<'_, T> {
    /// The unit vector down the gradient on the edge along `axis` from a point: central differences at
    /// both ends, interpolated.
    fn normal(&self, from: [isize; 3], axis: usize, t: f32) -> [f32; 3] {
        let mut to = from;
        to[axis] += 1;
        let (a, b) = (self.gradient(from), self.gradient(to));
        let down: [f32; 3] = std::array::from_fn(|i| -(a[i] + (b[i] - a[i]) * t));
        let squared = |v: [f32; 3]| v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
        let length = squared(down);
        // Where both ends' gradients cancel out, only rounding is left, which devices do differently.
        if length > 1e-10 * (squared(a) + squared(b)) && length.is_finite() {
            let length = length.sqrt();
            return down.map(|v| v / length);
        }
        // A flat or endless gradient: along the edge, towards its outer end.
        let mut normal = [0.0; 3];
        let inside = self.nearest(from) > self.level.threshold;
        normal[axis] = if inside { 1.0 } else { -1.0 };
        normal
    }

    fn gradient(&self, point: [isize; 3]) -> [f32; 3] {
        std::array::from_fn(|axis| {
            let (mut low, mut high) = (point, point);
            low[axis] -= 1;
            high[axis] += 1;
            let (low, steps_low) = self.clamp(low, axis);
            let (high, steps_high) = self.clamp(high, axis);
            let steps = (2 - steps_low - steps_high).max(1) as f32;
            (self.nearest(high) - self.nearest(low)) / (steps * self.kernel.spacing[axis] as f32)
        })
    }

    /// `point` moved along `axis` into the samples, and by how much.
    fn clamp(&self, mut point: [isize; 3], axis: usize) -> ([isize; 3], isize) {
        let Grid { points, pad, first, .. } = self.grid;
        let shift = if axis == 2 { first as isize } else { 0 };
        let (least, most) = (pad as isize - shift, (points[axis] - pad) as isize - 1 - shift);
        let to = point[axis].clamp(least, most);
        let moved = (to - point[axis]).abs();
        point[axis] = to;
        (point, moved.min(1))
    }

    /// The field at the sample nearest to `point`.
    fn nearest(&self, point: [isize; 3]) -> f32 {
        let [x, y, z] = [0, 1, 2].map(|axis| self.clamp(point, axis).0[axis]);
        let row = self.row(y, z).expect("clamped");
        self.samples[row + (x - self.grid.pad as isize) as usize].field(&self.level)
    }
}

/// Moves a row of `width` bits up by one and sets the bits before and behind to `beyond`.
fn shift(row: &mut [u64], beyond: bool, width: usize) {
    let mut carry = u64::from(beyond);
    for word in row.iter_mut() {
        (*word, carry) = (*word << 1 | carry, *word >> 63);
    }
    if beyond {
        row[(width + 1) / 64] |= 1 << ((width + 1) % 64);
    }
}
