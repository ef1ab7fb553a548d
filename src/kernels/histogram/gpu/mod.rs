//! The GPU routes: one file each, with its shader's stem.

pub mod adjust;
mod bands;
pub mod baselines;
pub mod slots;
pub mod u8_levels;

use crate::gpu::Shader;

/// The shaders of this family.
pub const SHADERS: [&Shader; 4] =
    [&u8_levels::SHADER, &slots::SHADER, &baselines::SHADER, &adjust::SHADER];
