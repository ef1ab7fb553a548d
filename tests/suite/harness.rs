//! The suite's harness: the standard one's command line and output, but a test can find out while it runs
//! that something is missing, a GPU for one, and is then reported as ignored.

use std::{cell::Cell, fs, path::Path};

use libtest_mimic::{Arguments, Completion, Trial};

/// A function marked `#[test]`.
pub struct Test {
    pub module: &'static str,
    pub name: &'static str,
    pub run: fn(),
}

inventory::collect!(Test);

thread_local! {
    /// What this thread's test misses.
    static MISSING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Reports the running test as ignored, unless it fails. What can be tested without should be.
pub fn ignore(missing: &'static str) {
    MISSING.set(Some(missing));
}

/// Runs the tests that the command line asks for.
pub fn main() {
    let trial = |test: &'static Test| {
        let module = test.module.split_once("::").expect("tests are in modules").1;
        Trial::ignorable_test(format!("{module}::{}", test.name), || {
            MISSING.set(None);
            (test.run)();
            Ok(MISSING.take().map_or(Completion::Completed, Completion::ignored_with))
        })
    };
    let mut trials: Vec<_> = inventory::iter::<Test>.into_iter().map(trial).collect();
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit()
}

#[test]
fn every_test_is_registered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    let texts = fs::read_dir(folder).unwrap().map(|file| fs::read_to_string(file.unwrap().path()));
    let marked = |text: String| text.lines().filter(|line| line.trim() == "#[test]").count();
    let marked: usize = texts.map(|text| marked(text.unwrap())).sum();
    assert_eq!(inventory::iter::<Test>.into_iter().count(), marked);
}
