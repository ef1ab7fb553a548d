//! Assertions that say on failure what was expected.

use std::{fmt::Display, fs, path::Path};

/// Checks that there is a file at `path`.
#[track_caller]
pub fn assert_exists(path: impl AsRef<Path>) {
    let path = path.as_ref();
    assert!(path.is_file(), "{} is not a file", path.display());
}

/// Checks that there is neither a file nor a folder at `path`.
#[track_caller]
pub fn assert_absent(path: impl AsRef<Path>) {
    let path = path.as_ref();
    assert!(!path.exists(), "{} exists", path.display());
}

/// Checks that two files have the same bytes.
#[track_caller]
pub fn assert_same_file(one: impl AsRef<Path>, other: impl AsRef<Path>) {
    let [one, other] = [one.as_ref(), other.as_ref()];
    let [a, b] = [one, other].map(|path| fs::read(path).unwrap());
    let first = a.iter().zip(&b).position(|(a, b)| a != b);
    let (one, other) = (one.display(), other.display());
    assert!(
        a == b,
        "{one} of {} bytes and {other} of {} bytes differ, first at {first:?}",
        a.len(),
        b.len()
    );
}

#[track_caller]
pub fn assert_contains(text: &(impl AsRef<str> + ?Sized), part: &str) {
    let text = text.as_ref();
    assert!(text.contains(part), "expected `{part}` in: {text}");
}

#[track_caller]
pub fn assert_lacks(text: &(impl AsRef<str> + ?Sized), part: &str) {
    let text = text.as_ref();
    assert!(!text.contains(part), "unexpected `{part}` in: {text}");
}

/// Checks that a number differs from the expected one by less than `tolerance`.
#[track_caller]
pub fn assert_near<T: Display + Copy + Into<f64>>(found: T, expected: T, tolerance: f64) {
    let difference = (found.into() - expected.into()).abs();
    assert!(
        difference < tolerance,
        "found {found}, expected {expected} within {tolerance}: the difference is {difference}"
    );
}
