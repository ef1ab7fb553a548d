//! The tables of a surface that is being simplified.

use std::{ops::ControlFlow, sync::atomic::AtomicU32};

use super::{
    mesh::{self, Mesh, prev},
    quadric::{Quadric, Sum},
};
use crate::{
    data::{
        surface::Surface,
        vec3::{cross, dot, sub, triangle_normal, union},
    },
    util::{
        error::Result,
        memory,
        parallel::{self, Parallel},
    },
};

/// Weight of a triangle in quadrics in addition to a third of its area, in means of that third. It makes the planes of
/// slivers count at vertices that have only slivers around them.
const MORE_WEIGHT: f64 = 2.0;
/// Trace of an edge's quadric up to which the pull towards the middle of the edge grows, in mean weights of a triangle:
/// twice that of the triangles around an edge. If more triangles agree on a position, less pull is needed.
const STEADY: f64 = 24.0;
/// The bit of a locked vertex in [`Simplifier::sides`]. Bits 0 to 5 are the sides of the boundary's box.
pub(super) const LOCKED: u8 = 1 << 6;
/// The error of an edge that must not collapse. Errors are not negative, so their bits are ordered like their values.
pub(super) const NEVER: f32 = f32::INFINITY;
/// Triangles whose areas are summed as one chunk.
const CHUNK: usize = 1 << 12;

/// Memory of the tables, in bytes per vertex and bytes per triangle.
pub(super) const BYTES: [u64; 2] = {
    // A vertex: a quadric, a normal, a limit, marks, and an entry in the list of a pass's vertices, whose vector may
    // have twice the needed capacity. A triangle: errors, and the edges of a pass, by block and then in one list.
    let own = [size_of::<Quadric>() as u64 + 12 + 4 + 2 + 8, 12 + 18];
    // The temporary tables of building the mesh are smaller, and freed before.
    assert!(own[0] >= mesh::BUILD_BYTES[0] && own[1] >= mesh::BUILD_BYTES[1]);
    [mesh::BYTES[0] + own[0], mesh::BYTES[1] + own[1]]
};

/// A surface that is being simplified, with tables by vertex and by edge.
pub(super) struct Simplifier<'a> {
    pub(super) surface: &'a mut Surface,
    pub(super) mesh: Mesh,
    pub(super) quadrics: Vec<Quadric>,
    /// For each vertex, the sum of the normals of the original triangles that it represents, each twice as long as the
    /// area.
    pub(super) normals: Vec<[f32; 3]>,
    /// For each vertex, [`LOCKED`], and if it is on the boundary, one bit per side of the boundary's box that it lies
    /// on.
    pub(super) sides: Vec<u8>,
    /// For each half edge, the bits of the error of its edge. Only the first half edge of an edge has the error.
    pub(super) errors: Vec<AtomicU32>,
    /// For each vertex, whether a collapse of this pass has merged or removed it.
    pub(super) was_merged: Vec<bool>,
    pub(super) limits: Limits,
    pub(super) scale: Scale,
    pub(super) triangles_left: usize,
}

/// Maximum error of the collapse of vertices without a limit, as a share of the diagonal of the surface's box. The
/// error is the root mean square distance of the merged vertex to the planes of the original triangles that it
/// represents.
const MAX_ERROR: f64 = 0.005;

/// Number of error levels. Each is twice the previous one.
const LEVELS: i32 = 50;

/// Measures of the original surface, which all of its blocks share.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    /// A third of the mean area of the triangles.
    weight: f64,
    /// Box of the surface, which no vertex leaves.
    bounds: [[f32; 3]; 2],
}

impl Scale {
    pub(super) fn new(surface: &Surface) -> Self {
        Self { weight: mean_weight(surface), bounds: surface.bounds().unwrap_or_default() }
    }

    /// The point of the surface's box that is nearest to `position`.
    #[inline]
    pub(super) fn inside(self, position: [f32; 3]) -> [f32; 3] {
        let [low, high] = self.bounds;
        std::array::from_fn(|i| position[i].clamp(low[i], high[i]))
    }

    /// Error levels in ascending order. No collapse exceeds the last one.
    pub(super) fn levels(self) -> impl Iterator<Item = f32> {
        let [low, high] = self.bounds.map(|position| position.map(f64::from));
        let extent = sub(high, low);
        let max = dot(extent, extent) * self.weight;
        (-LEVELS..0).map(move |level| (max * 2f64.powi(level)) as f32)
    }

    /// The maximum [squared error](MAX_ERROR) of a collapse.
    fn max_squared_error(self) -> f32 {
        let [low, high] = self.bounds.map(|position| position.map(f64::from));
        let extent = sub(high, low);
        (MAX_ERROR * MAX_ERROR * dot(extent, extent)) as f32
    }

    /// The mean area of the original triangles.
    pub(super) fn mean_area(self) -> f64 {
        3.0 * self.weight
    }

    /// Trace of an edge's quadric up to which the pull towards the middle of the edge grows.
    pub(super) fn steady(self) -> f64 {
        STEADY * (1.0 + MORE_WEIGHT) * self.weight
    }
}

/// For each vertex, sums over the original triangles that it represents, and its limit.
pub(super) struct Accumulated {
    pub(super) quadrics: Vec<Quadric>,
    pub(super) normals: Vec<[f32; 3]>,
    pub(super) limits: Limits,
}

/// For each vertex, the maximum mean squared distance to the planes of the original triangles that it represents. Empty
/// if [`MAX_ERROR`] limits all vertices.
pub(super) type Limits = Vec<f32>;

impl<'a> Simplifier<'a> {
    /// The tables of a whole surface.
    pub(super) fn new(surface: &'a mut Surface, limits: Limits, scale: Scale) -> Result<Self> {
        let mut this = Self::for_block(surface, 0, limits, scale)?;
        this.find_sides(this.boundary())?;
        this.find_errors();
        Ok(this)
    }

    /// The tables of a surface whose blocks have been simplified: its vertices represent more than their triangles, and
    /// its normals are sums.
    pub(super) fn resume(
        surface: &'a mut Surface,
        mut accumulated: Accumulated,
        scale: Scale,
    ) -> Result<Self> {
        let mesh = Mesh::new(surface)?;
        let copies = mesh.copied.len();
        memory::reserve(&mut accumulated.quadrics, copies)?;
        memory::reserve(&mut accumulated.normals, copies)?;
        for &vertex in &mesh.copied {
            accumulated.quadrics.push(accumulated.quadrics[vertex as usize]);
            accumulated.normals.push(accumulated.normals[vertex as usize]);
        }
        let mut this = Self::from_tables(surface, mesh, accumulated, scale)?;
        this.find_sides(this.boundary())?;
        this.find_errors();
        Ok(this)
    }

    /// The tables of a block, whose first `locked` vertices are locked. The caller must call
    /// [`find_sides`](Self::find_sides) with the boundary of the whole surface, then
    /// [`find_errors`](Self::find_errors).
    pub(super) fn for_block(
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
        let locks: Vec<u32> = memory::collected(all.filter(|&v| locked > 0 && is_locked(v)));
        let mut this =
            Self::from_tables(surface, mesh, Accumulated { quadrics, normals, limits }, scale)?;
        locks.iter().for_each(|&vertex| this.sides[vertex as usize] = LOCKED);
        Ok(this)
    }

    fn from_tables(
        surface: &'a mut Surface,
        mesh: Mesh,
        accumulated: Accumulated,
        scale: Scale,
    ) -> Result<Self> {
        let [vertices, triangles_left] = [surface.positions.len(), surface.triangles.len()];
        let mut limits = accumulated.limits;
        if !limits.is_empty() {
            memory::reserve(&mut limits, mesh.copied.len())?;
            mesh.copied.iter().for_each(|&vertex| limits.push(limits[vertex as usize]));
        }
        Ok(Self {
            surface,
            mesh,
            quadrics: accumulated.quadrics,
            normals: accumulated.normals,
            sides: memory::zeros(vertices)?,
            errors: parallel::generated(3 * triangles_left, |_| AtomicU32::new(NEVER.to_bits()))?,
            was_merged: memory::zeros(vertices)?,
            limits,
            scale,
            triangles_left,
        })
    }

    /// Minimum and maximum coordinates of the vertices on the boundary.
    pub(super) fn boundary(&self) -> [[f32; 3]; 2] {
        let positions = self.surface.positions.iter().enumerate();
        positions
            .filter(|&(vertex, _)| self.is_on_boundary(vertex))
            .map(|(_, &position)| [position; 2])
            .fold([[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]], union)
    }

    /// Sets `sides` of the vertices on the boundary, given the `low` and `high` corners of the box around the boundary.
    /// If the surface ends at the box of its volume, both boxes have the same sides.
    pub(super) fn find_sides(&mut self, [low, high]: [[f32; 3]; 2]) -> Result<()> {
        let sides = parallel::generated(self.sides.len(), |vertex| {
            let position = self.surface.positions[vertex];
            let bits = |sides: u8, i: usize| {
                let [is_low, is_high] = [position[i] == low[i], position[i] == high[i]];
                sides | u8::from(is_low) << i | u8::from(is_high) << (3 + i)
            };
            let sides = self.sides[vertex];
            if self.is_on_boundary(vertex) { (0..3).fold(sides, bits) } else { sides }
        })?;
        self.sides = sides;
        Ok(())
    }

    pub(super) fn is_locked(&self, vertex: u32) -> bool {
        self.sides[vertex as usize] & LOCKED != 0
    }

    /// Whether a vertex is on the boundary of the whole surface.
    fn is_on_boundary(&self, vertex: usize) -> bool {
        let number = vertex as u32;
        self.mesh.is_used(number) && self.mesh.is_open(number) && self.sides[vertex] & LOCKED == 0
    }

    /// Collapses edges of zero length if this keeps the topology.
    pub(super) fn collapse_zero_length(&mut self) {
        loop {
            let before = self.triangles_left;
            for edge in 0..self.mesh.corners.len() as u32 {
                let Self { surface, mesh, .. } = self;
                if mesh.is_gone(edge) || !mesh.is_first_of_edge(edge) {
                    continue;
                }
                let [kept, gone] = [mesh.start_vertex(edge), mesh.end_vertex(edge)];
                if surface.positions[kept as usize] != surface.positions[gone as usize] {
                    continue;
                }
                let (Some(from), Some(to)) = (mesh.fan(kept), mesh.fan(gone)) else { continue };
                if mesh.keeps_topology(edge, &from, &to) {
                    self.triangles_left -= self.mesh.collapse(edge, &from, &to);
                    self.merge(kept as usize, gone as usize);
                }
            }
            if self.triangles_left == before {
                return;
            }
        }
    }

    /// Makes the vertex `kept` represent everything that `gone` represents.
    pub(super) fn merge(&mut self, kept: usize, gone: usize) {
        self.normals[kept] = add(self.normals[kept], self.normals[gone]);
        self.sides[kept] |= self.sides[gone];
        if let Some(&limit) = self.limits.get(gone) {
            self.limits[kept] = self.limits[kept].min(limit);
        }
        if let Some(&normal) = self.surface.normals.get(gone) {
            self.surface.normals[kept] = add(self.surface.normals[kept], normal);
        }
    }

    pub(super) fn limit(&self, vertex: u32) -> f32 {
        self.limits.get(vertex as usize).copied().unwrap_or_else(|| self.scale.max_squared_error())
    }

    /// Writes the remaining triangles to the surface, with unit normals.
    pub(super) fn finish(self) -> Result<&'a mut Surface> {
        let Self { surface, mesh, triangles_left, .. } = self;
        surface.triangles = memory::room(triangles_left)?;
        let all = mesh.corners.as_chunks::<3>().0;
        surface.triangles.extend(all.iter().filter(|triangle| triangle[0] != mesh::NONE));
        parallel::update(&mut surface.normals, |normal| {
            let length = dot(*normal, *normal).sqrt();
            *normal = if length > 0.0 { normal.map(|v| v / length) } else { [0.0, 0.0, 1.0] };
        });
        Ok(surface)
    }
}

pub(super) fn add(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    std::array::from_fn(|i| a[i] + b[i])
}

/// Multiplies each normal by the length of the vector in `by`.
fn weigh(normals: &mut [[f32; 3]], by: &[[f32; 3]]) {
    for (normal, by) in normals.iter_mut().zip(by) {
        let length = dot(*by, *by).sqrt();
        *normal = normal.map(|v| v * length);
    }
}

/// A third of the mean area of the triangles.
fn mean_weight(surface: &Surface) -> f64 {
    let weight = |&triangle: &[u32; 3]| {
        let normal = triangle_normal(surface.corners::<f64>(triangle));
        dot(normal, normal).sqrt() / 6.0
    };
    // Chunks of a fixed size are summed in order, so the sum does not depend on the number of threads.
    let chunks = surface.triangles.chunks(CHUNK);
    let sums = chunks.par_map(|chunk| chunk.iter().map(weight).sum::<f64>());
    sums.iter().sum::<f64>() / surface.triangles.len().max(1) as f64
}

/// The quadric of a vertex: the planes of its triangles, and along boundary edges the planes perpendicular to them. An
/// edge with both ends locked is not on the boundary: another block has its second triangle.
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
        let [b, c] =
            [mesh.end_vertex(edge), mesh.start_vertex(last)].map(|end| sub(at(end), origin));
        let normal = cross(b, c);
        sum.add_triangle(normal, more);
        for (half_edge, along) in [(edge, b), (last, c)] {
            let ends = [mesh.start_vertex(half_edge), mesh.end_vertex(half_edge)];
            if mesh.twin(half_edge).is_none() && !ends.into_iter().all(is_locked) {
                sum.add_boundary(along, normal);
            }
        }
        ControlFlow::Continue(())
    });
    sum.moved([0.0; 3])
}
