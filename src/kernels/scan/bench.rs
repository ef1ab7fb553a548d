//! What `gpuproc bench` measures of scans.

use std::{cell::RefCell, rc::Rc};

use super::{Algorithm, Arrays, Op, Scan, Scannable, Spec, cpu};
use crate::{
    data::noise::Noise,
    device::Kernel,
    error::{Error, Kind, Result},
    gpu::Context,
    kernels::case::{Case, Prepared},
};

/// Exclusive sums by every algorithm. `full` takes the sizes of a large GPU, else those that software Vulkan manages.
pub fn cases(full: bool) -> Vec<Case> {
    let lengths: &[u32] = if full { &[20, 24, 28] } else { &[16, 20] };
    let algorithms = [
        ("reduce-then-scan", Algorithm::Reduce, false),
        ("look-back", Algorithm::Lookback, false),
        ("Blelloch", Algorithm::Blelloch, true),
    ];
    let mut cases = Vec::new();
    for &bits in lengths {
        for (name, algorithm, baseline) in algorithms {
            cases.push(case::<u32>(name, algorithm, baseline, bits));
        }
        cases.push(case::<f32>("reduce-then-scan", Algorithm::Reduce, false, bits));
        cases.push(case::<f32>("look-back", Algorithm::Lookback, false, bits));
    }
    cases
}

fn case<T: Scannable>(name: &'static str, algorithm: Algorithm, baseline: bool, bits: u32) -> Case {
    let len = 1 << bits;
    Case {
        family: "scan",
        algorithm: name,
        problem: format!("{} 2^{bits}", T::DTYPE),
        baseline,
        bytes: 2 * (len * size_of::<T>()) as u64,
        on_cpu: algorithm == Algorithm::Reduce,
        prepare: Box::new(move |context| prepare::<T>(algorithm, len, context)),
    }
}

fn prepare<T: Scannable>(
    algorithm: Algorithm,
    len: usize,
    context: Option<&Context>,
) -> Result<Prepared<'_>> {
    // Small numbers of both signs: in u32 they wrap around, in f32 they cancel out.
    let input = Noise(0).collect(len, |number| T::from_small((number >> 48) as i32 - (1 << 15)))?;
    let scan = Scan::<T> { algorithm, ..Scan::new(Op::Sum, false) };
    let check = move |found: &[T], input: &[T]| {
        // The carry is what makes the end right: it depends on every number.
        let expected = Scan { algorithm: Algorithm::Auto, ..scan }.cpu(input)?.values;
        let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
        match wrong {
            None => Ok(()),
            Some(i) => Err(Error::new(
                Kind::Failure,
                format_args!("number {i} is {}, not {}", found[i], expected[i]),
            )),
        }
    };
    let Some(context) = context else {
        let output = Rc::new(RefCell::new(vec![T::default(); len]));
        let input = Rc::new(input);
        let (read, write) = (input.clone(), output.clone());
        let run = move || {
            cpu::scan::<T::Sum>(&read, &mut write.borrow_mut(), false, T::default());
            Ok(())
        };
        let check = move || check(&output.borrow(), &input);
        return Ok(Prepared { run: Box::new(run), check: Box::new(check) });
    };
    let spec = Spec { dtype: T::DTYPE, op: Op::Sum, inclusive: false, algorithm };
    let source = context.upload("scan source", &input)?;
    let result = context.allocate("scan result", source.bytes())?;
    let places = spec.carry_places(context, len);
    let carry = context.upload("carry", &vec![T::default(); places])?;
    let mut batch = context.batch();
    let arrays = Arrays { source: &source, result: &result, len, carry: &carry };
    spec.record(context, &mut batch, arrays)?;
    let run = move || batch.run();
    let check = move || check(&context.read::<T>(&result, len)?, &input);
    Ok(Prepared { run: Box::new(run), check: Box::new(check) })
}
