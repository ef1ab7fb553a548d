//! Devices, and the one that calls use by default.

use std::{
    env, panic, process,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use pyo3::{
    Borrowed, Bound, FromPyObject, PyAny, PyErr, PyResult, Python,
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::PyDictMethods,
    pyclass, pyfunction, pymethods,
    types::{PyAnyMethods, PyDict},
};

use super::error::{exception, start_log};
use crate::{
    device::{self, DeviceChoice, automatic},
    gpu,
    util::{thread_pool::start_pool, timings::Timings},
};

/// A device that runs operations: the CPU or a GPU, with the same results.
///
/// Parameters
/// ----------
/// device : str or int, default "auto"
///     "auto" is a hardware GPU, or the CPU if there is none; it computes small arrays on the CPU. "cpu" is the CPU,
///     "gpu" the first adapter, even if it is software, a number is the adapter with this number in
///     `devices()`, and any other text is a part of an adapter's name.
///
/// Raises
/// ------
/// DeviceError
///     If there is no such device, or if it cannot be opened.
///
/// Examples
/// --------
/// >>> import gpuproc as gp
/// >>> gp.Device("cpu").name
/// 'CPU'
#[pyclass(frozen, module = "gpuproc")]
#[derive(Debug)]
pub(super) struct Device {
    inner: Arc<device::Device>,
    choice: DeviceChoice,
}

/// The value of an argument that chooses a device.
struct Choice(DeviceChoice);

impl<'py> FromPyObject<'_, 'py> for Choice {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(index) = value.extract::<usize>() {
            return Ok(Self(DeviceChoice::Index(index)));
        }
        let text: String = value.extract().map_err(|_| {
            PyTypeError::new_err("device: expected a string or a number of a device")
        })?;
        text.parse().map(Self).map_err(|error| PyValueError::new_err(format!("device: {error}")))
    }
}

impl Device {
    fn create(py: Python<'_>, choice: DeviceChoice) -> PyResult<Self> {
        prepare()?;
        if choice != DeviceChoice::Cpu {
            // Mesa's device-selection layer would connect to a display, and complain if there is none.
            let environment = py.import("os")?.getattr("environ")?;
            environment.call_method1("setdefault", ("NODEVICE_SELECT", "1"))?;
        }
        let inner = Arc::new(device::Device::new(&choice, Arc::new(Timings::new(false))));
        Ok(Self { inner, choice })
    }
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (device = Choice(DeviceChoice::Auto)), text_signature = "(device=\"auto\")")]
    fn new(py: Python<'_>, device: Choice) -> PyResult<Self> {
        let device = Self::create(py, device.0)?;
        py.detach(|| device.inner.context().map(drop)).map_err(exception)?;
        Ok(device)
    }

    /// Name of the device, such as "NVIDIA H200" or "CPU".
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.inner.context().map(drop)).map_err(exception)?;
        Ok(self.inner.name().unwrap_or_default().into_owned())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<gpuproc.Device {}>", self.name(py)?))
    }
}

/// The device of calls without `device`, opened by the first of them.
static DEFAULT: Mutex<Option<(Arc<device::Device>, bool)>> = Mutex::new(None);

/// Sets the device of all calls that do not name one.
///
/// The default is the one that the environment variable GPUPROC_DEVICE names, else "auto".
///
/// Parameters
/// ----------
/// device : Device, str or int
///     The device, or an argument of `Device`.
///
/// Examples
/// --------
/// >>> import gpuproc as gp
/// >>> gp.set_device("cpu")
#[pyfunction]
pub(super) fn set_device(device: &Bound<'_, PyAny>) -> PyResult<()> {
    let chosen = match device.cast::<Device>() {
        Ok(device) => device.get().shared(),
        Err(_) => Device::new(device.py(), device.extract()?)?.shared(),
    };
    *DEFAULT.lock().unwrap_or_else(PoisonError::into_inner) = Some(chosen);
    Ok(())
}

impl Device {
    /// The device, and whether it is chosen automatically.
    fn shared(&self) -> (Arc<device::Device>, bool) {
        (self.inner.clone(), self.choice == DeviceChoice::Auto)
    }
}

/// The device for a call on arrays of `bytes` bytes.
pub(super) fn device_for(
    py: Python<'_>,
    chosen: Option<&Bound<'_, Device>>,
    bytes: usize,
) -> PyResult<Arc<device::Device>> {
    /// Arrays for which a transfer to a GPU and back takes longer than the CPU.
    const SMALL: usize = 1 << 18;
    prepare()?;
    let (device, is_automatic) = match chosen {
        Some(device) => device.get().shared(),
        None => {
            let mut default = DEFAULT.lock().unwrap_or_else(PoisonError::into_inner);
            match &*default {
                Some(default) => default.clone(),
                None => {
                    let name = env::var("GPUPROC_DEVICE").unwrap_or_default();
                    let choice = name.parse().unwrap_or(DeviceChoice::Auto);
                    default.insert(Device::create(py, choice)?.shared()).clone()
                }
            }
        }
    };
    Ok(if is_automatic && bytes < SMALL { cpu() } else { device })
}

fn cpu() -> Arc<device::Device> {
    static CPU: OnceLock<Arc<device::Device>> = OnceLock::new();
    let open = || device::Device::new(&DeviceChoice::Cpu, Arc::new(Timings::new(false)));
    CPU.get_or_init(|| Arc::new(open())).clone()
}

/// Starts threads and log on the first call, and refuses to work in a forked process.
pub(super) fn prepare() -> PyResult<()> {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    let first = PROCESS.get_or_init(|| {
        start_log();
        // Decoders and drivers may panic. Their callers catch the panic.
        panic::set_hook(Box::new(|panic| log::debug!("{panic}")));
        // If the system grants no thread, the first loop reports it.
        let _ = start_pool(None);
        process::id()
    });
    if *first == process::id() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "gpuproc was used before this process was forked, which does not copy its threads; \
         start processes by `spawn` or `forkserver`",
    ))
}

/// Lists the CPU and all adapters.
///
/// Returns
/// -------
/// list of dict
///     For each device: `device` (the argument of `Device`), `name`, `kind`, `backend`, `driver`, and whether
///     `Device("auto")` chooses it (`auto`).
///
/// Examples
/// --------
/// >>> import gpuproc as gp
/// >>> gp.devices()[0]["device"]
/// 'cpu'
#[pyfunction]
pub(super) fn devices(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    prepare()?;
    let adapters = py.detach(|| gpu::watched("a start", gpu::adapters));
    let auto = automatic(&adapters);
    let cpu = PyDict::new(py);
    cpu.set_item("device", "cpu")?;
    cpu.set_item("name", "CPU")?;
    cpu.set_item("kind", "cpu")?;
    cpu.set_item("backend", "native")?;
    cpu.set_item("driver", "")?;
    cpu.set_item("auto", auto.is_none())?;
    let mut rows = vec![cpu];
    for (index, adapter) in adapters.iter().enumerate() {
        let row = PyDict::new(py);
        row.set_item("device", index)?;
        row.set_item("name", &adapter.info.name)?;
        row.set_item("kind", adapter.info.kind.to_string())?;
        row.set_item("backend", &adapter.info.backend)?;
        row.set_item("driver", &adapter.info.driver)?;
        row.set_item("auto", auto == Some(index))?;
        rows.push(row);
    }
    Ok(rows)
}
