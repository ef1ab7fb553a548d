//! The functions of operations that the library declares.
//!
//! Python compiles a line of source for each function, as `collections.namedtuple` does. So Python itself reads the arguments,
//! and functions can be inspected and pickled.

use std::{ffi::CString, fmt::Write};

use pyo3::{
    Bound, Py, PyAny, PyResult, Python,
    types::{
        PyAnyMethods, PyCFunction, PyDict, PyDictMethods, PyModule, PyModuleMethods, PyTuple,
        PyTupleMethods,
    },
};

use super::{
    arguments::{self, Int, Real},
    device::Device,
    error::exception,
    filters::Call,
};
use crate::{
    api::{
        GradientMagnitude, Median, UnsharpMask,
        operation::{Given, Kind, Operation, Parameter, PerAxis},
    },
    util::error::Result,
};

/// The arguments of every function, with their types in documentation and in stubs.
const SHARED: [[&str; 4]; 3] = [
    ["channel_axis", "int", "int", "The axis of channels, each of which is computed by itself."],
    ["out", "ndarray", "Array", "Array for the result, with its shape and type."],
    ["device", "Device", "Device", "The device; by default that of `set_device`."],
];

/// The functions of all operations.
fn functions() -> [Declaration; 3] {
    [
        Declaration::of::<GradientMagnitude>(),
        Declaration::of::<Median>(),
        Declaration::of::<UnsharpMask>(),
    ]
}

/// Adds the functions to `module`.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions()
        .into_iter()
        .try_for_each(|function| module.add(function.name, function.compile(module.py())?))
}

/// The lines of the stub file.
#[pyo3::pyfunction]
#[pyo3(name = "_stubs")]
pub(super) fn stubs() -> String {
    functions().iter().map(Declaration::stub).collect()
}

/// A function as source and texts.
struct Declaration {
    name: &'static str,
    arguments: Vec<Argument>,
    positional: usize,
    text: String,
    run: fn(&Bound<'_, PyTuple>) -> PyResult<Py<PyAny>>,
}

/// An argument with its default, and its types in documentation and in stubs.
struct Argument {
    name: &'static str,
    default: String,
    doc_type: String,
    stub_type: String,
}

/// The parameters that Python has.
fn parameters<T: Operation>() -> impl Iterator<Item = &'static Parameter<T>> {
    T::PARAMETERS.iter().filter(|own| !own.is_flag_only)
}

impl Argument {
    fn of<T>(own: &Parameter<T>) -> Self {
        let (kind, is_per_axis, is_optional) = match own.kind {
            Kind::Switch => ("bool", false, false),
            Kind::Number { is_whole, is_per_axis, is_optional } => {
                (if is_whole { "int" } else { "float" }, is_per_axis, is_optional)
            }
        };
        let [mut doc_type, mut stub_type] = [kind.to_owned(), kind.to_owned()];
        if is_per_axis {
            doc_type += &format!(" or sequence of {kind}");
            stub_type += &format!(" | Sequence[{kind}]");
        }
        let default = own.default.unwrap_or(if is_optional { "None" } else { "False" });
        if is_optional {
            doc_type += ", optional";
            stub_type += " | None";
        } else {
            doc_type += &format!(", default {default}");
        }
        Self { name: own.name, default: default.into(), doc_type, stub_type }
    }
}

impl Declaration {
    fn of<T: Operation>() -> Self {
        let shared = SHARED.map(|[name, doc_type, stub_type, _]| Argument {
            name,
            default: "None".into(),
            doc_type: format!("{doc_type}, optional"),
            stub_type: format!("{stub_type} | None"),
        });
        let arguments: Vec<_> = parameters::<T>().map(Argument::of).chain(shared).collect();
        Self {
            name: T::FUNCTION.name,
            text: documentation::<T>(&arguments),
            arguments,
            positional: T::FUNCTION.positional.len(),
            run: run::<T>,
        }
    }

    /// `image`, the arguments, each written by `write`, and a star in front of those that need their names.
    fn arguments(&self, image: &str, write: impl Fn(&Argument) -> String) -> Vec<String> {
        let mut all = vec![image.to_owned()];
        all.extend(self.arguments.iter().map(write));
        all.insert(1 + self.positional, "*".into());
        all
    }

    /// The lines of the stub file.
    fn stub(&self) -> String {
        let all = self.arguments("image: ArrayLike", |own| {
            format!("{}: {} = {}", own.name, own.stub_type, own.default)
        });
        let (own, shared) = all.split_at(all.len() - SHARED.len());
        let [own, shared] = [own, shared].map(|line| line.join(", "));
        format!("def {}(\n    {own},\n    {shared},\n) -> Array: ...\n", self.name)
    }

    /// The function.
    fn compile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = self.name;
        let signature = self.arguments("image", |own| format!("{}={}", own.name, own.default));
        let names: Vec<&str> = self.arguments.iter().map(|own| own.name).collect();
        let source = format!(
            "def {name}({}): return _run(image, {})",
            signature.join(", "),
            names.join(", ")
        );
        let run = self.run;
        let run = PyCFunction::new_closure(
            py,
            None,
            None,
            move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| run(arguments),
        )?;
        let globals = PyDict::new(py);
        globals.set_item("__name__", "gpuproc")?;
        globals.set_item("_run", run)?;
        py.run(&CString::new(source)?, Some(&globals), None)?;
        let function = globals.as_any().get_item(name)?;
        function.setattr("__doc__", &self.text)?;
        Ok(function)
    }
}

/// The documentation in the format of NumPy.
fn documentation<T: Operation>(arguments: &[Argument]) -> String {
    let mut text = paragraphs(T::TEXT, "");
    text += "\nParameters\n----------\nimage : array_like\n";
    text += "    Image or volume of 1 to 3 axes, and one more with `channel_axis`.\n";
    let own = parameters::<T>().map(|own| match own.kind {
        Kind::Number { is_per_axis: true, .. } => {
            let (first, rest) = own.text.split_once("\n\n").unwrap_or((own.text, ""));
            let first = first.trim_end();
            paragraphs(&format!("{first}, for all axes or for each axis\n\n{rest}"), "    ")
        }
        _ => paragraphs(own.text, "    "),
    });
    let shared = SHARED.map(|[.., text]| format!("    {text}\n"));
    for (argument, help) in arguments.iter().zip(own.chain(shared)) {
        let _ = write!(text, "{} : {}\n{help}", argument.name, argument.doc_type);
    }
    let function = T::FUNCTION;
    text += &format!("\nReturns\n-------\nndarray\n    {}\n", function.returns);
    text += "\nExamples\n--------\n>>> import numpy as np, gpuproc as gp\n";
    text + function.example + "\n"
}

/// The lines of `text` behind `indent`. Each paragraph ends with a full stop.
fn paragraphs(text: &str, indent: &str) -> String {
    let paragraphs = text.trim_end().split("\n\n").map(|paragraph| {
        let lines = paragraph.trim().trim_end_matches('.').replace("\n ", &format!("\n{indent}"));
        format!("{indent}{lines}.\n")
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// Runs the operation on the arguments `image`, those of `parameters`, and those of [`SHARED`].
fn run<T: Operation>(arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let image = arguments.get_item(0)?;
    let mut operation = T::default();
    let count = arguments.len() - SHARED.len();
    for (own, value) in parameters::<T>().zip(arguments.get_slice(1, count)) {
        (own.set)(&mut operation, read(own, &value)?);
    }
    let shared = arguments.get_slice(count, arguments.len());
    let (channel_axis, out, device): (
        Option<Int>,
        Option<Bound<'_, PyAny>>,
        Option<Bound<'_, Device>>,
    ) = shared.extract()?;
    let call = Call { image: &image, channel_axis, out: out.as_ref(), device: device.as_ref() };
    call.run(|axes| operation.kernel(axes)).map(Bound::unbind)
}

/// Reads the value of a parameter.
fn read<T>(own: &Parameter<T>, value: &Bound<'_, PyAny>) -> PyResult<Given> {
    let Kind::Number { is_whole, is_per_axis, is_optional } = own.kind else {
        return value.extract().map(Given::Switch);
    };
    if is_optional && value.is_none() {
        return Ok(Given::Nothing);
    }
    let numbers = match (is_per_axis, is_whole) {
        (true, true) => per_axis(own.name, value.extract()?, |number: i64| number as f64),
        (true, false) => per_axis(own.name, value.extract()?, |number: f64| number),
        (false, true) => {
            value.extract::<Int>()?.number(own.name).map(|number| PerAxis::from(number as f64))
        }
        (false, false) => value.extract::<Real>()?.number(own.name).map(PerAxis::from),
    };
    numbers.map(Given::Numbers).map_err(exception)
}

/// The numbers of the argument `name`, whose last is that of x.
fn per_axis<T: Copy>(
    name: &str,
    numbers: arguments::PerAxis<T>,
    convert: impl Fn(T) -> f64,
) -> Result<PerAxis<f64>> {
    match numbers {
        arguments::PerAxis::One(number) => Ok(PerAxis::from(convert(number))),
        arguments::PerAxis::Each(each) => {
            let each: Vec<f64> = each.into_iter().rev().map(convert).collect();
            Ok(PerAxis::each(&each))
        }
        arguments::PerAxis::Wrong(wrong) => Err(wrong.of(name)),
    }
}
