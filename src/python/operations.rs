//! The functions of operations that the library declares.
//!
//! Python compiles a line of source for each function, as `collections.namedtuple` does. So Python itself reads the arguments,
//! and functions can be inspected and pickled.

use std::ffi::CString;

use pyo3::{
    Bound, Py, PyAny, PyResult, Python,
    exceptions::PyTypeError,
    types::{
        PyAnyMethods, PyCFunction, PyDict, PyDictMethods, PyModule, PyModuleMethods, PyTuple,
        PyTupleMethods,
    },
};

use super::{
    arguments::{self, Int, Real, given},
    device::Device,
    error::exception,
    filters::Call,
};
use crate::{
    api::{
        GradientMagnitude, Median, Morph, UnsharpMask,
        operation::{Choice, Function, Given, Kind, Operation, Parameter, PerAxis, Value},
    },
    util::error::{Error, Result},
};

/// Number of the arguments that every function has after its own.
const SHARED: usize = 3;

/// The functions of all operations.
fn functions() -> Vec<Declaration> {
    [
        declarations::<GradientMagnitude>(),
        declarations::<Median>(),
        declarations::<Morph>(),
        declarations::<UnsharpMask>(),
    ]
    .concat()
}

/// Adds the functions to `module`.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions().iter().try_for_each(|own| module.add(own.function.name, own.compile(module.py())?))
}

/// The lines of the stub file.
#[pyo3::pyfunction]
#[pyo3(name = "_stubs")]
pub(super) fn stubs() -> String {
    functions().iter().map(Declaration::stub).collect()
}

/// A function as source and documentation.
#[derive(Clone)]
struct Declaration {
    function: &'static Function,
    arguments: Vec<Argument>,
    documentation: String,
    run: fn(&Function, &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>>,
}

/// An argument with its types in documentation and in stubs.
#[derive(Clone)]
struct Argument {
    name: &'static str,
    default: &'static str,
    doc_type: String,
    stub_type: String,
    help: String,
}

/// The parameters of a function.
fn parameters<T: Operation>(function: &Function) -> impl Iterator<Item = &'static Parameter<T>> {
    let fixed = function.fixed.map(|fixed| fixed.parameter);
    T::PARAMETERS.iter().filter(move |own| !own.is_flag_only && Some(own.name) != fixed)
}

/// The functions of an operation.
fn declarations<T: Operation>() -> Vec<Declaration> {
    let all = T::FUNCTIONS.iter().map(|function| {
        let shared = [
            ("channel_axis", ["int"; 2], "The axis of channels, each computed by itself"),
            ("out", ["ndarray", "Array"], "Array for the result, with its shape and type"),
            ("device", ["Device"; 2], "The device; by default that of `set_device`"),
        ];
        let shared = shared.map(|(name, types, help)| Argument::optional(name, types, help));
        let arguments: Vec<_> = parameters::<T>(function).map(Argument::of).chain(shared).collect();
        let text = function.fixed.map_or(T::TEXT, |fixed| fixed.text);
        let documentation = documentation(text, &arguments, T::RETURNS, function.example);
        Declaration { function, arguments, documentation, run: run::<T> }
    });
    all.collect()
}

impl Argument {
    fn of<T>(own: &Parameter<T>) -> Self {
        let mut help = own.text.trim_end().to_owned();
        let [doc_type, stub_type] = match own.kind {
            Kind::Switch => ["bool".into(), "bool".into()],
            Kind::Choice(choices) => {
                let names: Vec<_> = choices.iter().map(|own| format!("{:?}", own.name())).collect();
                let names = names.join(", ");
                [format!("{{{names}}}"), format!("Literal[{names}]")]
            }
            Kind::Number { is_whole, is_per_axis } => {
                let number = if is_whole { "int" } else { "float" };
                if is_per_axis {
                    let end = help.find("\n\n").unwrap_or(help.len());
                    help.insert_str(end, ", for all axes or for each axis");
                    let doc_type = format!("{number} or sequence of {number}");
                    [doc_type, format!("{number} | Sequence[{number}]")]
                } else {
                    [number.into(), number.into()]
                }
            }
        };
        if own.is_optional {
            return Self::optional(own.python, [&doc_type, &stub_type], &help);
        }
        let default = own.default.unwrap_or("False");
        let doc_type = format!("{doc_type}, default {default}");
        let help = paragraphs(&help, "    ");
        Self { name: own.python, default, doc_type, stub_type, help }
    }

    fn optional(name: &'static str, [doc_type, stub_type]: [&str; 2], help: &str) -> Self {
        let (doc_type, stub_type) =
            (format!("{doc_type}, optional"), format!("{stub_type} | None"));
        Self { name, default: "None", doc_type, stub_type, help: paragraphs(help, "    ") }
    }
}

impl Declaration {
    /// `image`, the arguments, each written by `write`, and a star in front of those that need their names.
    fn arguments(&self, image: &str, write: impl Fn(&Argument) -> String) -> Vec<String> {
        let mut all = vec![image.to_owned()];
        all.extend(self.arguments.iter().map(write));
        all.insert(1 + self.function.positional.len(), "*".into());
        all
    }

    /// The lines of the stub file.
    fn stub(&self) -> String {
        let all = self.arguments("image: ArrayLike", |own| {
            format!("{}: {} = {}", own.name, own.stub_type, own.default)
        });
        let (own, shared) = all.split_at(all.len() - SHARED);
        let [own, shared] = [own, shared].map(|line| line.join(", "));
        format!("def {}(\n    {own},\n    {shared},\n) -> Array: ...\n", self.function.name)
    }

    /// The function.
    fn compile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Self { function, run, .. } = *self;
        let signature = self.arguments("image", |own| format!("{}={}", own.name, own.default));
        let names: Vec<&str> = self.arguments.iter().map(|own| own.name).collect();
        let (signature, names) = (signature.join(", "), names.join(", "));
        let source = format!("def {}({signature}): return _run(image, {names})", function.name);
        let run = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            run(function, arguments)
        };
        let globals = PyDict::new(py);
        globals.set_item("__name__", "gpuproc")?;
        globals.set_item("_run", PyCFunction::new_closure(py, None, None, run)?)?;
        py.run(&CString::new(source)?, Some(&globals), None)?;
        let function = globals.as_any().get_item(function.name)?;
        function.setattr("__doc__", &self.documentation)?;
        Ok(function)
    }
}

/// The documentation in the format of NumPy.
fn documentation(text: &str, arguments: &[Argument], returns: &str, example: &str) -> String {
    let arguments =
        arguments.iter().map(|own| format!("{} : {}\n{}", own.name, own.doc_type, own.help));
    let (text, arguments) = (paragraphs(text, ""), arguments.collect::<String>());
    format!(
        "{text}\n\
         Parameters\n----------\n\
         image : array_like\n    Image or volume of 1 to 3 axes, and one more with `channel_axis`.\n{arguments}\n\
         Returns\n-------\nndarray\n    {returns}\n\n\
         Examples\n--------\n>>> import numpy as np, gpuproc as gp\n{example}\n"
    )
}

/// The lines of `text` behind `indent`. Each paragraph ends with a full stop.
fn paragraphs(text: &str, indent: &str) -> String {
    let paragraphs = text.trim_end().split("\n\n").map(|paragraph| {
        let lines = paragraph.trim().trim_end_matches('.').replace("\n ", &format!("\n{indent}"));
        format!("{indent}{lines}.\n")
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// Runs the operation on the arguments `image`, those of `parameters`, and the shared ones.
fn run<T: Operation>(function: &Function, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let image = arguments.get_item(0)?;
    let mut operation = T::default();
    if let Some(fixed) = function.fixed {
        let own = T::PARAMETERS.iter().find(|own| own.name == fixed.parameter);
        own.into_iter().for_each(|own| (own.set)(&mut operation, Given::Choice(fixed.choice)));
    }
    let count = arguments.len() - SHARED;
    for (own, value) in parameters::<T>(function).zip(arguments.get_slice(1, count)) {
        let given = read(own, &value)?;
        // Types without sign cannot hold all numbers.
        own.check(given, 3).map_err(exception)?;
        (own.set)(&mut operation, given);
    }
    let shared = arguments.get_slice(count, arguments.len());
    let channel_axis: Option<Int> = shared.get_item(0)?.extract()?;
    let out: Option<Bound<'_, PyAny>> = shared.get_item(1)?.extract()?;
    let device = shared.get_item(2)?;
    let device = device.extract::<Option<Bound<'_, Device>>>();
    let device = device.map_err(|_| PyTypeError::new_err("device: expected a Device"))?;
    let call = Call { image: &image, channel_axis, out: out.as_ref(), device: device.as_ref() };
    call.run(|axes| operation.kernel(axes)).map(Bound::unbind)
}

/// Reads the value of a parameter.
fn read<T>(own: &Parameter<T>, value: &Bound<'_, PyAny>) -> PyResult<Given> {
    if own.is_optional && value.is_none() {
        return Ok(Given::Nothing);
    }
    let name = own.python;
    let given = match own.kind {
        Kind::Switch => return value.extract().map(Given::Switch),
        Kind::Choice(choices) => given(value)?
            .map_err(|wrong| wrong.of(name))
            .and_then(|text: String| choice(name, choices, &text)),
        Kind::Number { is_whole: true, is_per_axis: true } => {
            per_axis(name, value.extract()?, |number: i64| number as f64)
        }
        Kind::Number { is_whole: false, is_per_axis: true } => {
            per_axis(name, value.extract()?, |number: f64| number)
        }
        Kind::Number { is_whole: true, .. } => {
            value.extract::<Int>()?.number(name).map(|number| Given::from(number as f64))
        }
        Kind::Number { .. } => value.extract::<Real>()?.number(name).map(Given::from),
    };
    given.map_err(exception)
}

/// The value of the type `T` that is called `text`, for the argument `name`.
pub(super) fn choice_of<T: Value>(name: &str, text: &str) -> Result<T> {
    let given = choice(name, T::KIND.choices(), text)?;
    Ok(T::from_given(given).expect("a choice of its type"))
}

/// The choice that is called `text`.
fn choice(name: &str, choices: &[Choice], text: &str) -> Result<Given> {
    if let Some(choice) = choices.iter().find(|own| own.name() == text) {
        return Ok(Given::Choice(choice.name()));
    }
    let names: Vec<_> = choices.iter().map(Choice::name).collect();
    let (last, others) = names.split_last().expect("there are choices");
    let others = others.join(", ");
    Err(Error::usage(format_args!("{name}: unknown {name} {text:?}; expected {others} or {last}")))
}

/// The numbers of the argument `name`, whose last is that of x.
fn per_axis<T: Copy>(
    name: &str,
    numbers: arguments::PerAxis<T>,
    convert: impl Fn(T) -> f64,
) -> Result<Given> {
    match numbers {
        arguments::PerAxis::One(number) => Ok(Given::from(convert(number))),
        arguments::PerAxis::Each(each) => {
            let each: Vec<f64> = each.into_iter().rev().map(convert).collect();
            Ok(Given::Numbers(PerAxis::each(&each)))
        }
        arguments::PerAxis::Wrong(wrong) => Err(wrong.of(name)),
    }
}
