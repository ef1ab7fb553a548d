//! Parts and holes whose vertices are all at the same position. Samples that equal the isovalue cause them.

use std::collections::BTreeMap;

use crate::{
    data::{
        surface::Surface,
        vec3::{dot, sub, triangle_normal},
    },
    kernels::mesh::post::{
        components::components,
        half_edges::{HalfEdge, edges, half_edges},
    },
    util::{error::Result, memory},
};

/// Closes each hole whose rim is at one position, since an edge on a rim of three edges could never collapse.
pub(super) fn close_holes(surface: &mut Surface) -> Result<()> {
    let half_edges = half_edges(surface)?;
    let is_short = |edge: &HalfEdge| {
        let [low, high] = [edge.low, edge.high].map(|end| surface.positions[end as usize]);
        low == high
    };
    // The new triangles run along the rim in the direction opposite to that of the adjacent triangles.
    let ends = |edge: HalfEdge| match edge.backwards {
        true => (edge.low, edge.high),
        false => (edge.high, edge.low),
    };
    let alone = edges(&half_edges).filter(|edge| edge.len() == 1);
    let rims = alone.map(|edge| half_edges[edge.start]).filter(is_short).map(ends);
    let mut rims: BTreeMap<u32, u32> = rims.collect();
    while let Some((first, mut next)) = rims.pop_first() {
        let mut rim = vec![first];
        while next != first {
            rim.push(next);
            let Some(after) = rims.remove(&next) else { break };
            next = after;
        }
        if next == first {
            let triangles = rim[1..].array_windows().map(|&[from, to]| [first, from, to]);
            memory::append(&mut surface.triangles, &mut memory::collected(triangles))?;
        }
    }
    Ok(())
}

/// Drops connected parts without area and returns their number.
pub(super) fn drop_parts(surface: &mut Surface) -> Result<u64> {
    let min_area = min_double_area(surface);
    let has_area = |triangle: [u32; 3]| {
        let normal = triangle_normal(surface.corners::<f64>(triangle));
        dot(normal, normal) > min_area * min_area
    };
    if surface.triangles.iter().all(|&triangle| has_area(triangle)) {
        return Ok(0);
    }
    let parts = components(surface)?;
    let part = |triangle: [u32; 3]| parts[triangle[0] as usize] as usize;
    let mut stays = memory::zeros::<bool>(parts.len())?;
    for &triangle in &surface.triangles {
        stays[part(triangle)] |= has_area(triangle);
    }
    let mut counted = memory::zeros::<bool>(parts.len())?;
    let mut dropped = 0;
    surface.triangles.retain(|&triangle| {
        let part = part(triangle);
        // Each part is counted once.
        if !stays[part] && !counted[part] {
            (counted[part], dropped) = (true, dropped + 1);
        }
        stays[part]
    });
    Ok(dropped)
}

/// Twice the largest area that counts as none. Rounding of the corners of a degenerate triangle may cause such an area.
pub fn min_double_area(surface: &Surface) -> f64 {
    let [low, high] = surface.bounds().unwrap_or_default().map(|corner| corner.map(f64::from));
    let extent = sub(high, low);
    1e-12 * dot(extent, extent)
}
