//! Copies for `gpuproc bench`: the bandwidth that a device's memory really has, and that of the bus to and from it.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, Mutex},
};

use crate::{
    data::noise::Noise,
    error::{Error, Result},
    gpu::{Batch, Buffer, Context, Shader},
    kernels::case::{Case, Prepared},
    parallel::Parallel,
    shader,
};

/// `wgsl/copy/copy.wgsl`.
pub static SHADER: Shader = shader!("copy/copy")
    .unchecked("indices are below the source's length, and the target is as long");

/// Bytes that one workgroup copies: 256 invocations, 4 quads of 16 bytes each.
const BYTES_A_WORKGROUP: u64 = 256 * 4 * 16;

/// Records a pass that copies all of `source` to `target`, whose lengths are multiples of 16.
///
/// # Errors
/// When the pipeline cannot be made or a dispatch cannot be so large.
pub fn record(
    batch: &mut Batch<'_>,
    context: &Context,
    source: &Buffer,
    target: &Buffer,
) -> Result<()> {
    assert_eq!(source.bytes(), target.bytes(), "a copy needs as much room as its source");
    let pipeline = context.pipeline(&SHADER, "copy")?;
    let groups = context.fold(source.bytes().div_ceil(BYTES_A_WORKGROUP))?;
    batch
        .pass("copy", &pipeline)
        .buffer("source", source)
        .buffer("target_", target)
        .dispatch(groups);
    Ok(())
}

/// Copies of noise on the device, to it and back: 16 MiB, and with `full` 1 GiB.
pub fn cases(full: bool) -> Vec<Case> {
    let sizes: &[u64] = if full { &[16 << 20, 1 << 30] } else { &[16 << 20] };
    let of_size = |&bytes: &u64| {
        [case(bytes), transfer("upload", bytes, upload), transfer("readback", bytes, readback)]
    };
    sizes.iter().flat_map(of_size).collect()
}

/// A transfer of `bytes` bytes between a vector and a buffer of the device, until the last byte has arrived. The memory
/// of both is kept from run to run.
fn transfer(
    algorithm: &'static str,
    bytes: u64,
    prepare: for<'c> fn(&'c Context, u64) -> Result<Prepared<'c>>,
) -> Case {
    Case {
        family: "transfer",
        algorithm,
        problem: format!("{} MiB", bytes >> 20),
        baseline: false,
        bytes,
        on_cpu: false,
        prepare: Box::new(move |context| match context {
            Some(context) => prepare(context, bytes),
            None => Err(Error::gpu("there is no bus to the CPU itself")),
        }),
    }
}

fn upload(context: &Context, bytes: u64) -> Result<Prepared<'_>> {
    let data = Rc::new(Noise(0).u32s(bytes as usize / 4)?);
    let target = Rc::new(context.allocate("uploaded", bytes)?);
    let (source, uploaded) = (data.clone(), target.clone());
    Ok(Prepared {
        run: Box::new(move || {
            context.write(&target, 0, &source)?;
            context.wait()
        }),
        check: Box::new(move || check(&data, &context.read(&uploaded, data.len())?)),
    })
}

fn readback(context: &Context, bytes: u64) -> Result<Prepared<'_>> {
    let data = Noise(0).u32s(bytes as usize / 4)?;
    let source = context.upload("read back", &data)?;
    let last = Rc::new(RefCell::new(vec![0; data.len()]));
    let found = last.clone();
    Ok(Prepared {
        run: Box::new(move || context.read_into(&source, &mut last.borrow_mut())),
        check: Box::new(move || check(&data, &found.borrow())),
    })
}

/// One copy of `bytes` bytes, a multiple of 16.
pub fn case(bytes: u64) -> Case {
    Case {
        family: "copy",
        algorithm: "copy",
        problem: format!("{} MiB", bytes >> 20),
        baseline: true,
        bytes: 2 * bytes,
        on_cpu: true,
        prepare: Box::new(move |context| match context {
            Some(context) => prepare_gpu(context, bytes),
            None => prepare_cpu(bytes),
        }),
    }
}

fn prepare_gpu(context: &Context, bytes: u64) -> Result<Prepared<'_>> {
    let data = Noise(0).u32s(bytes as usize / 4)?;
    let source = context.upload("copy source", &data)?;
    let target = context.allocate("copy target", bytes)?;
    let mut batch = context.batch();
    record(&mut batch, context, &source, &target)?;
    Ok(Prepared {
        run: Box::new(move || batch.run()),
        check: Box::new(move || check(&data, &context.read(&target, data.len())?)),
    })
}

fn prepare_cpu(bytes: u64) -> Result<Prepared<'static>> {
    let data: Arc<[u32]> = Noise(0).u32s(bytes as usize / 4)?.into();
    let target = Arc::new(Mutex::new(vec![0; data.len()]));
    let (source, copied) = (data.clone(), target.clone());
    let lock = "no holder of this lock panics";
    Ok(Prepared {
        run: Box::new(move || {
            let mut target = target.lock().expect(lock);
            let pieces = target.chunks_mut(1 << 18).zip(source.chunks(1 << 18));
            pieces.par_each(|(to, from)| to.copy_from_slice(from));
            Ok(())
        }),
        check: Box::new(move || check(&data, &copied.lock().expect(lock))),
    })
}

fn check(expected: &[u32], found: &[u32]) -> Result<()> {
    match expected == found {
        true => Ok(()),
        false => Err(Error::gpu("the copy differs from what was copied")),
    }
}
