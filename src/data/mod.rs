//! Plain values that kernels and formats share: they know neither files nor devices.

pub mod blocks;
pub mod description;
pub mod division;
pub mod dtype;
pub mod exact_sum;
pub mod float_key;
pub mod grid;
pub mod image;
pub mod label_mesh;
pub mod length;
#[doc(hidden)]
pub mod noise;
pub mod number;
pub mod palette;
pub mod placement;
pub mod pyramid;
pub mod reader;
pub mod samples;
pub mod shard;
pub mod srgb;
pub mod surface;
pub mod vec3;
pub mod volume;
