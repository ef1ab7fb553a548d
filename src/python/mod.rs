//! The Python module: the operations on NumPy arrays, with the names and signatures of SciPy and scikit-image. It is
//! built by maturin from `pyproject.toml` in this folder; `gpuproc/` holds its Python files.
//!
//! | module | holds |
//! |---|---|
//! | `arguments` | numbers, and one value for all axes or one for each |
//! | `array` | NumPy arrays as grids, without copies, and results as arrays |
//! | `chain` | filters one after another |
//! | `device` | devices, and the one that calls use by default |
//! | `error` | errors as exceptions, messages as log records |
//! | `files` | reads and writes files |
//! | `filters` | what all operations from an array to an array have in common |
//! | `measures` | histograms and statistics |
//! | `meshes` | surfaces |
//! | `numbers` | sums and sorts |
//! | `operations` | the functions of operations that the library declares |
//! | `program` | the command line |
//! | `recorder` | the placeholder of an image in a chain |
//! | `thresholds` | masks and classes |

mod arguments;
mod array;
mod chain;
mod device;
mod error;
mod files;
mod filters;
mod measures;
mod meshes;
mod numbers;
mod operations;
mod program;
mod recorder;
mod thresholds;

#[pyo3::pymodule]
mod _gpuproc {
    #[pymodule_export]
    use super::{
        chain::chain,
        device::{Device, devices, set_device},
        error::DeviceError,
        files::{imread, imwrite},
        measures::{histogram, statistics},
        meshes::{label_meshes, marching_cubes, simplify},
        numbers::{argsort, cumsum, integral_image, sort},
        operations::stubs,
        program::main,
        thresholds::{threshold, threshold_otsu},
    };

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        super::operations::add(module)
    }
}
