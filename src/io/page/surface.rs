//! Compresses a surface: about two bytes per triangle for the surface of a CT.
//!
//! Input: a surface. Output: bytes that `web/surface.js` decodes to a surface whose vertices and triangles are in
//! another order, and whose coordinates are rounded to a 65,535th of the longest side of the bounding box.
//!
//! Triangles are encoded one after the other along the border of those encoded already, as by Gumhold and Straßer
//! ("Real time compression of triangle mesh connectivity", 1998). The border is a ring of edges. Each step looks at one
//! of them, the gate a -> b, and writes in two bits which triangle lies on its other side:
//!
//! ```text
//! NEW     a new vertex c              a -> b        becomes  a -> c -> b
//! RIGHT   c, the end of the next edge a -> b -> c   becomes  a -> c
//! LEFT    c, the start of the edge before
//!                                     c -> a -> b   becomes  c -> b
//! OTHER   no triangle: the gate leaves the border; or a triangle with another old vertex c, given by its number: the
//!         border changes as for NEW. Where it passes c already, p -> c -> q, the ring splits there, or two rings
//!         join: a -> c -> q and p -> c -> b
//! ```
//!
//! An edge and its reverse that are neighbours in a ring cancel, and both leave it. When a ring splits in two, one of
//! them waits on a stack. When no ring has edges, the next triangle that is not encoded begins a new ring. So any list
//! of triangles can be encoded, manifold or not.
//!
//! A new vertex is encoded as the difference of its coordinates from a + b - o, the fourth corner of a parallelogram
//! with the triangle a, b, o on this side of the gate (Touma and Gotsman 1998). Low bytes and high bytes of each axis
//! are stored apart from each other, and everything is deflated.

use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};

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
    /// Most edges in the border at the same time.
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
    /// Compresses `surface`.
    pub fn new(surface: &Surface) -> Self {
        Self::within(surface, surface.bounds().unwrap_or_default())
    }

    /// Compresses `surface`, whose coordinates are rounded to steps of the box `bounds`. In the same box, equal
    /// vertices of two surfaces stay equal.
    pub fn within(surface: &Surface, bounds: [[f32; 3]; 2]) -> Self {
        let [low, high] = bounds.map(|corner| corner.map(f64::from));
        let longest = (0..3).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
        let step = if longest > 0.0 { longest / STEPS } else { 1.0 };
        let mut told = Told::new(surface);
        told.all();
        let Told { turns, numbers, deltas, ids, border, .. } = told;
        let rounded = |vertex: u32| -> [u16; 3] {
            let position = surface.positions[vertex as usize];
            std::array::from_fn(|axis| {
                ((f64::from(position[axis]) - low[axis]) / step).round() as u16
            })
        };
        let mut planes = vec![0; 6 * deltas.len()];
        for (i, &[vertex, a, b, o]) in deltas.iter().enumerate() {
            let [vertex, a, b, o] = [vertex, a, b, o].map(|at| match at {
                NONE => [0; 3],
                at => rounded(at),
            });
            for axis in 0..3 {
                let expected = a[axis].wrapping_add(b[axis]).wrapping_sub(o[axis]);
                let delta = vertex[axis].wrapping_sub(expected).cast_signed();
                // Zigzag encoding: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
                let folded = ((delta << 1) ^ (delta >> 15)).cast_unsigned();
                let [lower, upper] = folded.to_le_bytes();
                planes[2 * axis * deltas.len() + i] = lower;
                planes[(2 * axis + 1) * deltas.len() + i] = upper;
            }
        }
        let four =
            |turns: &[u8]| (0..turns.len()).map(|i| turns[i] << (2 * i)).fold(0, |a, b| a | b);
        let turns_packed: Vec<u8> = turns.chunks(4).map(four).collect();
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
        let write = [&turns_packed, &numbers, &planes]
            .into_iter()
            .try_for_each(|part| deflate.write_all(part));
        let bytes = write.and_then(|()| deflate.finish()).expect("memory takes every byte");
        let vertices = ids.iter().filter(|&&id| id != NONE).count();
        Self {
            vertices,
            triangles: surface.triangles.len(),
            edges: border.from.len(),
            low,
            step,
            sections: [turns_packed.len(), numbers.len()],
            bytes,
        }
    }
}

/// The rings of edges around the encoded triangles, as doubly linked lists.
#[derive(Default)]
struct Border {
    /// For each edge, its two vertices, the third corner of the triangle on this side, and the neighbouring edges.
    from: Vec<u32>,
    to: Vec<u32>,
    third: Vec<u32>,
    next: Vec<u32>,
    last: Vec<u32>,
    /// For each vertex, the edge added last that begins there.
    begun: Vec<u32>,
    /// Free slots of removed edges.
    free: Vec<u32>,
}

impl Border {
    /// Inserts an edge behind the edge `before`, or begins a ring where that is `NONE`. Returns the edge's slot.
    fn insert(&mut self, before: u32, [from, to, third]: [u32; 3]) -> u32 {
        let edge = self.free.pop().unwrap_or_else(|| {
            let edge = self.from.len() as u32;
            for ends in
                [&mut self.from, &mut self.to, &mut self.third, &mut self.next, &mut self.last]
            {
                ends.push(edge);
            }
            edge
        });
        let at = edge as usize;
        (self.from[at], self.to[at], self.third[at]) = (from, to, third);
        self.begun[from as usize] = edge;
        let before = if before == NONE { edge } else { before };
        let after = if before == edge { edge } else { self.next[before as usize] };
        (self.last[at], self.next[at]) = (before, after);
        (self.next[before as usize], self.last[after as usize]) = (edge, edge);
        edge
    }

    /// Removes an edge. Returns the edge before it; `NONE` if it was the only one of its ring.
    fn remove(&mut self, edge: u32) -> u32 {
        let (before, after) = (self.last[edge as usize], self.next[edge as usize]);
        (self.next[before as usize], self.last[after as usize]) = (after, before);
        self.from[edge as usize] = NONE;
        self.free.push(edge);
        if before == edge { NONE } else { before }
    }
}

/// The encoder and its output.
struct Told<'a> {
    surface: &'a Surface,
    /// For each vertex, where its triangles begin in `around`.
    starts: Vec<u32>,
    /// All corners of all triangles, sorted by vertex: `3 * triangle + corner`.
    around: Vec<u32>,
    /// For each triangle, whether it is encoded.
    is_told: Vec<bool>,
    /// The new number of each vertex.
    ids: Vec<u32>,
    border: Border,
    /// The stack of waiting rings: one edge of each. The edge may have been removed since.
    waiting: Vec<u32>,
    /// Codes of two bits, one per byte.
    turns: Vec<u8>,
    /// Numbers of old vertices, counted back from the newest vertex, which is 1; as variable-length integers of seven
    /// bits a byte, the eighth of which says that more follow. 0 is no triangle, or where a ring begins a new vertex.
    numbers: Vec<u8>,
    /// New vertices in the order of their numbers, each with a, b and o.
    deltas: Vec<[u32; 4]>,
}

impl<'a> Told<'a> {
    fn new(surface: &'a Surface) -> Self {
        let vertices = surface.positions.len();
        let mut starts = vec![0; vertices + 1];
        for &corner in surface.triangles.as_flattened() {
            starts[corner as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            starts[vertex + 1] += starts[vertex];
        }
        let mut around = vec![0; 3 * surface.triangles.len()];
        let mut ends = starts.clone();
        for (i, &corner) in surface.triangles.as_flattened().iter().enumerate() {
            around[ends[corner as usize] as usize] = i as u32;
            ends[corner as usize] += 1;
        }
        Self {
            surface,
            starts,
            around,
            is_told: vec![false; surface.triangles.len()],
            ids: vec![NONE; vertices],
            border: Border { begun: vec![NONE; vertices], ..Border::default() },
            waiting: Vec::new(),
            turns: Vec::new(),
            numbers: Vec::new(),
            deltas: Vec::new(),
        }
    }

    /// Encodes all triangles.
    fn all(&mut self) {
        for (number, &triangle) in self.surface.triangles.iter().enumerate() {
            if !self.is_told[number] {
                self.is_told[number] = true;
                self.begin(triangle);
            }
        }
    }

    /// Encodes a triangle that begins a ring, and all triangles that can be reached from it.
    fn begin(&mut self, [a, b, c]: [u32; 3]) {
        let mut near = NONE;
        for corner in [a, b, c] {
            match self.ids[corner as usize] {
                // Predicted at the corner before (a), since b and o are missing.
                NONE => {
                    self.number(0);
                    self.add(corner, [near, NONE, NONE]);
                }
                _ => self.number_of(corner),
            }
            near = corner;
        }
        let first = self.border.insert(NONE, [a, c, b]);
        let second = self.border.insert(first, [c, b, a]);
        let mut gate = self.border.insert(second, [b, a, c]);
        while gate != NONE {
            gate = self.turn(gate);
            while gate == NONE
                && let Some(edge) = self.waiting.pop()
            {
                gate = if self.border.from[edge as usize] == NONE { NONE } else { edge };
            }
        }
    }

    /// Encodes the triangle on the other side of the gate. Returns the next gate; `NONE` where the ring has no edges
    /// left.
    fn turn(&mut self, gate: u32) -> u32 {
        let border = &mut self.border;
        let g = gate as usize;
        let [a, b, o] = [border.from[g], border.to[g], border.third[g]];
        let (next, last) = (border.next[g], border.last[g]);
        let (n, l) = (next as usize, last as usize);
        if next != gate && border.from[n] == b && border.to[n] == a {
            border.remove(next);
            return border.remove(gate);
        }
        let Some(c) = self.beyond(a, b) else {
            self.turns.push(OTHER);
            self.number(0);
            return self.border.remove(gate);
        };
        let border = &mut self.border;
        if next != gate && border.from[n] == b && border.to[n] == c {
            self.turns.push(RIGHT);
            (border.to[g], border.third[g]) = (c, b);
            border.remove(next);
            return gate;
        }
        if last != gate && border.to[l] == a && border.from[l] == c {
            self.turns.push(LEFT);
            (border.from[g], border.third[g]) = (c, a);
            border.begun[c as usize] = gate;
            border.remove(last);
            return gate;
        }
        match self.ids[c as usize] {
            NONE => {
                self.turns.push(NEW);
                self.add(c, [a, b, o]);
            }
            _ => {
                self.turns.push(OTHER);
                self.number_of(c);
            }
        }
        let border = &mut self.border;
        let other = border.begun[c as usize];
        (border.to[g], border.third[g]) = (c, b);
        let edge = border.insert(gate, [c, b, a]);
        if other != NONE && border.from[other as usize] == c {
            let before = border.last[other as usize];
            (border.next[g], border.last[other as usize]) = (other, gate);
            (border.next[before as usize], border.last[edge as usize]) = (edge, before);
            self.waiting.push(gate);
        }
        edge
    }

    /// The third corner c of a triangle a, b, c that is not encoded yet; marks it as encoded.
    fn beyond(&mut self, a: u32, b: u32) -> Option<u32> {
        let range = self.starts[a as usize] as usize..self.starts[a as usize + 1] as usize;
        for &place in &self.around[range] {
            let (number, corner) = (place / 3, place % 3);
            let triangle = self.surface.triangles[number as usize];
            let after = |by: u32| triangle[((corner + by) % 3) as usize];
            if after(1) == b && !self.is_told[number as usize] {
                self.is_told[number as usize] = true;
                return Some(after(2));
            }
        }
        None
    }

    /// Adds a new vertex.
    fn add(&mut self, vertex: u32, [a, b, o]: [u32; 3]) {
        self.ids[vertex as usize] = self.deltas.len() as u32;
        self.deltas.push([vertex, a, b, o]);
    }

    /// Writes the number of an old vertex, counted back from the newest one, which is 1.
    fn number_of(&mut self, vertex: u32) {
        self.number(self.deltas.len() as u32 - self.ids[vertex as usize]);
    }

    /// Writes a variable-length integer.
    fn number(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.numbers.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.numbers.push(number as u8);
    }
}
