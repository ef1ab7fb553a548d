//! Compresses a surface: about two bytes per triangle for the surface of a CT.
//!
//! Input: a surface. Output: bytes that `web/surface.js` decodes to a surface whose vertices and triangles are in
//! another order, and whose coordinates are rounded to a 65,535th of the longest side of the bounding box.
//!
//! Triangles are encoded one after the other along the border of the encoded ones, as by Gumhold and Straßer
//! ("Real time compression of triangle mesh connectivity", 1998). The border is a ring of edges. Each step looks at one
//! of them, the gate a -> b, and writes in two bits which triangle lies on its other side:
//!
//! ```text
//! NEW     a new vertex c              a -> b        becomes  a -> c -> b
//! RIGHT   c, the end of the next edge a -> b -> c   becomes  a -> c
//! LEFT    c, the start of the edge before
//!                                     c -> a -> b   becomes  c -> b
//! OTHER   no triangle: the gate leaves the border; or a triangle with another old vertex c, given by its number: the
//!         border changes as for NEW. If it already passes c, p -> c -> q, the ring splits there, or two rings join:
//!         a -> c -> q and p -> c -> b
//! ```
//!
//! An edge and its reverse that are neighbours in a ring cancel, and both leave it. When a ring splits in two, one of
//! them waits on a stack. When no ring has edges, the next triangle that is not encoded begins a new ring. So any list
//! of triangles can be encoded, manifold or not.
//!
//! A new vertex is encoded as the difference of its coordinates from a + b - o, the fourth corner of a parallelogram
//! with the triangle a, b, o on this side of the gate (Touma and Gotsman 1998). Low bytes and high bytes of each axis
//! are stored apart from each other, and everything is deflated.

use flate2::Compression;

use super::deflate;
use crate::data::surface::Surface;

/// Number of steps along the longest side of the box.
const STEPS: f64 = 65535.0;

/// Codes of the triangle on the other side of the gate.
const NEW: u8 = 0;
const RIGHT: u8 = 1;
const LEFT: u8 = 2;
const OTHER: u8 = 3;

/// No vertex, edge or triangle.
const NONE: u32 = u32::MAX;

/// A compressed surface.
#[derive(Clone, Debug, Default)]
pub struct PackedSurface {
    /// Number of vertices that triangles use.
    pub vertices: usize,
    /// Number of triangles.
    pub triangles: usize,
    /// Maximum number of edges in the border at one time.
    pub edges: usize,
    /// The coordinates of step 0.
    pub low: [f64; 3],
    /// Length of a step; rounding moves coordinates by half of it at most.
    pub step: f64,
    /// Bytes of the first two sections: the two-bit codes and the numbers of vertices. The coordinates follow.
    pub sections: [usize; 2],
    /// All sections, deflated.
    pub bytes: Vec<u8>,
}

impl PackedSurface {
    /// Compresses `surface`, whose coordinates are rounded to steps of the box `bounds`. In the same box, equal
    /// vertices of two surfaces stay equal.
    pub fn within(surface: &Surface, bounds: [[f32; 3]; 2]) -> Self {
        let [low, high] = bounds.map(|corner| corner.map(f64::from));
        let longest = (0..3).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
        let step = if longest > 0.0 { longest / STEPS } else { 1.0 };
        let mut encoder = SurfaceEncoder::new(surface);
        encoder.encode_all();
        let SurfaceEncoder { codes, numbers, vertices, border, .. } = encoder;
        let rounded = |vertex: u32, axis: usize| match vertex {
            NONE => 0,
            at => ((f64::from(surface.positions[at as usize][axis]) - low[axis]) / step).round()
                as u16,
        };
        let mut planes = vec![0; 6 * vertices.len()];
        for (i, &corners) in vertices.iter().enumerate() {
            for axis in 0..3 {
                let [vertex, a, b, o] = corners.map(|corner| rounded(corner, axis));
                let delta = vertex.wrapping_sub(a.wrapping_add(b).wrapping_sub(o)).cast_signed();
                // Zigzag encoding: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
                let folded = ((delta << 1) ^ (delta >> 15)).cast_unsigned();
                let [lower, upper] = folded.to_le_bytes();
                planes[2 * axis * vertices.len() + i] = lower;
                planes[(2 * axis + 1) * vertices.len() + i] = upper;
            }
        }
        let four = |codes: &[u8]| (0..codes.len()).fold(0, |byte, i| byte | codes[i] << (2 * i));
        let codes: Vec<u8> = codes.chunks(4).map(four).collect();
        Self {
            vertices: vertices.len(),
            triangles: surface.triangles.len(),
            edges: border.edges.len(),
            low,
            step,
            sections: [codes.len(), numbers.len()],
            bytes: deflate([&codes, &numbers, &planes], Compression::best()),
        }
    }
}

/// An edge of the border: its two vertices, the third corner of the triangle on this side, and the neighbours in its
/// ring.
#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    to: u32,
    third: u32,
    next: u32,
    last: u32,
}

/// The rings of edges around the encoded triangles, as doubly linked lists.
#[derive(Default)]
struct Border {
    edges: Vec<Edge>,
    /// For each vertex, the edge added last that begins there.
    edge_from: Vec<u32>,
    /// Free slots of removed edges.
    free: Vec<u32>,
}

impl Border {
    fn edge(&mut self, edge: u32) -> &mut Edge {
        &mut self.edges[edge as usize]
    }

    /// Inserts an edge after the edge `before`, or begins a ring if that is `NONE`. Returns the edge's slot.
    fn insert(&mut self, before: u32, [from, to, third]: [u32; 3]) -> u32 {
        let edge = self.free.pop().unwrap_or(self.edges.len() as u32);
        let last = if before == NONE { edge } else { before };
        let next = if last == edge { edge } else { self.edge(last).next };
        let new = Edge { from, to, third, next, last };
        match self.edges.get_mut(edge as usize) {
            Some(slot) => *slot = new,
            None => self.edges.push(new),
        }
        self.edge_from[from as usize] = edge;
        self.edge(last).next = edge;
        self.edge(next).last = edge;
        edge
    }

    /// Removes an edge. Returns the edge before it; `NONE` if it was the only one of its ring.
    fn remove(&mut self, edge: u32) -> u32 {
        let Edge { next, last, .. } = *self.edge(edge);
        self.edge(last).next = next;
        self.edge(next).last = last;
        self.edge(edge).from = NONE;
        self.free.push(edge);
        if last == edge { NONE } else { last }
    }
}

/// The encoder and its output.
struct SurfaceEncoder<'a> {
    surface: &'a Surface,
    /// For each vertex, where its triangles begin in `around`.
    starts: Vec<u32>,
    /// All corners of all triangles, sorted by vertex: `3 * triangle + corner`.
    around: Vec<u32>,
    /// For each triangle, whether it is encoded.
    is_encoded: Vec<bool>,
    /// The new number of each vertex.
    ids: Vec<u32>,
    border: Border,
    /// The stack of waiting rings: one edge of each. The edge may have been removed since.
    waiting: Vec<u32>,
    /// Codes of two bits, one per byte.
    codes: Vec<u8>,
    /// Numbers of old vertices, counted back from the newest vertex, which is 1. They are variable-length integers of
    /// seven bits per byte; the eighth bit says that more follow. 0 stands for no triangle, or, at the beginning of a
    /// ring, for a new vertex.
    numbers: Vec<u8>,
    /// New vertices in the order of their numbers, each with a, b and o.
    vertices: Vec<[u32; 4]>,
}

impl<'a> SurfaceEncoder<'a> {
    fn new(surface: &'a Surface) -> Self {
        let count = surface.positions.len();
        let mut starts = vec![0; count + 1];
        for &corner in surface.triangles.as_flattened() {
            starts[corner as usize + 1] += 1;
        }
        for vertex in 0..count {
            starts[vertex + 1] += starts[vertex];
        }
        let mut around = vec![0; 3 * surface.triangles.len()];
        let mut ends = starts.clone();
        for (i, &corner) in surface.triangles.as_flattened().iter().enumerate() {
            around[ends[corner as usize] as usize] = i as u32;
            ends[corner as usize] += 1;
        }
        let is_encoded = vec![false; surface.triangles.len()];
        let border = Border { edge_from: vec![NONE; count], ..Border::default() };
        let (waiting, codes, numbers, vertices) = Default::default();
        let ids = vec![NONE; count];
        Self { surface, starts, around, is_encoded, ids, border, waiting, codes, numbers, vertices }
    }

    fn encode_all(&mut self) {
        for (number, &triangle) in self.surface.triangles.iter().enumerate() {
            if !self.is_encoded[number] {
                self.is_encoded[number] = true;
                self.encode_ring(triangle);
            }
        }
    }

    /// Encodes a triangle that begins a ring, and all triangles that can be reached from it.
    fn encode_ring(&mut self, [a, b, c]: [u32; 3]) {
        let mut near = NONE;
        for corner in [a, b, c] {
            match self.ids[corner as usize] {
                // Predicted at the corner before (a), since b and o are missing.
                NONE => {
                    self.push_number(0);
                    self.add_vertex(corner, [near, NONE, NONE]);
                }
                _ => self.push_vertex(corner),
            }
            near = corner;
        }
        let first = self.border.insert(NONE, [a, c, b]);
        let second = self.border.insert(first, [c, b, a]);
        let mut gate = self.border.insert(second, [b, a, c]);
        while gate != NONE {
            gate = self.pass(gate);
            while gate == NONE
                && let Some(edge) = self.waiting.pop()
            {
                gate = if self.border.edge(edge).from == NONE { NONE } else { edge };
            }
        }
    }

    /// Encodes the triangle on the other side of the gate. Returns the next gate; `NONE` where the ring has no edges
    /// left.
    fn pass(&mut self, gate: u32) -> u32 {
        let border = &mut self.border;
        let Edge { from: a, to: b, third: o, next, last } = *border.edge(gate);
        let (after, before) = (*border.edge(next), *border.edge(last));
        if next != gate && after.from == b && after.to == a {
            border.remove(next);
            return border.remove(gate);
        }
        let Some(c) = self.take_triangle(a, b) else {
            self.codes.push(OTHER);
            self.push_number(0);
            return self.border.remove(gate);
        };
        let border = &mut self.border;
        if next != gate && after.from == b && after.to == c {
            self.codes.push(RIGHT);
            *border.edge(gate) = Edge { to: c, third: b, ..*border.edge(gate) };
            border.remove(next);
            return gate;
        }
        if last != gate && before.to == a && before.from == c {
            self.codes.push(LEFT);
            *border.edge(gate) = Edge { from: c, third: a, ..*border.edge(gate) };
            border.edge_from[c as usize] = gate;
            border.remove(last);
            return gate;
        }
        if self.ids[c as usize] == NONE {
            self.codes.push(NEW);
            self.add_vertex(c, [a, b, o]);
        } else {
            self.codes.push(OTHER);
            self.push_vertex(c);
        }
        let border = &mut self.border;
        let other = border.edge_from[c as usize];
        *border.edge(gate) = Edge { to: c, third: b, ..*border.edge(gate) };
        let edge = border.insert(gate, [c, b, a]);
        if other != NONE && border.edge(other).from == c {
            let before = border.edge(other).last;
            border.edge(gate).next = other;
            border.edge(other).last = gate;
            border.edge(before).next = edge;
            border.edge(edge).last = before;
            self.waiting.push(gate);
        }
        edge
    }

    /// The third corner c of a triangle a, b, c that is not encoded yet; marks it as encoded.
    fn take_triangle(&mut self, a: u32, b: u32) -> Option<u32> {
        let range = self.starts[a as usize] as usize..self.starts[a as usize + 1] as usize;
        for &place in &self.around[range] {
            let (number, corner) = ((place / 3) as usize, place % 3);
            let triangle = self.surface.triangles[number];
            let after = |by: u32| triangle[((corner + by) % 3) as usize];
            if after(1) == b && !self.is_encoded[number] {
                self.is_encoded[number] = true;
                return Some(after(2));
            }
        }
        None
    }

    fn add_vertex(&mut self, vertex: u32, [a, b, o]: [u32; 3]) {
        self.ids[vertex as usize] = self.vertices.len() as u32;
        self.vertices.push([vertex, a, b, o]);
    }

    /// Writes the number of an old vertex, counted back from the newest one, which is 1.
    fn push_vertex(&mut self, vertex: u32) {
        self.push_number(self.vertices.len() as u32 - self.ids[vertex as usize]);
    }

    /// Writes a variable-length integer.
    fn push_number(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.numbers.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.numbers.push(number as u8);
    }
}
