//! NumPy arrays as grids, without copies, and results as arrays.

use std::{
    marker::PhantomData,
    mem::{self, ManuallyDrop},
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use numpy::{
    Element, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::{
    Bound, PyAny, PyResult, Python,
    exceptions::{PyTypeError, PyValueError},
    intern,
    types::PyAnyMethods,
};

use super::{arguments::Int, error::exception, recorder::Recorder};
use crate::{
    cli::free_memory,
    data::{
        dtype::{Dtype, Scalar},
        grid::{Alpha, Grid, GridType},
        samples::Samples,
    },
    for_dtype, for_samples,
    kernels::histogram::Pixels,
    util::{
        error::{Error, Kind, Result},
        memory, parallel,
    },
};

/// A NumPy array in C order, whose samples are grids one after the other.
pub(super) struct Array<'py> {
    array: Bound<'py, PyUntypedArray>,
    pub layout: ArrayAxes,
    pub dtype: Dtype,
    /// Whether the array holds booleans, which are read as u8.
    pub is_bool: bool,
}

/// The meaning of the axes of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrayAxes {
    /// Number of grids. An array whose channels are not interleaved has one for each channel.
    pub grids: usize,
    /// Size of a grid along x, y and z. Axes that the array lacks have size 1.
    pub dims: [usize; 3],
    /// Number of axes of a grid.
    pub axes: usize,
    /// Number of interleaved channels.
    pub channels: usize,
    /// Position of the axis of channels, if there is one.
    channel_axis: Option<usize>,
    is_interleaved: bool,
}

/// The module NumPy.
pub(super) fn numpy(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import(intern!(py, "numpy")).map(Bound::into_any)
}

/// `value` as an array.
pub(super) fn as_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    // The methods of subclasses, such as of matrices, have other results.
    if let Ok(array) = value.cast_exact::<PyUntypedArray>() {
        return Ok(array.clone());
    }
    if value.is_instance_of::<Recorder>() {
        return Err(PyValueError::new_err("chain: this function cannot be a step"));
    }
    Ok(numpy(value.py())?.call_method1("asarray", (value,))?.cast_into()?)
}

/// Booleans as u8, other arrays unchanged.
pub(super) fn bool_as_u8<'py>(image: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if image.is_instance_of::<Recorder>() {
        return Ok(image.clone());
    }
    let array = as_array(image)?;
    match array.dtype().kind() {
        b'b' => array.call_method1("view", ("uint8",)),
        _ => Ok(array.into_any()),
    }
}

/// The argument `name`, an axis of `axes`, which counts from the end if it is negative.
pub(super) fn axis_index(name: &str, axis: Int, axes: usize) -> PyResult<usize> {
    let axis = axis.number(name).map_err(exception)?;
    let index = if axis < 0 { axis + axes as i64 } else { axis };
    usize::try_from(index).ok().filter(|&index| index < axes).ok_or_else(|| {
        PyValueError::new_err(format!("axis {axis} is out of bounds for an array of {axes} axes"))
    })
}

impl<'py> Array<'py> {
    /// Reads `value` as images or volumes of 1 to 3 axes and, if `channel_axis` is given, several channels. Copies it if it
    /// is not in C order.
    pub fn new(value: &Bound<'py, PyAny>, channel_axis: Option<Int>) -> PyResult<Self> {
        /// Maximum number of interleaved channels.
        const MAX_CHANNELS: usize = 4;
        let mut array = as_array(value)?;
        let axes = array.ndim();
        let channel_axis =
            channel_axis.map(|axis| axis_index("channel_axis", axis, axes)).transpose()?;
        let (mut grids, mut channels, mut is_interleaved) = (1, 1, false);
        let mut sizes = array.shape().to_vec();
        if let Some(axis) = channel_axis {
            let count = sizes.remove(axis);
            if count == 0 {
                return Err(PyValueError::new_err("the array has no channels"));
            }
            if axis + 1 == axes && (1..=MAX_CHANNELS).contains(&count) {
                (channels, is_interleaved) = (count, true);
            } else {
                grids = count;
                array = numpy(value.py())?
                    .call_method1("moveaxis", (&array, axis, 0))?
                    .cast_into::<PyUntypedArray>()?;
            }
        }
        let axes = sizes.len();
        if !(1..=3).contains(&axes) {
            return Err(PyValueError::new_err(format!(
                "expected an array of 1 to 3 axes, and channel_axis for one of channels; found {axes} axes"
            )));
        }
        let mut dims = [1; 3];
        dims.iter_mut().zip(sizes.iter().rev()).for_each(|(dim, &size)| *dim = size);
        let layout = ArrayAxes { grids, dims, axes, channels, channel_axis, is_interleaved };
        let (array, dtype, is_bool) = in_order(array, &Dtype::SAMPLES)?;
        Ok(Self { array, layout, dtype, is_bool })
    }

    /// Bytes of all samples.
    pub fn bytes(&self) -> usize {
        self.array.len() * self.dtype.size()
    }

    /// The module's interpreter.
    pub fn py(&self) -> Python<'py> {
        self.array.py()
    }

    /// Calls `work` with all grids, while other threads of Python may run.
    pub fn with_grids<R: Send>(
        &self,
        work: impl FnOnce(&[Borrowed<'_, Grid>]) -> Result<R> + Send,
    ) -> PyResult<R> {
        let ArrayAxes { grids, dims, channels, .. } = self.layout;
        for_dtype!(self.dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => self.detached::<T, R>(|samples| {
            let len = samples.len() / grids;
            let grid = |at: usize| {
                let make = |samples| Grid { dims, channels, alpha: Alpha::None, samples };
                Borrowed::new(&samples[at * len..][..len], make)
            };
            work(&(0..grids).map(grid).collect::<Vec<_>>())
        }), other => unreachable!("{other} is not a type of samples"))
    }

    /// Calls `work` with the volume that the array is, while other threads of Python may run.
    pub fn with_volume<R: Send>(
        &self,
        work: impl FnOnce(&Arc<Grid>) -> Result<R> + Send,
    ) -> PyResult<R> {
        let dims = self.layout.dims;
        for_dtype!(self.dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => self.detached::<T, R>(|samples| {
            let volume = Borrowed::new(samples, |samples| Grid { dims, channels: 1, alpha: Alpha::None, samples });
            let shared = SharedVolume(Some(Arc::new(volume.into_inner())), PhantomData);
            work(shared.0.as_ref().expect("taken when it is dropped"))
        }), other => unreachable!("{other} is not a type of samples"))
    }

    /// Calls `work` with all samples as pixels of one channel, while other threads of Python may run.
    pub fn with_pixels<R: Send>(
        &self,
        work: impl FnOnce(&Pixels) -> Result<R> + Send,
    ) -> PyResult<R> {
        for_dtype!(self.dtype, T in [u8 i8 u16 i16 u32 i32 f32 f64] => self.detached::<T, R>(|samples| {
            work(&Borrowed::new(samples, |samples| Pixels { samples, channels: 1 }))
        }), other => unreachable!("{other} is not a type of samples"))
    }

    fn detached<T: Element + Scalar, R: Send>(
        &self,
        work: impl FnOnce(&[T]) -> Result<R> + Send,
    ) -> PyResult<R> {
        let array = self.array.cast::<PyArrayDyn<T>>()?.try_readonly()?;
        let samples = array.as_slice()?;
        detached(self.py(), samples.len(), || work(samples))
    }

    /// An array of the results of all grids, which have the size `dims` and `channels` channels.
    pub fn result(
        &self,
        results: Vec<Samples>,
        dims: [usize; 3],
        channels: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ArrayAxes { grids, axes, channel_axis, is_interleaved, .. } = self.layout;
        let mut shape: Vec<usize> = dims[..axes].iter().rev().copied().collect();
        let mut results = results.into_iter();
        let mut samples = results.next().expect("there is a grid");
        for more in results {
            samples.append(&more).map_err(exception)?;
        }
        match channel_axis {
            Some(_) if is_interleaved => shape.push(channels),
            Some(_) => shape.insert(0, grids),
            None => {}
        }
        let mut array = to_array(self.py(), samples, &shape)?;
        if self.is_bool && array.cast::<PyUntypedArray>()?.dtype().itemsize() == 1 {
            // Every filter of booleans has the results 0 and 1.
            array = array.call_method1("view", ("bool",))?;
        }
        match channel_axis.filter(|_| !is_interleaved) {
            Some(axis) if axis > 0 => numpy(self.py())?.call_method1("moveaxis", (array, 0, axis)),
            _ => Ok(array),
        }
    }
}

/// Calls `work` on `len` samples, while other threads of Python may run.
pub(super) fn detached<R: Send>(
    py: Python<'_>,
    len: usize,
    work: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    /// Maximum number of samples for which a second thread does not help.
    const SMALL: usize = 1 << 12;
    let work = || {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            // A panic would end Python's thread by an exception that no `except Exception` catches.
            let broken = |_| Error::new(Kind::Failure, "internal error: a computation panicked");
            Err(memory::raised(panic).unwrap_or_else(broken))
        })
    };
    let result = py.detach(|| if len <= SMALL { parallel::on_this_thread(work) } else { work() });
    result.map_err(exception)
}

/// Checks that a result of type `output` can be made of each of `grids` grids of type `input`.
pub(super) fn checked_result(input: GridType, output: GridType, grids: usize) -> Result<()> {
    check_memory("the result", output.bytes().saturating_mul(grids as u64))?;
    if input.bytes() == 0 && output.bytes() > 0 {
        return Err(Error::bad_input("the array has no samples"));
    }
    Ok(())
}

/// `array` in C order and native byte order, and its type, which is one of `known`. Booleans become u8.
pub(super) fn in_order<'py>(
    mut array: Bound<'py, PyUntypedArray>,
    known: &[Dtype],
) -> PyResult<(Bound<'py, PyUntypedArray>, Dtype, bool)> {
    let py = array.py();
    let descriptor = array.dtype();
    let is_bool = descriptor.kind() == b'b';
    let code = format!("{}{}", char::from(descriptor.kind()), descriptor.itemsize());
    let dtype = Dtype::from_numpy(&code).filter(|dtype| known.contains(dtype));
    let Some(dtype) = dtype else {
        let names: Vec<_> = known.iter().map(|dtype| dtype.numpy_name()).collect();
        return Err(PyTypeError::new_err(format!(
            "arrays of {} are not supported: expected one of {}",
            descriptor.str()?,
            names.join(" ")
        )));
    };
    let is_native = descriptor.is_native_byteorder() != Some(false);
    if !(array.is_c_contiguous() && is_native && array.is_aligned()) {
        check_copy(&array)?;
        let native = descriptor.call_method1("newbyteorder", ("=",))?;
        let needs = ["C_CONTIGUOUS", "ALIGNED"];
        let ordered = numpy(py)?.call_method1("require", (&array, native, needs))?;
        array = ordered.cast_into::<PyUntypedArray>()?;
    }
    if is_bool {
        array = array.call_method1("view", ("uint8",))?.cast_into::<PyUntypedArray>()?;
    }
    Ok((array, dtype, is_bool))
}

/// Checks that there is memory for a copy of `array`, whose samples may share theirs.
pub(super) fn check_copy(array: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
    let needed = (array.len() as u64).saturating_mul(array.dtype().itemsize() as u64);
    if array.is_c_contiguous() {
        return Ok(());
    }
    check_memory("a copy of the array", needed).map_err(exception)
}

/// Checks that the system has memory for the `needed` bytes of `what`.
fn check_memory(what: &str, needed: u64) -> Result<()> {
    /// Numbers of bytes up to this one are not compared with the memory of the system.
    const FEW: u64 = 1 << 28;
    if needed <= FEW {
        return Ok(());
    }
    let available = free_memory().saturating_mul(2);
    if needed > available {
        return Err(memory::exceeds_limit(what, needed, available));
    }
    Ok(())
}

/// An array that takes the memory of `samples`.
pub(super) fn to_array<'py>(
    py: Python<'py>,
    samples: Samples,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    for_samples!(samples, values => vector_to_array(py, values, shape))
}

/// An array that takes the memory of `values`.
pub(super) fn vector_to_array<'py, T: Element>(
    py: Python<'py>,
    values: Vec<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let array = PyArray1::from_vec(py, values);
    match shape.len() {
        1 => Ok(array.into_any()),
        _ => Ok(array.reshape(shape.to_vec())?.into_any()),
    }
}

/// Copies `result` into `out`, if that is given, and returns it.
pub(super) fn stored<'py>(
    result: Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(out) = out else { return Ok(result) };
    let target =
        out.cast::<PyUntypedArray>().map_err(|_| PyTypeError::new_err("out: expected an array"))?;
    let result = result.cast_into::<PyUntypedArray>()?;
    if target.shape() != result.shape() || !target.dtype().eq(result.dtype())? {
        return Err(PyValueError::new_err(format!(
            "out: expected an array of {} with the shape {:?}, found {} with the shape {:?}",
            result.dtype().str()?,
            result.shape(),
            target.dtype().str()?,
            target.shape()
        )));
    }
    numpy(out.py())?.call_method1(intern!(out.py(), "copyto"), (out, result))?;
    Ok(out.clone())
}

/// A value whose samples belong to an array.
pub(super) struct Borrowed<'a, V> {
    value: ManuallyDrop<V>,
    array: PhantomData<&'a [u8]>,
}

impl<'a, V> Borrowed<'a, V> {
    /// The value that `make` makes of `samples`.
    fn new<T: Scalar>(samples: &'a [T], make: impl FnOnce(Samples) -> V) -> Self
    where
        Samples: From<Vec<T>>,
    {
        let (start, len) = (samples.as_ptr().cast_mut(), samples.len());
        #[allow(unsafe_code)]
        // SAFETY: `start` is aligned and followed by `len` values, which are not written during 'a. A vector must have its
        // memory from the global allocator because it may grow or free it. This one does neither: it is lent by shared
        // references only, and never dropped.
        let vector = unsafe { Vec::from_raw_parts(start, len, len) };
        Self { value: ManuallyDrop::new(make(vector.into())), array: PhantomData }
    }

    /// The value, which the caller never drops.
    fn into_inner(self) -> V {
        ManuallyDrop::into_inner(self.value)
    }
}

impl<V> Deref for Borrowed<'_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

/// A shared volume whose samples belong to an array.
struct SharedVolume<'a>(Option<Arc<Grid>>, PhantomData<&'a [u8]>);

impl Drop for SharedVolume<'_> {
    fn drop(&mut self) {
        match self.0.take().map(Arc::try_unwrap) {
            // The samples are freed by the array.
            Some(Ok(volume)) => mem::forget(volume),
            // Another owner would drop them.
            Some(Err(_)) => std::process::abort(),
            None => {}
        }
    }
}
