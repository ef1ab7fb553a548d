//! The library's face: images, volumes and jobs with their sample type in their own type, over the values
//! of `data` and the kernels. `lib.rs` passes all of it on.

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
