//! The functions of operations that the library declares.
//!
//! Each function is compiled from a line of Python source, as in `collections.namedtuple`. So Python itself parses the
//! arguments, and functions can be inspected and pickled.

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
    array::numpy,
    device::Device,
    error::exception,
    filters::Call,
};
use crate::{
    api::{
        Blur, Convert, Crop, Flip, GradientMagnitude, Label, Math, Median, Morph, Pad, Projection,
        Reorient, Resize, Rotate, Threshold, Transpose, UnsharpMask,
        operation::{
            Choice, Function, Given, Kind, Operation, Parameter, PerAxis, Value, renamed, spelled,
        },
    },
    util::error::{Error, Result},
};

/// The functions of all operations.
fn functions() -> Vec<Declaration> {
    [
        declarations::<Blur>(),
        declarations::<Convert>(),
        declarations::<Crop>(),
        declarations::<Flip>(),
        declarations::<GradientMagnitude>(),
        declarations::<Label>(),
        declarations::<Math>(),
        declarations::<Median>(),
        declarations::<Morph>(),
        declarations::<Pad>(),
        declarations::<Projection>(),
        declarations::<Reorient>(),
        declarations::<Resize>(),
        declarations::<Rotate>(),
        declarations::<Threshold>(),
        declarations::<Transpose>(),
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
    /// Number of trailing arguments, which all functions of this kind share.
    shared: usize,
    result: &'static str,
    documentation: String,
    run: fn(&Function, &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>>,
}

/// An argument with its types in the documentation and in the stub file. A pair is two arguments, whose names are
/// separated by a comma.
#[derive(Clone)]
struct Argument {
    name: &'static str,
    default: Option<&'static str>,
    doc_type: String,
    stub_type: String,
    help: String,
}

/// The name of an argument in documentation.
fn quoted<T>(own: &Parameter<T>) -> String {
    format!("`{}`", own.python)
}

/// The parameters of a function.
fn parameters<T: Operation>(function: &Function) -> Vec<&'static Parameter<T>> {
    let named = |name: &&'static str| T::PARAMETERS.iter().find(|own| own.name == *name);
    let first = function.positional.iter().filter_map(named);
    let others = T::PARAMETERS.iter().filter(|own| match function.keywords {
        Some(keywords) => keywords.contains(&own.name),
        None => {
            let is_fixed = function.fixed.is_some_and(|(name, _)| name == own.name);
            !own.is_flag_only && !is_fixed && !function.positional.contains(&own.name)
        }
    });
    first.chain(others.filter(|own| !own.python.is_empty())).collect()
}

/// The functions of an operation.
fn declarations<T: Operation>() -> Vec<Declaration> {
    let all = T::FUNCTIONS.iter().map(|function| {
        let shared = [
            ("channel_axis", ["int"; 2], "The axis of channels, each computed by itself"),
            ("out", ["ndarray", T::RESULT], "Array for the result, with its shape and type"),
            ("device", ["Device"; 2], "The device; by default that of `set_device`"),
        ];
        let (image, shared) = if T::MAKES_CLASSES {
            ("Image or volume of 1 to 3 axes", &shared[1..])
        } else {
            ("Image or volume of 1 to 3 axes, and one more with `channel_axis`", &shared[..])
        };
        let others = shared.iter().map(|&(name, [doc_type, stub_type], help)| Argument {
            name,
            default: Some("None"),
            doc_type: format!("{doc_type}, optional"),
            stub_type: format!("{stub_type} | None"),
            help: paragraphs(help, "    "),
        });
        let own = parameters::<T>(function).into_iter().map(|own| Argument::of(own, function));
        let arguments: Vec<_> = own.chain(others).collect();
        let text = spelled::<T>(function.text.unwrap_or(T::TEXT), quoted);
        let documentation = format!(
            "{}\nParameters\n----------\nimage : array_like\n    {image}.\n{}\n\
             Returns\n-------\nndarray\n    {}\n\n\
             Examples\n--------\n>>> import numpy as np, gpuproc as gp\n{}\n",
            paragraphs(&text, ""),
            arguments.iter().map(Argument::documentation).collect::<String>(),
            T::RETURNS,
            function.example
        );
        Declaration {
            function,
            arguments,
            shared: shared.len(),
            result: T::RESULT,
            documentation,
            run: run::<T>,
        }
    });
    all.collect()
}

impl Argument {
    fn of<T: Operation>(own: &Parameter<T>, function: &Function) -> Self {
        let mut note = "";
        let [mut doc_type, mut stub_type] = match own.kind {
            Kind::Switch => ["bool".into(), "bool".into()],
            Kind::Choice(_) if own.python == "dtype" => ["dtype".into(), "DTypeLike".into()],
            Kind::Choice(choices) => choice_types(choices),
            Kind::Axis(_) => ["int".into(), "int".into()],
            Kind::Choices(choices) | Kind::ChoiceOrNumber(choices) => {
                note = ", for all axes or for each axis";
                let [doc_type, stub_type] = choice_types(choices);
                let stub_type = format!("{stub_type} | Sequence[{stub_type}]");
                [format!("{doc_type} or sequence of them"), stub_type]
            }
            Kind::Number { is_whole, is_per_axis } => {
                let number = if is_whole { "int" } else { "float" };
                if is_per_axis {
                    note = ", for all axes or for each axis";
                    let doc_type = format!("{number} or sequence of {number}");
                    [doc_type, format!("{number} | Sequence[{number}]")]
                } else {
                    [number.into(), number.into()]
                }
            }
            Kind::ChoiceOrRange(choices) => {
                let [doc_type, stub_type] = choice_types(choices);
                let range = "tuple[float, float]";
                [format!("{doc_type} or (low, high)"), format!("{stub_type} | {range}")]
            }
            Kind::List => ["sequence of float".into(), "Sequence[float]".into()],
            Kind::Pair => ["float".into(), "float".into()],
            Kind::Text => ["str".into(), "str".into()],
        };
        let changed = function.defaults.iter().find(|(name, _)| *name == own.name);
        let default = match changed.map(|(_, default)| *default).or(own.default) {
            Some("true") => Some("True"),
            None if own.kind == Kind::Switch => Some("False"),
            None if may_be_none(own) => {
                stub_type += " | None";
                Some("None")
            }
            default => default,
        };
        doc_type += &match default {
            Some("None") => ", optional".to_owned(),
            Some(default) => format!(", default {default}"),
            None => String::new(),
        };
        let mut help = own.help(note, quoted);
        if default.is_some_and(|default| default != "None")
            && let (Some(start), Some(end)) = (help.find(" [default"), help.find(']'))
        {
            help.replace_range(start..=end, "");
        }
        let help = paragraphs(&help, "    ");
        Self { name: own.python, default, doc_type, stub_type, help }
    }

    fn documentation(&self) -> String {
        format!("{} : {}\n{}", self.name, self.doc_type, self.help)
    }
}

impl Declaration {
    /// `image` and the arguments, each formatted by `write`, with a star before the keyword-only ones.
    fn arguments(&self, image: &str, write: impl Fn(&Argument) -> String) -> Vec<String> {
        let mut all = vec![image.to_owned()];
        all.extend(self.arguments.iter().map(write));
        all.insert(1 + self.function.positional.len(), "*".into());
        all
    }

    /// The lines of the stub file.
    fn stub(&self) -> String {
        let all = self.arguments("image: ArrayLike", |own| {
            let default = own.default.map(|text| format!(" = {text}")).unwrap_or_default();
            let names = own.name.split(", ");
            let typed = names.map(|name| format!("{name}: {}{default}", own.stub_type));
            typed.collect::<Vec<_>>().join(", ")
        });
        let (own, shared) = all.split_at(all.len() - self.shared);
        let [own, shared] = [own, shared].map(|line| line.join(", "));
        let (name, result) = (self.function.name, self.result);
        format!("def {name}(\n    {own},\n    {shared},\n) -> {result}: ...\n")
    }

    /// The function.
    fn compile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Self { function, run, .. } = *self;
        let signature = self.arguments("image", |own| {
            let default = own.default.map(|text| format!("={text}")).unwrap_or_default();
            format!("{}{default}", own.name)
        });
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

/// The types of an argument that is one of `choices`: in the documentation, and in the stub file.
fn choice_types(choices: &[Choice]) -> [String; 2] {
    let quoted = |names: Vec<&str>| format!("{names:?}");
    let shown = quoted(choices.iter().filter_map(|own| own.python_names().next()).collect());
    let all = quoted(choices.iter().flat_map(Choice::python_names).collect());
    [format!("{{{}}}", shown.trim_matches(['[', ']'])), format!("Literal{all}")]
}

/// Indents the lines of `text` by `indent`, and ends each paragraph with a full stop.
fn paragraphs(text: &str, indent: &str) -> String {
    let paragraphs = text.trim_end().split("\n\n").map(|paragraph| {
        let lines = paragraph.trim().trim_end_matches('.').replace("\n ", &format!("\n{indent}"));
        format!("{indent}{lines}.\n")
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// Runs the operation. `arguments` are `image`, the values of the parameters, and the shared arguments.
fn run<T: Operation>(function: &Function, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let mut values = arguments.iter();
    let mut next = || values.next().expect("one for each name");
    let image = next();
    let mut operation = T::default();
    if let Some((name, choice)) = function.fixed {
        let own = T::PARAMETERS.iter().find(|own| own.name == name);
        own.into_iter().for_each(|own| (own.set)(&mut operation, Given::Choice(choice)));
    }
    let named = |error| exception(renamed::<T>(error, |own| own.python));
    let mut removed: Option<(&Parameter<T>, Int)> = None;
    for own in parameters::<T>(function) {
        if let Kind::Axis(_) = own.kind {
            removed = Some((own, next().extract()?));
            continue;
        }
        let given = read(own, function, &mut next)?;
        // Check first: converting a negative number to an unsigned type would change it.
        own.check(&given, 3).map_err(named)?;
        (own.set)(&mut operation, given);
    }
    let channel_axis: Option<Int> = if T::MAKES_CLASSES { None } else { next().extract()? };
    let (out, device) = (next(), next());
    let out = (!out.is_none()).then_some(&out);
    let device = device.extract::<Option<Bound<'_, Device>>>();
    let device = device.map_err(|_| PyTypeError::new_err("device: expected a Device"))?;
    let call = Call { image: &image, channel_axis, out, device: device.as_ref() };
    let make = |operation: &T, axes| {
        operation.kernel(axes).map_err(|error| renamed::<T>(error, |own| own.python))
    };
    let result = if let Some((own, axis)) = removed {
        call.run_along(own.python, axis, |axes, axis| {
            (own.set)(&mut operation, Given::Choice(own.kind.choices()[axis].name()));
            make(&operation, axes)
        })
    } else if T::MAKES_CLASSES {
        call.run_classes(|axes| make(&operation, axes))
    } else {
        call.run(|axes| make(&operation, axes))
    };
    result.map(Bound::unbind)
}

/// Whether a parameter may be `None`. A function that has a parameter of a group requires it.
fn may_be_none<T>(own: &Parameter<T>) -> bool {
    own.is_optional && own.group.is_none()
}

/// Reads the value of a parameter.
fn read<'py, T>(
    own: &Parameter<T>,
    function: &Function,
    next: &mut impl FnMut() -> Bound<'py, PyAny>,
) -> PyResult<Given> {
    let name = own.python;
    if own.kind == Kind::Pair {
        let number = |name| next().extract::<Real>()?.number(name).map_err(exception);
        return name.split(", ").map(number).collect::<PyResult<_>>().map(Given::List);
    }
    let mut value = next();
    let has_default = function.defaults.iter().any(|(name, _)| *name == own.name);
    if may_be_none(own) && !has_default && value.is_none() {
        return Ok(Given::Nothing);
    }
    if name == "dtype" {
        // NumPy reads types and their names.
        value = numpy(value.py())?.call_method1("dtype", (value,))?.getattr("name")?;
    }
    let given = match own.kind {
        Kind::Switch => {
            let wrong = |_| PyTypeError::new_err(format!("{name}: expected a bool"));
            return value.extract().map(Given::Switch).map_err(wrong);
        }
        Kind::Choice(choices) | Kind::Axis(choices) => given(&value)?
            .map_err(|wrong| wrong.of(name))
            .and_then(|text: String| choice(name, choices, &text)),
        Kind::Choices(choices) | Kind::ChoiceOrNumber(choices) => match value.extract()? {
            arguments::PerAxis::<String>::One(text) => choice(name, choices, &text),
            arguments::PerAxis::Each(texts) => {
                let all = texts.iter().rev().map(|text| choice(name, choices, text));
                let all = all.collect::<Result<Vec<_>>>();
                all.map(|all| Given::Choices(all.iter().filter_map(Given::choice).collect()))
            }
            arguments::PerAxis::Wrong(wrong) => Err(wrong.of(name)),
        },
        Kind::Text => given(&value)?.map_err(|wrong| wrong.of(name)).map(Given::Text),
        Kind::ChoiceOrRange(choices) => match value.extract()? {
            arguments::PerAxis::<String>::One(text) => choice(name, choices, &text),
            _ => match value.extract::<arguments::PerAxis<f64>>()?.list(name).map_err(exception)? {
                ends if ends.len() == 2 => Ok(Given::List(ends)),
                _ => Err(Error::usage(format_args!("{name}: expected a name or two numbers"))),
            },
        },
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
        Kind::List | Kind::Pair => {
            value.extract::<arguments::PerAxis<f64>>()?.list(name).map(Given::List)
        }
    };
    given.map_err(exception)
}

/// The value of type `T` with the name `text`, for the argument `name`.
pub(super) fn choice_of<T: Value>(name: &str, text: &str) -> Result<T> {
    let given = choice(name, T::KIND.choices(), text)?;
    Ok(T::from_given(given).expect("a choice of its type"))
}

/// The choice with the name `text`.
fn choice(name: &str, choices: &[Choice], text: &str) -> Result<Given> {
    if let Some(choice) = choices.iter().find(|own| own.python_names().any(|own| own == text)) {
        return Ok(Given::Choice(choice.name()));
    }
    let names: Vec<_> = choices.iter().filter_map(|own| own.python_names().next()).collect();
    let (last, others) = names.split_last().expect("there are choices");
    let others = others.join(", ");
    Err(Error::usage(format_args!("{name}: unknown {name} {text:?}; expected {others} or {last}")))
}

/// Converts the numbers of the argument `name`. The last one is along x, as in NumPy.
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
