//! The program `gpuproc`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gpuproc::cli::main())
}

/// Runs before `main`, and so before Rust's runtime opens `/dev/null` in place of closed standard streams. Afterwards,
/// a stream that was closed could not be distinguished from one that the caller has opened as `/dev/null`, such as Python's
/// `subprocess.DEVNULL`.
#[cfg(unix)]
#[used]
#[expect(unsafe_code)]
// SAFETY: the section lists functions that the C runtime calls before `main`; this one ignores their arguments. It asks
// the system about two file descriptors and stores two atomic flags, for which it does not need Rust's runtime.
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static BEFORE_MAIN: extern "C" fn() = record_closed_streams;

#[cfg(unix)]
extern "C" fn record_closed_streams() {
    gpuproc::io::standard::record_closed();
}
