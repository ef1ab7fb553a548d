//! Smoothing: in each step, all vertices move three quarters of the way to the mean of their neighbours, within their
//! cells.
//!
//! The offset p of a vertex in its cell is three lanes of 16 bits in a word, each from 1 to `UNIT - 1`, so that sums of
//! up to six of them do not carry into the next lane. For c neighbours at offsets p_i in cells at a distance of `s_i *
//! UNIT`, with s_i in -1, 0 and 1:
//!
//! ```text
//! d = sum (p_i + s_i * UNIT) - c * p        less than 2^15
//! p + round(d * R[c] / 2^15)                R[c] = round(3 / 4 * 2^15 / c)
//! ```

use pulp::NullaryFnOnce;

use super::{super::super::cpu::simd_ops::SimdOps, cells::CellEdges, edges::EdgePlanes, net::Net};
use crate::{
    data::label_mesh::UNIT,
    util::{error::Result, memory, parallel::Parallel},
};

const MIDDLE: u64 = UNIT as u64 / 2;

/// Vertices that a thread moves at a time.
const CHUNK: usize = 1 << 13;
/// Vertices whose sums are computed before they move.
const GROUP: usize = 64;

/// Three quarters as a fixed-point number with 15 fraction bits.
const THREE_QUARTERS: u64 = 3 << 13;

/// Factor that copies a number into all lanes.
const ALL: u64 = 0x0001_0001_0001_0001;

/// Tables of a smoothing step, indexed by the links of a vertex.
struct StepTables {
    /// Sum of s_i * UNIT for each set of links (below and above along x, y and z), plus UNIT so that no lane is
    /// negative.
    shifts: [u64; 64],
    /// R\[c\] in all lanes.
    shares: [u64; 8],
}

impl StepTables {
    fn new() -> Self {
        let shift = |links: usize| {
            let link = |face: usize| (links >> face & 1) as u64;
            let along = |axis: usize| u64::from(UNIT) * (1 + link(2 * axis + 1) - link(2 * axis));
            along(0) | along(1) << 16 | along(2) << 32 | u64::from(UNIT) << 48
        };
        let share = |count: u64| {
            (THREE_QUARTERS + count / 2).checked_div(count).map_or(0, |share| share * ALL)
        };
        Self {
            shifts: std::array::from_fn(shift),
            shares: std::array::from_fn(|count| share(count as u64)),
        }
    }
}

/// Neighbours of the vertices. Vertices are numbered from 1 on; 0 means none.
struct Links {
    /// Neighbours below and above along y and z. Neighbours along x are the previous and the next vertex.
    neighbours: Vec<[u32; 4]>,
    /// Bits 0 to 5: whether there are neighbours below and above along x, y and z. Bits 6 to 8: whether the vertex is
    /// fixed along x, y and z.
    kinds: Vec<u16>,
}

/// Offsets of all vertices in their cells after `steps`. Vertex i has index i + 1; the first and the last entry are 0.
pub(super) fn smoothed<S: SimdOps>(
    simd: S,
    planes: &EdgePlanes,
    net: &Net,
    steps: u32,
) -> Result<Vec<u64>> {
    let count = net.count();
    let mut offsets = memory::zeros::<u64>(count + 2)?;
    offsets[1..=count].fill(MIDDLE * ALL);
    if steps == 0 {
        return Ok(offsets);
    }
    let links = Links::new(simd, planes, net)?;
    let tables = StepTables::new();
    let mut next = memory::zeros::<u64>(count + 2)?;
    for _ in 0..steps {
        next[1..=count].chunks_mut(CHUNK).enumerate().par_each(|(chunk, out)| {
            let (first, offsets, links, tables) = (chunk * CHUNK, &offsets, &links, &tables);
            simd.vectorize(SmoothStep { first, offsets, links, tables, out });
        });
        std::mem::swap(&mut offsets, &mut next);
    }
    Ok(offsets)
}

impl Links {
    fn new<S: SimdOps>(simd: S, planes: &EdgePlanes, net: &Net) -> Result<Self> {
        let count = net.count();
        let mut neighbours = memory::zeros::<[u32; 4]>(count)?;
        let mut kinds = memory::zeros::<u16>(count)?;
        let (mut neighbours_left, mut kinds_left) = (&mut neighbours[..], &mut kinds[..]);
        let layers = net.layers.iter().enumerate().map(|(z, layer)| {
            let len = layer.len();
            let neighbours = neighbours_left.split_off_mut(..len).expect("counted before");
            (z, neighbours, kinds_left.split_off_mut(..len).expect("counted before"))
        });
        layers.collect::<Vec<_>>().into_iter().par_each(|(z, neighbours, kinds)| {
            simd.vectorize(FindLinks { planes, net, z, neighbours, kinds });
        });
        Ok(Self { neighbours, kinds })
    }
}

/// Finds the neighbours of one layer's vertices.
struct FindLinks<'a> {
    planes: &'a EdgePlanes,
    net: &'a Net,
    z: usize,
    neighbours: &'a mut [[u32; 4]],
    kinds: &'a mut [u16],
}

impl NullaryFnOnce for FindLinks<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { planes, net, z, neighbours, kinds } = self;
        let (words, slice, grid) = (planes.words, planes.slice(), &planes.grid);
        let is_fixed = |at: usize, axis: usize| at == 0 || at + 1 == grid.cells[axis];
        let fixed_z = u16::from(is_fixed(z + grid.reach.start, 2)) << 8;
        // Links to layers beyond reach are left out. The reach is wide enough that this does not affect meshed
        // vertices.
        let (has_below, has_above) = (z > 0, z + 1 < grid.reach.len());
        let mut out = neighbours.iter_mut().zip(kinds);
        for y in 0..grid.cells[1] {
            let fixed_y = u16::from(is_fixed(y, 1)) << 7;
            for word in 0..words {
                let at = z * slice + y * words + word;
                let mut left = net.active[at];
                if left == 0 {
                    continue;
                }
                let mut links = CellEdges::load(planes, word, y, z).links();
                links[4] &= if has_below { u64::MAX } else { 0 };
                links[5] &= if has_above { u64::MAX } else { 0 };
                // There are no links beyond the grid, so any row will do there.
                let neighbour_rows = [
                    at.saturating_sub(words),
                    (at + words).min(net.active.len() - 1),
                    at.saturating_sub(slice),
                    (at + slice).min(net.active.len() - 1),
                ];
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    let link = links.map(|face| (face >> bit & 1) as u32);
                    let far = neighbour_rows.map(|at| net.rank(at, bit) + 1);
                    let mut kind = fixed_y | fixed_z;
                    kind |= u16::from(is_fixed(64 * word + bit as usize, 0)) << 6;
                    for (face, is_linked) in link.into_iter().enumerate() {
                        kind |= (is_linked as u16) << face;
                    }
                    if let Some((neighbours, own)) = out.next() {
                        *neighbours = std::array::from_fn(|i| far[i] & link[2 + i].wrapping_neg());
                        *own = kind;
                    }
                }
            }
        }
    }
}

/// Moves the vertices from `first` on by one step.
struct SmoothStep<'a> {
    first: usize,
    offsets: &'a [u64],
    links: &'a Links,
    tables: &'a StepTables,
    out: &'a mut [u64],
}

impl NullaryFnOnce for SmoothStep<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { first, offsets, links, tables: StepTables { shifts, shares }, out } = self;
        for (group, out) in out.chunks_mut(GROUP).enumerate() {
            let first = first + group * GROUP;
            let kinds = &links.kinds[first..][..out.len()];
            let neighbours = &links.neighbours[first..][..out.len()];
            // Offsets of the vertices, of the one before and of the one after them.
            let near = &offsets[first..][..out.len() + 2];
            let (mut sums, mut own, mut share) = ([0u64; GROUP], [0u64; GROUP], [0u64; GROUP]);
            let mut weighted = [0u64; GROUP];
            let mut all_kinds = 0;
            for i in 0..out.len() {
                let (kind, far) = (u64::from(kinds[i]), &neighbours[i]);
                let (below, above) = ((kind & 1).wrapping_neg(), (kind >> 1 & 1).wrapping_neg());
                let along_x = (near[i] & below) + (near[i + 2] & above);
                let others: u64 = far.iter().map(|&number| offsets[number as usize]).sum();
                let count = (kind & 63).count_ones();
                sums[i] = along_x + others + shifts[kind as usize & 63];
                own[i] = near[i + 1];
                weighted[i] = own[i] * u64::from(count);
                share[i] = shares[count as usize & 7];
                all_kinds |= kind;
            }
            step(&sums, &weighted, &share, &mut own);
            if all_kinds >> 6 != 0 {
                for (own, &kind) in own.iter_mut().zip(kinds) {
                    for axis in 0..3 {
                        if kind >> (6 + axis) & 1 == 1 {
                            let lane = 0xffff << (16 * axis);
                            *own = *own & !lane | (MIDDLE * ALL) & lane;
                        }
                    }
                }
            }
            out.copy_from_slice(&own[..out.len()]);
        }
    }
}

/// Moves `own` offsets by the share of `sums - weighted`, the sums of the neighbours minus `own` times their number.
#[inline(always)]
fn step(
    sums: &[u64; GROUP],
    weighted: &[u64; GROUP],
    share: &[u64; GROUP],
    own: &mut [u64; GROUP],
) {
    type Lanes = [i16; 4 * GROUP];
    let (sums, weighted): (&Lanes, &Lanes) =
        (bytemuck::cast_ref(sums), bytemuck::cast_ref(weighted));
    let (share, own): (&Lanes, &mut Lanes) = (bytemuck::cast_ref(share), bytemuck::cast_mut(own));
    for i in 0..4 * GROUP {
        let distance = sums[i].wrapping_sub(weighted[i]).wrapping_sub(UNIT as i16);
        // Compiles to pmulhrsw on x86: the rounded upper half of the product.
        let step = (((i32::from(distance) * i32::from(share[i])) >> 14) + 1) >> 1;
        own[i] = own[i].wrapping_add(step as i16).clamp(1, UNIT as i16 - 1);
    }
}
