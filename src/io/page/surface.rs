//! A surface in few bytes: about two a triangle for the surface of a CT.
//!
//! In: a surface. Out: what `web/surface.js` makes a surface of again, whose vertices and triangles are numbered in
//! another order and whose coordinates are rounded to a 65,535th of the box's longest side.
//!
//! Triangles are told one after the other along the border of those that are told already, as Gumhold and Straßer do
//! ("Real time compression of triangle mesh connectivity", 1998). The border is a ring of edges; each round looks at
//! one of them, the gate a -> b, and tells in two bits which triangle lies on its other side:
//!
//! ```text
//! NEW     a new vertex c              a -> b        becomes  a -> c -> b
//! RIGHT   the next edge's end c       a -> b -> c   becomes  a -> c
//! LEFT    the last edge's begin c     c -> a -> b   becomes  c -> b
//! OTHER   none: the gate leaves the border; or another old vertex c, told by its number: as NEW. Where the border
//!         passes c already, p -> c -> q, it parts there, or two rings join: a -> c -> q and p -> c -> b
//! ```
//!
//! An edge and its reverse that meet in a ring annul each other and leave it. Of two rings one waits on a stack. Where no
//! ring has edges, the next triangle that has not been told begins one. So every list of triangles can be told, whatever
//! surface it is.
//!
//! The coordinates of a new vertex are told as what they differ by from a + b - o, the fourth corner of a
//! parallelogram with the triangle a, b, o on this side of the gate (Touma and Gotsman 1998). Bytes of one significance
//! and axis lie together, and everything is deflated.

use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};

use crate::data::surface::Surface;

/// Steps of the box's longest side.
const STEPS: f64 = 65535.0;

/// What lies on the other side of the gate.
const NEW: u8 = 0;
const RIGHT: u8 = 1;
const LEFT: u8 = 2;
const OTHER: u8 = 3;

/// No vertex, edge or triangle.
const NONE: u32 = u32::MAX;

/// A surface that is packed.
#[derive(Clone, Debug, Default)]
pub struct PackedSurface {
    /// Vertices that a triangle uses.
    pub vertices: usize,
    /// Triangles.
    pub triangles: usize,
    /// Edges that are in the border at the same time, at most.
    pub edges: usize,
    /// The coordinates of step 0.
    pub low: [f64; 3],
    /// How long a step is: coordinates are off by half of it at most.
    pub step: f64,
    /// How many bits of two were written, and how many bytes of numbers, before the coordinates.
    pub sections: [usize; 2],
    /// All of it, deflated.
    pub bytes: Vec<u8>,
}

impl PackedSurface {
    /// Packs `surface`.
    pub fn new(surface: &Surface) -> Self {
        Self::within(surface, surface.bounds().unwrap_or_default())
    }

    /// Packs `surface`, which lies in a box. Vertices that surfaces share stay so where the box is the same.
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
                // Small numbers of either sign as small ones: 0, -1, 1, -2, ...
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

/// The ring of edges around the triangles that have been told.
#[derive(Default)]
struct Border {
    /// Where each edge begins and ends, and the third corner of the triangle on this side of it.
    from: Vec<u32>,
    to: Vec<u32>,
    third: Vec<u32>,
    next: Vec<u32>,
    last: Vec<u32>,
    /// For each vertex, the last edge that began there.
    begun: Vec<u32>,
    /// Places of edges that are gone.
    free: Vec<u32>,
}

impl Border {
    /// Puts an edge behind `before`, or begins a ring.
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

    /// Takes an edge away. Returns the one before it, unless it was the only one.
    fn remove(&mut self, edge: u32) -> u32 {
        let (before, after) = (self.last[edge as usize], self.next[edge as usize]);
        (self.next[before as usize], self.last[after as usize]) = (after, before);
        self.from[edge as usize] = NONE;
        self.free.push(edge);
        if before == edge { NONE } else { before }
    }
}

/// Triangles as they are told.
struct Told<'a> {
    surface: &'a Surface,
    /// For each vertex, where those of its triangles that have not been told begin in `around`.
    starts: Vec<u32>,
    /// For each corner of each triangle, by vertices: three times the triangle's number, and the corner's.
    around: Vec<u32>,
    is_told: Vec<bool>,
    /// The new number of each vertex.
    ids: Vec<u32>,
    border: Border,
    /// Edges of rings that wait, or that are gone.
    waiting: Vec<u32>,
    turns: Vec<u8>,
    /// Numbers of old vertices: how many came after it, by seven bits a byte, the eighth says that more follow. In place
    /// of 0: no triangle, or at the begin of a ring a new vertex.
    numbers: Vec<u8>,
    /// New vertices in their order, each with a, b and o.
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

    fn all(&mut self) {
        for (number, &triangle) in self.surface.triangles.iter().enumerate() {
            if !self.is_told[number] {
                self.is_told[number] = true;
                self.begin(triangle);
            }
        }
    }

    /// Tells a first triangle, and all that can be reached from it.
    fn begin(&mut self, [a, b, c]: [u32; 3]) {
        let mut near = NONE;
        for corner in [a, b, c] {
            match self.ids[corner as usize] {
                // Expected near the one before.
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

    /// Tells what lies beyond the gate. Returns the next gate, unless there is none.
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

    /// The third corner of a triangle a, b, c that has not been told, and is now.
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

    fn add(&mut self, vertex: u32, [a, b, o]: [u32; 3]) {
        self.ids[vertex as usize] = self.deltas.len() as u32;
        self.deltas.push([vertex, a, b, o]);
    }

    /// An old vertex by how many are newer, from 1 on.
    fn number_of(&mut self, vertex: u32) {
        self.number(self.deltas.len() as u32 - self.ids[vertex as usize]);
    }

    fn number(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.numbers.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.numbers.push(number as u8);
    }
}
