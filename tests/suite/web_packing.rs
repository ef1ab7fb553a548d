//! The packed surfaces of HTML pages, unpacked according to the description of the format.

use std::collections::HashMap;

use gpuproc::{data::surface::Surface, io::page::PackedSurface};

use crate::{common::Noise, web::inflate};

/// Sorted triangles in quantization steps, each starting at its smallest corner.
type Triangles = Vec<[[i64; 3]; 3]>;

fn canonical(triangles: impl Iterator<Item = [[i64; 3]; 3]>) -> Triangles {
    let turned =
        |[a, b, c]: [[i64; 3]; 3]| [[a, b, c], [b, c, a], [c, a, b]].into_iter().min().unwrap();
    let mut all: Triangles = triangles.map(turned).collect();
    all.sort_unstable();
    all
}

/// The triangles of a surface in quantization steps of size `step` from `low`.
pub fn quantized(surface: &Surface, low: [f64; 3], step: f64) -> Triangles {
    let place = |vertex: u32| {
        let p = surface.positions[vertex as usize];
        std::array::from_fn(|i| ((f64::from(p[i]) - low[i]) / step).round() as i64)
    };
    canonical(surface.triangles.iter().map(|triangle| triangle.map(place)))
}

/// An edge of a ring: its slot, and three vertices: start, end, and the third corner of its triangle.
type Edge = (usize, [usize; 3]);

/// The boundary rings of `io::page::surface`, each as an ordered list. Simple rather than fast.
#[derive(Default)]
struct Rings {
    rings: Vec<Vec<Edge>>,
    free: Vec<usize>,
    places: usize,
    begun: HashMap<usize, usize>,
}

impl Rings {
    fn place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.places += 1;
            self.places - 1
        })
    }

    /// The ring of the edge in this slot, and its index in the ring.
    fn find(&self, place: usize) -> Option<(usize, usize)> {
        let index = |ring: &Vec<Edge>| ring.iter().position(|edge| edge.0 == place);
        self.rings.iter().enumerate().find_map(|(i, ring)| Some((i, index(ring)?)))
    }

    fn remove(&mut self, ring: usize, index: usize) {
        let (place, _) = self.rings[ring].remove(index);
        self.free.push(place);
    }
}

/// Unpacks a surface according to the description of the format.
pub fn unpack_surface(
    bytes: &[u8],
    vertices: usize,
    triangles: usize,
    sections: [usize; 2],
) -> Triangles {
    let (turns, rest) = bytes.split_at(sections[0]);
    let (numbers, planes) = rest.split_at(sections[1]);
    assert_eq!(planes.len(), 6 * vertices);
    let mut turns = turns.iter().flat_map(|byte| (0..4).map(move |i| byte >> (2 * i) & 3));
    let mut numbers = numbers.iter();
    let mut number = || {
        let (mut value, mut shift) = (0usize, 0);
        loop {
            let byte = *numbers.next().unwrap();
            value |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    let mut places: Vec<[u16; 3]> = Vec::new();
    let add = |places: &mut Vec<[u16; 3]>, near: [Option<usize>; 3]| {
        let i = places.len();
        let near = near.map(|vertex| vertex.map_or([0; 3], |vertex| places[vertex]));
        places.push(std::array::from_fn(|axis| {
            let byte = |plane| u16::from(planes[plane * vertices + i]);
            let folded = byte(2 * axis) | byte(2 * axis + 1) << 8;
            let delta = if folded % 2 == 0 { folded / 2 } else { !(folded / 2) };
            near[0][axis]
                .wrapping_add(near[1][axis])
                .wrapping_sub(near[2][axis])
                .wrapping_add(delta)
        }));
        i
    };
    let mut out: Vec<[usize; 3]> = Vec::new();
    let mut all = Rings::default();
    while out.len() < triangles {
        let mut corners = [0; 3];
        for i in 0..3 {
            let before = if i == 0 { None } else { Some(corners[i - 1]) };
            corners[i] = match number() {
                0 => add(&mut places, [before, None, None]),
                newer => places.len() - newer,
            };
        }
        let [a, b, c] = corners;
        out.push(corners);
        let mut ring = Vec::new();
        for ends in [[a, c, b], [c, b, a], [b, a, c]] {
            let place = all.place();
            all.begun.insert(ends[0], place);
            ring.push((place, ends));
        }
        let (mut gate, mut waiting) = (Some(ring[2].0), Vec::new());
        all.rings.push(ring);
        while let Some(place) = gate.or_else(|| {
            std::iter::from_fn(|| waiting.pop()).find(|&place| all.find(place).is_some())
        }) {
            let (r, g) = all.find(place).unwrap();
            let ring = &mut all.rings[r];
            let len = ring.len();
            let [a, b, o] = ring[g].1;
            let (n, l) = ((g + 1) % len, (g + len - 1) % len);
            let before = (len > 1).then(|| ring[l].0);
            let ([next_from, next_to, _], [last_from, ..]) = (ring[n].1, ring[l].1);
            if len > 1 && next_from == b && next_to == a {
                // In a ring of two edges, the edge before the gate is also the next one.
                gate = (len > 2).then(|| before.unwrap());
                all.remove(r, n);
                let (r, g) = all.find(place).unwrap();
                all.remove(r, g);
                continue;
            }
            match turns.next().unwrap() {
                1 => {
                    out.push([a, b, next_to]);
                    ring[g].1 = [a, next_to, b];
                    all.remove(r, n);
                    gate = Some(place);
                }
                2 => {
                    out.push([a, b, last_from]);
                    ring[g].1 = [last_from, b, a];
                    all.begun.insert(last_from, place);
                    all.remove(r, l);
                    gate = Some(place);
                }
                turn => {
                    let newer = if turn == 3 { number() } else { 0 };
                    if turn == 3 && newer == 0 {
                        gate = before;
                        all.remove(r, g);
                        continue;
                    }
                    let c = match newer {
                        0 => add(&mut places, [Some(a), Some(b), Some(o)]),
                        newer => places.len() - newer,
                    };
                    out.push([a, b, c]);
                    let passed = all.begun.get(&c).and_then(|&other| {
                        let (ring, index) = all.find(other)?;
                        (all.rings[ring][index].1[0] == c).then_some(other)
                    });
                    let new = all.place();
                    all.begun.insert(c, new);
                    all.rings[r][g].1 = [a, c, b];
                    all.rings[r].insert(g + 1, (new, [c, b, a]));
                    if let Some(other) = passed {
                        let (s, at) = all.find(other).unwrap();
                        if s == r {
                            // After the gate: all edges from the new one to the one before `other`.
                            let ring = &mut all.rings[r];
                            ring.rotate_left(g + 1);
                            let at = (at + ring.len() - g - 1) % ring.len();
                            let parted = ring.drain(..at).collect();
                            all.rings.push(parted);
                        } else {
                            let mut joined = all.rings[s].clone();
                            joined.rotate_left(at);
                            all.rings[s].clear();
                            all.rings[r].splice(g + 1..g + 1, joined);
                        }
                        waiting.push(place);
                    }
                    gate = Some(new);
                }
            }
        }
        all.rings.clear();
    }
    assert_eq!(places.len(), vertices);
    let place = |vertex: usize| places[vertex].map(i64::from);
    canonical(out.into_iter().map(|triangle| triangle.map(place)))
}

fn assert_packing_round_trips(surface: &Surface, name: &str) -> usize {
    let packed = PackedSurface::within(surface, surface.bounds().unwrap_or_default());
    let PackedSurface { vertices, triangles, low, step, sections, .. } = packed;
    let found = unpack_surface(&inflate(&packed.bytes), vertices, triangles, sections);
    assert!(found == quantized(surface, low, step), "{name}");
    packed.bytes.len()
}

#[test]
fn packs_arbitrary_triangles() {
    assert_packing_round_trips(&Surface::default(), "nothing");
    for seed in 0..300 {
        let mut noise = Noise(seed + 1);
        let mut below = |n: u64| noise.next() % n;
        let vertices = 3 + below(12);
        let position = |i: u64| [(i * 7 % 5) as f32, (i * 3 % 11) as f32, i as f32 - 4.0];
        let positions = (0..vertices).map(position).collect();
        let triangles = (0..below(40))
            .map(|_| {
                loop {
                    let triangle = [0; 3].map(|_| below(vertices) as u32);
                    // Only triangles with three different corners are valid in a surface.
                    if triangle[0] != triangle[1]
                        && triangle[1] != triangle[2]
                        && triangle[0] != triangle[2]
                    {
                        break triangle;
                    }
                }
            })
            .collect();
        let surface = Surface { positions, triangles, ..Surface::default() };
        assert_packing_round_trips(&surface, &format!("soup {seed}"));
    }
}

#[test]
fn packs_sheets_with_holes_tubes_and_tori() {
    // A sheet with holes, also bent into a tube and a torus.
    for (width, height, wraps) in
        [(9u32, 7u32, [false; 2]), (12, 8, [true, false]), (10, 9, [true; 2])]
    {
        for hole in [0, 3, 5] {
            let at = |x: u32, y: u32| (y % height) * width + x % width;
            let positions = (0..width * height)
                .map(|i| [(i % width) as f32, (i / width) as f32, (i * 37 % 11) as f32])
                .collect();
            let mut triangles = Vec::new();
            for y in 0..height - u32::from(!wraps[1]) {
                for x in 0..width - u32::from(!wraps[0]) {
                    if hole > 0 && (x + 2 * y) % hole == 0 && x % 3 == 1 {
                        continue;
                    }
                    let [a, b, c, d] = [at(x, y), at(x + 1, y), at(x, y + 1), at(x + 1, y + 1)];
                    triangles.extend([[a, b, c], [b, d, c]]);
                }
            }
            let surface = Surface { positions, triangles, ..Surface::default() };
            assert_packing_round_trips(&surface, &format!("{width}x{height} {wraps:?} {hole}"));
        }
    }
}
