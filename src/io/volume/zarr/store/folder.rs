//! Stores that are folders.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::files::{ByteRange, FileStore, METADATA, too_long};
use crate::{io::volume::header::BoxError, util::memory};

/// Whether `path` is a folder with the metadata of a store.
pub fn is_store(path: &Path) -> bool {
    path.is_dir() && METADATA.iter().any(|name| path.join(name).is_file())
}

#[derive(Debug)]
pub struct FolderStore(pub PathBuf);

impl FileStore for FolderStore {
    fn get(
        &self,
        name: &str,
        part: ByteRange,
        max: u64,
        mut content: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, BoxError> {
        let path = self.0.join(name);
        let found = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found?,
        };
        // Opening a named pipe would wait forever.
        if !found.is_file() {
            return Err("not a regular file".into());
        }
        let (from, bytes) = part.within(found.len());
        if bytes > max {
            return Err(too_long(bytes, max));
        }
        let mut file = File::open(path)?;
        if from > 0 {
            file.seek(SeekFrom::Start(from))?;
        }
        content.clear();
        if (content.capacity() as u64) < bytes {
            content = memory::room(bytes as usize)?;
        }
        file.take(bytes).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    fn list(&self, name: &str, depth: usize, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        let mut folders = vec![(self.0.join(name), String::new(), depth)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            let Ok(entries) = fs::read_dir(folder) else { return false };
            for entry in entries {
                let Ok(entry) = entry else { return false };
                let file_name = entry.file_name();
                let Some(file_name) = file_name.to_str() else { continue };
                let name = format!("{prefix}{file_name}");
                // Reading a file follows links, too.
                let is_folder = match entry.file_type() {
                    Ok(kind) if kind.is_symlink() => entry.path().is_dir(),
                    Ok(kind) => kind.is_dir(),
                    Err(_) => return false,
                };
                if !visit(&name) {
                    return false;
                }
                if is_folder && depth > 0 {
                    folders.push((entry.path(), name + "/", depth - 1));
                }
            }
        }
        true
    }

    fn stores_in(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(name)).into_iter().flatten().flatten();
        let stores = entries.filter(|entry| is_store(&entry.path()));
        stores.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}
