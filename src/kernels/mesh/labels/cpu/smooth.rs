//! Moves all vertices at once, step by step: halfway to the mean of their neighbours, within their cells.
//!
//! A place in a cell is three lanes of 16 bits in a word, `p = UNIT / 2 + offset from the middle`, from 1 to `UNIT - 1`,
//! so that sums of up to six of them do not carry into the next lane. For c neighbours at p_i in cells that are
//! `s_i * UNIT` away, s_i in -1, 0 and 1:
//!
//! ```text
//! d = sum (p_i + s_i * UNIT) - c * p        less than 2^15
//! p + round(d * R[c] / 2^15)                R[c] = round(2^14 / c): half of the mean of the differences
//! ```

use pulp::NullaryFnOnce;

use super::{super::super::cpu::simd_ops::SimdOps, cells::CellEdges, edges::EdgePlanes, net::Net};
use crate::{data::label_mesh::UNIT, error::Result, memory, parallel::Parallel};

/// The middle of a cell.
const MIDDLE: i16 = UNIT as i16 / 2;

/// Vertices that a thread moves at a time, and whose sums are kept meanwhile.
const PIECE: usize = 1 << 13;
const GROUP: usize = 64;

/// Four lanes of 16 bits.
type Lanes = [i16; 4];

/// What a vertex with given links and given axes along which it may not move does.
#[derive(Clone, Copy, Default)]
struct Motion {
    /// The sum of s_i * UNIT.
    shift: Lanes,
    count: Lanes,
    /// R\[count\].
    share: Lanes,
    low: Lanes,
    high: Lanes,
}

/// For each set of links, below and above along x, y and z, and << 6 each set of axes that are fixed.
fn motions() -> Vec<Motion> {
    let motion = |kind: usize| {
        let link = |face: usize| (kind >> face & 1) as i16;
        let count: i16 = (0..6).map(link).sum();
        let share = if count == 0 { 0 } else { ((1 << 14) + count / 2) / count };
        let mut motion = Motion::default();
        for axis in 0..3 {
            let is_fixed = kind >> (6 + axis) & 1 == 1;
            motion.shift[axis] = (link(2 * axis + 1) - link(2 * axis)) * UNIT as i16;
            motion.count[axis] = count;
            motion.share[axis] = share;
            motion.low[axis] = if is_fixed { MIDDLE } else { 1 };
            motion.high[axis] = if is_fixed { MIDDLE } else { UNIT as i16 - 1 };
        }
        motion
    };
    (0..512).map(motion).collect()
}

/// The vertices' neighbours. Number 0 is no vertex; the first one is 1.
struct Links {
    /// Below and above along x, y and z; 0 where the vertex has no such neighbour.
    neighbours: Vec<[u32; 6]>,
    /// The number of its [`Motion`].
    kinds: Vec<u16>,
}

/// The places of all vertices after `steps`, behind that of no vertex.
pub(super) fn smoothed<S: SimdOps>(
    simd: S,
    planes: &EdgePlanes,
    net: &Net,
    steps: u32,
) -> Result<Vec<u64>> {
    let count = net.count();
    let mut places = memory::zeros::<u64>(count + 1)?;
    places[1..].fill(bytemuck::cast([MIDDLE, MIDDLE, MIDDLE, 0]));
    if steps == 0 {
        return Ok(places);
    }
    let links = Links::of(simd, planes, net)?;
    let motions = motions();
    let mut next = memory::zeros::<u64>(count + 1)?;
    for _ in 0..steps {
        next[1..].chunks_mut(PIECE).enumerate().par_each(|(piece, out)| {
            let (first, places, links, motions) = (piece * PIECE, &places, &links, &motions);
            simd.vectorize(Move { first, places, links, motions, out });
        });
        std::mem::swap(&mut places, &mut next);
    }
    Ok(places)
}

impl Links {
    fn of<S: SimdOps>(simd: S, planes: &EdgePlanes, net: &Net) -> Result<Self> {
        let count = net.count();
        let mut neighbours = memory::zeros::<[u32; 6]>(count)?;
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
    neighbours: &'a mut [[u32; 6]],
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
        // The layers beyond are not within reach: what comes of it stays out of the layers that are meshed.
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
                // Where there is no such row, there is no link to it.
                let beside = [
                    at.saturating_sub(words),
                    (at + words).min(net.active.len() - 1),
                    at.saturating_sub(slice),
                    (at + slice).min(net.active.len() - 1),
                ];
                let mut number = net.starts[at] + 1;
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    let link = links.map(|face| (face >> bit & 1) as u32);
                    let near = [number - 1, number + 1];
                    let far = beside.map(|at| net.rank(at, bit) + 1);
                    let all = [near[0], near[1], far[0], far[1], far[2], far[3]];
                    let mut kind = fixed_y | fixed_z;
                    kind |= u16::from(is_fixed(64 * word + bit as usize, 0)) << 6;
                    for face in 0..6 {
                        kind |= (link[face] as u16) << face;
                    }
                    if let Some((neighbours, own)) = out.next() {
                        *neighbours =
                            std::array::from_fn(|face| all[face] & link[face].wrapping_neg());
                        *own = kind;
                    }
                    number += 1;
                }
            }
        }
    }
}

/// Moves the vertices from `first` on.
struct Move<'a> {
    first: usize,
    places: &'a [u64],
    links: &'a Links,
    motions: &'a [Motion],
    out: &'a mut [u64],
}

impl NullaryFnOnce for Move<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { first, places, links, motions, out } = self;
        let motions = &motions[..512];
        for (group, out) in out.chunks_mut(GROUP).enumerate() {
            let first = first + group * GROUP;
            let mut sums = [0u64; GROUP];
            let mut parts = [[0u64; GROUP]; 5];
            let vertices = links.neighbours[first..].iter().zip(&links.kinds[first..]);
            for (i, (neighbours, &kind)) in vertices.take(out.len()).enumerate() {
                let sum = neighbours.iter().map(|&number| places[number as usize]).sum();
                sums[i] = sum;
                let Motion { shift, count, share, low, high } = motions[usize::from(kind & 511)];
                for (part, lanes) in parts.iter_mut().zip([shift, count, share, low, high]) {
                    part[i] = bytemuck::cast(lanes);
                }
            }
            let mut own = [0u64; GROUP];
            own[..out.len()].copy_from_slice(&places[first + 1..][..out.len()]);
            let sums: &[i16; 4 * GROUP] = bytemuck::cast_ref(&sums);
            let [shift, count, share, low, high]: &[[i16; 4 * GROUP]; 5] =
                bytemuck::cast_ref(&parts);
            let own: &mut [i16; 4 * GROUP] = bytemuck::cast_mut(&mut own);
            for i in 0..4 * GROUP {
                let way = sums[i].wrapping_add(shift[i]);
                let way = way.wrapping_sub(count[i].wrapping_mul(own[i]));
                // One instruction: the upper half of the product, rounded.
                let step = (((i32::from(way) * i32::from(share[i])) >> 14) + 1) >> 1;
                own[i] = own[i].wrapping_add(step as i16).clamp(low[i], high[i]);
            }
            let own: &[u64; GROUP] = bytemuck::cast_ref(own);
            out.copy_from_slice(&own[..out.len()]);
        }
    }
}
