//! A half-edge mesh of triangles, and the collapse of an edge.
//!
//! ```text
//!        c            Half edge h = 3 t + i runs from corner i of triangle t to its next corner; its
//!       / \           twin is the half edge of the neighbouring triangle between the same vertices.
//!   hp /   \ hn
//!     /  t  \         The half edges that leave a vertex, one per triangle, are its fan: from h on,
//!    a-- h --b        counter-clockwise, twin(prev(h)). The first half edge of a vertex on the
//!     \     /         boundary has no twin.
//!      \   /
//!        d
//! ```

use std::ops::ControlFlow;

use crate::{
    data::surface::Surface,
    util::{
        error::{Error, Result},
        memory, parallel,
    },
};

/// Stands for no vertex, half edge or triangle.
pub(super) const NONE: u32 = u32::MAX;
/// Maximum number of triangles of a [`Mesh`]. Each has three half edges, whose numbers must be below [`NONE`].
const MAX_TRIANGLES: usize = NONE as usize / 3;
/// Maximum number of triangles around a vertex whose edges may collapse.
const MAX_FAN: usize = 48;

/// Memory of a [`Mesh`], in bytes per vertex and bytes per triangle.
pub(super) const BYTES: [u64; 2] = [4, 12 + 12];
/// Additional memory of [`Mesh::new`] while it runs, in bytes per vertex and bytes per triangle.
pub(super) const BUILD_BYTES: [u64; 2] = [4, 12];

/// A half-edge mesh. The corners of removed triangles are [`NONE`].
pub(super) struct Mesh {
    /// Start vertex of each half edge.
    pub(super) corners: Vec<u32>,
    twins: Vec<u32>,
    /// A half edge that leaves each vertex: on the boundary the first of the fan, otherwise any; [`NONE`] for removed
    /// vertices.
    out: Vec<u32>,
    /// Originals of copied vertices. A vertex where several fans meet gets a copy for each further fan; copies are
    /// appended to the vertices in this order.
    pub(super) copied: Vec<u32>,
}

/// The half edges that leave a vertex.
pub(super) struct Fan {
    edges: [u32; MAX_FAN],
    len: usize,
    /// Vertices at the other ends; on the boundary, one more than half edges.
    ends: [u32; MAX_FAN + 1],
    pub(super) is_open: bool,
}

impl Fan {
    pub(super) fn edges(&self) -> &[u32] {
        &self.edges[..self.len]
    }

    pub(super) fn ends(&self) -> &[u32] {
        &self.ends[..self.len + usize::from(self.is_open)]
    }
}

#[inline]
pub(super) fn next(half_edge: u32) -> u32 {
    if half_edge % 3 == 2 { half_edge - 2 } else { half_edge + 1 }
}

#[inline]
pub(super) fn prev(half_edge: u32) -> u32 {
    if half_edge.is_multiple_of(3) { half_edge + 2 } else { half_edge - 1 }
}

impl Mesh {
    /// The mesh of the triangles of `surface`. Vertices where several fans meet are copied. There may be at most
    /// [`MAX_TRIANGLES`].
    pub(super) fn new(surface: &mut Surface) -> Result<Self> {
        let triangles = surface.triangles.len();
        if triangles > MAX_TRIANGLES {
            return Err(Error::bad_input(format_args!(
                "{triangles} triangles are too many to simplify: at most {MAX_TRIANGLES} are possible"
            )));
        }
        let corners = memory::copied(surface.triangles.as_flattened())?;
        let twins = twins(&corners, surface.positions.len())?;
        let out = memory::filled(NONE, surface.positions.len());
        let mut mesh = Self { corners, twins, out, copied: Vec::new() };
        mesh.separate_fans(surface)?;
        surface.triangles.as_flattened_mut().copy_from_slice(&mesh.corners);
        Ok(mesh)
    }

    fn separate_fans(&mut self, surface: &mut Surface) -> Result<()> {
        let mut seen = memory::zeros::<bool>(self.corners.len())?;
        for half_edge in 0..self.corners.len() as u32 {
            if seen[half_edge as usize] {
                continue;
            }
            let mut vertex = self.corners[half_edge as usize];
            if self.out[vertex as usize] != NONE {
                let copy = self.out.len() as u32;
                memory::reserve(&mut self.out, 1)?;
                self.out.push(NONE);
                memory::reserve(&mut self.copied, 1)?;
                self.copied.push(vertex);
                memory::reserve(&mut surface.positions, 1)?;
                surface.positions.push(surface.positions[vertex as usize]);
                if let Some(&normal) = surface.normals.get(vertex as usize) {
                    memory::reserve(&mut surface.normals, 1)?;
                    surface.normals.push(normal);
                }
                vertex = copy;
            }
            // Goes clockwise to the first half edge of an open fan.
            let mut first = half_edge;
            while let Some(twin) = self.twin(first) {
                first = next(twin);
                if first == half_edge {
                    break;
                }
            }
            self.out[vertex as usize] = first;
            let mut edge = first;
            loop {
                seen[edge as usize] = true;
                self.corners[edge as usize] = vertex;
                match self.twin(prev(edge)) {
                    Some(twin) if twin != first => edge = twin,
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// The vertex that `vertex` is a copy of, or `vertex` itself.
    pub(super) fn original(&self, vertex: u32) -> u32 {
        let first_copy = self.out.len() - self.copied.len();
        (vertex as usize).checked_sub(first_copy).map_or(vertex, |copy| self.copied[copy])
    }

    #[inline]
    pub(super) fn twin(&self, half_edge: u32) -> Option<u32> {
        let twin = self.twins[half_edge as usize];
        (twin != NONE).then_some(twin)
    }

    #[inline]
    pub(super) fn start_vertex(&self, half_edge: u32) -> u32 {
        self.corners[half_edge as usize]
    }

    #[inline]
    pub(super) fn end_vertex(&self, half_edge: u32) -> u32 {
        self.corners[next(half_edge) as usize]
    }

    /// Whether this is the first half edge of its edge, the one with the lower number.
    pub(super) fn is_first_of_edge(&self, half_edge: u32) -> bool {
        half_edge < self.twins[half_edge as usize]
    }

    /// The first half edge of the same edge.
    pub(super) fn first_of_edge(&self, half_edge: u32) -> u32 {
        half_edge.min(self.twins[half_edge as usize])
    }

    pub(super) fn is_gone(&self, half_edge: u32) -> bool {
        self.corners[half_edge as usize] == NONE
    }

    pub(super) fn is_used(&self, vertex: u32) -> bool {
        self.out[vertex as usize] != NONE
    }

    /// Whether `vertex` is on the boundary.
    #[inline]
    pub(super) fn is_open(&self, vertex: u32) -> bool {
        self.twin(self.out[vertex as usize]).is_none()
    }

    /// Calls `visit` with the half edges that leave `vertex`.
    #[inline]
    pub(super) fn visit_fan(
        &self,
        vertex: u32,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let first = self.out[vertex as usize];
        let mut edge = first;
        loop {
            visit(edge)?;
            match self.twin(prev(edge)) {
                Some(twin) if twin != first => edge = twin,
                _ => return ControlFlow::Continue(()),
            }
        }
    }

    /// The half edges that leave `vertex`; `None` for more than [`MAX_FAN`].
    pub(super) fn fan(&self, vertex: u32) -> Option<Fan> {
        let mut fan = Fan { edges: [0; MAX_FAN], len: 0, ends: [0; MAX_FAN + 1], is_open: false };
        let whole = self.visit_fan(vertex, |edge| {
            if fan.len == MAX_FAN {
                return ControlFlow::Break(());
            }
            fan.edges[fan.len] = edge;
            fan.ends[fan.len] = self.end_vertex(edge);
            fan.len += 1;
            ControlFlow::Continue(())
        });
        if whole.is_break() {
            return None;
        }
        let last = prev(fan.edges[fan.len - 1]);
        if self.twin(last).is_none() {
            fan.is_open = true;
            fan.ends[fan.len] = self.start_vertex(last);
        }
        Some(fan)
    }

    /// Whether the collapse of `edge` keeps the topology of the surface, by the link condition (Dey, Edelsbrunner,
    /// Guha, Nekhayev 1999): the only common neighbours of both ends are the corners opposite to the edge; if both ends
    /// are on the boundary, the edge is, too; and no two triangles get the same corners. `from` and `to` are the fans
    /// of the ends.
    ///
    /// A vertex and its copies count as one, since their fans in a block may be parts of one fan of the whole surface.
    pub(super) fn keeps_topology(&self, edge: u32, from: &Fan, to: &Fan) -> bool {
        let twin = self.twin(edge);
        if twin.is_some() && from.is_open && to.is_open {
            return false;
        }
        let sides = 1 + usize::from(twin.is_some());
        let common = from.ends().iter().filter(|end| to.ends().contains(end)).count();
        common == sides
            && (!(self.has_copies(from) || self.has_copies(to))
                || self.shared_originals(from, to) == sides)
            && self.stays_apart(edge)
            && twin.is_none_or(|twin| self.stays_apart(twin))
    }

    /// Whether an end of the fan is a copy.
    fn has_copies(&self, fan: &Fan) -> bool {
        let first_copy = self.out.len() - self.copied.len();
        fan.ends().iter().any(|&end| end as usize >= first_copy)
    }

    /// Number of ends of `from` that are ends of `to` or copies of the same vertex.
    fn shared_originals(&self, from: &Fan, to: &Fan) -> usize {
        let is_shared = |end: &&u32| {
            let original = self.original(**end);
            to.ends().iter().any(|&end| self.original(end) == original)
        };
        from.ends().iter().filter(is_shared).count()
    }

    /// Whether the triangles at the other two sides of the triangle of `edge`, which become neighbours, will still
    /// differ in a corner.
    fn stays_apart(&self, edge: u32) -> bool {
        match (self.twin(next(edge)), self.twin(prev(edge))) {
            (Some(one), Some(other)) => {
                let [tip, other_tip] =
                    [one, other].map(|h| self.original(self.start_vertex(prev(h))));
                tip != other_tip
            }
            (None, None) => false,
            _ => true,
        }
    }

    /// Merges the ends of `edge` into its start vertex. `from` and `to` are the fans of its ends. Returns the number of
    /// removed triangles.
    pub(super) fn collapse(&mut self, edge: u32, from: &Fan, to: &Fan) -> usize {
        let (kept, gone) = (self.start_vertex(edge), self.end_vertex(edge));
        let twin = self.twin(edge);
        for &leaving in to.edges() {
            self.corners[leaving as usize] = kept;
        }
        let mut count = 0;
        for side in [Some(edge), twin].into_iter().flatten() {
            let (after, before) = (next(side), prev(side));
            let tip = self.start_vertex(before);
            let (one, other) = (self.twins[after as usize], self.twins[before as usize]);
            if one != NONE {
                self.twins[one as usize] = other;
            }
            if other != NONE {
                self.twins[other as usize] = one;
            }
            // `one`, the twin of `after`, leaves the tip, too.
            if self.out[tip as usize] == before {
                self.out[tip as usize] = if one != NONE { one } else { next(other) };
            }
            count += 1;
        }
        let dead = |half_edge: u32| {
            [Some(edge), twin].into_iter().flatten().any(|side| side / 3 == half_edge / 3)
        };
        let mut leaving = from.edges().iter().chain(to.edges()).copied().filter(|&h| !dead(h));
        let any = leaving.clone().next().unwrap_or(NONE);
        let first = leaving.find(|&half_edge| self.twins[half_edge as usize] == NONE);
        self.out[kept as usize] = first.unwrap_or(any);
        self.out[gone as usize] = NONE;
        for side in [Some(edge), twin].into_iter().flatten() {
            let triangle = side / 3 * 3;
            (triangle..triangle + 3).for_each(|h| self.corners[h as usize] = NONE);
        }
        count
    }

    /// Removes the entries of removed triangles, here and in `values`, which has one value per half edge.
    pub(super) fn compact<T>(&mut self, values: &mut Vec<T>) -> Result<()> {
        let mut numbers = memory::zeros::<u32>(self.corners.len() / 3)?;
        let mut left = 0;
        for (triangle, number) in numbers.iter_mut().enumerate() {
            *number = left;
            if !self.is_gone(3 * triangle as u32) {
                let (from, to) = (3 * triangle, 3 * left as usize);
                for i in 0..3 {
                    self.corners[to + i] = self.corners[from + i];
                    self.twins[to + i] = self.twins[from + i];
                    values.swap(to + i, from + i);
                }
                left += 1;
            }
        }
        let len = 3 * left as usize;
        self.corners.truncate(len);
        self.twins.truncate(len);
        values.truncate(len);
        let moved = |half_edge: &mut u32| {
            if *half_edge != NONE {
                *half_edge = 3 * numbers[*half_edge as usize / 3] + *half_edge % 3;
            }
        };
        parallel::update(&mut self.twins, moved);
        parallel::update(&mut self.out, moved);
        Ok(())
    }
}

/// The twin of each half edge, which joins the same vertices in the opposite direction. [`NONE`] if it does not exist, or
/// if a third half edge joins the same vertices.
fn twins(corners: &[u32], vertices: usize) -> Result<Vec<u32>> {
    // Half edges by the lower of their vertices, in compressed sparse rows.
    let low = |h: u32| corners[h as usize].min(corners[next(h) as usize]) as usize;
    let count = corners.len() as u32;
    let mut starts = memory::zeros::<u32>(vertices + 1)?;
    (0..count).for_each(|h| starts[low(h) + 1] += 1);
    for vertex in 0..vertices {
        starts[vertex + 1] += starts[vertex];
    }
    let mut rows = memory::zeros::<u32>(corners.len())?;
    for h in 0..count {
        let at = &mut starts[low(h)];
        rows[*at as usize] = h;
        *at += 1;
    }
    // Filling moved each entry of `starts` to the end of its row, where the next row begins.
    let twin = |h: usize| {
        let h = h as u32;
        let [from, to] = [corners[h as usize], corners[next(h) as usize]];
        let low = from.min(to) as usize;
        let start = if low == 0 { 0 } else { starts[low - 1] };
        let row = &rows[start as usize..starts[low] as usize];
        let ends = |other: u32| [corners[other as usize], corners[next(other) as usize]];
        let mut twin = NONE;
        for &other in row.iter().filter(|&&other| other != h) {
            let others = ends(other);
            if others == [to, from] && twin == NONE {
                twin = other;
            } else if others == [to, from] || others == [from, to] {
                return NONE;
            }
        }
        twin
    };
    parallel::generated(corners.len(), twin)
}
