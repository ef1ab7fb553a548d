//! Everything that touches wgpu: adapters and devices, shaders, buffers, command batches, timestamps.
//!
//! A kernel asks its [`Context`] for buffers and pipelines, describes its passes in a [`Batch`] and
//! submits it. Bindings are named as in the WGSL; their numbers and the workgroup sizes are read from
//! the shader, never written down twice.

#[forbid(unsafe_code)]
mod batch;
#[forbid(unsafe_code)]
mod buffer;
#[forbid(unsafe_code)]
mod context;
mod pipeline;
#[forbid(unsafe_code)]
mod shader;

pub use batch::{Batch, Pass, Submission};
pub use buffer::Buffer;
pub(crate) use context::panic_text;
pub use context::{Adapter, Caps, Context, Fault, adapters, any_hung};
pub use pipeline::Pipeline;
pub use shader::{Shader, ShaderStruct};

pub use wgpu::Limits;
