//! All use of wgpu: adapters and devices, shaders, buffers, batches of passes, timestamps.
//!
//! A kernel allocates buffers in its [`Context`], records its passes in a [`Batch`] and submits it. Bindings have the
//! names of the WGSL variables; their numbers, workgroup sizes, constants and struct layouts are read from the shader.

mod adapter;
mod batch;
mod buffer;
mod context;
mod fault;
mod guard;
mod multiply_add;
mod once_cache;
mod pipeline;
mod pool;
mod probe;
mod recording;
mod restrictions;
mod shader;
mod staging;
mod submit;
mod transfer;
mod watch;

pub use adapter::{Adapter, AdapterInfo, AdapterKind, DeviceLimits, adapters};
pub use batch::Batch;
pub use buffer::Buffer;
pub use context::Context;
pub use fault::Fault;
pub(crate) use guard::panic_text;
pub use guard::{has_device_hung, is_driver_loaded};
pub(crate) use guard::{set_device_hung, set_driver_loaded};
pub use multiply_add::MultiplyAdd;
pub use pipeline::Pipeline;
pub use probe::multiply_add_probes;
pub use restrictions::{Baseline, Restrictions};
pub use shader::{ConstantValue, Shader, ShaderStruct};
pub use watch::{driver_timeout, tick};
pub(crate) use watch::{wait_in_steps, watched, watched_kernel};
pub use wgpu::Features;
