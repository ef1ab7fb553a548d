//! What `gpuproc bench` measures of sorts.

use std::{cell::RefCell, rc::Rc};

use super::{Records, Sort, gpu};
use crate::{
    data::noise::Noise,
    device::Kernel,
    error::{Error, Kind, Result},
    gpu::Context,
    kernels::case::{Case, Prepared},
};

/// Sorts of u32 noise, alone and with a payload. `full` takes the sizes of a large GPU, else those that
/// software Vulkan manages. A run includes copying the noise into its place.
pub fn cases(full: bool) -> Vec<Case> {
    let lengths: &[u32] = if full { &[20, 24, 28] } else { &[16, 18] };
    let case = |bits: u32, with_payload: bool| Case {
        family: "sort",
        algorithm: if with_payload { "radix with payload" } else { "radix" },
        problem: format!("u32 2^{bits}"),
        baseline: false,
        bytes: (if with_payload { 16 } else { 8 }) << bits,
        on_cpu: true,
        prepare: Box::new(move |context| prepare(1 << bits, with_payload, context)),
    };
    lengths.iter().flat_map(|&bits| [case(bits, false), case(bits, true)]).collect()
}

fn prepare(len: usize, with_payload: bool, context: Option<&Context>) -> Result<Prepared<'_>> {
    let keys = Noise(0).u32s(len)?;
    let payload = with_payload.then(|| (0..len as u32).collect::<Vec<_>>());
    let records = Rc::new(Records { keys, payload });
    let sort = Sort::<u32>::new(false);
    let check =
        move |found: &Records<u32>, records: &Records<u32>| match *found == sort.cpu(records)? {
            true => Ok(()),
            false => Err(Error::new(Kind::Failure, "not sorted as on the CPU")),
        };
    let Some(context) = context else {
        let sorted = Rc::new(RefCell::new(None));
        let (input, output) = (records.clone(), sorted.clone());
        let run = move || {
            *output.borrow_mut() = Some(sort.cpu(&input)?);
            Ok(())
        };
        let check = move || match &*sorted.borrow() {
            Some(found) => check(found, &records),
            None => Ok(()),
        };
        return Ok(Prepared { run: Box::new(run), check: Box::new(check) });
    };
    let keys = gpu::pair(context, len)?;
    let payload = with_payload.then(|| gpu::pair(context, len)).transpose()?;
    let mut batch = context.batch();
    batch.copy(&context.upload("noise", &records.keys)?, &keys[0]);
    if let (Some(buffers), Some(values)) = (&payload, &records.payload) {
        batch.copy(&context.upload("payload", values)?, &buffers[0]);
    }
    let moved: Vec<_> = payload.iter().collect();
    let arrays = gpu::Arrays { keys: &keys, moved: &moved, len, differing: u32::MAX };
    let sorted = gpu::record(context, &mut batch, arrays)?;
    let run = move || batch.run();
    let check = move || {
        let keys = context.read(&keys[sorted], len)?;
        let payload = payload.map(|payload| context.read(&payload[sorted], len)).transpose()?;
        check(&Records { keys, payload }, &records)
    };
    Ok(Prepared { run: Box::new(run), check: Box::new(check) })
}
