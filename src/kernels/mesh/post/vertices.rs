//! Fewer vertices for the same triangles.

use std::collections::HashMap;

use crate::{
    data::surface::Surface,
    error::{Error, Kind, Result},
    memory, parallel,
};

/// Makes vertices at one place one, and drops the triangles without area that this leaves: samples
/// equal to the isovalue make such.
pub(super) fn weld(surface: &mut Surface) -> Result<()> {
    let mut first = HashMap::new();
    first
        .try_reserve(surface.positions.len())
        .map_err(|_| Error::new(Kind::Failure, "no memory to weld vertices"))?;
    let numbers: Vec<u32> = (0..)
        .zip(&surface.positions)
        .map(|(i, position)| *first.entry(position.map(f32::to_bits)).or_insert(i))
        .collect();
    replace(surface, &numbers);
    Ok(())
}

/// Makes vertex `i` vertex `by[i]` in all triangles, and drops those that are left with fewer than
/// three vertices.
pub(super) fn replace(surface: &mut Surface, by: &[u32]) {
    surface.triangles.iter_mut().flatten().for_each(|i| *i = by[*i as usize]);
    surface.triangles.retain(|[a, b, c]| a != b && b != c && c != a);
}

/// Drops vertices that no triangle uses; the others keep their order.
pub(super) fn drop_unused(surface: &mut Surface) -> Result<()> {
    let Surface { positions, normals, triangles, .. } = surface;
    let mut used = memory::zeros::<bool>(positions.len())?;
    triangles.iter().flatten().for_each(|&i| used[i as usize] = true);
    let mut numbers = memory::zeros::<u32>(used.len())?;
    let mut next = 0;
    for (number, &used) in numbers.iter_mut().zip(&used) {
        *number = next;
        next += u32::from(used);
    }
    parallel::update(triangles, |triangle| *triangle = triangle.map(|i| numbers[i as usize]));
    for vectors in [positions, normals] {
        let mut used = used.iter();
        vectors.retain(|_| *used.next().expect("one a vertex"));
    }
    Ok(())
}
