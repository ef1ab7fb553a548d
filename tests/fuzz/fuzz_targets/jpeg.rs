#![no_main]
// Decoders panic on broken files; what is caught passes in silence.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |bytes: &[u8]| gpuproc_fuzz::jpeg(bytes));
