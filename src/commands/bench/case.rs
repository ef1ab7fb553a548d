//! Cases: kernels with their inputs.

use std::{fmt, rc::Rc, sync::Arc};

use crate::{
    device::Kernel,
    gpu::Context,
    util::error::{Error, Kind, Result},
};

/// One kernel on one input.
pub struct Case {
    /// The kernel family, such as `blur`; `copy` and `transfer` move bytes and compute nothing.
    pub family: &'static str,
    /// The algorithm, such as `separable` or `direct 2-D`.
    pub algorithm: &'static str,
    /// Parameters and input, such as `Gaussian r=3, 8192x8192 RGBA8`.
    pub problem: String,
    /// Whether the algorithm is measured only for comparison. Such cases run only on GPUs.
    pub is_baseline: bool,
    /// Bytes of the input and the output, which every algorithm must move.
    pub bytes: u64,
    /// Generates the input.
    pub prepare: Box<dyn Fn() -> Result<Box<dyn Work>>>,
}

/// A kernel with its input and its last result.
pub trait Work {
    /// Runs the kernel on a GPU, or on the CPU if there is no context.
    fn run(&mut self, context: Option<&Context>) -> Result<()>;

    /// Compares the last result with that of the CPU.
    fn check(&mut self, context: Option<&Context>) -> Result<()>;

    /// Whether the passes on the device are measured, rather than the whole run with its transfers.
    fn is_resident(&self) -> bool {
        true
    }
}

/// Input of cases: generated when a case starts, or read from a file.
pub struct Input<T: ?Sized> {
    /// Size and type, such as `8192x8192 RGBA8`, or the name of the file.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    make: Rc<dyn Fn() -> Result<Arc<T>>>,
}

impl<T: ?Sized + 'static> Input<T> {
    /// Input that every case generates by calling `make`.
    pub fn new(name: String, bytes: u64, make: impl Fn() -> Result<Arc<T>> + 'static) -> Self {
        Self { name, bytes, make: Rc::new(make) }
    }
}

/// Compares the CPU's result with that of a device.
pub type Comparison<K> = fn(&<K as Kernel>::Out, &<K as Kernel>::Out) -> bool;

struct KernelWork<K: Kernel> {
    kernel: Rc<K>,
    input: Arc<K::In>,
    is_same: Comparison<K>,
    result: Option<K::Out>,
}

impl<K: Kernel> Work for KernelWork<K> {
    fn run(&mut self, context: Option<&Context>) -> Result<()> {
        self.result = None;
        self.result = Some(match context {
            Some(context) => self.kernel.gpu(context, &self.input)?,
            None => self.kernel.cpu(&self.input)?,
        });
        Ok(())
    }

    fn check(&mut self, _: Option<&Context>) -> Result<()> {
        let Some(result) = &self.result else { return Err(check_failed("no run to check")) };
        match (self.is_same)(&self.kernel.cpu(&self.input)?, result) {
            true => Ok(()),
            false => Err(check_failed("the result differs from the CPU's")),
        }
    }
}

/// Error of a failed check.
pub fn check_failed(what: impl fmt::Display) -> Error {
    Error::new(Kind::Failure, what)
}

impl Case {
    /// A case of `kernel`. `output` is the size of its result in bytes.
    pub fn new<K: Kernel + 'static>(
        [family, algorithm]: [&'static str; 2],
        problem: String,
        kernel: K,
        input: &Input<K::In>,
        output: u64,
        is_same: Comparison<K>,
    ) -> Self {
        let (kernel, make) = (Rc::new(kernel), input.make.clone());
        let prepare = move || {
            let (kernel, input) = (kernel.clone(), make()?);
            Ok(Box::new(KernelWork { kernel, input, is_same, result: None }) as Box<dyn Work>)
        };
        Self {
            family,
            algorithm,
            problem,
            is_baseline: false,
            bytes: input.bytes + output,
            prepare: Box::new(prepare),
        }
    }

    /// The same case as a baseline.
    pub fn as_baseline(self) -> Self {
        Self { is_baseline: true, ..self }
    }

    /// Whether the case also runs on the CPU.
    pub fn runs_on_cpu(&self) -> bool {
        !self.is_baseline && self.family != "transfer"
    }
}

impl<T: ?Sized> fmt::Debug for Input<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.family, self.algorithm, self.problem)
    }
}
