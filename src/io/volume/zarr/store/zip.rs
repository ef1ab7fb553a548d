//! Stores in ZIP files, as zarr-python and bioformats2raw write them (`.zarr.zip`) and RFC-9 of NGFF names them
//! (`.ozx`). Members are stored or deflated. The store is the root of the file, or the only folder in it with metadata.

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use flate2::read::DeflateDecoder;
use rawzip::{
    CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipArchive,
    ZipArchiveEntryWayfinder,
};

use super::files::{ByteRange, FileStore, METADATA, too_long};
use crate::{io::volume::header::BoxError, util::memory};

/// Maximum number of members of a ZIP file, which take some 100 bytes of memory each.
const MAX_MEMBERS: usize = 1 << 19;
/// Maximum size in bytes of their names.
const MAX_NAMES: usize = 16 << 20;

/// The files in a ZIP file.
#[derive(Debug)]
pub struct ZipStore {
    archive: ZipArchive<FileReader>,
    members: HashMap<Box<str>, Member>,
    /// The folder of the store, with a `/` at its end, or empty.
    root: String,
}

#[derive(Debug)]
struct Member {
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
}

/// Splits `path` into the ZIP file with a store that it is, or is a folder in, and the name of that folder.
pub fn split(path: &Path) -> Option<(&Path, String)> {
    let is_named = |path: &&Path| {
        let is = |name: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(name));
        is("zip") || is("ozx")
    };
    let file = path.ancestors().find(is_named).filter(|file| file.is_file())?;
    let parts = path.strip_prefix(file).ok()?.components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let within = parts.collect::<Option<Vec<_>>>()?.join("/");
    // A ZIP file named as a store counts as one even if it is broken, so that the message says why. Others are opened.
    let name = file.file_name()?.to_str()?.to_ascii_lowercase();
    let is_store = name.ends_with(".ozx") || name.ends_with(".zarr.zip");
    let contains_store = || ZipStore::open(file).is_ok_and(|zip| zip.has_metadata(&zip.root));
    (is_store || contains_store()).then_some((file, within))
}

/// The last opened file, with its length and modification time: a command opens the same file several times.
type Last = Option<(PathBuf, u64, Option<SystemTime>, Arc<ZipStore>)>;
static LAST: Mutex<Last> = Mutex::new(None);

impl ZipStore {
    pub fn open(path: &Path) -> Result<Arc<Self>, BoxError> {
        let file = File::open(path)?;
        let found = file.metadata()?;
        let state = (path.to_owned(), found.len(), found.modified().ok());
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, len, time, zip)) = &*last
            && (path, *len, *time) == (&state.0, state.1, state.2)
        {
            return Ok(zip.clone());
        }
        *last = None;
        let zip = Arc::new(Self::read(file)?);
        *last = Some((state.0, state.1, state.2, zip.clone()));
        Ok(zip)
    }

    fn read(file: File) -> Result<Self, BoxError> {
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer)?;
        let (mut members, mut names) = (HashMap::new(), 0);
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry()? {
            let name = entry.file_path();
            let Ok(name) = std::str::from_utf8(name.as_bytes()) else { continue };
            if entry.is_dir() || name.len() > 1 << 10 {
                continue;
            }
            names += name.len();
            if members.len() == MAX_MEMBERS || names > MAX_NAMES {
                return Err("too many files in the ZIP file; unpack it".into());
            }
            let member = Member { place: entry.wayfinder(), method: entry.compression_method() };
            members.insert(name.into(), member);
        }
        let mut zip = Self { archive, members, root: String::new() };
        if !zip.has_metadata("") {
            // Folders without metadata, such as `__MACOSX`, do not count.
            let metadata = zip.members.keys().filter(|name| is_metadata(name));
            let mut roots: Vec<&str> =
                metadata.filter_map(|name| Some(name.split_once('/')?.0)).collect();
            roots.sort_unstable();
            roots.dedup();
            let root = if let [root] = roots[..] { format!("{root}/") } else { String::new() };
            if zip.has_metadata(&root) {
                zip.root = root;
            }
        }
        Ok(zip)
    }

    fn has_metadata(&self, folder: &str) -> bool {
        METADATA.iter().any(|name| self.members.contains_key(&*format!("{folder}{name}")))
    }

    /// The beginning of the names of all files in the folder `within` of the store.
    pub fn prefix(&self, within: &str) -> String {
        match within {
            "" => self.root.clone(),
            within => format!("{}{within}/", self.root),
        }
    }
}

fn is_metadata(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|name| METADATA.contains(&name))
}

impl FileStore for ZipStore {
    fn get(
        &self,
        name: &str,
        part: ByteRange,
        max: u64,
        mut content: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, BoxError> {
        let Some(Member { place, method }) = self.members.get(name) else { return Ok(None) };
        let entry = self.archive.get_entry(*place)?;
        let (start, end) = entry.compressed_data_range();
        match (*method, part) {
            (CompressionMethod::STORE, part) => {
                let (from, bytes) = part.within(end - start);
                if bytes > max {
                    return Err(too_long(bytes, max));
                }
                // The central directory may claim more bytes than the file has: read the last one before memory is
                // allocated.
                self.archive.get_ref().read_exact_at(&mut [0], end.max(1) - 1)?;
                memory::resize(&mut content, bytes as usize)?;
                self.archive.get_ref().read_exact_at(&mut content, start + from)?;
                if part == ByteRange::Whole {
                    let mut whole = entry.verifying_reader(&content[..]);
                    std::io::copy(&mut whole, &mut std::io::sink())?;
                }
                Ok(Some(content))
            }
            (CompressionMethod::DEFLATE, ByteRange::Whole) => {
                let len = place.uncompressed_size_hint();
                if len > max {
                    return Err(too_long(len, max));
                }
                let whole = entry.verifying_reader(DeflateDecoder::new(entry.reader()));
                content.clear();
                whole.take(max + 1).read_to_end(&mut content)?;
                match content.len() as u64 > max {
                    true => Err(too_long(content.len() as u64, max)),
                    false => Ok(Some(content)),
                }
            }
            (CompressionMethod::DEFLATE, _) => {
                Err("deflated shards in ZIP files are not supported; store them, or unpack the ZIP file".into())
            }
            (method, _) => Err(format!("compression {method:?} of ZIP files is not supported").into()),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    fn list(&self, name: &str, _: usize, visit: &mut dyn FnMut(&str) -> bool) -> bool {
        self.members.keys().filter_map(|member| member.strip_prefix(name)).all(visit)
    }

    fn stores_in(&self, name: &str) -> Vec<String> {
        let below = |member: &&str| {
            let (folder, file) = member.strip_prefix(name)?.split_once('/')?;
            METADATA.contains(&file).then(|| folder.to_owned())
        };
        let mut stores: Vec<String> =
            self.members.keys().filter_map(|member| below(&&**member)).collect();
        stores.sort();
        stores.dedup();
        stores
    }
}
