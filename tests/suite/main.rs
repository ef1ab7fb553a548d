//! The test suite, as one binary. The CPU and GPU implementations of every kernel are compared with naive references,
//! on every available device and on a deliberately small one. The program is run as a user would run it.

#[macro_use]
extern crate registry;

mod bad_input;
mod batch;
mod bench;
mod blur;
mod claims;
mod cli;
mod colors;
mod common;
mod console;
mod damage;
mod dicom;
mod faults;
mod files;
mod floats;
mod floors;
mod formats;
mod fuzz;
#[path = "../fuzz/src/lib.rs"]
mod fuzz_targets;
mod gpu;
mod harness;
mod histogram;
mod hostile;
mod image;
mod jpeg;
mod jpeg_peers;
mod labels;
mod library;
mod memory;
mod mesh;
mod mesh_formats;
mod pages;
mod plots;
mod precomputed;
mod random;
mod regions;
mod render;
mod sample_types;
mod scan;
mod serve;
mod shaders;
mod shards;
mod shared;
mod shell;
mod simd;
mod simplify;
mod sizes;
mod slices;
mod soak;
mod sort;
mod statistics;
mod streams;
mod texts;
mod threshold;
mod ties;
mod tiff;
mod tiff_stacks;
mod topology;
mod units;
mod usage;
mod volumes;
mod web;
mod zarr;
mod zarr_hostile;
mod zarr_sparse;
mod zarr_stores;
mod zarr_web;

fn main() {
    #[cfg(target_os = "linux")]
    common::measure_if_asked();
    harness::main();
}
