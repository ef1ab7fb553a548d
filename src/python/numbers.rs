//! Sums and sorts of arrays of numbers.

use std::{any::TypeId, borrow::Cow, sync::Arc};

use numpy::{
    Element, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::{Bound, PyAny, PyResult, exceptions::PyValueError, pyfunction, types::PyAnyMethods};

use super::{
    arguments::Int,
    array::{as_array, axis_index, check_copy, detached, in_order, numpy, vector_to_array},
    device::{Device, device_for},
};
use crate::{
    data::dtype::{Dtype, Scalar},
    device, for_dtype, for_number,
    kernels::{
        scan::{Axis, Op, Scan, Scannable, Table, TableScan, widened_sums},
        sort::{Records, Sort, Sortable},
    },
    util::{error::Result, memory, parallel},
};

/// An array of numbers in C order.
struct Numbers<'py> {
    array: Bound<'py, PyUntypedArray>,
    dtype: Dtype,
}

impl<'py> Numbers<'py> {
    /// `array`, converted to the type that `convert` returns for its own type.
    fn new(
        array: Bound<'py, PyUntypedArray>,
        convert: impl FnOnce(Dtype) -> Dtype,
    ) -> PyResult<Self> {
        let (mut array, own, _) = in_order(array, &Dtype::ALL)?;
        let dtype = convert(own);
        if dtype != own {
            array = array.call_method1("astype", (dtype.numpy_name(),))?.cast_into()?;
        }
        Ok(Self { array, dtype })
    }

    fn bytes(&self) -> usize {
        self.array.len() * self.dtype.size()
    }

    /// The result of `work` on all numbers, with the shape of the array. Other threads of Python may run meanwhile.
    fn map<T: Element, U: Element>(
        &self,
        work: impl FnOnce(&[T]) -> Result<Vec<U>> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = self.array.py();
        let array = self.array.cast::<PyArrayDyn<T>>()?.try_readonly()?;
        let numbers = array.as_slice()?;
        let result = detached(py, numbers.len(), || work(numbers))?;
        vector_to_array(py, result, self.array.shape())
    }
}

/// The type of the sums of numbers of type `dtype`, as in NumPy.
fn sum_type(dtype: Dtype, is_bool: bool) -> Dtype {
    match dtype {
        Dtype::F32 | Dtype::F64 => dtype,
        dtype if is_bool || dtype.is_signed() => Dtype::I64,
        _ => Dtype::U64,
    }
}

/// Sums along the axes `axes` of an array of the shape `shape`.
struct AlongAxes<'a> {
    device: &'a device::Device,
    shape: Vec<usize>,
    axes: Vec<usize>,
    inclusive: bool,
}

impl AlongAxes<'_> {
    fn sums<S: Scalar + Into<T>, T: Scannable>(&self, numbers: &[S]) -> Result<Vec<T>> {
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let is_row = self.shape.len() == 1;
        if is_row && !T::DTYPE.is_float() && self.device.context()?.is_none() {
            return widened_sums(numbers, self.inclusive);
        }
        let numbers = match TypeId::of::<S>() == TypeId::of::<T>() {
            true if is_row => Cow::Borrowed(bytemuck::cast_slice(numbers)),
            _ => Cow::Owned(parallel::mapped(numbers, |&number| number.into())?),
        };
        if is_row {
            let scan = Scan::<T>::new(Op::Sum, self.inclusive);
            return Ok(self.device.run(&scan, &numbers[..])?.values);
        }
        let mut numbers = numbers.into_owned();
        if let ([height, width], [_, _]) = (&self.shape[..], &self.axes[..]) {
            return self.table(numbers, [*height, *width, 1], Axis::Both);
        }
        for &axis in &self.axes {
            let outer: usize = self.shape[..axis].iter().product();
            let inner: usize = self.shape[axis + 1..].iter().product();
            numbers = self.along(numbers, [outer, self.shape[axis], inner])?;
        }
        Ok(numbers)
    }

    /// Sums along the middle axis.
    fn along<T: Scannable>(
        &self,
        numbers: Vec<T>,
        [outer, len, inner]: [usize; 3],
    ) -> Result<Vec<T>> {
        /// Maximum distance of neighbours in a row.
        const MAX_CHANNELS: usize = 4;
        if (outer, inner) == (1, 1) {
            let scan = Scan::<T>::new(Op::Sum, self.inclusive);
            return Ok(self.device.run(&scan, &numbers[..])?.values);
        }
        if inner <= MAX_CHANNELS {
            return self.table(numbers, [outer, len, inner], Axis::X);
        }
        if outer == 1 {
            return self.table(numbers, [len, inner, 1], Axis::Y);
        }
        let mut sums = memory::room(numbers.len())?;
        for part in numbers.chunks(len * inner) {
            sums.extend(self.table(memory::copied(part)?, [len, inner, 1], Axis::Y)?);
        }
        Ok(sums)
    }

    fn table<T: Scannable>(
        &self,
        values: Vec<T>,
        [height, width, channels]: [usize; 3],
        axis: Axis,
    ) -> Result<Vec<T>> {
        let table = Table { width, height, channels, values };
        Ok(TableScan::new(axis, self.inclusive).run_owned(self.device, table)?.values)
    }
}

/// The sums of `array` along one of `axes` after the other, of the type that `sum_type` returns for its own type and for
/// whether it holds booleans.
fn summed<'py>(
    array: Bound<'py, PyUntypedArray>,
    sum_type: fn(Dtype, bool) -> Dtype,
    (axes, inclusive): (Vec<usize>, bool),
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (array, dtype, is_bool) = in_order(array, &Dtype::ALL)?;
    let (numbers, to) = (Numbers { array, dtype }, sum_type(dtype, is_bool));
    let device = device_for(numbers.array.py(), device, numbers.array.len() * to.size())?;
    let shape = numbers.array.shape().to_vec();
    let along = AlongAxes { device: &device, shape, axes, inclusive };
    match to {
        Dtype::U64 => for_dtype!(dtype, S in [u8 u16 u32 u64] => {
            numbers.map::<S, u64>(|v| along.sums(v))
        }, other => unreachable!("sums of {other} are signed")),
        Dtype::I64 => for_dtype!(dtype, S in [u8 i8 i16 i32 i64] => {
            numbers.map::<S, i64>(|v| along.sums(v))
        }, other => unreachable!("sums of {other} are unsigned")),
        Dtype::F32 => numbers.map::<f32, f32>(|v| along.sums(v)),
        _ => for_dtype!(dtype, S in [f32 f64] => numbers.map::<S, f64>(|v| along.sums(v)),
            other => unreachable!("sums of {other} are integers")),
    }
}

/// Cumulative sums along an axis.
///
/// Parameters
/// ----------
/// a : array_like
///     Array of any shape.
/// axis : int, optional
///     Axis of the sums; by default, those of the flattened array.
/// exclusive : bool, default False
///     Whether each sum lacks the number at its own position.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray
///     Sums of integers as int64 or uint64, and of floats in their own type, as in NumPy. Floats are summed in blocks, with
///     the same rounding on every device.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.cumsum(np.array([1, 2, 3], np.uint8))
/// array([1, 3, 6], dtype=uint64)
/// >>> gp.cumsum([[1, 2], [3, 4]], axis=0)
/// array([[1, 2],
///        [4, 6]])
#[pyfunction]
#[pyo3(signature = (a, axis=None, *, exclusive=false, device=None))]
pub(super) fn cumsum<'py>(
    a: &Bound<'py, PyAny>,
    axis: Option<Int>,
    exclusive: bool,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut array = as_array(a)?;
    let axis = match axis {
        Some(axis) => axis_index("axis", axis, array.ndim())?,
        None => {
            check_copy(&array)?;
            array = array.call_method1("reshape", (-1,))?.cast_into()?;
            0
        }
    };
    summed(array, sum_type, (vec![axis], !exclusive), device)
}

/// Integral image (summed-area table): each sample becomes the sum of all samples before and at it along every axis.
///
/// Parameters
/// ----------
/// image : array_like
///     Image or volume.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray
///     Sums of integers as int64 or uint64, and of floats as float64, as in scikit-image.
///
/// Examples
/// --------
/// >>> import numpy as np, gpuproc as gp
/// >>> gp.integral_image(np.ones((2, 3)))
/// array([[1., 2., 3.],
///        [2., 4., 6.]])
#[pyfunction]
#[pyo3(signature = (image, *, device=None))]
pub(super) fn integral_image<'py>(
    image: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let array = as_array(image)?;
    let axes = (0..array.ndim()).collect();
    let wide = |dtype, is_bool| match dtype {
        Dtype::F32 => Dtype::F64,
        dtype => sum_type(dtype, is_bool),
    };
    summed(array, wide, (axes, true), device)
}

/// Rows of `len` numbers to sort.
struct Rows {
    device: Arc<device::Device>,
    len: usize,
    descending: bool,
}

impl Rows {
    fn sorted<T: Sortable>(&self, numbers: &[T]) -> Result<Vec<T>> {
        self.each(numbers, |_| Ok(None), |row: Records<T>| row.keys)
    }

    /// The positions in each row, sorted by its numbers.
    fn order<T: Sortable>(&self, numbers: &[T]) -> Result<Vec<i64>> {
        let positions = |len| parallel::generated(len, |index| index as u32).map(Some);
        let order = |row: Records<T>| row.payload.unwrap_or_default().into_iter().map(i64::from);
        self.each(numbers, positions, order)
    }

    fn each<T: Sortable, R: IntoIterator>(
        &self,
        numbers: &[T],
        payload: impl Fn(usize) -> Result<Option<Vec<u32>>>,
        result: impl Fn(Records<T>) -> R,
    ) -> Result<Vec<R::Item>> {
        let sort = Sort::new(self.descending);
        let mut results = memory::room(numbers.len())?;
        for row in numbers.chunks(self.len.max(1)) {
            let row = Records { keys: memory::copied(row)?, payload: payload(row.len())? };
            results.extend(result(self.device.run(&sort, &row)?));
        }
        Ok(results)
    }
}

/// Runs `sort` on the rows of `array` along `axis`; `None` flattens it. Numbers of 8 and 16 bits become numbers of 32 bits.
fn sort_rows<'py>(
    array: &Bound<'py, PyAny>,
    axis: Option<Int>,
    descending: bool,
    device: Option<&Bound<'py, Device>>,
    sort: impl FnOnce(&Numbers<'py>, &Rows) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut array = as_array(array)?;
    if array.ndim() == 0 {
        return Err(PyValueError::new_err("cannot sort a number: expected an array"));
    }
    let numpy = numpy(array.py())?;
    let axis = match axis {
        Some(axis) => axis_index("axis", axis, array.ndim())?,
        None => {
            check_copy(&array)?;
            array = array.call_method1("reshape", (-1,))?.cast_into()?;
            0
        }
    };
    let is_last = axis + 1 == array.ndim();
    if !is_last {
        array = numpy.call_method1("moveaxis", (&array, axis, -1))?.cast_into()?;
    }
    let wide = |dtype: Dtype| match dtype {
        Dtype::U8 | Dtype::U16 => Dtype::U32,
        Dtype::I8 | Dtype::I16 => Dtype::I32,
        dtype => dtype,
    };
    let numbers = Numbers::new(array, wide)?;
    let device = device_for(numbers.array.py(), device, numbers.bytes())?;
    let len = numbers.array.shape()[numbers.array.ndim() - 1];
    let sorted = sort(&numbers, &Rows { device, len, descending })?;
    if is_last { Ok(sorted) } else { numpy.call_method1("moveaxis", (sorted, -1, axis)) }
}

/// Sorted copy of an array.
///
/// Parameters
/// ----------
/// a : array_like
///     Array of any shape.
/// axis : int, optional, default -1
///     Axis to sort along; None sorts the flattened array.
/// descending : bool, default False
///     Whether the largest number comes first.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray
///     Array of the shape and type of `a`. NaN come last in either direction, and -0 before +0 if ascending.
///
/// Examples
/// --------
/// >>> import gpuproc as gp
/// >>> gp.sort([3, 1, 2])
/// array([1, 2, 3])
#[pyfunction]
#[pyo3(signature = (a, axis=Int(Ok(-1)), *, descending=false, device=None))]
#[pyo3(text_signature = "(a, axis=-1, *, descending=False, device=None)")]
pub(super) fn sort<'py>(
    a: &Bound<'py, PyAny>,
    axis: Option<Int>,
    descending: bool,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = as_array(a)?.dtype();
    let sorted = sort_rows(
        a,
        axis,
        descending,
        device,
        |numbers, rows| for_number!(numbers.dtype, T => numbers.map::<T, T>(|v| rows.sorted(v))),
    )?;
    match sorted.cast::<PyUntypedArray>()?.dtype().is_equiv_to(&dtype) {
        true => Ok(sorted),
        false => sorted.call_method1("astype", (dtype,)),
    }
}

/// Positions that would sort an array.
///
/// Parameters
/// ----------
/// a : array_like
///     Array of any shape.
/// axis : int, optional, default -1
///     Axis to sort along; None sorts the flattened array.
/// descending : bool, default False
///     Whether the largest number comes first.
/// device : Device, optional
///     The device; by default that of `set_device`.
///
/// Returns
/// -------
/// ndarray of int64
///     Positions along `axis`. Equal numbers keep their order.
///
/// Examples
/// --------
/// >>> import gpuproc as gp
/// >>> gp.argsort([3, 1, 2])
/// array([1, 2, 0])
#[pyfunction]
#[pyo3(signature = (a, axis=Int(Ok(-1)), *, descending=false, device=None))]
#[pyo3(text_signature = "(a, axis=-1, *, descending=False, device=None)")]
pub(super) fn argsort<'py>(
    a: &Bound<'py, PyAny>,
    axis: Option<Int>,
    descending: bool,
    device: Option<&Bound<'py, Device>>,
) -> PyResult<Bound<'py, PyAny>> {
    sort_rows(
        a,
        axis,
        descending,
        device,
        |numbers, rows| for_number!(numbers.dtype, T => numbers.map::<T, i64>(|v| rows.order(v))),
    )
}
