//! The test suite, as one binary. The CPU and GPU implementations of every kernel are compared with naive references,
//! on every available device and on a deliberately small one. The program is run as a user would run it.

#[macro_use]
extern crate registry;

mod address_space;
mod animations;
mod asserts;
mod bad_input;
mod batch;
mod bench;
mod blur;
mod blur_deep;
mod blur_reference;
mod claims;
mod cli;
mod colors;
mod common;
mod console;
mod damage;
mod damaged_jpeg;
mod dicom;
mod equalize;
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
mod histogram_command;
mod hostile;
mod image;
mod inputs;
mod jpeg;
mod jpeg_peers;
mod jxl;
mod label_reference;
mod labels;
mod library;
mod memory;
mod memory_inputs;
mod mesh;
mod mesh_command;
mod mesh_formats;
mod mesh_info;
mod mesh_processing;
mod mesh_readers;
mod mesh_reference;
mod morph;
mod options;
mod pages;
mod plots;
mod precomputed;
mod project;
mod random;
mod regions;
mod render;
mod resize;
mod sample_types;
mod scan;
mod scan_command;
mod scan_gpu;
mod serve;
mod shaders;
mod shard_runs;
mod shards;
mod shared;
mod shell;
mod simd;
mod simplify;
mod sizes;
mod skull;
mod slices;
mod soak;
mod sort;
mod statistics;
mod stopped_runs;
mod streams;
mod summed_area_tables;
mod surface_geometry;
mod texts;
mod threshold;
mod ties;
mod tiff;
mod tiff_stacks;
mod topology;
mod unit_files;
mod units;
mod usage;
mod volume_errors;
mod volume_info;
mod volume_output;
mod volumes;
mod web;
#[cfg(feature = "webp-lossy")]
mod webp_lossy;
mod web_packing;
mod zarr;
mod zarr_hostile;
mod zarr_reader;
mod zarr_sparse;
mod zarr_stores;
mod zarr_web;

fn main() {
    #[cfg(target_os = "linux")]
    common::measure_if_asked();
    harness::main();
}
