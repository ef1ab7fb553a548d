//! Edge collapses in passes of rising error.
//!
//! A pass takes the share [`PASS`] of the edges with the least errors, in the order of their numbers, so that memory
//! is read about in its order; a vertex takes part once a pass. What the quadrics of an edge's ends sum up to does
//! not change while neither takes part, so the errors that a pass goes by are exact. Those around the vertices that
//! took part are worked out anew after the pass, on all threads. The order is that of the edges, never that of the
//! threads.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::{
    blocks,
    mesh::{self, Fan, Mesh, next, prev},
    quadric::{Quadric, Sum},
    shape::Shape,
};
use crate::{
    cache,
    data::{
        surface::Surface,
        vec3::{cross, dot, sub, triangle_normal},
    },
    error::Result,
    memory,
    parallel::{self, Parallel},
};

/// Share of the edges that a pass takes.
const PASS: f64 = 0.1;
/// Half edges, for each of which a pass takes an edge at least.
const LEAST_PASS: usize = 60;
/// Edges that the last passes take beside three times those that they need.
const FEW: usize = 256;
/// Edges whose errors are looked at for a pass's limit.
const SAMPLES: usize = 1 << 15;
/// Edges between the one whose ends are fetched and the one that collapses.
const AHEAD: usize = 4;
/// Half edges that a thread looks at together.
const BLOCK: usize = 1 << 12;
/// A triangle's weight in the quadrics beside its area, in mean areas: where a vertex has only slivers around it, these
/// count nonetheless.
const MORE_WEIGHT: f64 = 2.0;
/// Distance from the middle of an edge, in its lengths, within which the vertex is that it becomes.
const REACH: f64 = 0.6;
/// Share of the weight times the squared length of an edge that is added to its error, so that short edges go first
/// where the surface is flat.
const LENGTH: f64 = 1e-7;
/// Trace of an edge's quadric, in mean triangles' weights, up to which the pull towards the middle grows: twice that of
/// the triangles around an edge. Where more triangles than that agree on a place, less pull is needed.
const STEADY: f64 = 24.0;
/// The error of an edge that cannot collapse. It is greater than all others, and as bits are the negative numbers,
/// which stand for those that were refused.
const NEVER: f32 = f32::INFINITY;
const REFUSED: u32 = 1 << 31;
/// The bit of a vertex that stays, beside those of the sides of the boundary's box.
const LOCKED: u8 = 1 << 6;

/// Bytes that it takes a vertex and a triangle.
pub(super) const BYTES: [u64; 2] = {
    // A quadric, a normal, a limit, marks, and the vertices of a pass, whose vector may be twice as large as it has to be;
    // errors, and the edges of a pass in blocks and together.
    let own = [size_of::<Quadric>() as u64 + 12 + 4 + 2 + 8, 12 + 18];
    // Making the mesh takes less than those.
    assert!(own[0] >= mesh::MAKING[0] && own[1] >= mesh::MAKING[1]);
    let [vertex, triangle] = blocks::BYTES;
    [mesh::BYTES[0] + own[0] + vertex, mesh::BYTES[1] + own[1] + triangle]
};

/// A surface under way.
pub(super) struct Simplifier<'a> {
    pub(super) surface: &'a mut Surface,
    pub(super) mesh: Mesh,
    pub(super) quadrics: Vec<Quadric>,
    /// By vertex, the sum of the normals of the triangles that it stands for, each as long as twice the triangle's area.
    pub(super) normals: Vec<[f32; 3]>,
    /// By vertex on the boundary, a bit for each side of the boundary's box that it lies on; [`LOCKED`].
    pub(super) sides: Vec<u8>,
    /// By half edge, for the one that stands for its edge.
    pub(super) errors: Vec<AtomicU32>,
    /// By vertex, whether it took part in this pass.
    took_part: Vec<bool>,
    limits: Limits,
    pub(super) scale: Scale,
    /// Triangles that are left.
    pub(super) left: usize,
}

/// What errors are measured by, the same for all blocks of a surface.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// The mean of a third of the triangles' areas before.
    weight: f64,
}

impl Scale {
    pub(super) fn of(surface: &Surface) -> Self {
        Self { weight: mean_weight(surface) }
    }

    /// The mean of the areas of all triangles before.
    pub(super) fn mean_area(self) -> f64 {
        3.0 * self.weight
    }

    /// Greatest trace that the pull towards the middle of an edge grows with.
    fn steady(self) -> f64 {
        STEADY * (1.0 + MORE_WEIGHT) * self.weight
    }
}

/// What the vertices of a surface stand for.
pub(super) struct Meaning {
    pub(super) quadrics: Vec<Quadric>,
    pub(super) normals: Vec<[f32; 3]>,
    pub(super) limits: Limits,
}

/// By vertex, the greatest mean of its squared distances to the planes that it may stand for; empty where that does not
/// matter.
pub(super) type Limits = Vec<f32>;

/// What a collapse leads to.
struct Collapse {
    place: [f32; 3],
    /// The sum of both ends' quadrics, and the way of the place from its origin.
    sum: Sum,
    offset: [f64; 3],
    /// The mean of the squared distances to the planes.
    mean: f64,
    error: f32,
}

impl<'a> Simplifier<'a> {
    /// Prepares a whole surface.
    pub(super) fn new(surface: &'a mut Surface, limits: Limits, scale: Scale) -> Result<Self> {
        let mut this = Self::of_part(surface, 0, limits, scale)?;
        this.find_sides(this.boundary())?;
        this.find_errors();
        Ok(this)
    }

    /// Prepares what is left of a surface whose vertices stand for more than their triangles; its normals are sums.
    pub(super) fn resume(
        surface: &'a mut Surface,
        mut meaning: Meaning,
        scale: Scale,
    ) -> Result<Self> {
        let mesh = Mesh::new(surface)?;
        let copies = mesh.copied.len();
        memory::reserve(&mut meaning.quadrics, copies)?;
        memory::reserve(&mut meaning.normals, copies)?;
        for &vertex in &mesh.copied {
            meaning.quadrics.push(meaning.quadrics[vertex as usize]);
            meaning.normals.push(meaning.normals[vertex as usize]);
        }
        let mut this = Self::with(surface, mesh, meaning, scale)?;
        this.find_sides(this.boundary())?;
        this.find_errors();
        Ok(this)
    }

    /// Prepares a part of a surface, of which the first vertices, `locked` of them, stay. What is left are the sides of
    /// the boundary, then the errors.
    pub(super) fn of_part(
        surface: &'a mut Surface,
        locked: u32,
        limits: Limits,
        scale: Scale,
    ) -> Result<Self> {
        let mesh = Mesh::new(surface)?;
        let normals = surface.area_normals::<f32>()?;
        weigh(&mut surface.normals, &normals);
        let vertices = surface.positions.len();
        let more = MORE_WEIGHT * scale.weight;
        let positions = &surface.positions;
        let is_locked = |vertex| mesh.original(vertex) < locked;
        let quadrics = parallel::generated(vertices, |v| {
            quadric(&mesh, positions, v as u32, more, &is_locked)
        })?;
        let all = 0..vertices as u32;
        let locks: Vec<u32> =
            if locked > 0 { all.filter(|&v| is_locked(v)).collect() } else { Vec::new() };
        let mut this = Self::with(surface, mesh, Meaning { quadrics, normals, limits }, scale)?;
        locks.iter().for_each(|&vertex| this.sides[vertex as usize] = LOCKED);
        Ok(this)
    }

    fn with(surface: &'a mut Surface, mesh: Mesh, meaning: Meaning, scale: Scale) -> Result<Self> {
        let [vertices, left] = [surface.positions.len(), surface.triangles.len()];
        let mut limits = meaning.limits;
        if !limits.is_empty() {
            memory::reserve(&mut limits, mesh.copied.len())?;
            mesh.copied.iter().for_each(|&vertex| limits.push(limits[vertex as usize]));
        }
        Ok(Self {
            surface,
            mesh,
            quadrics: meaning.quadrics,
            normals: meaning.normals,
            sides: memory::zeros(vertices)?,
            errors: parallel::generated(3 * left, |_| AtomicU32::new(NEVER.to_bits()))?,
            took_part: memory::zeros(vertices)?,
            limits,
            scale,
            left,
        })
    }

    /// Works out the errors of all edges.
    pub(super) fn find_errors(&self) {
        (0..self.errors.len()).step_by(BLOCK).par_each(|start| {
            let end = (start + BLOCK).min(self.errors.len());
            (start..end).for_each(|half_edge| self.find_error(half_edge as u32));
        });
    }

    /// The least and the greatest coordinates of the vertices on the boundary.
    pub(super) fn boundary(&self) -> [[f32; 3]; 2] {
        let (mut low, mut high) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        for (vertex, place) in self.surface.positions.iter().enumerate() {
            if self.is_on_boundary(vertex) {
                low = std::array::from_fn(|i| low[i].min(place[i]));
                high = std::array::from_fn(|i| high[i].max(place[i]));
            }
        }
        [low, high]
    }

    /// Notes, for each vertex on the boundary, the sides of the box around the boundary that it lies on. Where a surface
    /// ends at the box of a volume, these are the sides of that box.
    pub(super) fn find_sides(&mut self, [low, high]: [[f32; 3]; 2]) -> Result<()> {
        let sides = parallel::generated(self.sides.len(), |vertex| {
            let place = self.surface.positions[vertex];
            let bits = |sides: u8, i: usize| {
                let [is_low, is_high] = [place[i] == low[i], place[i] == high[i]];
                sides | u8::from(is_low) << i | u8::from(is_high) << (3 + i)
            };
            let sides = self.sides[vertex];
            if self.is_on_boundary(vertex) { (0..3).fold(sides, bits) } else { sides }
        })?;
        self.sides = sides;
        Ok(())
    }

    /// Whether a vertex stays.
    pub(super) fn is_locked(&self, vertex: u32) -> bool {
        self.sides[vertex as usize] & LOCKED != 0
    }

    /// Whether a vertex is on the boundary of the whole surface.
    fn is_on_boundary(&self, vertex: usize) -> bool {
        let number = vertex as u32;
        self.mesh.is_used(number) && self.mesh.is_open(number) && self.sides[vertex] & LOCKED == 0
    }

    /// Collapses edges until `target` triangles are left or no more edges can.
    pub(super) fn run(&mut self, target: usize) -> Result<()> {
        self.run_below(target, f32::MAX.to_bits(), 0)
    }

    /// Collapses edges with errors whose bits are up to `limit` until `target` triangles are left, or a pass would have no
    /// more than `few` edges.
    pub(super) fn run_below(&mut self, target: usize, limit: u32, few: usize) -> Result<()> {
        let mut merged: Vec<u32> = Vec::new();
        // Triangles when those that had been refused could last try again.
        let mut retried = self.left;
        while self.left > target {
            let edges = self.pass((self.left - target).div_ceil(2), limit)?;
            if few > 0 && edges.len() <= few {
                return Ok(());
            }
            merged.clear();
            for (at, &edge) in edges.iter().enumerate() {
                if self.left <= target {
                    break;
                }
                if let Some(&later) = edges.get(at + AHEAD) {
                    self.prefetch(self.mesh.from(later));
                    self.prefetch(self.mesh.to(later));
                }
                if let Some(vertex) = self.try_collapse(edge) {
                    memory::reserve(&mut merged, 1)?;
                    merged.push(vertex);
                }
            }
            self.settle(&merged);
            if edges.is_empty() && self.left >= retried - retried / 32 {
                return Ok(());
            }
            if edges.is_empty() || self.left < retried - retried / 10 {
                self.errors.chunks(BLOCK).par_each(|errors| {
                    errors.iter().for_each(|e| e.store(e.load(Relaxed) & !REFUSED, Relaxed));
                });
                retried = self.left;
            }
            // Half of the triangles are gone.
            if 6 * self.left < self.errors.len() {
                self.mesh.compact(&mut self.errors)?;
            }
        }
        Ok(())
    }

    /// Makes the ends of edges without a length one vertex, where the surface stays what it is.
    pub(super) fn join(&mut self) {
        loop {
            let before = self.left;
            for edge in 0..self.mesh.corners.len() as u32 {
                let Self { surface, mesh, .. } = self;
                if mesh.is_gone(edge) || !mesh.is_first_of_edge(edge) {
                    continue;
                }
                let [kept, gone] = [mesh.from(edge), mesh.to(edge)];
                if surface.positions[kept as usize] != surface.positions[gone as usize] {
                    continue;
                }
                let (Some(from), Some(to)) = (mesh.fan(kept), mesh.fan(gone)) else { continue };
                if mesh.keeps_topology(edge, &from, &to) {
                    self.left -= self.mesh.collapse(edge, &from, &to);
                    self.merge(kept as usize, gone as usize);
                }
            }
            if self.left == before {
                return;
            }
        }
    }

    /// The vertex `kept` stands for all that `gone` has stood for.
    fn merge(&mut self, kept: usize, gone: usize) {
        self.normals[kept] = add(self.normals[kept], self.normals[gone]);
        self.sides[kept] |= self.sides[gone];
        if let Some(&limit) = self.limits.get(gone) {
            self.limits[kept] = self.limits[kept].min(limit);
        }
        if let Some(&normal) = self.surface.normals.get(gone) {
            self.surface.normals[kept] = add(self.surface.normals[kept], normal);
        }
    }

    /// Puts what is left into the surface.
    pub(super) fn finish(self) -> Result<&'a mut Surface> {
        let Self { surface, mesh, left, .. } = self;
        surface.triangles = memory::room(left)?;
        let all = mesh.corners.as_chunks::<3>().0;
        surface.triangles.extend(all.iter().filter(|triangle| triangle[0] != mesh::NONE));
        parallel::update(&mut surface.normals, |normal| {
            let length = dot(*normal, *normal).sqrt();
            *normal = if length > 0.0 { normal.map(|v| v / length) } else { [0.0, 0.0, 1.0] };
        });
        Ok(surface)
    }

    /// Some of the errors of edges that may collapse, one of `step` half edges.
    pub(super) fn sample(&self, step: usize) -> Vec<u32> {
        let sampled = self.errors.chunks(step).map(|errors| errors[0].load(Relaxed));
        sampled.filter(|&error| error < NEVER.to_bits()).collect()
    }

    /// The edges of a pass, with errors up to `limit`, if `wanted` collapses are still to come.
    fn pass(&self, wanted: usize, limit: u32) -> Result<Vec<u32>> {
        let step = self.errors.len().div_ceil(SAMPLES).max(1);
        let bits = |error: &AtomicU32| error.load(Relaxed);
        let mut sample = self.sample(step);
        // Where most were refused, the order of the others matters little.
        let half_edges = self.left * 3 / step;
        let most = ((PASS * sample.len() as f64) as usize).max(half_edges / LEAST_PASS);
        let needed = (3 * wanted + FEW) / step;
        let (is_last, rank) = (needed < most, needed.min(most));
        let limit = match rank < sample.len() {
            true => limit.min(*sample.select_nth_unstable(rank).1),
            false => limit,
        };
        let parts = self.errors.chunks(BLOCK).enumerate().par_map(|(block, errors)| {
            let mut chosen: Vec<u32> = Vec::new();
            for (at, errors) in errors.chunks(8).enumerate() {
                // One test for eight: most are not.
                if errors.iter().fold(false, |any, error| any | (bits(error) <= limit)) {
                    let numbers = (block * BLOCK + at * 8) as u32..;
                    let is_so = |(_, error): &(u32, &AtomicU32)| bits(error) <= limit;
                    chosen.extend(numbers.zip(errors).filter(is_so).map(|(number, _)| number));
                }
            }
            chosen
        });
        let mut all = memory::room(parts.iter().map(Vec::len).sum())?;
        parts.iter().for_each(|part| all.extend_from_slice(part));
        if is_last {
            all.sort_unstable_by_key(|&edge| (bits(&self.errors[edge as usize]), edge));
        }
        Ok(all)
    }

    /// Collapses an edge unless one of its ends has taken part in this pass or the surface would suffer. Returns the
    /// vertex that it becomes.
    fn try_collapse(&mut self, edge: u32) -> Option<u32> {
        let mesh = &self.mesh;
        let error = &self.errors[edge as usize];
        if mesh.is_gone(edge) || !mesh.is_first_of_edge(edge) {
            // Left behind by a collapse: its edge is gone or has another first half.
            error.store(NEVER.to_bits(), Relaxed);
            return None;
        }
        let (kept, gone) = (mesh.from(edge), mesh.to(edge));
        if self.took_part[kept as usize] || self.took_part[gone as usize] {
            return None;
        }
        let (Some(from), Some(to)) = (mesh.fan(kept), mesh.fan(gone)) else {
            error.fetch_or(REFUSED, Relaxed);
            return None;
        };
        let Collapse { place, sum, offset, mean, .. } = self.collapse(edge);
        let normal = add(self.normals[kept as usize], self.normals[gone as usize]);
        if [kept, gone].iter().any(|&end| mean > self.limit(end).into())
            || !mesh.keeps_topology(edge, &from, &to)
            || !self.keeps_shape(&from, gone, place, Some(normal))
            || !self.keeps_shape(&to, kept, place, Some(normal))
        {
            error.fetch_or(REFUSED, Relaxed);
            return None;
        }
        self.left -= self.mesh.collapse(edge, &from, &to);
        let [kept, gone] = [kept, gone].map(|vertex| vertex as usize);
        self.surface.positions[kept] = place;
        self.quadrics[kept] = sum.moved(offset);
        self.merge(kept, gone);
        self.took_part[kept] = true;
        self.took_part[gone] = true;
        Some(kept as u32)
    }

    /// The greatest mean of squared distances of a vertex.
    pub(super) fn limit(&self, vertex: u32) -> f32 {
        self.limits.get(vertex as usize).copied().unwrap_or(f32::INFINITY)
    }

    /// Whether all triangles of a fan keep their shape, but for those at the vertex `but`, once the fan's vertex is at
    /// `place`. With a `normal`, that of the triangles that it then stands for, they do not turn from what their corners
    /// stand for, either.
    pub(super) fn keeps_shape(
        &self,
        fan: &Fan,
        but: u32,
        place: [f32; 3],
        normal: Option<[f32; 3]>,
    ) -> bool {
        let place = place.map(f64::from);
        let at = |vertex: u32| self.surface.positions[vertex as usize].map(f64::from);
        fan.edges().iter().all(|&edge| {
            let (b, c) = (self.mesh.to(edge), self.mesh.from(prev(edge)));
            if b == but || c == but {
                return true;
            }
            let meant = normal.map(|normal| {
                let side = add(self.normals[b as usize], self.normals[c as usize]);
                add(normal, side).map(f64::from)
            });
            let shape = Shape {
                before: at(self.mesh.from(edge)),
                after: place,
                side: [at(b), at(c)],
                meant: meant.unwrap_or_default(),
            };
            let beyond = || {
                let twin = self.mesh.twin(next(edge))?;
                Some(at(self.mesh.from(prev(twin))))
            };
            shape.is_kept(beyond)
        })
    }

    /// Works out the errors of the edges around these vertices, which are no more part of a pass.
    fn settle(&mut self, merged: &[u32]) {
        let this = &*self;
        merged.chunks(64).par_each(|chunk| {
            for &vertex in chunk {
                // What is around lies scattered in memory: all of it is on its way while the first edge is worked out.
                let _ = this.mesh.visit_fan(vertex, |edge| {
                    this.prefetch(this.mesh.to(edge));
                    ControlFlow::Continue(())
                });
                let _ = this.mesh.visit_fan(vertex, |edge| {
                    this.find_error(this.mesh.first_of_edge(edge));
                    let last = prev(edge);
                    if this.mesh.twin(last).is_none() {
                        this.find_error(last);
                    }
                    ControlFlow::Continue(())
                });
            }
        });
        merged.iter().for_each(|&vertex| self.took_part[vertex as usize] = false);
    }

    /// Begins to fetch what a collapse needs of a vertex.
    #[inline]
    fn prefetch(&self, vertex: u32) {
        let at = vertex as usize;
        if let (Some(quadric), Some(place)) =
            (self.quadrics.get(at), self.surface.positions.get(at))
        {
            quadric.prefetch();
            cache::prefetch(place);
        }
    }

    /// Stores the error of an edge.
    fn find_error(&self, half_edge: u32) {
        let error = match self.mesh.is_first_of_edge(half_edge) {
            true => self.collapse(half_edge).error,
            false => NEVER,
        };
        self.errors[half_edge as usize].store(error.to_bits(), Relaxed);
    }

    /// What the collapse of an edge leads to.
    ///
    /// ```text
    /// An edge within the surface         goes to the best place near its middle.
    /// An edge to the boundary            goes to its end there.
    /// An edge along the boundary         goes to the best place on it; where one end lies on more sides
    ///                                    of the boundary's box, to that one.
    /// An edge from boundary to boundary  stays.
    /// ```
    fn collapse(&self, edge: u32) -> Collapse {
        let (from, to) = (self.mesh.from(edge), self.mesh.to(edge));
        let [a, b] = [from, to].map(|end| self.surface.positions[end as usize]);
        let [start, end] = [a, b].map(|place| place.map(f64::from));
        let way = sub(end, start);
        let length = dot(way, way);
        let [is_open, end_is_open] = [from, to].map(|end| self.mesh.is_open(end));
        let [sides, end_sides] = [from, to].map(|end| self.sides[end as usize]);
        let along = |part: f64| std::array::from_fn(|i| start[i] + part * way[i]);
        let sum_at = |origin: [f64; 3]| {
            let mut sum = Sum::default();
            sum.add(&self.quadrics[from as usize], a, origin);
            sum.add(&self.quadrics[to as usize], b, origin);
            sum
        };
        let (origin, sum, place) = match (is_open, end_is_open) {
            (false, false) => {
                let middle = along(0.5);
                let sum = sum_at(middle);
                let offset = sum.best(REACH * length.sqrt(), self.scale.steady());
                (middle, sum, std::array::from_fn(|i| middle[i] + offset[i]))
            }
            (true, false) => (start, sum_at(start), start),
            (false, true) => (end, sum_at(end), end),
            (true, true) if sides == end_sides => {
                let sum = sum_at(start);
                (start, sum, along(sum.best_along(way)))
            }
            (true, true) if sides & end_sides == end_sides => (start, sum_at(start), start),
            (true, true) => (end, sum_at(end), end),
        };
        let place: [f32; 3] = place.map(|v| v as f32);
        let offset = sub(place.map(f64::from), origin);
        let distances = sum.error(offset).max(0.0);
        let both = sides | end_sides;
        let stays = both & LOCKED != 0
            || is_open
                && end_is_open
                && (self.mesh.twin(edge).is_some() || (sides != both && end_sides != both));
        let error = match stays {
            true => NEVER,
            false => (distances + LENGTH * sum.weight * length) as f32,
        };
        let mean = if sum.weight > 0.0 { distances / sum.weight } else { 0.0 };
        Collapse { place, sum, offset, mean, error }
    }
}

pub(super) fn add(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|i| a[i] + b[i])
}

/// Makes each normal as long as that of its vertex's triangles.
fn weigh(normals: &mut [[f32; 3]], by: &[[f32; 3]]) {
    for (normal, by) in normals.iter_mut().zip(by) {
        let length = dot(*by, *by).sqrt();
        *normal = normal.map(|v| v * length);
    }
}

/// The mean of a third of the triangles' areas.
fn mean_weight(surface: &Surface) -> f64 {
    let weight = |&triangle: &[u32; 3]| {
        let normal = triangle_normal(surface.corners::<f64>(triangle));
        dot(normal, normal).sqrt() / 6.0
    };
    // Chunks of one size, summed in order: the sum does not depend on the number of threads.
    let chunks = surface.triangles.chunks(BLOCK);
    let sums = chunks.par_map(|chunk| chunk.iter().map(weight).sum::<f64>());
    sums.iter().sum::<f64>() / surface.triangles.len().max(1) as f64
}

/// The quadric of a vertex: the planes of its triangles, and those at right angles to them along the boundary, but for edges
/// with both ends locked.
fn quadric(
    mesh: &Mesh,
    positions: &[[f32; 3]],
    vertex: u32,
    more: f64,
    is_locked: &impl Fn(u32) -> bool,
) -> Quadric {
    let mut sum = Sum::default();
    if !mesh.is_used(vertex) {
        return Quadric::default();
    }
    let at = |vertex: u32| positions[vertex as usize].map(f64::from);
    let origin = at(vertex);
    let _ = mesh.visit_fan(vertex, |edge| {
        let last = prev(edge);
        let [b, c] = [mesh.to(edge), mesh.from(last)].map(|end| sub(at(end), origin));
        let normal = cross(b, c);
        sum.add_triangle(normal, more);
        for (half_edge, way) in [(edge, b), (last, c)] {
            let ends = [mesh.from(half_edge), mesh.to(half_edge)];
            if mesh.twin(half_edge).is_none() && !ends.into_iter().all(is_locked) {
                sum.add_boundary(way, normal);
            }
        }
        ControlFlow::Continue(())
    });
    sum.moved([0.0; 3])
}
