//! Removal of unused vertices.

use crate::{
    data::surface::Surface,
    util::{error::Result, memory, parallel},
};

/// Drops vertices that no triangle uses. The others keep their order.
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
        vectors.retain(|_| *used.next().expect("one flag per vertex"));
    }
    Ok(())
}
