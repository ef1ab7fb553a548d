//! Test harness with the command line and the output of the standard one. In addition, a running test can report itself
//! as ignored, for example because there is no GPU.

use std::{cell::Cell, env, fs, path::Path};

use libtest_mimic::{Arguments, Completion, Trial};

/// A function marked `#[test]`.
pub struct Test {
    pub module: &'static str,
    pub name: &'static str,
    pub run: fn(),
}

inventory::collect!(Test);

thread_local! {
    /// Why the test of this thread is ignored.
    static IGNORE_REASON: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Reports the running test as ignored unless it fails. The test should still check what it can.
pub fn ignore(reason: &'static str) {
    IGNORE_REASON.set(Some(reason));
}

/// Runs the tests whose names contain one of the filters on the command line, or all tests if there is no filter.
pub fn main() {
    let (filters, options) = split_arguments();
    let options = Arguments::from_iter(options);
    let is_selected = |name: &str| match options.exact {
        true => filters.iter().any(|filter| name == filter),
        false => filters.iter().any(|filter| name.contains(filter)),
    };
    let mut trials: Vec<_> = inventory::iter::<Test>.into_iter().map(to_trial).collect();
    trials.retain(|trial| filters.is_empty() || is_selected(trial.name()));
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&options, trials).exit()
}

/// Splits the command line into filters and options, since `libtest_mimic` supports only one filter.
fn split_arguments() -> (Vec<String>, Vec<String>) {
    let mut arguments = env::args();
    let (mut filters, mut options) = (Vec::new(), Vec::from_iter(arguments.next()));
    while let Some(argument) = arguments.next() {
        let has_value = ["--skip", "--test-threads", "--color", "--format", "--logfile"];
        let value = has_value.contains(&argument.as_str()).then(|| arguments.next()).flatten();
        match argument.starts_with('-') {
            true => options.extend([Some(argument), value].into_iter().flatten()),
            false => filters.push(argument),
        }
    }
    (filters, options)
}

fn to_trial(test: &'static Test) -> Trial {
    let module = test.module.split_once("::").expect("every test is in a module").1;
    Trial::ignorable_test(format!("{module}::{}", test.name), || {
        IGNORE_REASON.set(None);
        (test.run)();
        Ok(IGNORE_REASON.take().map_or(Completion::Completed, Completion::ignored_with))
    })
}

#[test]
fn every_test_is_registered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    let text = |file: std::io::Result<fs::DirEntry>| fs::read_to_string(file.unwrap().path());
    let texts = fs::read_dir(folder).unwrap().map(|file| text(file).unwrap());
    // Files with such an attribute are compiled only with the feature.
    let features = [
        ("http", cfg!(feature = "http")),
        ("jxl", cfg!(feature = "jxl")),
        ("webp-lossy", cfg!(feature = "webp-lossy")),
    ];
    let is_built = |text: &String| {
        let needs = |name: &str| text.contains(&format!("#![cfg(feature = \"{name}\")]\n"));
        features.iter().all(|(name, is_on)| *is_on || !needs(name))
    };
    let built = texts.filter(is_built);
    let marked = |text: String| text.lines().filter(|line| line.trim() == "#[test]").count();
    let marked: usize = built.map(marked).sum();
    assert_eq!(inventory::iter::<Test>.into_iter().count(), marked);
}
