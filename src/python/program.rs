//! The command line `gpuproc` in the process of Python.

use std::{ffi::OsString, path::PathBuf};

use pyo3::pyfunction;

use crate::{cli, util::program};

/// Runs the command line `words`, the first of which is the name of the program, and returns the exit code. `python` and
/// `first` start the program again for a part of its work.
#[pyfunction]
pub(super) fn main(python: PathBuf, first: Vec<OsString>, words: Vec<OsString>) -> u8 {
    #[cfg(unix)]
    crate::io::standard::record_closed();
    program::set_host(python, first, words);
    cli::main()
}
