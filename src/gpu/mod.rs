//! All use of wgpu: adapters and devices, shaders, buffers, batches of passes, timestamps.
//!
//! A kernel asks its [`Context`] for buffers and pipelines, describes its passes in a [`Batch`] and
//! submits it. Bindings have the names of the WGSL variables; their numbers, workgroup sizes, constants
//! and struct layouts are read from the shader.

mod adapter;
mod batch;
mod buffer;
mod caps;
mod context;
mod fault;
mod guard;
mod multiply_add;
mod once_cache;
mod pipeline;
mod pool;
mod probe;
mod recording;
mod shader;
mod staging;
mod submit;
mod transfer;
mod watch;

pub use adapter::{Adapter, AdapterInfo, AdapterKind, DeviceLimits, adapters};
pub use batch::Batch;
pub use buffer::Buffer;
pub use caps::{Baseline, Caps};
pub use context::Context;
pub use fault::Fault;
pub(crate) use guard::panic_text;
pub use guard::{any_driver, any_hung};
pub(crate) use guard::{device_hangs, driver_starts};
pub use multiply_add::MultiplyAdd;
pub use pipeline::Pipeline;
pub use probe::multiply_add_probes;
pub use shader::{Shader, ShaderStruct};
pub use watch::{patience, tick};
pub(crate) use watch::{patiently, watched, watched_loosely};
pub use wgpu::Features;
