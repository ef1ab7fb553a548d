//! Processing of the faces between labels slab by slab: the set of labels with faces, and the vertices that later faces
//! use.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::{
    data::label_mesh::{LabelMesh, Quad, UNIT},
    util::{error::Result, memory, parallel::Parallel},
};

/// The set of the numbers of all labels with faces.
pub(super) struct LabelSet {
    /// One bit for each number below [`SMALL`](Self::SMALL).
    small: Vec<AtomicU64>,
    others: Mutex<BTreeSet<u32>>,
}

impl LabelSet {
    const SMALL: u32 = 1 << 24;

    pub(super) fn new() -> Result<Self> {
        let small = memory::zeros::<u64>(Self::SMALL as usize / 64)?;
        let small = small.into_iter().map(AtomicU64::new).collect();
        Ok(Self { small, others: Mutex::default() })
    }

    fn insert(&self, quads: &[Quad]) {
        let mut others = Vec::new();
        for label in quads.iter().flat_map(|quad| quad.labels) {
            if label >= Self::SMALL {
                others.push(label);
                continue;
            }
            let (word, bit) = (&self.small[label as usize / 64], 1 << (label % 64));
            if word.load(Relaxed) & bit == 0 {
                word.fetch_or(bit, Relaxed);
            }
        }
        if !others.is_empty() {
            others.sort_unstable();
            others.dedup();
            self.others.lock().unwrap_or_else(PoisonError::into_inner).extend(others);
        }
    }

    /// The numbers in ascending order, without 0.
    pub(super) fn into_labels(self) -> impl Iterator<Item = u32> {
        let Self { small, others } = self;
        let bit = move |label: &u32| small[*label as usize / 64].load(Relaxed) >> (label % 64) & 1;
        let small = (1..Self::SMALL).filter(move |label| bit(label) == 1);
        small.chain(others.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The vertices of the topmost layer so far, which the faces of the next part may use.
#[derive(Default)]
pub(super) struct TopLayer {
    first: u64,
    vertices: Vec<[u32; 3]>,
}

impl TopLayer {
    /// Splits each quad of the next part along its shorter diagonal and adds its labels to `found`. `first_vertex` is
    /// the number of the first vertex of the part.
    pub(super) fn split(
        &mut self,
        first_vertex: u64,
        part: &mut LabelMesh,
        found: Option<&LabelSet>,
    ) {
        let LabelMesh { vertices, quads } = part;
        let corner = |number: u32| match u64::from(number).checked_sub(first_vertex) {
            Some(own) => vertices[own as usize],
            None => self.vertices[(u64::from(number) - self.first) as usize],
        };
        quads.chunks_mut(1 << 14).par_each(|quads| {
            if let Some(found) = found {
                found.insert(quads);
            }
            for quad in quads {
                let [a, b, c, d] = quad.vertices;
                quad.split(Quad::is_first_shorter([corner(a), corner(b), corner(c), corner(d)]));
            }
        });
        let layer = |vertex: &[u32; 3]| (vertex[2] + UNIT / 2) / UNIT;
        let Some(top) = vertices.last().map(layer) else { return };
        let count = vertices.iter().rev().take_while(|vertex| layer(vertex) == top).count();
        let kept = vertices.len() - count;
        self.first = first_vertex + kept as u64;
        self.vertices = vertices[kept..].to_vec();
    }
}
