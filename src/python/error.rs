//! Errors as exceptions, and messages as records of Python's logging.

use std::io;

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::{
    PyErr, Python, create_exception,
    exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError},
    types::PyAnyMethods,
};

use super::arguments::WrongType;
use crate::util::error::{Error, Hint, Kind};

create_exception!(
    gpuproc,
    DeviceError,
    PyRuntimeError,
    "There is no such device, or a GPU failed while working."
);

/// The exception for `error`, with the text that the program prints.
pub(super) fn exception(error: Error) -> PyErr {
    let text = error.one_line();
    match error.kind() {
        Kind::Usage if error.chain().any(<dyn std::error::Error>::is::<WrongType>) => {
            PyTypeError::new_err(text)
        }
        Kind::Usage | Kind::BadInput if error.hint() == Some(Hint::Memory) => {
            PyMemoryError::new_err(text)
        }
        Kind::Usage | Kind::BadInput => PyValueError::new_err(text),
        Kind::NoDevice | Kind::Gpu => DeviceError::new_err(text),
        Kind::Io => {
            let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
            match causes.find_map(io::Error::raw_os_error) {
                // Python chooses the subclass, such as FileNotFoundError, by the number.
                Some(number) => PyOSError::new_err((number, text)),
                None => PyOSError::new_err(text),
            }
        }
        _ if error.chain().any(|cause| cause.to_string().starts_with("out of memory")) => {
            PyMemoryError::new_err(text)
        }
        _ => PyRuntimeError::new_err(text),
    }
}

/// Passes warnings to the logger `gpuproc` of Python's module `logging`.
pub(super) fn start_log() {
    // A second call, and one in the process of the program, keeps the first logger.
    if log::set_logger(&PythonLog).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

struct PythonLog;

impl Log for PythonLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn && metadata.target().starts_with("gpuproc")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let method = if record.level() == Level::Error { "error" } else { "warning" };
        Python::attach(|py| {
            let logger =
                py.import("logging").and_then(|m| m.call_method1("getLogger", ("gpuproc",)));
            let text = record.args().to_string();
            // A handler that fails does not stop the operation.
            if let Ok(logger) = logger {
                let _ = logger.call_method1(method, ("%s", text));
            }
        });
    }

    fn flush(&self) {}
}
