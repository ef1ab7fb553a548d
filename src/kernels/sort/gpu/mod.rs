//! The sort on a GPU.

pub(super) mod radix;

use super::Records;
use crate::{
    error::Result,
    gpu::{Buffer, Context},
    memory,
};

/// Sorts each `run` keys by themselves, and the payload with them.
///
/// # Errors
/// [`Kind::Gpu`](crate::error::Kind::Gpu) when the device fails.
pub fn sort_runs(
    context: &Context,
    keys: &[u32],
    payload: Option<&[u32]>,
    run: usize,
) -> Result<Records<u32>> {
    if keys.len() <= run {
        return sort_run(context, keys, payload);
    }
    let mut sorted = Records {
        keys: memory::room(keys.len())?,
        payload: payload.map(|_| memory::room(keys.len())).transpose()?,
    };
    for (number, keys) in keys.chunks(run).enumerate() {
        let payload = payload.map(|all| &all[number * run..][..keys.len()]);
        let part = sort_run(context, keys, payload)?;
        sorted.keys.extend(part.keys);
        if let (Some(all), Some(part)) = (&mut sorted.payload, part.payload) {
            all.extend(part);
        }
    }
    Ok(sorted)
}

fn sort_run(context: &Context, keys: &[u32], payload: Option<&[u32]>) -> Result<Records<u32>> {
    let len = keys.len();
    let bytes = 4 * len as u64;
    let pair = |data| -> Result<[Buffer; 2]> {
        Ok([context.upload("sort data", data)?, context.allocate("sort other", bytes)?])
    };
    let (keys, payload) = (pair(keys)?, payload.map(pair).transpose()?);
    let mut batch = context.batch();
    radix::record(context, &mut batch, &keys, payload.as_ref(), len)?;
    batch.run()?;
    let keys = context.read(&keys[0], len)?;
    let payload = payload.map(|[payload, _]| context.read(&payload, len)).transpose()?;
    Ok(Records { keys, payload })
}
