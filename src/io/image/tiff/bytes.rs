//! Access to the bytes of a TIFF file at any offset, in memory or on disk.

use std::{borrow::Cow, fs::File, io, sync::Arc};

use crate::{
    io::{
        RegularFile,
        image::{codec::ReadAt, error::BoxError},
        parallel_file::read_full_at,
    },
    util::memory,
};

impl ReadAt for &[u8] {
    fn len(&self) -> u64 {
        (**self).len() as u64
    }

    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError> {
        let whole = (**self).len() as u64;
        let range = at.min(whole) as usize..at.saturating_add(len).min(whole) as usize;
        Ok(Cow::Borrowed(&self[range]))
    }
}

#[derive(Debug)]
pub struct FileBytes {
    file: Arc<File>,
    len: u64,
}

impl FileBytes {
    pub fn new(file: &RegularFile) -> io::Result<Self> {
        let file = file.file().clone();
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }
}

impl ReadAt for FileBytes {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, at: u64, len: u64) -> Result<Cow<'_, [u8]>, BoxError> {
        let available = self.len.saturating_sub(at).min(len);
        let mut bytes = memory::zeros(usize::try_from(available)?)?;
        let filled = read_full_at(&self.file, &mut bytes, at)?;
        bytes.truncate(filled);
        Ok(Cow::Owned(bytes))
    }
}
