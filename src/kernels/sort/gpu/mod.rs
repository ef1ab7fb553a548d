//! The sort on a GPU: the list of routes, and the sort of keys in memory, run by run.

mod arrays;
pub mod onesweep;
mod radix;

use super::{keys::Key, records::Records};
use crate::{
    gpu::{Batch, Buffer, Context, Shader},
    util::{error::Result, memory},
};

pub use arrays::SortBuffers;

/// The routes, in the order in which they are tried.
const ROUTES: [Route; 2] = [
    // Each key is read once and written once per digit of 8 bits.
    Route { is_preferred: onesweep::is_preferred, record: onesweep::record },
    // Each key is read twice and written once per digit of 4 bits. Works on all devices.
    Route { is_preferred: |_| true, record: radix::record },
];

/// An algorithm on a GPU. The file of each has the name of its shader.
struct Route {
    /// Whether the device supports it, and it is faster there than the routes after it.
    is_preferred: fn(&Context) -> bool,
    record: fn(&Context, &mut Batch<'_>, SortBuffers<'_>) -> Result<usize>,
}

/// Maximum number of keys that are sorted at once: the look-back counts them in 30 bits.
pub const MAX_KEYS: u64 = (1 << 30) - 4;

/// All specialisations of the shaders of sorts.
pub fn variants() -> Vec<Shader> {
    let widths = [8, 16, 32].map(|width| onesweep::specialise(&onesweep::ONESWEEP, width));
    [&[radix::RADIX.clone()][..], &widths].concat()
}

/// Records the sort. Returns the index of the buffer, in each pair, that will hold the result.
pub fn record(context: &Context, batch: &mut Batch<'_>, arrays: SortBuffers<'_>) -> Result<usize> {
    let route =
        ROUTES.iter().find(|route| (route.is_preferred)(context)).expect("the last runs anywhere");
    (route.record)(context, batch, arrays)
}

/// Sorts each run of `run` keys with their payload. Keys differ only in the bits `differing`.
pub fn sort_runs<K: Key>(
    context: &Context,
    keys: &[K],
    payload: Option<&[u32]>,
    run: usize,
    differing: K,
) -> Result<Records<K>> {
    if keys.len() <= run {
        return sort_run(context, keys, payload, differing);
    }
    let mut sorted = Records {
        keys: memory::room(keys.len())?,
        payload: payload.map(|_| memory::room(keys.len())).transpose()?,
    };
    for (number, keys) in keys.chunks(run).enumerate() {
        let payload = payload.map(|all| &all[number * run..][..keys.len()]);
        let part = sort_run(context, keys, payload, differing)?;
        sorted.keys.extend(part.keys);
        if let (Some(all), Some(part)) = (&mut sorted.payload, part.payload) {
            all.extend(part);
        }
    }
    Ok(sorted)
}

/// Sorts by the lowest words of the keys, then, stably, by the next words. Other words and the payload move along.
fn sort_run<K: Key>(
    context: &Context,
    keys: &[K],
    payload: Option<&[u32]>,
    differing: K,
) -> Result<Records<K>> {
    let len = keys.len();
    let upload = |words: &[u32]| -> Result<[Buffer; 2]> {
        let pair = pair(context, len)?;
        context.write(&pair[0], 0, words)?;
        Ok(pair)
    };
    let differing = [differing];
    let differing = K::words(&differing)?;
    let mut arrays =
        K::words(keys)?.iter().map(|words| upload(words)).collect::<Result<Vec<_>>>()?;
    arrays.extend(payload.map(upload).transpose()?);
    let mut batch = context.batch();
    for (number, differing) in differing.iter().enumerate() {
        let others = arrays.iter().enumerate().filter(|&(other, _)| other != number);
        let moved: Vec<_> = others.map(|(_, pair)| pair).collect();
        let (keys, differing) = (&arrays[number], differing[0]);
        let sorted =
            record(context, &mut batch, SortBuffers { keys, moved: &moved, len, differing })?;
        arrays.iter_mut().for_each(|pair| pair.rotate_left(sorted));
    }
    batch.run()?;
    let mut words = arrays.iter().map(|[sorted, _]| context.read(sorted, len));
    let keys = words.by_ref().take(differing.len()).collect::<Result<Vec<_>>>()?;
    Ok(Records { keys: K::from_words(keys)?, payload: words.next().transpose()? })
}

/// Buffers for `len` words before and after a pass.
pub fn pair(context: &Context, len: usize) -> Result<[Buffer; 2]> {
    let bytes = 4 * len.next_multiple_of(4) as u64;
    Ok([context.allocate("sort data", bytes)?, context.allocate("sort other", bytes)?])
}
