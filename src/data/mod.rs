//! Plain values that kernels and formats share: they know neither files nor devices.

pub mod blocks;
pub mod dtype;
#[doc(hidden)]
pub mod image;
pub mod noise;
pub mod number;
pub mod raster;
pub mod samples;
pub mod srgb;
pub mod surface;
pub mod volume;
