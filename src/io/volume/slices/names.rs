//! The files that a folder or a pattern of names stands for, in natural order: `s2.png` before `s10.png`.

use std::{
    cmp::Ordering,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    io::{
        Source,
        image::has_image_name,
        volume::zarr::{is_address_or_zip, is_store},
    },
    util::error::{Error, Result},
};

/// Maximum number of files, more than any volume has slices.
const MAX_FILES: usize = 1 << 20;

/// Whether `source` is a folder, a Zarr store in a ZIP file or at a web address, or a pattern with `*`, `?` or `[` that
/// is not the name of an existing file.
pub fn is_multi_file(source: &Source) -> bool {
    let Some(path) = source.path() else { return false };
    path.is_dir() || is_address_or_zip(path) || is_pattern(path)
}

/// Whether the name of a file is that of an image.
pub fn is_image_file(source: &Source) -> bool {
    has_image_name(source) && source.path().is_some_and(Path::is_file)
}

/// The path of `source`, if it is a folder or a pattern of files, not a store.
pub fn folder_or_pattern(source: &Source) -> Option<&Path> {
    source.path().filter(|path| is_multi_file(source) && !is_store(path))
}

fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
        && fs::symlink_metadata(path).is_err()
}

/// Lists the files of the folder or pattern `path` in natural order, without hidden ones and folders.
pub fn files(source: &Source, path: &Path) -> Result<Vec<Source>> {
    let failed = |error: io::Error| Error::io("read", path, error);
    let mut files = Vec::new();
    let mut add = |file: PathBuf| -> Result<()> {
        let is_hidden =
            file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && file.is_file() {
            files.push(file);
        }
        check_count(source, files.len())
    };
    if is_pattern(path) {
        let pattern = path.to_str().unwrap_or_default();
        let found = glob::glob(pattern).map_err(|error| {
            Error::usage(format_args!("{source}: invalid pattern of names")).caused_by(error)
        })?;
        for file in found {
            add(file.map_err(|error| failed(error.into()))?)?;
        }
        if files.is_empty() {
            return Err(failed(io::Error::new(io::ErrorKind::NotFound, "no file matches")));
        }
    } else {
        for entry in fs::read_dir(path).map_err(failed)? {
            add(entry.map_err(failed)?.path())?;
        }
    }
    files.sort_by(|a, b| natural(a, b));
    Ok(files.into_iter().map(Source::from).collect())
}

/// Adds all fitting files in folders below `path` to `files`, except in Zarr stores. Gives up if more than `max_others`
/// files and folders come before the first that fits.
pub fn add_nested(
    source: &Source,
    path: &Path,
    (fits, max_others): (fn(&Source) -> bool, usize),
    files: &mut Vec<Source>,
) -> Result<()> {
    const MAX_DEPTH: usize = 16;
    let (mut folders, mut visited, before) = (vec![(path.to_owned(), 0)], 0, files.len());
    while let Some((folder, depth)) = folders.pop() {
        if visited > max_others && files.len() == before {
            break;
        }
        if depth > 0 {
            let inner = self::files(source, &folder)?;
            visited += inner.len() + 1;
            files.extend(inner.into_iter().filter(&fits));
            check_count(source, files.len())?;
        }
        if depth < MAX_DEPTH {
            let inner = folders_in(&folder).into_iter().rev().filter(|folder| !is_store(folder));
            folders.extend(inner.map(|folder| (folder, depth + 1)));
        }
    }
    Ok(())
}

fn check_count(source: &Source, count: usize) -> Result<()> {
    match count {
        0..=MAX_FILES => Ok(()),
        _ => Err(Error::bad_input(format_args!(
            "{source}: more files than the maximum of {MAX_FILES}"
        ))),
    }
}

/// The folders in the folder `path` in natural order, without hidden ones and symbolic links, which may lead in a circle.
pub fn folders_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| !display_name(path).starts_with('.'))
        .collect();
    folders.sort_by(|a, b| natural(a, b));
    folders
}

/// Compares names by their text, and numbers in them by their value.
fn natural(a: &Path, b: &Path) -> Ordering {
    let (a, b) = (a.as_os_str().as_encoded_bytes(), b.as_os_str().as_encoded_bytes());
    let (mut left, mut right) = (a, b);
    while let ([x, ..], [y, ..]) = (left, right) {
        let order = match x.is_ascii_digit() && y.is_ascii_digit() {
            true => {
                let (x, y) = (number(&mut left), number(&mut right));
                x.len().cmp(&y.len()).then_with(|| x.cmp(y))
            }
            false => {
                (left, right) = (&left[1..], &right[1..]);
                x.cmp(y)
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    // One name is the beginning of the other, or they differ only in leading zeros.
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Removes the digits at the beginning of `text`, and returns them without leading zeros.
fn number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    &digits[digits.iter().position(|&digit| digit != b'0').unwrap_or(end)..]
}

/// A file's name, for a message.
pub fn display_name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The name of the file `source`, for a message.
pub fn source_name(source: &Source) -> String {
    source.path().map(display_name).unwrap_or_default()
}

/// A warning about files that are not slices.
pub fn skipped(files: &[Source]) -> Vec<String> {
    match files {
        [] => Vec::new(),
        [file] => vec![format!("skipped {}: not an image slice", source_name(file))],
        [file, ..] => {
            let (count, file) = (files.len(), source_name(file));
            vec![format!("skipped {count} files such as {file}: not image slices")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let ordered = [
            "a.png",
            "a1.png",
            "a2.png",
            "a02.png",
            "a10.png",
            "a10b2.png",
            "a10b11.png",
            "a00123456789012345678901234567890.png",
            "b1.png",
        ];
        let mut names: Vec<PathBuf> = ordered.iter().rev().map(PathBuf::from).collect();
        names.sort_by(|a, b| natural(a, b));
        let ordered: Vec<PathBuf> = ["a.png", "a1.png", "a02.png", "a2.png"]
            .iter()
            .chain(&ordered[4..])
            .map(PathBuf::from)
            .collect();
        assert_eq!(names, ordered);
        assert_eq!(natural(Path::new("x7"), Path::new("x7")), Ordering::Equal);
    }

    #[test]
    fn a_search_ends_where_nothing_fits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in ["a/1", "a/b/2", "c/wanted"] {
            fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
            fs::write(path.join(name), "").unwrap();
        }
        let found = |max_others| {
            let mut files = Vec::new();
            let fits = |file: &Source| file.path().is_some_and(|path| path.ends_with("wanted"));
            let source = Source::from(path);
            add_nested(&source, path, (fits, max_others), &mut files).unwrap();
            files
        };
        assert_eq!(found(4), [Source::from(path.join("c/wanted"))]);
        assert!(found(3).is_empty());
    }
}
