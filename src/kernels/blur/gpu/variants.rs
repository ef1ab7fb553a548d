//! The shaders that a blur can run, for a test that validates them.

use super::{
    combine,
    route::{Limits, RoutePasses},
    routes::choose_route,
    working_space,
};
use crate::{
    data::grid::Shape,
    gpu::{MultiplyAdd, Shader, multiply_add_probes},
    kernels::blur::{
        params::{Blur, Edge},
        plan::PassFormat,
        taps::{Method, Taps},
    },
};

/// A device with a GPU's limits, one without optional features, and one with little workgroup memory, narrow subgroups
/// and small bindings.
const DEVICES: [Limits; 3] = [
    limits(48 << 10, 1024, Some([32, 32]), true, MultiplyAdd::Fused),
    limits(16 << 10, 256, None, false, MultiplyAdd::Fused),
    limits(16 << 10, 256, Some([4, 128]), true, MultiplyAdd::InF64),
];

const fn limits(
    workgroup_bytes: usize,
    invocations: usize,
    subgroup: Option<[u32; 2]>,
    int64: bool,
    multiply_add: MultiplyAdd,
) -> Limits {
    Limits { workgroup_bytes, invocations, subgroup, int64, binding: 1 << 25, multiply_add }
}

const EDGES: [Edge; 5] =
    [Edge::Clamp, Edge::Reflect, Edge::Mirror, Edge::Wrap, Edge::Constant(1.0)];

/// Radii on both sides of all limits of routes and their constants.
const RADII: [usize; 18] = [1, 2, 3, 4, 5, 6, 8, 12, 23, 24, 40, 63, 64, 129, 191, 192, 500, 1500];

/// The shaders of this family in the specialisations that a blur of some image or volume uses, with all values of all
/// constants but those that may have any value.
pub fn variants() -> Vec<Shader> {
    let mut variants = multiply_add_probes().to_vec();
    variants.extend([combine::variants(), working_space::variants()].concat());
    for (number, radius) in RADII.into_iter().enumerate() {
        for channels in 1..=4 {
            // Not all edges with all radii and channels.
            let edge = EDGES[(number + channels) % EDGES.len()];
            for limits in &DEVICES {
                variants.extend(shaders_for_radius(radius, channels, edge, limits));
            }
        }
    }
    variants.sort_by_cached_key(Shader::key);
    variants.dedup_by_key(|shader| shader.key());
    variants
}

fn shaders_for_radius(radius: usize, channels: usize, edge: Edge, limits: &Limits) -> Vec<Shader> {
    let mut shaders = Vec::new();
    let shape = Shape { dims: [1000, 500, 3], channels };
    for method in [Method::Gaussian, Method::Box] {
        let taps = match method {
            Method::Gaussian => Taps::gaussian(radius as f64 / 3.0, radius),
            Method::Box => Taps::box_filter(radius),
        };
        // Volumes, images, and single axes.
        let axes = [
            [taps; 3],
            [taps, taps, Taps::NONE],
            [taps, Taps::NONE, Taps::NONE],
            [Taps::NONE, taps, Taps::NONE],
        ];
        for (axes, iterations) in axes.into_iter().flat_map(|axes| [(axes, 1), (axes, 2)]) {
            let blur = Blur { method, axes, iterations, edge, linear: false };
            for format in [PassFormat::U8, PassFormat::U16, PassFormat::U24, PassFormat::F32] {
                let plan = blur.plan(format, [1.0; 4]);
                let mut passes = &plan[..];
                while !passes.is_empty() {
                    let task = RoutePasses { passes, shape, edge, limits: *limits };
                    let route = choose_route(&task);
                    shaders.extend((route.shaders)(&task));
                    passes = &passes[route.passes..];
                }
            }
        }
    }
    shaders
}

#[cfg(test)]
mod tests {
    use super::{super::routes::ROUTES, variants};

    /// Shaders that are not those of a route.
    const OTHERS: [&str; 3] = ["blur/combine", "blur/working_space", "shared/multiply_add_probe"];

    #[test]
    fn every_route_is_taken() {
        let taken: std::collections::BTreeSet<_> = variants()
            .iter()
            .map(crate::gpu::Shader::name)
            .filter(|name| !OTHERS.contains(name))
            .collect();
        assert_eq!(taken.len(), ROUTES.len(), "{taken:?}");
    }
}
