//! All use of wgpu: adapters and devices, shaders, buffers, batches of passes, timestamps.
//!
//! A kernel asks its [`Context`] for buffers and pipelines, describes its passes in a [`Batch`] and
//! submits it. Bindings have the names of the WGSL variables; their numbers, workgroup sizes, constants
//! and struct layouts are read from the shader.

#[forbid(unsafe_code)]
mod adapter;
#[forbid(unsafe_code)]
mod batch;
#[forbid(unsafe_code)]
mod buffer;
#[forbid(unsafe_code)]
mod caps;
#[forbid(unsafe_code)]
mod context;
#[forbid(unsafe_code)]
mod fault;
#[forbid(unsafe_code)]
mod guard;
#[forbid(unsafe_code)]
mod multiply_add;
#[forbid(unsafe_code)]
mod once_cache;
mod pipeline;
#[forbid(unsafe_code)]
mod pool;
#[forbid(unsafe_code)]
mod probe;
#[forbid(unsafe_code)]
mod recording;
#[forbid(unsafe_code)]
mod shader;
#[forbid(unsafe_code)]
mod staging;
#[forbid(unsafe_code)]
mod submit;
#[forbid(unsafe_code)]
mod transfer;
#[forbid(unsafe_code)]
mod watch;

pub use adapter::{Adapter, AdapterInfo, AdapterKind, DeviceLimits, Feature, adapters};
pub use batch::{Batch, Pass};
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
