//! gpuproc: image and volume processing on the GPU, with a native CPU twin of every kernel.
//!
//! A command is three steps: [`io`] reads, a kernel from [`kernels`] runs on a [`device`], [`io`]
//! writes. Start with one of the files in [`commands`] and follow its `run`.
//!
//! | module | holds |
//! |---|---|
//! | [`cli`] | the parser and the flags that all commands share |
//! | [`commands`] | one file a command: its flags and its three steps |
//! | [`kernels`] | one file a kernel family, beside its WGSL in `wgsl/`: parameters, CPU twin, GPU host code |
//! | [`data`] | plain values that kernels and formats share |
//! | [`session`] | what every command works with |
//! | [`batch`] | many files side by side |
//! | [`signals`] | ends of the process before its work is done |
//! | [`device`] | `--device`, the [`Kernel`](device::Kernel) trait, the fallback to the CPU |
//! | [`gpu`] | all use of wgpu: context, shaders, buffers, batches, timestamps |
//! | [`io`] | images, volumes, arrays, meshes; stdin and stdout; outputs that appear whole or not at all |
//! | [`memory`] | vectors as long as an input |
//! | [`simd`] | the instruction set that CPU code is run with |
//! | [`timings`], [`progress`], [`error`] | what a run tells its user |

// Unsafe code is only where it is named here: the shaders that run without checks (`gpu::shader`), and
// one line of `main.rs`. A test holds the rest to that.
#[forbid(unsafe_code)]
pub mod batch;
#[forbid(unsafe_code)]
pub mod cli;
#[forbid(unsafe_code)]
pub mod commands;
#[forbid(unsafe_code)]
pub mod data;
#[forbid(unsafe_code)]
pub mod device;
#[forbid(unsafe_code)]
pub mod error;
pub mod gpu;
#[forbid(unsafe_code)]
pub mod io;
pub mod kernels;
#[forbid(unsafe_code)]
pub mod memory;
#[forbid(unsafe_code)]
pub mod progress;
#[forbid(unsafe_code)]
pub mod session;
#[forbid(unsafe_code)]
pub mod signals;
#[forbid(unsafe_code)]
pub mod simd;
#[forbid(unsafe_code)]
pub mod timings;
