//! Everything that touches wgpu: adapters and devices, shaders, buffers, command batches, timestamps.
//!
//! A kernel asks its [`Context`] for buffers and pipelines, describes its passes in a [`Batch`] and
//! submits it. Bindings are named as in the WGSL; their numbers and the workgroup sizes are read from
//! the shader, never written down twice.

mod batch;
mod buffer;
mod context;
mod shader;

pub use batch::{Batch, Pass, Submission};
pub use buffer::Buffer;
pub use context::{Adapter, Caps, Context, Fault, adapters};
pub use shader::{Pipeline, Shader, ShaderStruct};

pub use wgpu::naga;
