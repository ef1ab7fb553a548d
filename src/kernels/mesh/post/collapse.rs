//! Edge collapses in the order of their quadric error (Garland and Heckbert 1997), by meshoptimizer's
//! port to Rust, which needs no C++ compiler. It checks neither folded faces nor topology: the latter is
//! repaired afterwards.

use crate::{data::surface::Surface, error::Result, memory};

/// Memory that meshoptimizer takes for its tables, in bytes a corner and a vertex.
const TABLES: [usize; 2] = [36, 128];

/// Bytes that simplifying takes a vertex and a triangle: [`TABLES`], and the triangles that are left.
pub(super) const BYTES: [u64; 2] = [TABLES[1] as u64, 3 * TABLES[0] as u64 + 24];

/// About `target` triangles between some of the vertices.
pub(super) fn collapse(surface: &Surface, target: usize) -> Result<Vec<[u32; 3]>> {
    let indices: &[u32] = surface.triangles.as_flattened();
    // meshoptimizer aborts the process where it gets no memory: find out before.
    drop(memory::room::<u8>(TABLES[0] * indices.len())?);
    drop(memory::room::<u8>(TABLES[1] * surface.positions.len())?);
    let mut left = memory::zeros(indices.len())?;
    let any_error = f32::MAX;
    let len = meshopt_rs::simplify::simplify(
        &mut left,
        indices,
        &surface.positions,
        3 * target,
        any_error,
    );
    memory::copied(left[..len].as_chunks().0)
}
