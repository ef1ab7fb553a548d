#![no_main]
libfuzzer_sys::fuzz_target!(init: gpuproc_fuzz::print_own_panics(), |bytes: &[u8]| gpuproc_fuzz::arguments(bytes));
