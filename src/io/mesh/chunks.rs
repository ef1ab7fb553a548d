//! Many small items as few large writes.

use std::io::{self, Write};

use crate::parallel::Parallel;

/// Items that are turned into bytes at a time, so that each write is a large one.
pub(super) const CHUNK: usize = 1 << 17;

/// Writes what `format` makes of each of `items`, a chunk at a time and in order.
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

/// Writes the `size` bytes that `pack` makes of each of `items`, a chunk while the next is packed.
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
