//! The input of a route.

use crate::{
    data::{grid::Shape, samples::Samples},
    kernels::blur::{params::Edge, plan::Pass},
};

/// Passes of a plan, and the samples that they read.
pub(super) struct CpuPasses<'a> {
    pub(super) passes: &'a [Pass],
    pub(super) edge: Edge,
    pub(super) shape: Shape,
    pub(super) values: &'a Samples,
}
