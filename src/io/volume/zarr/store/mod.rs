//! The files of a store: in a folder, in a ZIP file, or at a web address. Names are relative, with `/` between their
//! parts.

mod files;
mod folder;
#[cfg(feature = "http")]
mod web;
mod zip;

use std::{path::Path, sync::Arc};

pub use files::ByteRange;

use self::files::FileStore;
use crate::io::volume::header::BoxError;

/// A folder in a store.
#[derive(Clone, Debug)]
pub struct Store {
    files: Arc<dyn FileStore>,
    /// The folder's name with a `/` at its end, or empty for the root.
    prefix: String,
    /// The name of the store in messages.
    root: String,
}

/// Whether `path` is a store. Every web address counts as one.
pub fn is_store(path: &Path) -> bool {
    is_address_or_zip(path) || folder::is_store(path)
}

/// Whether `path` is a Zarr store at a web address or in a ZIP file. For other names that takes no system call.
pub fn is_address_or_zip(path: &Path) -> bool {
    is_address(path) || zip::split(path).is_some()
}

/// The ZIP file with a store that `path` is, or is a folder in.
pub fn zip_file(path: &Path) -> Option<&Path> {
    Some(zip::split(path)?.0)
}

/// Whether `path` is a web address.
pub fn is_address(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    ["http://", "https://", "s3://"].iter().any(|scheme| text.starts_with(scheme))
}

impl Store {
    /// The store at `path`.
    pub fn open(path: &Path) -> Result<Self, BoxError> {
        let root = path.display().to_string();
        if is_address(path) {
            #[cfg(feature = "http")]
            return Ok(Self {
                files: Arc::new(web::WebStore::new(&root)?),
                prefix: String::new(),
                root,
            });
            #[cfg(not(feature = "http"))]
            return Err(
                "web addresses are not supported: gpuproc was built without the feature `http`"
                    .into(),
            );
        }
        Ok(match zip::split(path).filter(|_| !path.is_dir()) {
            Some((file, within)) => {
                let zip = zip::ZipStore::open(file)?;
                let prefix = zip.prefix(&within);
                Self { files: zip, prefix, root: file.display().to_string() }
            }
            None => {
                let files = Arc::new(folder::FolderStore(path.to_owned()));
                Self { files, prefix: String::new(), root }
            }
        })
    }

    /// The folder `name` in this folder.
    pub fn folder(&self, name: &str) -> Self {
        let parts = name.split('/').filter(|part| !["", "."].contains(part));
        let below: String = parts.map(|part| format!("{part}/")).collect();
        Self { prefix: format!("{}{below}", self.prefix), ..self.clone() }
    }

    /// Whether there is a file `name`; false for remote stores, which do not know.
    pub fn has(&self, name: &str) -> bool {
        self.files.has(&format!("{}{name}", self.prefix))
    }

    /// Calls `visit` with the name of each file and folder in this folder and in `depth` levels of folders below it, until
    /// `visit` returns false. Returns whether all have been visited; false also if the store cannot list them.
    pub fn list(&self, depth: usize, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        self.files.list(&self.prefix, depth, visit)
    }

    /// Reads a part of the file `name`, of at most `max` bytes; `None` if the file is missing.
    pub fn get(&self, name: &str, part: ByteRange, max: u64) -> Result<Option<Vec<u8>>, BoxError> {
        self.get_into(name, part, max, Vec::new())
    }

    /// As [`Self::get`]; the memory of `spare` may be used for the result.
    pub fn get_into(
        &self,
        name: &str,
        part: ByteRange,
        max: u64,
        spare: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, BoxError> {
        self.files.get(&format!("{}{name}", self.prefix), part, max, spare)
    }

    /// The name of the file `name` in messages.
    pub fn display_name(&self, name: &str) -> String {
        format!("{}/{}{name}", self.root.trim_end_matches('/'), self.prefix)
    }

    /// Names of folders with metadata in this folder.
    pub fn stores(&self) -> Vec<String> {
        self.files.stores_in(&self.prefix)
    }

    /// Whether the store is remote.
    pub fn is_remote(&self) -> bool {
        self.files.is_remote()
    }
}
