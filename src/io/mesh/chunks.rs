//! Formats many small items on all threads, and writes them in large chunks.

use std::io::{self, Write};

use crate::parallel::Parallel;

/// Number of items of a chunk.
pub(super) const CHUNK: usize = 1 << 17;

/// Writes `items` in order, each as the bytes that `format` appends, a chunk at a time.
pub(super) fn write_each<T: Sync>(
    out: &mut impl Write,
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

/// Writes `items` in order, each as `size` bytes made by `pack`. A chunk is written while the next is packed.
pub(super) fn write_ahead<T: Sync>(
    out: &mut (impl Write + Send),
    items: &[T],
    size: usize,
    pack: impl Fn(&[T], &mut [u8]) + Sync,
) -> io::Result<()> {
    let room = || vec![0; CHUNK.min(items.len()) * size];
    let (mut packed, mut next) = (room(), room());
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

/// The error of a surface that a format cannot hold.
pub(super) fn too_large(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}
