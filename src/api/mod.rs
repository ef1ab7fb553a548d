//! The public API: images, volumes and operations, typed by their samples. `lib.rs` re-exports all of it.

mod blur;
mod device;
mod histogram;
mod image;
mod mesh;
mod sample;
mod volume;

pub use blur::{Blur, Blurred};
pub use device::Device;
pub use histogram::{Counts, Histogram, histogram};
pub use image::{Channels, Image};
pub use mesh::{MarchingCubes, Mesh, mesh};
pub use sample::{ImageSample, Sample};
pub use volume::Volume;
