//! Edge collapses in passes of rising error.
//!
//! A pass takes the share [`PASS`] of the edges with the smallest errors and visits them in the order of their numbers,
//! so that memory is read nearly sequentially. A vertex takes part in at most one collapse per pass. The error of an
//! edge depends only on its two ends, so the errors in a pass are exact. After the pass, all threads recompute the
//! errors around the merged vertices. The order of collapses does not depend on threads.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::{
    cost::Collapse,
    mesh::prev,
    simplifier::{NEVER, Simplifier, add},
};
use crate::util::{cache, error::Result, memory, parallel::Parallel};

/// Share of the edges that a pass takes.
const PASS: f64 = 0.1;
/// A pass takes at least one edge per this many half edges.
const MIN_PASS: usize = 60;
/// Edges that the last passes take in addition to three for each collapse that is still wanted.
const EXTRA: usize = 256;
/// Number of errors that are sampled to find the limit of a pass.
const SAMPLES: usize = 1 << 15;
/// Prefetch distance: the ends of an edge are prefetched this many edges before it is visited.
const AHEAD: usize = 4;
/// Half edges that a thread processes at a time.
const BLOCK: usize = 1 << 12;
/// The bit of an error that marks a refused collapse until the next attempt: the sign, which makes the bits larger than
/// those of all other errors.
const REFUSED: u32 = 1 << 31;

impl Simplifier<'_> {
    /// Collapses edges until `target` triangles are left or no edge can collapse.
    pub(super) fn collapse_to(&mut self, target: usize) -> Result<()> {
        self.collapse_below(target, f32::MAX.to_bits(), 0)
    }

    /// Collapses all edges that the limits allow, in levels of rising error. Whether an edge collapses depends only on
    /// the surface nearby, so lower limits in one region leave other regions unchanged.
    pub(super) fn collapse_levels(&mut self) -> Result<()> {
        for level in self.scale.levels() {
            self.collapse_level(level)?;
        }
        Ok(())
    }

    /// Collapses edges with errors up to `limit`, given as the bits of a float, until `target` triangles are left or a
    /// pass would have no more than `few` edges.
    pub(super) fn collapse_below(&mut self, target: usize, limit: u32, few: usize) -> Result<()> {
        let mut merged: Vec<u32> = Vec::new();
        // Number of triangles when refused edges were last admitted.
        let mut retried = self.triangles_left;
        while self.triangles_left > target {
            let edges = self.pass((self.triangles_left - target).div_ceil(2), limit)?;
            if few > 0 && edges.len() <= few {
                return Ok(());
            }
            self.collapse_all(&edges, target, &mut merged)?;
            if edges.is_empty() && self.triangles_left >= retried - retried / 32 {
                return Ok(());
            }
            if edges.is_empty() || self.triangles_left < retried - retried / 10 {
                self.admit_refused();
                retried = self.triangles_left;
            }
        }
        Ok(())
    }

    /// Collapses all edges with errors up to `limit` that can collapse.
    pub(super) fn collapse_level(&mut self, limit: f32) -> Result<()> {
        let mut merged: Vec<u32> = Vec::new();
        self.admit_refused();
        loop {
            let edges = self.edges_below(limit.to_bits())?;
            if edges.is_empty() {
                return Ok(());
            }
            self.collapse_all(&edges, 0, &mut merged)?;
        }
    }

    /// Collapses `edges` if possible, until `target` triangles are left. `merged` is scratch space.
    fn collapse_all(&mut self, edges: &[u32], target: usize, merged: &mut Vec<u32>) -> Result<()> {
        merged.clear();
        for (at, &edge) in edges.iter().enumerate() {
            if self.triangles_left <= target {
                break;
            }
            if let Some(&later) = edges.get(at + AHEAD) {
                self.prefetch(self.mesh.start_vertex(later));
                self.prefetch(self.mesh.end_vertex(later));
            }
            if let Some(vertex) = self.try_collapse(edge) {
                memory::reserve(merged, 1)?;
                merged.push(vertex);
            }
        }
        self.update_errors(merged);
        // Fewer than half of the triangles are left.
        if 6 * self.triangles_left < self.errors.len() {
            self.mesh.compact(&mut self.errors)?;
        }
        Ok(())
    }

    /// Admits edges whose collapse was refused to another attempt.
    fn admit_refused(&self) {
        self.errors.chunks(BLOCK).par_each(|errors| {
            errors.iter().for_each(|e| e.store(e.load(Relaxed) & !REFUSED, Relaxed));
        });
    }

    /// The errors of every `step`-th half edge whose edge may collapse.
    pub(super) fn sample(&self, step: usize) -> Vec<u32> {
        let sampled = self.errors.chunks(step).map(|errors| errors[0].load(Relaxed));
        memory::collected(sampled.filter(|&error| error < NEVER.to_bits()))
    }

    /// The edges of a pass: edges with errors up to `limit`, for `wanted` further collapses.
    fn pass(&self, wanted: usize, limit: u32) -> Result<Vec<u32>> {
        let step = self.errors.len().div_ceil(SAMPLES).max(1);
        let bits = |error: &AtomicU32| error.load(Relaxed);
        let mut sample = self.sample(step);
        // A minimum number of edges: if most were refused, the order of the others matters little.
        let half_edges = self.triangles_left * 3 / step;
        let max = ((PASS * sample.len() as f64) as usize).max(half_edges / MIN_PASS);
        let needed = (3 * wanted + EXTRA) / step;
        let (is_last, rank) = (needed < max, needed.min(max));
        let limit = match rank < sample.len() {
            true => limit.min(*sample.select_nth_unstable(rank).1),
            false => limit,
        };
        let mut all = self.edges_below(limit)?;
        if is_last {
            all.sort_unstable_by_key(|&edge| (bits(&self.errors[edge as usize]), edge));
        }
        Ok(all)
    }

    /// The edges with errors up to `limit`, given as the bits of a float.
    fn edges_below(&self, limit: u32) -> Result<Vec<u32>> {
        let bits = |error: &AtomicU32| error.load(Relaxed);
        let parts = self.errors.chunks(BLOCK).enumerate().par_map(|(block, errors)| {
            let mut chosen: Vec<u32> = Vec::new();
            for (at, errors) in errors.chunks(8).enumerate() {
                // One branch per eight edges, since few are chosen.
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
        Ok(all)
    }

    /// Collapses an edge and returns the merged vertex. `None` if one of its ends has taken part in this pass, or if
    /// the collapse would change the topology or spoil the shape of a triangle.
    fn try_collapse(&mut self, edge: u32) -> Option<u32> {
        let mesh = &self.mesh;
        let error = &self.errors[edge as usize];
        if mesh.is_gone(edge) || !mesh.is_first_of_edge(edge) {
            // An earlier collapse has removed the edge or made its twin the first half edge.
            error.store(NEVER.to_bits(), Relaxed);
            return None;
        }
        let (kept, gone) = (mesh.start_vertex(edge), mesh.end_vertex(edge));
        if self.was_merged[kept as usize] || self.was_merged[gone as usize] {
            return None;
        }
        let (Some(from), Some(to)) = (mesh.fan(kept), mesh.fan(gone)) else {
            error.fetch_or(REFUSED, Relaxed);
            return None;
        };
        let normal = add(self.normals[kept as usize], self.normals[gone as usize]);
        let keeps_shape = |collapse: &Collapse| {
            self.keeps_shape(&from, gone, collapse.position, Some(normal))
                && self.keeps_shape(&to, kept, collapse.position, Some(normal))
        };
        let collapse = mesh
            .keeps_topology(edge, &from, &to)
            .then(|| self.collapse_keeping_volume(edge, &from, &to))
            .filter(keeps_shape);
        let Some(Collapse { position, sum, offset, .. }) = collapse else {
            error.fetch_or(REFUSED, Relaxed);
            return None;
        };
        self.triangles_left -= self.mesh.collapse(edge, &from, &to);
        let [kept, gone] = [kept, gone].map(|vertex| vertex as usize);
        self.surface.positions[kept] = position;
        self.quadrics[kept] = sum.moved(offset);
        self.merge(kept, gone);
        self.was_merged[kept] = true;
        self.was_merged[gone] = true;
        Some(kept as u32)
    }

    /// Ends a pass: recomputes the errors of all edges around the merged vertices.
    fn update_errors(&mut self, merged: &[u32]) {
        let this = &*self;
        merged.chunks(64).par_each(|chunk| {
            for &vertex in chunk {
                // The neighbours are scattered in memory. All are prefetched before the first error is computed.
                let _ = this.mesh.visit_fan(vertex, |edge| {
                    this.prefetch(this.mesh.end_vertex(edge));
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
        merged.iter().for_each(|&vertex| self.was_merged[vertex as usize] = false);
    }

    /// Prefetches the quadric and the position of a vertex.
    #[inline]
    fn prefetch(&self, vertex: u32) {
        let at = vertex as usize;
        if let (Some(quadric), Some(position)) =
            (self.quadrics.get(at), self.surface.positions.get(at))
        {
            quadric.prefetch();
            cache::prefetch(position);
        }
    }
}
