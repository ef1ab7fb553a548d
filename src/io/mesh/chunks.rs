//! Formats many small items on all threads, and writes them in large chunks.

use std::io::{self, Write};

use bytemuck::Pod;

use crate::util::parallel::Parallel;

/// Number of items of a chunk.
pub(super) const CHUNK: usize = 1 << 17;

/// Writes `items` in order, each as the bytes that `format` appends, a chunk at a time.
pub(super) fn write_each<T: Sync>(
    out: &mut (impl Write + ?Sized),
    items: &[T],
    format: impl Fn(&T, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    for items in items.chunks(CHUNK) {
        let parts = items.chunks(CHUNK / 16).par_map(|items| {
            let mut bytes = Vec::new();
            items.iter().for_each(|item| format(item, &mut bytes));
            bytes
        });
        out.write_all(&parts.concat())?;
    }
    Ok(())
}

/// Writes each of `items` as text: `write_text!(out, positions, |[x, y, z]| "v {x} {y} {z}\n")`.
macro_rules! write_text {
    ($out:expr, $items:expr, |$item:pat_param| $($text:tt)+) => {
        $crate::io::mesh::chunks::write_each($out, $items, |$item, bytes| {
            std::io::Write::write_fmt(bytes, format_args!($($text)+)).expect("memory takes every byte");
        })
    };
}
pub(super) use write_text;

/// Writes triples of numbers of 32 bits in little-endian order.
pub(super) fn write_triples<T: Pod>(
    out: &mut (impl Write + ?Sized),
    triples: &[[T; 3]],
) -> io::Result<()> {
    out.write_all(bytemuck::cast_slice(triples))
}

/// Writes `items` in order, each as `size` bytes filled by `pack`. A chunk is written while the next one is packed.
pub(super) fn write_ahead<T: Sync>(
    out: &mut (impl Write + Send + ?Sized),
    items: &[T],
    size: usize,
    pack: impl Fn(&[T], &mut [u8]) + Sync,
) -> io::Result<()> {
    let buffer = || vec![0; CHUNK.min(items.len()) * size];
    let (mut packed, mut next) = (buffer(), buffer());
    let mut ready = 0;
    let mut chunks = items.chunks(CHUNK);
    loop {
        let chunk = chunks.next().unwrap_or_default();
        let (written, ()) = rayon::join(
            || out.write_all(&packed[..ready * size]),
            || {
                let parts = next[..chunk.len() * size].chunks_mut((CHUNK / 16) * size);
                parts.zip(chunk.chunks(CHUNK / 16)).par_each(|(bytes, items)| pack(items, bytes));
            },
        );
        written?;
        if chunk.is_empty() {
            return Ok(());
        }
        std::mem::swap(&mut packed, &mut next);
        ready = chunk.len();
    }
}

/// Converts a count to the integer type of a format. Fails with `message` if the count is too large.
pub(super) fn to_count<T: TryFrom<u64>>(count: impl TryInto<u64>, message: &str) -> io::Result<T> {
    let count = count.try_into().ok().and_then(|count| T::try_from(count).ok());
    count.ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, message))
}
