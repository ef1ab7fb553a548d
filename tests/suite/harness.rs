//! The test harness: it has the command line and the output of the standard one, but a test may find out while it runs
//! that something is missing, such as a GPU, and is then reported as ignored.

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
    /// The reason for which the test of this thread is ignored.
    static MISSING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Reports the running test as ignored, unless it fails. It should still test what it can.
pub fn ignore(missing: &'static str) {
    MISSING.set(Some(missing));
}

/// Runs the tests whose names contain one of the words of the command line.
pub fn main() {
    let (filters, options) = words_and_options();
    let options = Arguments::from_iter(options);
    let chosen = |name: &str| match options.exact {
        true => filters.iter().any(|filter| name == filter),
        false => filters.iter().any(|filter| name.contains(filter)),
    };
    let mut trials: Vec<_> = inventory::iter::<Test>.into_iter().map(trial).collect();
    trials.retain(|trial| filters.is_empty() || chosen(trial.name()));
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&options, trials).exit()
}

/// Splits the command line into words and options, since `libtest_mimic` takes only one word.
fn words_and_options() -> (Vec<String>, Vec<String>) {
    let mut arguments = env::args();
    let (mut words, mut options) = (Vec::new(), Vec::from_iter(arguments.next()));
    while let Some(argument) = arguments.next() {
        let has_value = ["--skip", "--test-threads", "--color", "--format", "--logfile"];
        let value = has_value.contains(&argument.as_str()).then(|| arguments.next()).flatten();
        match argument.starts_with('-') {
            true => options.extend([Some(argument), value].into_iter().flatten()),
            false => words.push(argument),
        }
    }
    (words, options)
}

fn trial(test: &'static Test) -> Trial {
    let module = test.module.split_once("::").expect("tests are in modules").1;
    Trial::ignorable_test(format!("{module}::{}", test.name), || {
        MISSING.set(None);
        (test.run)();
        Ok(MISSING.take().map_or(Completion::Completed, Completion::ignored_with))
    })
}

#[test]
fn every_test_is_registered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite");
    let text = |file: std::io::Result<fs::DirEntry>| fs::read_to_string(file.unwrap().path());
    let texts = fs::read_dir(folder).unwrap().map(|file| text(file).unwrap());
    // Tests that need a feature that is off are in files of their own.
    let needs_http = |text: &str| text.contains("#![cfg(feature = \"http\")]\n");
    let built = texts.filter(|text| cfg!(feature = "http") || !needs_http(text));
    let marked = |text: String| text.lines().filter(|line| line.trim() == "#[test]").count();
    let marked: usize = built.map(marked).sum();
    assert_eq!(inventory::iter::<Test>.into_iter().count(), marked);
}
