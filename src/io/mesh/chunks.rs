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

/// The error of a surface that a format cannot hold.
pub(super) fn too_large(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}
