//! What `gpuproc bench` measures: one algorithm on one problem, described by its kernel family.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use crate::{
    device::Kernel,
    error::{Error, Kind, Result},
    gpu::Context,
};

/// Work that can be run again and again on data that stay where they are. On a GPU every pass records itself in the
/// context's timings; their sum is the run's time.
pub type Run<'a> = Box<dyn FnMut() -> Result<()> + 'a>;

/// Fails when the result of the last run differs from the reference.
pub type Check<'a> = Box<dyn FnOnce() -> Result<()> + 'a>;

/// A prepared measurement: buffers filled, pipelines made.
pub struct Prepared<'a> {
    /// One run.
    pub run: Run<'a>,
    /// The check of its result.
    pub check: Check<'a>,
}

/// Prepares a case on a GPU, or on the CPU when there is no context.
pub type Prepare = Box<dyn for<'c> Fn(Option<&'c Context>) -> Result<Prepared<'c>>>;

/// One algorithm on one problem.
pub struct Case {
    /// The kernel family, such as `blur`; `copy` and `transfer` move bytes and compute nothing.
    pub family: &'static str,
    /// The algorithm, such as `look-back` or `direct 2-D`.
    pub algorithm: &'static str,
    /// The problem, such as `u32 2^28` or `8192x8192 RGBA8 r=24`.
    pub problem: String,
    /// Whether it is kept only to be compared with.
    pub baseline: bool,
    /// The least bytes that any algorithm must move: input once and output once; the input files of whole commands.
    pub bytes: u64,
    /// Whether the CPU has it, too; baselines often run on a GPU only.
    pub on_cpu: bool,
    /// Sets it up.
    pub prepare: Prepare,
}

impl std::fmt::Debug for Prepared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prepared")
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.family, self.algorithm, self.problem)
    }
}

/// Cases of one family that differ in one number, to be drawn as lines.
#[derive(Debug)]
pub struct Sweep {
    /// What the number is, with its unit: `radius (pixels)`.
    pub along: &'static str,
    /// The number and the case at it.
    pub points: Vec<(f64, Case)>,
}

impl Case {
    /// A case of `kernel` on given input, which it takes anew in every run: GPU timestamps leave the
    /// upload out. `check` judges the result.
    pub fn of_kernel<K>(
        [family, algorithm]: [&'static str; 2],
        problem: String,
        bytes: u64,
        kernel: K,
        input: &Arc<K::In>,
        check: fn(&K, &K::In, &K::Out) -> Result<()>,
    ) -> Self
    where
        K: Kernel + 'static,
        K::In: Send + Sync,
    {
        let (kernel, input) = (Arc::new(kernel), input.clone());
        let prepare: Prepare = Box::new(move |context| {
            let (kernel, input) = (kernel.clone(), input.clone());
            let last = Rc::new(RefCell::new(None));
            let (judge, judged, found) = (kernel.clone(), input.clone(), last.clone());
            Ok(Prepared {
                run: Box::new(move || {
                    *last.borrow_mut() = Some(match context {
                        Some(context) => kernel.gpu(context, &input)?,
                        None => kernel.cpu(&input)?,
                    });
                    Ok(())
                }),
                check: Box::new(move || match &*found.borrow() {
                    Some(found) => check(&judge, &judged, found),
                    None => Err(Error::new(Kind::Failure, "there is no result to check")),
                }),
            })
        });
        Self { family, algorithm, problem, baseline: false, bytes, on_cpu: true, prepare }
    }
}
