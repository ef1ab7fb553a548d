//! The GPU routes, one file each, named like its shader.

pub mod adjust;
mod blocks;
pub mod slots;
pub mod u8_levels;

use crate::gpu::{DeviceLimits, Shader};

/// Limits of a usual GPU, of a device with small workgroups, and of one with little workgroup memory.
const DEVICES: [DeviceLimits; 3] =
    [limits(48 << 10, 1024), limits(32 << 10, 256), limits(16_352, 256)];

const fn limits(workgroup_bytes: u32, workgroup_size: u32) -> DeviceLimits {
    DeviceLimits {
        binding_bytes: 1 << 27,
        buffer_bytes: 1 << 28,
        storage_buffers: 4,
        workgroups: 65_535,
        workgroup_bytes,
        workgroup_size,
    }
}

/// All specialisations of the shaders of this family.
pub fn variants() -> Vec<Shader> {
    let mut shaders = adjust::variants();
    for limits in &DEVICES {
        shaders.extend(u8_levels::variants(limits));
        shaders.extend(slots::variants(limits));
    }
    shaders
}
