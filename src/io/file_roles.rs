//! The files that a run reads and writes. Two names may mean one file: by links, by another spelling, and as `-` together
//! with the file to which standard output is redirected. [`FileRoles`] finds such names before anything is read or written.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    hash::{BuildHasher, RandomState},
    num::NonZeroU8,
    path::{Component, Path, PathBuf},
};

use super::{
    Sink, Source,
    image::has_image_name,
    mesh::FOLDER_EXTENSION,
    standard,
    unfinished::link_target,
    volume::{ZARR_EXTENSION, is_address, is_zarr, source_files},
};
use crate::util::error::{Error, Result};

/// Identity of an existing file or folder, the same under all its names.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = PathBuf;

/// Identity of a file, the same under all its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Existing(FileId),
    /// A file to be created: its deepest folder that exists, and the rest of the path.
    New(FileId, PathBuf),
    /// An open stream that is not a file, such as a terminal, by its descriptor.
    Stream(u32),
}

/// A hash of a [`Key`]. There may be millions of files, whose names would take much memory. Two of them have the same hash
/// with a probability below 1e-24.
type KeyHash = u128;

/// Uses of a file in a run. Roles are positions in [`FileRoles::roles`].
#[derive(Clone, Copy, Debug, Default)]
struct Role {
    reads: Option<NonZeroU8>,
    /// Whether several inputs have the name.
    is_read_again: bool,
    writes: Option<NonZeroU8>,
}

/// Uses of all files of a run. Devices and sockets may be named twice.
#[derive(Debug, Default)]
pub struct FileRoles {
    known: HashMap<KeyHash, Role>,
    /// The names of roles, counted from 1.
    roles: Vec<&'static str>,
    hashers: [RandomState; 2],
    /// Folders named like stores: outputs that are replaced as a whole, or folders of other files.
    stores: HashMap<KeyHash, Store>,
    /// The folder of the last file, its identity, and whether it ignores case.
    folder: Option<(PathBuf, FileId, bool)>,
    /// The log, which is known first.
    log: Option<KeyHash>,
    /// Whether the log was named for something else as well.
    pub has_log_conflict: bool,
}

/// How a folder is used, by the role of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    /// It is an output.
    Output(&'static str),
    /// It contains an input or an output.
    Holds(&'static str),
}

/// The role of inputs.
pub const INPUT: &str = "an input";
/// The role of outputs.
pub const OUTPUT: &str = "the output";

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> Option<FileId> {
    fs::canonicalize(path).ok()
}

/// Whether file names in `folder` ignore case. Found by looking up the folder under its name with the case changed.
fn ignores_case(folder: &Path, id: &FileId) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { return false };
    let flip = |letter: char| {
        if letter.is_ascii_lowercase() {
            letter.to_ascii_uppercase()
        } else {
            letter.to_ascii_lowercase()
        }
    };
    let flipped: String = name.chars().map(flip).collect();
    flipped != name && file_id(&folder.with_file_name(flipped)).as_ref() == Some(id)
}

#[cfg(unix)]
fn is_device(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    kind.is_char_device() || kind.is_block_device() || kind.is_socket()
}

#[cfg(not(unix))]
fn is_device(found: &fs::Metadata) -> bool {
    !found.is_file() && !found.is_dir()
}

/// Whether the output `sink` would replace the file `source`.
pub fn replaces(sink: &Sink, source: &Source) -> bool {
    let mut roles = FileRoles::default();
    let key = roles.key_of(sink);
    key.is_some() && key == source.path().and_then(|path| roles.key(path))
}

impl FileRoles {
    /// The roles of a run whose log is `log`, which is named as `role`.
    pub fn with_log(role: &'static str, log: Option<&Sink>) -> Self {
        let mut roles = Self::default();
        roles.log = log.and_then(|log| roles.key_of(log));
        // There are no other files yet.
        if let Some(Err(error)) = log.map(|log| roles.writes(role, log)) {
            log::debug!("{error}");
        }
        roles
    }

    /// Adds an input that is named as `role`. Refuses a file that is also an output.
    pub fn reads(&mut self, role: &'static str, source: &Source) -> Result<()> {
        let Source::File(path) = source else { return Ok(()) };
        if is_address(path) {
            return Ok(());
        }
        self.reads_file(role, path)?;
        let is_image =
            || has_image_name(source) && fs::metadata(path).is_ok_and(|found| found.is_file());
        if is_image() || is_zarr(path) {
            return Ok(());
        }
        // A volume may consist of several files. Errors are reported when it is read.
        let files = source_files(source).ok().flatten().unwrap_or_default();
        let mut others = files.iter().filter_map(Source::path).filter(|file| *file != &**path);
        others.try_for_each(|file| self.reads_file(role, file))
    }

    fn reads_file(&mut self, role: &'static str, path: &Path) -> Result<()> {
        standard::refuse_stream(path)?;
        let Some(key) = self.key(path) else { return Ok(()) };
        let number = self.number(role);
        let known = self.known.entry(key).or_default();
        known.is_read_again = known.reads.replace(number).is_some();
        match known.writes {
            Some(other) => {
                let other = self.role(other);
                Err(self.conflict(key, path.display(), [role, other]))
            }
            None => self.enters_store(path, role),
        }
    }

    /// Adds an output that is named as `role`. Refuses a file that is also another output or an input.
    pub fn writes(&mut self, role: &'static str, sink: &Sink) -> Result<()> {
        self.writes_result(role, sink, None)
    }

    /// Whether `sink` is an output that is named as `role`.
    pub fn is_written(&mut self, role: &'static str, sink: &Sink) -> bool {
        let key = self.key_of(sink);
        let known = key.and_then(|key| self.known.get(&key));
        known.and_then(|known| known.writes).is_some_and(|known| self.role(known) == role)
    }

    /// Adds an output that is named as `role`. It may replace the input `own`, from which it is made.
    pub fn writes_result(
        &mut self,
        role: &'static str,
        sink: &Sink,
        own: Option<&Source>,
    ) -> Result<()> {
        sink.path().map_or(Ok(()), standard::refuse_stream)?;
        // A folder that is not a store is not an output: writing it fails.
        if sink.path().is_some_and(|path| path.is_dir() && !is_store_name(path)) {
            return Ok(());
        }
        let Some(key) = self.key_of(sink) else { return Ok(()) };
        let own = own.and_then(Source::path).and_then(|path| self.key(path));
        let number = self.number(role);
        let known = self.known.entry(key).or_default();
        let is_own = own == Some(key) && !known.is_read_again;
        let reads = known.reads.filter(|_| !is_own);
        if let Some(other) = known.writes.replace(number).or(reads) {
            let other = self.role(other);
            return Err(self.conflict(key, sink, [role, other]));
        }
        let Sink::File(path) = sink else { return Ok(()) };
        if is_store_name(path) {
            let held = self.stores.insert(key, Store::Output(role));
            if let Some(Store::Holds(other)) = held {
                return Err(self.conflict(key, sink, [role, other]));
            }
        }
        self.enters_store(path, role)
    }

    /// Refuses a file in a folder that is an output, since it would disappear with the old folder.
    fn enters_store(&mut self, path: &Path, role: &'static str) -> Result<()> {
        for folder in path.ancestors().skip(1).filter(|folder| is_store_name(folder)) {
            let Some(key) = self.key(folder) else { continue };
            match self.stores.entry(key) {
                Entry::Vacant(entry) => drop(entry.insert(Store::Holds(role))),
                Entry::Occupied(entry) => {
                    if let Store::Output(other) = *entry.get() {
                        return Err(self.conflict(key, path.display(), [role, other]));
                    }
                }
            }
        }
        Ok(())
    }

    fn conflict(
        &mut self,
        key: KeyHash,
        name: impl std::fmt::Display,
        [role, other]: [&'static str; 2],
    ) -> Error {
        self.has_log_conflict |= self.log == Some(key);
        Error::usage(if role == other {
            format!("{name} is named for two outputs; they must differ")
        } else {
            format!("{name} is named as {other} and as {role}; they must differ")
        })
    }

    fn number(&mut self, role: &'static str) -> NonZeroU8 {
        let known = self.roles.iter().position(|known| *known == role);
        let at = known.unwrap_or_else(|| {
            self.roles.push(role);
            self.roles.len() - 1
        });
        NonZeroU8::MIN.saturating_add(at as u8)
    }

    fn role(&self, number: NonZeroU8) -> &'static str {
        self.roles[usize::from(number.get()) - 1]
    }

    fn key_of(&mut self, sink: &Sink) -> Option<KeyHash> {
        match sink {
            Sink::File(path) => self.key(path),
            Sink::Stdout if cfg!(unix) => self.key(Path::new("/dev/stdout")),
            Sink::Stdout => Some(self.hash(&Key::Stream(1))),
        }
    }

    fn key(&mut self, path: &Path) -> Option<KeyHash> {
        self.find(path).map(|key| self.hash(&key))
    }

    fn hash(&self, key: &Key) -> KeyHash {
        let [high, low] = self.hashers.each_ref().map(|hasher| u128::from(hasher.hash_one(key)));
        high << 64 | low
    }

    /// The key of the file at `path`; `None` for a device, and where no folder of the path exists.
    fn find(&mut self, path: &Path) -> Option<Key> {
        if let Ok(found) = fs::metadata(path) {
            return if is_device(&found) {
                standard::descriptor(path).map(Key::Stream)
            } else {
                file_id(path).map(Key::Existing)
            };
        }
        let path = link_target(path);
        for above in path.ancestors().skip(1) {
            let is_here = above.as_os_str().is_empty();
            let folder = if is_here { Path::new(".") } else { above };
            let Some((id, ignores_case)) = self.folder_id(folder) else { continue };
            let found = path.strip_prefix(above).ok()?;
            let rest = normal(found);
            if rest != found {
                return self.find(&folder.join(rest));
            }
            let lower = || rest.to_string_lossy().to_lowercase().into();
            return Some(Key::New(id, if ignores_case { lower() } else { rest.clone() }));
        }
        None
    }

    /// The identity of a folder, and whether it ignores case.
    fn folder_id(&mut self, folder: &Path) -> Option<(FileId, bool)> {
        if self.folder.as_ref().is_none_or(|(last, ..)| last != folder) {
            let id = file_id(folder)?;
            let ignores_case = ignores_case(folder, &id);
            self.folder = Some((folder.to_owned(), id, ignores_case));
        }
        self.folder.as_ref().map(|(_, id, ignores_case)| (*id, *ignores_case))
    }
}

/// Whether an output of this name is a folder that is replaced as a whole.
fn is_store_name(path: &Path) -> bool {
    let stores = [ZARR_EXTENSION, FOLDER_EXTENSION];
    path.extension().is_some_and(|own| stores.iter().any(|store| own.eq_ignore_ascii_case(store)))
}

/// `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut all, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(all.pop()),
            part => all.push(part),
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a file, a folder, and links to them; the names of the file, and names of a new file.
    #[cfg(unix)]
    fn names() -> (tempfile::TempDir, Vec<PathBuf>, Vec<PathBuf>) {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("old"), b"old").unwrap();
        fs::create_dir(path("sub")).unwrap();
        symlink("sub", path("linked")).unwrap();
        symlink(path("old"), path("sub/link")).unwrap();
        fs::hard_link(path("old"), path("hard")).unwrap();
        symlink("sub/new", path("dangling")).unwrap();
        let old =
            ["old", "./old", "sub/../old", "linked/../old", "hard", "sub/link", "linked/link"];
        let new = ["sub/new", "linked/new", "./sub/./new", "dangling", "missing/../sub/new"];
        let paths = |names: &[&str]| names.iter().map(|name| path(name)).collect();
        let all = (paths(&old), paths(&new));
        (folder, all.0, all.1)
    }

    #[cfg(unix)]
    #[test]
    fn every_name_of_a_file_is_found() {
        let (folder, old, new) = names();
        for same in [&old, &new] {
            for (one, other) in same.iter().flat_map(|one| same.iter().map(move |o| (one, o))) {
                let [one, other] = [one, other].map(|path| Sink::File(path.clone()));
                let source = Source::from(one.path().unwrap());
                let mut roles = FileRoles::default();
                roles.writes("--table", &one).unwrap();
                let error = roles.writes(OUTPUT, &other).unwrap_err().one_line();
                assert!(error.contains("named as --table and as the output"), "{error}");
                let mut roles = FileRoles::default();
                roles.reads(INPUT, &source).unwrap();
                roles.reads("--intensity", &source).unwrap();
                assert!(roles.writes_result(OUTPUT, &other, Some(&source)).is_err());
                let mut roles = FileRoles::default();
                roles.reads(INPUT, &source).unwrap();
                roles.writes_result(OUTPUT, &other, Some(&source)).unwrap();
                assert!(roles.reads("--intensity", &source).is_err());
                let mut roles = FileRoles::with_log("--log-json", Some(&one));
                assert!(roles.writes(OUTPUT, &other).is_err() && roles.has_log_conflict);
            }
        }
        let others = ["sub/old", "sub/newer", "new", "OLD"].map(|name| folder.path().join(name));
        let mut roles = FileRoles::default();
        for path in others.into_iter().chain([old[0].clone(), new[0].clone()]) {
            roles.writes(OUTPUT, &Sink::File(path)).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn streams_are_known_by_their_descriptors() {
        let null = Sink::File("/dev/null".into());
        let mut roles = FileRoles::default();
        roles.writes(OUTPUT, &null).unwrap();
        roles.writes("--table", &null).unwrap();
        roles.writes(OUTPUT, &Sink::Stdout).unwrap();
        assert!(roles.writes(OUTPUT, &Sink::File("/dev/stdout".into())).is_err());
        assert!(!replaces(&null, &Source::from(Path::new("/dev/null"))));
    }

    #[test]
    fn a_replaced_folder_holds_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let sink = |name: &str| Sink::File(folder.path().join(name));
        let source = Source::from(folder.path().join("a.zarr/in.png"));
        let mut roles = FileRoles::default();
        roles.writes(OUTPUT, &sink("a.zarr")).unwrap();
        roles.writes(OUTPUT, &sink("b.zarr")).unwrap();
        assert!(roles.writes("--table", &sink("a.zarr/t.csv")).is_err());
        let mut roles = FileRoles::default();
        roles.reads(INPUT, &source).unwrap();
        assert!(roles.writes(OUTPUT, &sink("./a.zarr")).is_err());
    }
}
