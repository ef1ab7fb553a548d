//! What can be done with a whole surface: measure it, keep its largest part, smooth it, simplify it.

use std::{collections::HashMap, ops::Range};

use rayon::prelude::*;

use super::Surface;
use crate::{
    error::{Error, Kind},
    memory::{self, raise},
};

/// What a surface is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Stats {
    /// Area of all triangles, in squared units of `--spacing`.
    pub area: f64,
    /// Volume enclosed, in cubed units; of a surface that is not closed, the flux through it.
    pub volume: f64,
    /// Parts that share no vertex.
    pub components: u64,
    /// Whether every side belongs to two triangles, which run along it in opposite directions.
    pub closed: bool,
}

impl Surface {
    /// Measures it.
    pub fn stats(&self) -> Stats {
        let sums = self
            .triangles
            .par_chunks(1 << 12)
            .map(|chunk| {
                chunk.iter().fold([0.0; 2], |[area, volume], triangle| {
                    let [a, b, c] = triangle.map(|i| self.positions[i as usize].map(f64::from));
                    let normal = cross(sub(b, a), sub(c, a));
                    [area + dot(normal, normal).sqrt() / 2.0, volume + dot(a, normal) / 6.0]
                })
            })
            // In order, so that the sums do not depend on how the work was shared out.
            .collect::<Vec<_>>();
        let [area, volume] =
            sums.iter().fold([0.0; 2], |sum, part| [sum[0] + part[0], sum[1] + part[1]]);
        let mut sides = self.sides();
        sides.par_sort_unstable();
        let closed = runs(&sides).all(|run| match &sides[run] {
            [one, other] => one.backwards != other.backwards,
            _ => false,
        });
        let parts = self.components();
        let components = self
            .triangles
            .iter()
            .fold(zeros::<bool>(self.positions.len()), |mut seen, triangle| {
                seen[parts[triangle[0] as usize] as usize] = true;
                seen
            })
            .iter()
            .filter(|&&seen| seen)
            .count() as u64;
        Stats { area, volume, components, closed }
    }

    /// For each vertex, the least vertex that it is connected with.
    fn components(&self) -> Vec<u32> {
        let mut parents = collect((0..self.positions.len()).into_par_iter().map(|i| i as u32));
        fn root(parents: &mut [u32], mut vertex: u32) -> u32 {
            while parents[vertex as usize] != vertex {
                let above = parents[parents[vertex as usize] as usize];
                parents[vertex as usize] = above;
                vertex = above;
            }
            vertex
        }
        for &[a, b, c] in &self.triangles {
            for (a, b) in [(a, b), (b, c)] {
                let (a, b) = (root(&mut parents, a), root(&mut parents, b));
                parents[a.max(b) as usize] = a.min(b);
            }
        }
        for vertex in 0..parents.len() as u32 {
            parents[vertex as usize] = root(&mut parents, vertex);
        }
        parents
    }

    /// Keeps only the connected part with the most triangles, the first of equals.
    pub fn keep_largest(&mut self) {
        let parts = self.components();
        let mut sizes: Vec<u32> = zeros(self.positions.len());
        for triangle in &self.triangles {
            sizes[parts[triangle[0] as usize] as usize] += 1;
        }
        let most = sizes.iter().copied().max().unwrap_or(0);
        let Some(largest) = sizes.iter().position(|&size| size == most) else { return };
        self.triangles.retain(|triangle| parts[triangle[0] as usize] as usize == largest);
        self.drop_unused();
    }

    /// Drops vertices that no triangle uses; the others keep their order.
    fn drop_unused(&mut self) {
        let mut used: Vec<bool> = zeros(self.positions.len());
        self.triangles.iter().flatten().for_each(|&i| used[i as usize] = true);
        let mut numbers: Vec<u32> = zeros(used.len());
        let mut next = 0;
        for (number, &used) in numbers.iter_mut().zip(&used) {
            *number = next;
            next += u32::from(used);
        }
        self.triangles.par_iter_mut().flatten().for_each(|i| *i = numbers[*i as usize]);
        let mut keep = used.iter();
        self.positions.retain(|_| *keep.next().expect("one a vertex"));
        let mut keep = used.iter();
        self.normals.retain(|_| *keep.next().expect("one a vertex"));
    }

    /// Smooths it by `steps` pairs of a shrinking and a growing step, which keep its size (Taubin,
    /// "A signal processing approach to fair surface design", 1995, with 0.5 and -0.53). Open rims
    /// are smoothed along themselves. Normals are then those of the triangles.
    pub fn smooth(&mut self, steps: u32) {
        if steps == 0 || self.triangles.is_empty() {
            return;
        }
        let (starts, neighbours) = self.neighbours();
        for factor in (0..steps).flat_map(|_| [0.5f32, -0.53]) {
            let before = &self.positions;
            let moved = before.par_iter().enumerate().map(|(vertex, &position)| {
                let around = &neighbours[starts[vertex] as usize..starts[vertex + 1] as usize];
                if around.is_empty() {
                    return position;
                }
                let sum = around.iter().fold([0.0f32; 3], |sum, &other| {
                    let other = before[other as usize];
                    std::array::from_fn(|i| sum[i] + (other[i] - position[i]))
                });
                std::array::from_fn(|i| position[i] + factor * (sum[i] / around.len() as f32))
            });
            self.positions = collect(moved);
        }
        if !self.normals.is_empty() {
            self.normals = self.triangle_normals();
        }
    }

    /// Each vertex's neighbours in one list, and where each vertex's part begins. Those of a vertex
    /// on an open rim are the neighbours along the rim.
    fn neighbours(&self) -> (Vec<u32>, Vec<u32>) {
        let mut sides = self.sides();
        sides.par_sort_unstable();
        let mut pairs: Vec<(u32, u32, bool)> = memory::room(2 * sides.len()).unwrap_or_else(raise);
        for run in runs(&sides) {
            let Side { low, high, .. } = sides[run.start];
            let is_rim = run.len() == 1;
            pairs.extend([(low, high, is_rim), (high, low, is_rim)]);
        }
        let mut on_rim: Vec<bool> = zeros(self.positions.len());
        pairs.iter().filter(|pair| pair.2).for_each(|pair| on_rim[pair.0 as usize] = true);
        pairs.retain(|&(vertex, _, is_rim)| is_rim || !on_rim[vertex as usize]);
        pairs.par_sort_unstable();
        let mut starts = zeros::<u32>(self.positions.len() + 1);
        pairs.iter().for_each(|pair| starts[pair.0 as usize + 1] += 1);
        for vertex in 1..starts.len() {
            starts[vertex] += starts[vertex - 1];
        }
        (starts, collect(pairs.into_par_iter().map(|pair| pair.1)))
    }

    /// Unit vectors at the vertices: the sum of their triangles' normals, weighted by area.
    pub fn triangle_normals(&self) -> Vec<[f32; 3]> {
        let mut sums = zeros::<[f64; 3]>(self.positions.len());
        for triangle in &self.triangles {
            let [a, b, c] = triangle.map(|i| self.positions[i as usize].map(f64::from));
            let normal = cross(sub(b, a), sub(c, a));
            for &i in triangle {
                let sum = &mut sums[i as usize];
                *sum = std::array::from_fn(|axis| sum[axis] + normal[axis]);
            }
        }
        let unit = |sum: &[f64; 3]| {
            let length = dot(*sum, *sum).sqrt();
            if length > 0.0 { sum.map(|v| (v / length) as f32) } else { [0.0, 0.0, 1.0] }
        };
        collect(sums.par_iter().map(unit))
    }

    /// Leaves about `ratio` of the triangles, those that matter least gone first, by meshoptimizer's
    /// edge collapses (in its Rust port, which needs no C++ compiler).
    pub fn simplify(&mut self, ratio: f64) {
        let target = (self.triangles.len() as f64 * ratio).round() as usize * 3;
        self.weld();
        let indices: &[u32] = bytemuck::cast_slice(&self.triangles);
        let target = target.min(indices.len());
        // meshoptimizer would end the process where there is no memory for its tables: about this much.
        drop(memory::room::<[u32; 9]>(indices.len()).unwrap_or_else(raise));
        drop(memory::room::<[u32; 32]>(self.positions.len()).unwrap_or_else(raise));
        let mut left = zeros(indices.len());
        let len =
            meshopt_rs::simplify::simplify(&mut left, indices, &self.positions, target, f32::MAX);
        let left = left[..len].as_chunks::<3>().0;
        self.triangles = memory::copied(left).unwrap_or_else(raise);
        self.untangle();
        self.drop_unused();
    }

    /// Leaves no side to more than two triangles, which collapses of edges do where the surface is thin:
    /// triangles that lie back to back go, and where parts still touch along a side, its ends become one.
    fn untangle(&mut self) {
        loop {
            self.drop_flaps();
            let mut sides = self.sides();
            sides.par_sort_unstable();
            let mut becomes = collect((0..self.positions.len()).into_par_iter().map(|i| i as u32));
            let mut touched: Vec<bool> = zeros(becomes.len());
            for run in runs(&sides).filter(|run| run.len() > 2) {
                let Side { low, high, .. } = sides[run.start];
                // Those that share an end with one of this round wait for the next.
                if !touched[low as usize] && !touched[high as usize] {
                    becomes[high as usize] = low;
                    (touched[low as usize], touched[high as usize]) = (true, true);
                }
            }
            if !touched.contains(&true) {
                return;
            }
            self.triangles.iter_mut().flatten().for_each(|i| *i = becomes[*i as usize]);
            self.triangles.retain(|[a, b, c]| a != b && b != c && c != a);
        }
    }

    /// Drops pairs of triangles with the same vertices that face opposite ways; the others keep their
    /// order.
    fn drop_flaps(&mut self) {
        let mut faces: Vec<([u32; 3], bool, u32)> = (0..)
            .zip(&self.triangles)
            .map(|(number, &[a, b, c])| {
                let mut sorted = [a, b, c];
                sorted.sort_unstable();
                // Even permutations of the sorted vertices face one way, odd ones the other.
                let [first, second, _] = sorted;
                let even = [(a, b), (b, c), (c, a)].contains(&(first, second));
                (sorted, even, number)
            })
            .collect();
        faces.par_sort_unstable();
        let mut keep = vec![true; faces.len()];
        for same in faces.chunk_by(|one, other| one.0 == other.0) {
            let (odd, even) = same.split_at(same.partition_point(|face| !face.1));
            for (one, other) in odd.iter().zip(even) {
                (keep[one.2 as usize], keep[other.2 as usize]) = (false, false);
            }
        }
        let mut keep = keep.into_iter();
        self.triangles.retain(|_| keep.next().expect("one a triangle"));
    }

    /// Makes vertices at one place one, and drops the triangles without area that this leaves:
    /// samples equal to the isovalue make such.
    fn weld(&mut self) {
        let mut first = HashMap::new();
        let room = first.try_reserve(self.positions.len());
        room.unwrap_or_else(|_| raise(Error::new(Kind::Failure, "no memory to weld vertices")));
        let numbers: Vec<u32> = (0..)
            .zip(&self.positions)
            .map(|(i, position)| *first.entry(position.map(f32::to_bits)).or_insert(i))
            .collect();
        self.triangles.iter_mut().flatten().for_each(|i| *i = numbers[*i as usize]);
        self.triangles.retain(|[a, b, c]| a != b && b != c && c != a);
    }

    fn sides(&self) -> Vec<Side> {
        let side = |number: usize| {
            let triangle = self.triangles[number / 3];
            let (a, b) = (triangle[number % 3], triangle[(number + 1) % 3]);
            Side { low: a.min(b), high: a.max(b), backwards: a > b }
        };
        collect((0..3 * self.triangles.len()).into_par_iter().map(side))
    }
}

/// [`memory::zeros`], raised.
fn zeros<T: bytemuck::Zeroable>(len: usize) -> Vec<T> {
    memory::zeros(len).unwrap_or_else(raise)
}

/// [`memory::collect`], raised.
fn collect<I: IndexedParallelIterator>(values: I) -> Vec<I::Item> {
    memory::collect(values).unwrap_or_else(raise)
}

/// A triangle's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    low: u32,
    high: u32,
    backwards: bool,
}

/// The ranges of equal sides in a sorted list.
fn runs(sides: &[Side]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let first = sides.get(start)?;
        let is_same = |side: &&Side| (side.low, side.high) == (first.low, first.high);
        let run = start..start + sides[start..].iter().take_while(is_same).count();
        start = run.end;
        Some(run)
    })
}

fn sub(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| a[i] - b[i])
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
