//! Simplifies large surfaces block by block. The tables of a block fit the cache of a core, and blocks are simplified
//! in parallel.
//!
//! Blocks are cells of a grid that depends on the triangles only, so the result does not depend on threads. Vertices
//! shared by several blocks are locked. Collapses are made in rounds: a sample of the errors of all blocks determines
//! up to which error each block collapses edges in a round, and how many. The last collapses, and those around locked
//! vertices, are made after the blocks have been merged into one surface.
//!
//! ```text
//! +------+------+   o locked: no edge at it collapses
//! |  .   o  .   |   . free
//! |    . o    . |
//! +--o-o-+-o-o--+
//! |  .   o  .   |
//! +------+------+
//! ```

use std::{
    collections::HashMap,
    mem,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::{
    mesh,
    quadric::Quadric,
    simplifier::{Accumulated, Limits, Scale, Simplifier, add},
};
use crate::{
    data::{
        surface::Surface,
        vec3::{sub, union},
    },
    util::{
        error::{Error, Result},
        memory,
        parallel::{self, Parallel},
    },
};

/// Mean number of triangles of a block: about 1.2 MB of tables. Blocks four times as large take a tenth longer; without
/// blocks, a surface of 900,000 triangles takes twice as long.
const TRIANGLES: usize = 1 << 14;
/// Surfaces of fewer blocks are not divided.
const MIN_BLOCKS: usize = 8;
/// Share of the edges whose errors are below a round's limit.
const ROUND: f64 = 0.3;
/// Number of edges that a collapse removes.
const EDGES: usize = 3;
/// Additional triangles, as a share of the target, that are left for the collapses after the merge.
const SPARE: f64 = 0.1;
/// One in this many half edges is sampled to find the limit of a round.
const STEP: usize = 16;
/// A block's collapses continue only while a pass has more than one edge per this many triangles.
const MIN_PASS: usize = 256;
/// One in this many triangles is sampled to find the size of the cells.
const SAMPLED: usize = 64;
/// Maximum number of cells along an axis.
const MAX_CELLS: f32 = 64.0;
/// Triangles that a thread processes at a time.
const CHUNK: usize = 1 << 14;

/// Memory in addition to the tables of the blocks, in bytes per vertex and bytes per triangle: the blocks hold a copy
/// of the surface, and a tenth of the vertices more than once.
pub(super) const BYTES: [u64; 2] = [4 + 24 + 12, 12];

// The owner of a vertex is the number of its block, or one of the following.
/// No triangle with this vertex has been visited yet.
const UNOWNED: u32 = u32::MAX;
/// Several blocks have the vertex.
const SHARED: u32 = u32::MAX - 1;
/// Bit of an owner whose other bits are the number of the vertex in its only block.
const NUMBER: u32 = 1 << 31;

/// The surface of a block. Vertices shared with other blocks come first.
struct BlockSurface {
    surface: Surface,
    /// Numbers of the shared vertices in the whole surface.
    shared: Vec<u32>,
    limits: Limits,
}

/// Collapses edges of a large surface until little more than `target` triangles are left. Returns the accumulated sums
/// of its vertices; `None` for a surface that is too small, which is left unchanged.
pub(super) fn decimate(
    surface: &mut Surface,
    target: usize,
    limits: &[f32],
    scale: Scale,
) -> Result<Option<Accumulated>> {
    if surface.triangles.len() < MIN_BLOCKS * TRIANGLES {
        return Ok(None);
    }
    let (mut parts, mut owners) = split(surface, limits)?;
    let parts = parts.iter_mut().par_map(|part| {
        let locked = part.shared.len() as u32;
        let limits = mem::take(&mut part.limits);
        let simplifier = Simplifier::for_block(&mut part.surface, locked, limits, scale)?;
        Ok(Part { simplifier, shared: &part.shared })
    });
    let mut blocks = parts.into_iter().collect::<Result<Vec<Part<'_>>>>()?;
    let boundary = blocks.iter().map(|block| block.simplifier.boundary()).reduce(union);
    let boundary = boundary.unwrap_or_default();
    blocks.iter_mut().par_try_each(|block| {
        block.simplifier.find_sides(boundary)?;
        block.simplifier.find_errors();
        Ok(())
    })?;
    if target == 0 && !limits.is_empty() {
        for level in scale.levels() {
            blocks.iter_mut().par_try_each(|block| block.simplifier.collapse_level(level))?;
        }
    } else {
        collapse_in_rounds(&mut blocks, target)?;
    }
    merge(surface, blocks, &mut owners, limits).map(Some)
}

/// A block that is being simplified, with the numbers of its shared vertices in the whole surface.
struct Part<'a> {
    simplifier: Simplifier<'a>,
    shared: &'a [u32],
}

/// Collapses edges of all blocks in rounds.
fn collapse_in_rounds(blocks: &mut [Part<'_>], target: usize) -> Result<()> {
    let left =
        |blocks: &[Part<'_>]| -> usize { blocks.iter().map(|b| b.simplifier.triangles_left).sum() };
    let before = left(blocks);
    // Triangles at locked vertices remain until the merge. Their share of the collapses must not burden the others.
    let locked: usize =
        blocks.iter().par_map(|block| block.simplifier.locked_triangles()).iter().sum();
    let excess = locked as f64 * (1.0 - target as f64 / before as f64);
    let stop = target + (SPARE * target as f64 + excess) as usize;
    loop {
        let now = left(blocks);
        let Some(wanted) = now.checked_sub(stop).map(|more| more / 2).filter(|&n| n > 0) else {
            return Ok(());
        };
        let samples = blocks.iter().par_map(|block| block.simplifier.sample(STEP));
        let mut sample = memory::room(samples.iter().map(Vec::len).sum())?;
        samples.iter().for_each(|part| sample.extend_from_slice(part));
        let rank = ((ROUND * sample.len() as f64) as usize).min(EDGES * wanted / STEP + 1);
        if rank >= sample.len() {
            return Ok(());
        }
        let limit = *sample.select_nth_unstable(rank).1;
        let below = |part: &Vec<u32>| part.iter().filter(|&&error| error <= limit).count();
        let counts: Vec<usize> = samples.iter().map(below).collect();
        let total: usize = counts.iter().sum();
        blocks.iter_mut().zip(counts).par_try_each(|(block, count)| {
            let simplifier = &mut block.simplifier;
            let share = 2.0 * wanted as f64 * count as f64 / total as f64;
            let target = simplifier.triangles_left.saturating_sub(share as usize);
            simplifier.collapse_below(target, limit, simplifier.triangles_left / MIN_PASS)
        })?;
        if left(blocks) > now - now / 32 {
            return Ok(());
        }
    }
}

/// The surfaces of all blocks, and the owner of each vertex.
fn split(surface: &Surface, limits: &[f32]) -> Result<(Vec<BlockSurface>, Vec<AtomicU32>)> {
    if u32::try_from(surface.triangles.len()).is_err() {
        return Err(Error::bad_input("a mesh of 2^32 triangles is too large to simplify"));
    }
    let (labels, count) = labels(surface)?;
    let owners = parallel::generated(surface.positions.len(), |_| AtomicU32::new(UNOWNED))?;
    let triangles = surface.triangles.chunks(CHUNK).zip(labels.chunks(CHUNK));
    triangles.par_each(|(triangles, labels)| {
        for (triangle, &label) in triangles.iter().zip(labels) {
            for &vertex in triangle {
                let owner = &owners[vertex as usize];
                let first = owner.compare_exchange(UNOWNED, label, Relaxed, Relaxed);
                if first.is_err_and(|owner| owner != label) {
                    owner.store(SHARED, Relaxed);
                }
            }
        }
    });
    // Triangles by block, in compressed sparse rows.
    let mut starts = memory::zeros::<u32>(count + 1)?;
    labels.iter().for_each(|&label| starts[label as usize + 1] += 1);
    (0..count).for_each(|block| starts[block + 1] += starts[block]);
    let mut rows = memory::zeros::<u32>(labels.len())?;
    let mut next = memory::copied(&starts)?;
    for (number, &label) in (0..).zip(&labels) {
        let at = &mut next[label as usize];
        rows[*at as usize] = number;
        *at += 1;
    }
    let parts = starts.windows(2).par_map(|row| {
        let row = &rows[row[0] as usize..row[1] as usize];
        BlockSurface::new(surface, limits, row, &owners)
    });
    Ok((parts.into_iter().collect::<Result<_>>()?, owners))
}

impl BlockSurface {
    fn new(
        whole: &Surface,
        limits: &[f32],
        triangles: &[u32],
        owners: &[AtomicU32],
    ) -> Result<Self> {
        let triangles = || triangles.iter().map(|&number| whole.triangles[number as usize]);
        let owner = |vertex: u32| &owners[vertex as usize];
        let mut numbers: Vec<u32> = Vec::new();
        let mut found: HashMap<u32, u32> = HashMap::new();
        for vertex in triangles().flatten() {
            if owner(vertex).load(Relaxed) == SHARED {
                found.entry(vertex).or_insert_with(|| {
                    numbers.push(vertex);
                    numbers.len() as u32 - 1
                });
            }
        }
        let shared = numbers.clone();
        let mut surface =
            Surface { triangles: memory::room(triangles().len())?, ..Surface::default() };
        for triangle in triangles() {
            surface.triangles.push(triangle.map(|vertex| match owner(vertex).load(Relaxed) {
                SHARED => found[&vertex],
                number if number & NUMBER != 0 => number & !NUMBER,
                _ => {
                    let number = numbers.len() as u32;
                    owner(vertex).store(number | NUMBER, Relaxed);
                    numbers.push(vertex);
                    number
                }
            }));
        }
        let at = |vertex: &u32| whole.positions[*vertex as usize];
        surface.positions.extend(numbers.iter().map(at));
        if !whole.normals.is_empty() {
            surface.normals.extend(numbers.iter().map(|&vertex| whole.normals[vertex as usize]));
        }
        let limit = |&vertex: &u32| limits.get(vertex as usize);
        let limits = memory::collected(numbers.iter().filter_map(limit).copied());
        Ok(Self { surface, shared, limits })
    }
}

/// The block of each triangle, and the number of blocks.
fn labels(surface: &Surface) -> Result<(Vec<u32>, usize)> {
    let [low, high] = surface.bounds().unwrap_or_default();
    let extent = sub(high, low);
    let longest = extent.into_iter().fold(f32::MIN_POSITIVE, f32::max);
    let wanted = surface.triangles.len() / TRIANGLES;
    let mut cells = 1.0f32;
    loop {
        let size = longest / cells;
        let dims = extent.map(|side| (side / size) as u32 + 1);
        let cell = |triangle: &[u32; 3]| {
            let position = sub(surface.positions[triangle[0] as usize], low);
            let [x, y, z]: [u32; 3] =
                std::array::from_fn(|i| ((position[i] / size) as u32).min(dims[i] - 1));
            (z * dims[1] + y) * dims[0] + x
        };
        let mut numbers = memory::zeros::<u32>(dims.iter().product::<u32>() as usize)?;
        surface.triangles.iter().step_by(SAMPLED).for_each(|t| numbers[cell(t) as usize] = 1);
        if (numbers.iter().sum::<u32>() as usize) < wanted && cells < MAX_CELLS {
            cells *= 1.1;
            continue;
        }
        let mut labels = parallel::mapped(&surface.triangles, cell)?;
        labels.iter().for_each(|&label| numbers[label as usize] = 1);
        let mut count = 0;
        for number in &mut numbers {
            (*number, count) = (count, count + *number);
        }
        parallel::update(&mut labels, |label| *label = numbers[*label as usize]);
        return Ok((labels, count as usize));
    }
}

/// The surface of a simplified block, with the accumulated sums of its vertices.
struct SimplifiedBlock {
    surface: Surface,
    accumulated: Accumulated,
}

/// Merges the blocks into one surface. Shared vertices come first, then those of each block.
fn merge(
    surface: &mut Surface,
    blocks: Vec<Part<'_>>,
    owners: &mut [AtomicU32],
    limits: &[f32],
) -> Result<Accumulated> {
    let old = mem::take(surface);
    let mut merged = SimplifiedBlock {
        surface: Surface { nan_cells: old.nan_cells, ..Surface::default() },
        accumulated: Accumulated { quadrics: Vec::new(), normals: Vec::new(), limits: Vec::new() },
    };
    // The owner of a shared vertex becomes its number in the merged surface. Its sums start at zero.
    for (vertex, owner) in owners.iter_mut().enumerate() {
        if *owner.get_mut() == SHARED {
            *owner.get_mut() = merged.surface.positions.len() as u32;
            merged.surface.positions.push(old.positions[vertex]);
            merged.accumulated.limits.extend(limits.get(vertex));
        }
    }
    let shared = merged.surface.positions.len();
    merged.accumulated.quadrics = memory::filled(Quadric::default(), shared);
    merged.accumulated.normals = memory::filled([0.0; 3], shared);
    let normals = if old.normals.is_empty() { 0 } else { shared };
    merged.surface.normals = memory::filled([0.0; 3], normals);
    drop(old);
    let mut base = shared as u32;
    let starts = blocks.iter().par_map(|block| block.simplifier.free_vertices());
    let starts: Vec<u32> = memory::collected(starts.into_iter().map(|count| {
        base += count as u32;
        base - count as u32
    }));
    let owners = &*owners;
    for block in &blocks {
        block.simplifier.add_locked(block.shared, owners, &mut merged);
    }
    let pieces = blocks
        .into_iter()
        .zip(starts)
        .par_map(|(block, start)| block.simplifier.into_simplified(block.shared, owners, start));
    for piece in pieces {
        let SimplifiedBlock { surface: part, mut accumulated } = piece?;
        merged.surface.append(part)?;
        memory::append(&mut merged.accumulated.quadrics, &mut accumulated.quadrics)?;
        memory::append(&mut merged.accumulated.normals, &mut accumulated.normals)?;
        memory::append(&mut merged.accumulated.limits, &mut accumulated.limits)?;
    }
    *surface = merged.surface;
    Ok(merged.accumulated)
}

impl Simplifier<'_> {
    /// Number of triangles with a locked vertex.
    fn locked_triangles(&self) -> usize {
        let triangles = self.mesh.corners.as_chunks::<3>().0.iter();
        triangles.filter(|corners| corners.iter().any(|&vertex| self.is_locked(vertex))).count()
    }

    /// Number of remaining vertices that are not locked.
    fn free_vertices(&self) -> usize {
        (0..self.sides.len() as u32).filter(|&v| self.mesh.is_used(v) && !self.is_locked(v)).count()
    }

    /// Adds the sums of the locked vertices to those of the merged surface.
    fn add_locked(&self, shared: &[u32], owners: &[AtomicU32], whole: &mut SimplifiedBlock) {
        for vertex in 0..self.sides.len() as u32 {
            if self.is_locked(vertex) && self.mesh.is_used(vertex) {
                let number = shared[self.mesh.original(vertex) as usize];
                let to = owners[number as usize].load(Relaxed) as usize;
                let from = vertex as usize;
                whole.accumulated.quadrics[to].add(&self.quadrics[from]);
                let sums = &mut whole.accumulated.normals[to];
                *sums = add(*sums, self.normals[from]);
                if let Some(sum) = whole.surface.normals.get_mut(to) {
                    *sum = add(*sum, self.surface.normals[from]);
                }
            }
        }
    }

    /// The surface of the block with the vertex numbers of the merged surface, where its own vertices begin at `start`.
    fn into_simplified(
        self,
        shared: &[u32],
        owners: &[AtomicU32],
        start: u32,
    ) -> Result<SimplifiedBlock> {
        let limited = !self.limits.is_empty();
        let mut numbers = memory::room(self.sides.len())?;
        let mut surface = Surface::default();
        let mut accumulated =
            Accumulated { quadrics: Vec::new(), normals: Vec::new(), limits: Vec::new() };
        for number in 0..self.sides.len() as u32 {
            let vertex = number as usize;
            numbers.push(if !self.mesh.is_used(number) {
                mesh::NONE
            } else if self.is_locked(number) {
                let whole = shared[self.mesh.original(number) as usize];
                owners[whole as usize].load(Relaxed)
            } else {
                surface.positions.push(self.surface.positions[vertex]);
                surface.normals.extend(self.surface.normals.get(vertex));
                accumulated.quadrics.push(self.quadrics[vertex]);
                accumulated.normals.push(self.normals[vertex]);
                if limited {
                    accumulated.limits.push(self.limit(number));
                }
                start + accumulated.normals.len() as u32 - 1
            });
        }
        let all = self.mesh.corners.as_chunks::<3>().0.iter();
        let left = all.filter(|triangle| triangle[0] != mesh::NONE);
        surface.triangles.extend(left.map(|t| t.map(|vertex| numbers[vertex as usize])));
        Ok(SimplifiedBlock { surface, accumulated })
    }
}
