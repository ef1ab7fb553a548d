//! The native twin: bits, counts, then every slice writes its own part of the result, in parallel.

use std::sync::LazyLock;

use rayon::prelude::*;

use super::{
    Grid, Level, MarchingCubes, Sample, Slab, Surface, check_count,
    table::{CASES, CORNERS},
};
use crate::{
    error::{Error, Kind, Result},
    for_samples,
};

/// [`CASES`] flat and in the order of the twin's own words: how many triangles, which of the twelve
/// running numbers name their vertices, and loops beyond the first. A case's number here has bit
/// x + 2 y + 4 z for the corner x, y, z, so that it is four pairs of neighbouring bits.
struct Flat {
    count: [u8; 256],
    triangles: [[[u8; 3]; 5]; 256],
    more_loops: [u8; 256],
}

static FLAT: LazyLock<Flat> = LazyLock::new(|| {
    let mut flat = Flat { count: [0; 256], triangles: [[[0; 3]; 5]; 256], more_loops: [0; 256] };
    // The order of `SETS`, then those of the next point along x.
    const NUMBERS: [u8; 12] = [0, 1, 2, 3, 4, 8, 5, 9, 6, 10, 7, 11];
    for (number, case) in CASES.iter().enumerate() {
        let number = CORNERS.iter().enumerate().fold(0, |own, (corner, [x, y, z])| {
            own | (number >> corner & 1) << (x + 2 * y + 4 * z)
        });
        flat.count[number] = case.triangles.len() as u8;
        for (own, triangle) in flat.triangles[number].iter_mut().zip(&case.triangles) {
            *own = triangle.map(|edge| NUMBERS[usize::from(edge)]);
        }
        flat.more_loops[number] = case.loops.saturating_sub(1);
    }
    flat
});

/// Runs `work`, compiled for the vector and bit instructions of this machine where it has them. What
/// `work` calls must be inlined for that.
#[inline(always)]
fn fast<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn with_features<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            #[expect(unsafe_code)]
            // SAFETY: the machine has each of the features.
            return unsafe { with_features(work) };
        }
    }
    work()
}

pub(super) fn mesh(kernel: &MarchingCubes, slab: &Slab) -> Result<Surface> {
    let Some(grid) = Grid::new(kernel, slab) else { return Ok(Surface::default()) };
    let level = kernel.level(&slab.volume.samples);
    for_samples!(&slab.volume.samples, samples => {
        Job { kernel, grid, level, samples, first_vertex: slab.first_vertex }.run()
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

/// One bit a point of every slice at hand.
struct Planes {
    /// Whether the point is inside.
    inside: Vec<u32>,
    /// Whether the point is a number; empty when all are.
    number: Vec<u32>,
}

/// Where the vertices of a word begin, counted from the slice's first, and how many of them lie on
/// edges along x and along y.
#[derive(Clone, Copy, Default, bytemuck::Zeroable)]
struct Start {
    offset: u32,
    x: u8,
    y: u8,
}

/// The crossed edges that begin at the points of a word.
#[derive(Clone, Copy, Default)]
struct Crossings {
    x: u32,
    y: u32,
    z: u32,
}

/// What a slice contributes.
#[derive(Clone, Copy, Default)]
struct Counts {
    vertices: u64,
    triangles: u64,
    nan_cells: u64,
}

/// The four rows of points around a row of cells, as indices of their first words; the last row and
/// slice stand in for what is beyond them, so that no edge is crossed there.
#[derive(Clone, Copy)]
struct Rows {
    at: [usize; 4],
    /// Whether there are cells.
    cells: bool,
}

impl<T: Sample> Job<'_, T> {
    fn run(&self) -> Result<Surface> {
        let Self { grid, .. } = *self;
        let planes = self.planes()?;
        let slice_words = grid.slice_words();
        // One slice more than there are layers, for the vertices that the topmost layer shares with
        // the next slab.
        let numbered = grid.layers + 1;
        let mut starts = allocate::<Start>(numbered * slice_words)?;
        let counts: Vec<Counts> = starts
            .par_chunks_mut(slice_words)
            .enumerate()
            .map(|(z, starts)| fast(|| self.count(&planes, z, starts)))
            .collect();
        let owned = &counts[..grid.owned()];
        let total = |count: fn(&Counts) -> u64| owned.iter().map(count).sum::<u64>();
        check_count(self.first_vertex, counts.iter().map(|c| c.vertices).sum())?;
        let vertices = total(|c| c.vertices) as usize;
        let mut surface = Surface {
            positions: allocate(vertices)?,
            normals: allocate(if self.kernel.normals { vertices } else { 0 })?,
            triangles: allocate(total(|c| c.triangles) as usize)?,
            nan_cells: total(|c| c.nan_cells),
        };
        let mut positions = surface.positions.as_mut_slice();
        let mut normals = surface.normals.as_mut_slice();
        let mut triangles = surface.triangles.as_mut_slice();
        let mut first = self.first_vertex as u32;
        let parts: Vec<_> = owned
            .iter()
            .enumerate()
            .map(|(z, count)| {
                let vertices = count.vertices as usize;
                let part = Part {
                    z,
                    // The numbers wrap only past the last vertex of a surface of exactly 2^32.
                    first: [first, first.wrapping_add(count.vertices as u32)],
                    positions: positions.split_off_mut(..vertices).expect("summed above"),
                    normals: normals.split_off_mut(..vertices.min(normals.len())).expect("as long"),
                    triangles: triangles
                        .split_off_mut(..count.triangles as usize)
                        .expect("summed above"),
                };
                first = part.first[1];
                part
            })
            .collect();
        parts.into_par_iter().for_each(|part| fast(|| self.emit(&planes, &starts, part)));
        Ok(surface)
    }

    /// Compares every sample with the isovalue.
    fn planes(&self) -> Result<Planes> {
        let Self { level, samples, .. } = *self;
        let inside = self.plane(|values| T::inside(values, &level), false)?;
        let has_nan = T::MAY_BE_NAN
            && samples
                .par_chunks(1 << 16)
                .any(|chunk| chunk.iter().fold(false, |nan, v| nan | v.field(&level).is_nan()));
        let number = match has_nan {
            true => self.plane(|values| pack(values, |v| !v.field(&level).is_nan()), true)?,
            false => Vec::new(),
        };
        Ok(Planes { inside, number })
    }

    /// A bit a point, as `pack` makes them of up to 32 samples, and `beyond` the samples.
    fn plane(&self, pack: impl Fn(&[T]) -> u32 + Sync, beyond: bool) -> Result<Vec<u32>> {
        let Self { grid, samples, .. } = *self;
        let slice_words = grid.slice_words();
        let mut plane = allocate::<u32>(grid.slices * slice_words)?;
        let fill = |z: usize, slice: &mut [u32]| {
            for (y, row) in slice.chunks_exact_mut(grid.words).enumerate() {
                let Some(start) = self.row(y as isize, z as isize) else {
                    row.fill(if beyond { u32::MAX } else { 0 });
                    continue;
                };
                let values = &samples[start..start + grid.width];
                for (word, values) in row.iter_mut().zip(values.chunks(32)) {
                    *word = pack(values);
                }
                if grid.pad == 1 {
                    shift(row, beyond, grid.width);
                }
            }
        };
        let slices = plane.par_chunks_mut(slice_words).enumerate();
        slices.for_each(|(z, slice)| fast(|| fill(z, slice)));
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

    #[inline(always)]
    fn rows(&self, y: usize, z: usize) -> Rows {
        let Grid { words, points, slices, layers, .. } = self.grid;
        let y1 = (y + 1).min(points[1] - 1);
        let z1 = (z + 1).min(slices - 1);
        let row = |y, z| (z * points[1] + y) * words;
        Rows { at: [row(y, z), row(y1, z), row(y, z1), row(y1, z1)], cells: y1 > y && z < layers }
    }

    /// Whether nothing is crossed between four rows of points, in one sweep.
    #[inline(always)]
    fn are_uniform(&self, plane: &[u32], rows: &Rows) -> bool {
        let words = self.grid.words;
        let [a, b, c, d] = rows.at.map(|at| &plane[at..at + words]);
        let first = a[0];
        let mut other = 0;
        for i in 0..words {
            other |= (a[i] ^ first) | (b[i] ^ first) | (c[i] ^ first) | (d[i] ^ first);
        }
        other == 0 && (first == 0 || first == u32::MAX)
    }

    /// Numbers the vertices of slice `z` and counts its cells' triangles.
    #[inline(always)]
    fn count(&self, planes: &Planes, z: usize, starts: &mut [Start]) -> Counts {
        let Grid { words, points, .. } = self.grid;
        let flat = &*FLAT;
        let mut counts = Counts::default();
        let mut offset = 0;
        for y in 0..points[1] {
            let rows = self.rows(y, z);
            if planes.number.is_empty() && self.are_uniform(&planes.inside, &rows) {
                starts[y * words..][..words].fill(Start { offset, ..Start::default() });
                continue;
            }
            for word in 0..words {
                let corners = Corners::load(&planes.inside, &rows, word, words);
                let start = &mut starts[y * words + word];
                start.offset = offset;
                if planes.number.is_empty() && corners.are_equal() {
                    continue;
                }
                let edges = corners.edges();
                let mut cells = if rows.cells { self.grid.edge_mask(word) } else { 0 };
                let mut crossed = self.crossings(&edges, word);
                if !planes.number.is_empty() {
                    let numbers = Corners::load(&planes.number, &rows, word, words);
                    crossed = crossed.between(&numbers);
                    let all = numbers.all();
                    counts.nan_cells += u64::from((cells & !all).count_ones());
                    cells &= all;
                }
                start.x = crossed.x.count_ones() as u8;
                start.y = crossed.y.count_ones() as u8;
                offset += u32::from(start.x) + u32::from(start.y) + crossed.z.count_ones();
                counts.triangles += u64::from(triangles(&corners, &edges, cells, flat));
            }
        }
        counts.vertices = offset.into();
        counts
    }

    #[inline(always)]
    fn crossings(&self, edges: &[u32; 12], word: usize) -> Crossings {
        Crossings { x: edges[0] & self.grid.edge_mask(word), y: edges[4], z: edges[8] }
    }

    /// Writes the vertices of a slice and the triangles of the layer above it.
    #[inline(always)]
    fn emit(&self, planes: &Planes, starts: &[Start], part: Part<'_>) {
        let Part { z, first, positions, normals, triangles } = part;
        let Grid { words, points, .. } = self.grid;
        let flat = &*FLAT;
        let mut vertices = Vertices {
            job: self,
            spacing: self.kernel.spacing.map(|v| v as f32),
            origin: self.kernel.origin.map(|v| v as f32),
            positions,
            normals,
            at: 0,
        };
        let mut triangle = 0;
        for y in 0..points[1] {
            let rows = self.rows(y, z);
            if self.are_uniform(&planes.inside, &rows) {
                continue;
            }
            for word in 0..words {
                let corners = Corners::load(&planes.inside, &rows, word, words);
                if corners.are_equal() {
                    continue;
                }
                let edges = corners.edges();
                let mut cells = if rows.cells { self.grid.edge_mask(word) } else { 0 };
                // The edges along x of all four rows, along y of both slices, along z of both rows.
                let x_mask = self.grid.edge_mask(word);
                let mut crossed = [0, 1, 2, 3, 4, 6, 8, 10].map(|edge| edges[edge]);
                crossed[..4].iter_mut().for_each(|edges| *edges &= x_mask);
                if !planes.number.is_empty() {
                    let numbers = Corners::load(&planes.number, &rows, word, words);
                    crossed = numbers.keep(crossed);
                    cells &= numbers.all();
                }
                vertices.along::<0>(crossed[0], [32 * word, y, z]);
                vertices.along::<1>(crossed[4], [32 * word, y, z]);
                vertices.along::<2>(crossed[6], [32 * word, y, z]);
                if !rows.cells {
                    continue;
                }
                // The running numbers of the vertices on each of those eight sets of edges, and of
                // the first ones of the next word, for the cell that straddles it.
                let number = |row: usize, word: usize, axis: usize| {
                    let start = starts[rows.at[row] + word];
                    let before = [0, u32::from(start.x), u32::from(start.x) + u32::from(start.y)];
                    first[row / 2].wrapping_add(start.offset).wrapping_add(before[axis])
                };
                const SETS: [(usize, usize); 8] =
                    [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (2, 1), (0, 2), (1, 2)];
                let mut at = SETS.map(|(row, axis)| number(row, word, axis));
                let [a, b, c, d, e, f, g, h] = crossed;
                let mut visit = a | b | c | d | e | f | g | h;
                while visit != 0 {
                    let x = visit.trailing_zeros();
                    visit &= visit - 1;
                    let mut is_crossed = crossed;
                    for set in &mut is_crossed {
                        *set = *set >> x & 1;
                    }
                    if cells >> x & 1 == 1 {
                        let case = corners.case(x);
                        let count = usize::from(flat.count[case]);
                        if count > 0 {
                            let mut numbers = [0; 16];
                            numbers[..8].copy_from_slice(&at);
                            for set in 4..8 {
                                numbers[set + 4] = match x {
                                    31 => number(SETS[set].0, word + 1, SETS[set].1),
                                    _ => at[set].wrapping_add(is_crossed[set]),
                                };
                            }
                            // Nearly every cell has at most four: writing four wherever there is
                            // room, the next cell over the rest, spares a branch hard to foresee.
                            let all = if count <= 4 { 4 } else { 5 };
                            let end = (triangle + all).min(triangles.len());
                            let out = &mut triangles[triangle..end];
                            for (out, [a, b, c]) in out.iter_mut().zip(&flat.triangles[case]) {
                                let number = |i: &u8| numbers[usize::from(i & 15)];
                                *out = [number(a), number(b), number(c)];
                            }
                            triangle += count;
                        }
                    }
                    for (at, crossed) in at.iter_mut().zip(is_crossed) {
                        *at = at.wrapping_add(crossed);
                    }
                }
            }
        }
        debug_assert_eq!((vertices.at, triangle), (vertices.positions.len(), triangles.len()));
    }
}

/// A slice's own part of the result.
struct Part<'a> {
    z: usize,
    /// The numbers of the first vertices of this slice and of the next.
    first: [u32; 2],
    positions: &'a mut [[f32; 3]],
    normals: &'a mut [[f32; 3]],
    triangles: &'a mut [[u32; 3]],
}

/// Writes vertices in order.
struct Vertices<'a, T> {
    job: &'a Job<'a, T>,
    spacing: [f32; 3],
    origin: [f32; 3],
    positions: &'a mut [[f32; 3]],
    normals: &'a mut [[f32; 3]],
    at: usize,
}

impl<T: Sample> Vertices<'_, T> {
    /// The vertices on the edges along `AXIS` that begin at the points `crossed` from `point` on.
    #[inline(always)]
    fn along<const AXIS: usize>(&mut self, mut crossed: u32, point: [usize; 3]) {
        if crossed == 0 {
            return;
        }
        let Job { grid, level, samples, .. } = self.job;
        let [x, y, z] = point.map(|i| i as isize);
        let mut end = [x, y, z];
        end[AXIS] += 1;
        let rows = [self.job.row(y, z), self.job.row(end[1], end[2])];
        let [[sx, sy, sz], [ox, oy, oz]] = [self.spacing, self.origin];
        let pad = grid.pad as isize;
        let place = |i: isize| (i - pad) as f32 + 0.5;
        let (y_place, z_place) = (place(y), place(z + grid.first as isize));
        // From the first point of the word on, where no point is beyond the samples.
        let plain = match (pad, rows) {
            (0, [Some(a), Some(b)]) => {
                Some([&samples[a + point[0]..], &samples[b + end[0] as usize..]])
            }
            _ => None,
        };
        while crossed != 0 {
            let bit = crossed.trailing_zeros() as isize;
            crossed &= crossed - 1;
            let t = match plain {
                Some([a, b]) => {
                    let [a, b] = [a[bit as usize], b[bit as usize]].map(|v| v.field(level));
                    crossing(a, b, level.level)
                }
                None => match (self.field(rows[0], x + bit), self.field(rows[1], end[0] + bit)) {
                    (Some(a), Some(b)) => crossing(a, b, level.level),
                    // Beyond the samples: the surface closes on the volume's box.
                    _ => 0.5,
                },
            };
            let mut place = [place(x + bit), y_place, z_place];
            place[AXIS] += t;
            self.positions[self.at] = [place[0] * sx + ox, place[1] * sy + oy, place[2] * sz + oz];
            if !self.normals.is_empty() {
                let from = [x + bit, y, z];
                let mut to = from;
                to[AXIS] += 1;
                self.normals[self.at] = self.job.normal(from, to, AXIS, t);
            }
            self.at += 1;
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
    /// The unit vector down the gradient between two points: central differences at both,
    /// interpolated.
    fn normal(&self, from: [isize; 3], to: [isize; 3], axis: usize, t: f32) -> [f32; 3] {
        let (a, b) = (self.gradient(from), self.gradient(to));
        let down: [f32; 3] = std::array::from_fn(|i| -(a[i] + (b[i] - a[i]) * t));
        let length = (down[0] * down[0] + down[1] * down[1] + down[2] * down[2]).sqrt();
        if length > 0.0 && length.is_finite() {
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

/// Where between values `a` and `b`, one inside and one not, the surface passes: 0 at `a`, 1 at `b`.
#[inline(always)]
fn crossing(a: f32, b: f32, level: f32) -> f32 {
    // Halves, lest the difference of the largest values be infinite.
    let (a, b, level) = (a * 0.5, b * 0.5, level * 0.5);
    let t = (level - a) / (b - a);
    if t.is_nan() {
        // One or both ends are infinite: the surface passes the finite one.
        return if b.is_finite() { 1.0 } else { 0.5 };
    }
    t.clamp(0.0, 1.0)
}

/// The words of the eight corners of 32 cells: four rows of points, and the same one step along x.
struct Corners {
    rows: [u32; 4],
    steps: [u32; 4],
}

impl Corners {
    #[inline(always)]
    fn load(plane: &[u32], rows: &Rows, word: usize, words: usize) -> Self {
        let (mut here, mut steps) = ([0; 4], [0; 4]);
        for row in 0..4 {
            here[row] = plane[rows.at[row] + word];
            steps[row] = here[row] >> 1;
            if word + 1 < words {
                steps[row] |= plane[rows.at[row] + word + 1] << 31;
            }
        }
        Self { rows: here, steps }
    }

    /// Whether no edge is crossed, seen quickly; the end of a row may hide that.
    #[inline(always)]
    fn are_equal(&self) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        (a | b | c | d | e | f | g | h) == self.all()
    }

    /// The cells whose corners are all set.
    #[inline(always)]
    fn all(&self) -> u32 {
        let ([a, b, c, d], [e, f, g, h]) = (self.rows, self.steps);
        a & b & c & d & e & f & g & h
    }

    /// The crossed ones of each of the twelve [`EDGES`](super::table::EDGES).
    #[inline(always)]
    fn edges(&self) -> [u32; 12] {
        let (r, s) = (&self.rows, &self.steps);
        [
            r[0] ^ s[0],
            r[1] ^ s[1],
            r[2] ^ s[2],
            r[3] ^ s[3],
            r[0] ^ r[1],
            s[0] ^ s[1],
            r[2] ^ r[3],
            s[2] ^ s[3],
            r[0] ^ r[2],
            s[0] ^ s[2],
            r[1] ^ r[3],
            s[1] ^ s[3],
        ]
    }

    /// Where these are planes of numbers: the crossed edges, in the order of `emit`, that have a
    /// number at both ends.
    #[inline(always)]
    fn keep(&self, crossed: [u32; 8]) -> [u32; 8] {
        let (r, s) = (&self.rows, &self.steps);
        let both = [
            r[0] & s[0],
            r[1] & s[1],
            r[2] & s[2],
            r[3] & s[3],
            r[0] & r[1],
            r[2] & r[3],
            r[0] & r[2],
            r[1] & r[3],
        ];
        std::array::from_fn(|set| crossed[set] & both[set])
    }

    /// The case of the cell at bit `x`, as [`Flat`] numbers them.
    #[inline(always)]
    fn case(&self, x: u32) -> usize {
        let pair = |row: usize| (self.rows[row] >> x & 1) | (self.steps[row] >> x & 1) << 1;
        (pair(0) | pair(1) << 2 | pair(2) << 4 | pair(3) << 6) as usize
    }
}

impl Crossings {
    fn between(self, numbers: &Corners) -> Self {
        let (r, s) = (&numbers.rows, &numbers.steps);
        Self { x: self.x & r[0] & s[0], y: self.y & r[0] & r[1], z: self.z & r[0] & r[2] }
    }
}

/// The number of triangles of the cells `cells`: each loop of n crossed edges makes n - 2, so only
/// cells that may have a second loop are looked at one by one.
#[inline(always)]
fn triangles(corners: &Corners, edges: &[u32; 12], cells: u32, flat: &Flat) -> u32 {
    let (mut any, mut crossings) = (0, 0);
    for edge in edges {
        any |= edge & cells;
        crossings += (edge & cells).count_ones();
    }
    if any == 0 {
        return 0;
    }
    let [x0, x1, x2, x3, y0, y1, y2, y3, z0, z1, z2, z3] = *edges;
    let (r, s) = (&corners.rows, &corners.steps);
    // Faces whose corners alternate.
    let faces =
        x0 & x1 & y0 | x2 & x3 & y2 | x0 & x2 & z0 | x1 & x3 & z2 | y0 & y2 & z0 | y1 & y3 & z1;
    // Two opposite corners of the cube that differ from all others.
    let diagonals = x0 & y0 & z0 & x3 & y3 & z3 & !(r[0] ^ s[3])
        | x0 & y1 & z1 & x3 & y2 & z2 & !(s[0] ^ r[3])
        | x1 & y0 & z2 & x2 & y3 & z1 & !(r[1] ^ s[2])
        | x1 & y1 & z3 & x2 & y2 & z0 & !(s[1] ^ r[2]);
    let mut look = (faces | diagonals) & cells;
    let mut more = 0;
    while look != 0 {
        more += u32::from(flat.more_loops[corners.case(look.trailing_zeros())]);
        look &= look - 1;
    }
    crossings - 2 * any.count_ones() - 2 * more
}

/// Up to 32 answers, the first in the lowest bit.
#[inline(always)]
pub(super) fn pack<T: Copy>(values: &[T], bit: impl Fn(T) -> bool) -> u32 {
    values.iter().enumerate().fold(0, |word, (i, &v)| word | u32::from(bit(v)) << i)
}

/// Moves a row of `width` bits up by one and sets the bits before and behind to `beyond`.
fn shift(row: &mut [u32], beyond: bool, width: usize) {
    let mut carry = u32::from(beyond);
    for word in row.iter_mut() {
        (*word, carry) = (*word << 1 | carry, *word >> 31);
    }
    if beyond {
        row[(width + 1) / 32] |= 1 << ((width + 1) % 32);
    }
}

/// Zeros that the machine makes as they are first touched, by whichever thread does.
fn allocate<T: bytemuck::Zeroable>(len: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(len)
        .map_err(|()| Error::new(Kind::Failure, "no memory for the surface"))
}
