//! Moves vertices at equal positions apart, since readers of STL merge vertices by position.

use rayon::slice::ParallelSliceMut;

use crate::{
    data::surface::Surface,
    util::{error::Result, memory, parallel},
};

/// Share of the distance to the mean of its neighbours that a vertex moves in the first attempt.
const STEP: f32 = 1.0 / 64.0;
/// Maximum number of attempts to find unique positions. Each moves vertices twice as far as the previous one.
const MAX_ATTEMPTS: u32 = 6;

/// Moves vertices at equal positions apart. All but the first of them move slightly towards the mean of their
/// neighbours. Vertices on a side of the surface's box stay on it. Returns the number of vertices that moved.
pub fn separate(surface: &mut Surface) -> Result<usize> {
    let mut moved = 0;
    for attempt in 0..MAX_ATTEMPTS {
        let touching = touching(surface)?;
        if touching.is_empty() {
            break;
        }
        moved = touching.len().max(moved);
        let mut sums = memory::filled(([0.0f32; 3], 0.0f32), touching.len());
        for triangle in &surface.triangles {
            for (i, vertex) in triangle.iter().enumerate() {
                let Ok(at) = touching.binary_search(vertex) else { continue };
                for other in [triangle[(i + 1) % 3], triangle[(i + 2) % 3]] {
                    let position = surface.positions[other as usize];
                    sums[at].0 = std::array::from_fn(|i| sums[at].0[i] + position[i]);
                    sums[at].1 += 1.0;
                }
            }
        }
        let [low, high] = surface.bounds().unwrap_or_default();
        let step = STEP * 2f32.powi(attempt as i32);
        for (&vertex, (sum, count)) in touching.iter().zip(sums) {
            let position = &mut surface.positions[vertex as usize];
            *position =
                std::array::from_fn(|i| match position[i] == low[i] || position[i] == high[i] {
                    true => position[i],
                    false => position[i] + step * (sum[i] / count - position[i]),
                });
        }
    }
    Ok(moved)
}

/// Used vertices at the position of a used vertex with a lower number, in ascending order.
fn touching(surface: &Surface) -> Result<Vec<u32>> {
    let mut is_used = memory::zeros::<bool>(surface.positions.len())?;
    surface.triangles.as_flattened().iter().for_each(|&vertex| is_used[vertex as usize] = true);
    let key = |vertex: usize| {
        // +0 and -0 are equal.
        (surface.positions[vertex].map(|v| (v + 0.0).to_bits()), vertex as u32)
    };
    let mut keys = parallel::generated(surface.positions.len(), key)?;
    keys.retain(|key| is_used[key.1 as usize]);
    keys.par_sort_unstable();
    let mut touching: Vec<u32> = Vec::new();
    for &[one, other] in keys.array_windows() {
        if one.0 == other.0 {
            memory::reserve(&mut touching, 1)?;
            touching.push(other.1);
        }
    }
    touching.sort_unstable();
    Ok(touching)
}
