//! Every operation reaches every sink with the same result: by itself, in a chain, in a batch and with `--resume`. The
//! expected facts are those of the simplest road: one run for each step, through files without loss.
//!
//! A test collects its failures as lines `OPERATION | SINK | MODE | DUTY`. Faults planted in the program
//! show as follows; `GPUPROC_BIN=PROGRAM cargo test --test suite roads` runs the tests on such a program.
//!
//! | duty | fault to plant | line |
//! |---|---|---|
//! | samples | a sink adds 1 to the first sample of a block | `* \| SINK \| * \| Samples` |
//! | placement | the driver gives a sink the placement of the input | `resize \| SINK \| * \| Placement` |
//! | density | a plane gets the pixels per cm of the input | `resize \| plane \| * \| Density` |
//! | kind | a store takes any step that labels for the last one | `dilated labels \| Zarr \| * \| Kind` |
//! | warning | a sink drops the findings of a step | `high threshold \| SINK \| * \| Warning` |
//! | strict | a sink reports them as warnings only | `high threshold \| SINK \| * \| Strict` |
//! | markers | a marker leaves out one of two outputs | `label \| table \| resumed \| Markers` |

use std::collections::{BTreeMap, BTreeSet};

use gpuproc::Device;

use crate::{
    common::{adapter, works},
    road_facts::{
        Duty, Facts, Form, HALF, Runner, Separate, join, label_facts, samples, volume, with_input,
        without_directions,
    },
    road_tables::{
        Expected, IMAGE_SINKS, Input, MODES,
        Mode::{self, Alone, Batch, InChain, Resumed},
        OPERATIONS, Operation, Sink, VOLUME_SINKS,
    },
    zarr_reader::fnv,
};

/// The facts of separate runs from `inputs` to `sink`.
fn expected(
    runner: &mut Runner,
    sink: &Sink,
    iso: &str,
    steps: &[&str],
    inputs: &[Input],
) -> Facts {
    let key = format!("{} < {steps:?} < {inputs:?}", sink.name);
    if let Some(known) = runner.expected.get(&key) {
        return known.clone();
    }
    let (mut all, mut warnings) = (Facts::new(), BTreeSet::new());
    let files: Vec<&str> = inputs.iter().flat_map(|input| input.1.iter().copied()).collect();
    let mut runs: Vec<Separate> = files.iter().map(|file| runner.separate(steps, file)).collect();
    runs.iter_mut().for_each(|run| warnings.append(&mut run.warnings));
    if sink.form == Form::Text {
        // One table counts the samples of all inputs.
        let results: Vec<_> = runs.iter().map(|run| run.result.clone()).collect();
        runs.truncate(1);
        runs[0].result = results.join(" ");
    }
    for (run, file) in runs.into_iter().zip(files) {
        let plain = if run.result.ends_with(".nrrd") { Form::Volume } else { Form::Image(1) };
        let result = runner.path(&run.result);
        let output = format!("{}/o.{}", runner.new_folder(), sink.extension);
        let mut facts = match sink.expected {
            Expected::Result => plain.read(&result),
            Expected::Converted(line) => {
                let line = line.replace("IN", &run.result).replace("ISO", iso);
                let output = if sink.form == Form::Page { output + ".png" } else { output };
                warnings.extend(runner.must(&line.replace("OUT", &output)));
                let form = if sink.form == Form::Page { plain } else { sink.form };
                form.read(&runner.path(&output))
            }
            Expected::Stores => {
                let last = steps.iter().fold(file.to_owned(), |input, step| {
                    let store = format!("{}/o.zarr", runner.new_folder());
                    runner.must(&format!("{} --levels 2 -o {store}", with_input(step, &input)));
                    store
                });
                let mut facts = plain.read(&result);
                facts.extend(sink.form.read(&runner.path(&last)).remove_entry(&Duty::Kind));
                facts
            }
            Expected::Labels => label_facts(&runner.path(&run.labels.unwrap())),
        };
        // OME-Zarr holds the scales of axes and no directions.
        if sink.form == Form::Zarr
            && let Some(place) = facts.get_mut(&Duty::Placement)
            && let Some(straight) = without_directions(place)
        {
            *place = straight;
            warnings.insert("the orientation is dropped".into());
        }
        join(&mut all, facts);
    }
    let strict = if warnings.is_empty() { "exit 0, with output" } else { "exit 4, no output" };
    all.insert(Duty::Strict, strict.into());
    all.insert(Duty::Warning, format!("{warnings:?}"));
    runner.expected.insert(key, all.clone());
    all
}

/// The facts of a run of `lines`, which writes `outputs`.
fn found(runner: &mut Runner, form: Form, lines: &[String], outputs: &[String]) -> Facts {
    let mut warnings = BTreeSet::new();
    for line in lines {
        let answer = runner.job(line);
        if answer.code != 0 {
            let error = format!("exit {}: {}", answer.code, answer.error);
            return Facts::from([(Duty::Samples, error)]);
        }
        warnings.extend(answer.warnings);
    }
    let mut all = Facts::from([(Duty::Warning, format!("{warnings:?}"))]);
    outputs.iter().for_each(|output| join(&mut all, form.read(&runner.path(output))));
    all
}

/// Compares what `operation` delivers to `sink` with the result of separate runs.
fn compare(runner: &mut Runner, log: &mut Log, operation: &Operation, sink: &Sink, mode: Mode) {
    let mut steps: Vec<&str> = operation.steps.split(" --then ").collect();
    if mode == InChain {
        steps.insert(0, HALF);
    }
    let inputs = if mode == Batch { &sink.inputs[..] } else { &sink.inputs[..1] };
    let mut expected = expected(runner, sink, operation.iso, &steps, inputs);
    let names: Vec<&str> = inputs.iter().map(|input| input.0).collect();
    let is_each = mode == Batch && sink.form != Form::Text;
    let stems = |name: &&str| name.split('.').next().unwrap_or_default().to_owned();
    let stems: Vec<String> =
        if is_each { names.iter().map(stems).collect() } else { vec!["o".into()] };
    let lines = |folder: &str, more: &str| {
        let stem = if is_each { "{stem}" } else { "o" };
        let mut lines = sink.lines(&steps, [folder, stem, operation.iso], &names.join(" "));
        lines.iter_mut().for_each(|line| line.push_str(more));
        lines
    };
    let folder = runner.new_folder();
    let own = lines(&folder, if mode == Resumed { " --resume" } else { "" });
    let file = |stem: &String| format!("{folder}/{stem}.{}", sink.extension);
    let outputs: Vec<String> = stems.iter().map(file).collect();
    let mut found = found(runner, sink.form, &own, &outputs);
    if mode == Resumed {
        expected.insert(Duty::Markers, "kept, made again".into());
        found.insert(Duty::Markers, runner.resume(&own, &folder));
    }
    let warns = expected[&Duty::Strict].starts_with("exit 4");
    let is_tested = warns || mode == Alone && !runner.compares_devices();
    if is_tested && matches!(mode, Alone | InChain) {
        let folder = runner.new_folder();
        let code = lines(&folder, " --strict").iter().map(|line| runner.job(line).code).max();
        let is_there = runner.path(&format!("{folder}/o.{}", sink.extension)).exists();
        let output = if is_there { "with output" } else { "no output" };
        found.insert(Duty::Strict, format!("exit {}, {output}", code.unwrap()));
    } else {
        expected.remove(&Duty::Strict);
    }
    log.compare([operation.name, sink.name, mode.name()], &expected, &found);
    runner.remove_folders();
}

/// The comparisons of a test by name, with the difference of those that fail.
#[derive(Default)]
pub struct Log(BTreeMap<String, Option<String>>);

impl Log {
    pub fn add(&mut self, name: String, failure: Option<String>) {
        assert!(self.0.insert(name, failure).is_none());
    }

    /// Compares what a road delivers for each duty.
    fn compare(&mut self, [operation, sink, mode]: [&str; 3], expected: &Facts, found: &Facts) {
        for (duty, expected) in expected {
            let found = found.get(duty).map_or("nothing", String::as_str);
            let failure = (found != expected).then(|| {
                let short = |text: &str| text.chars().take(160).collect::<String>();
                format!("expected {}, found {}", short(expected), short(found))
            });
            self.add(format!("{operation} | {sink} | {mode} | {duty:?}"), failure);
        }
    }

    /// Checks that nothing has failed.
    pub fn check(&self) {
        let failures = self.0.iter().filter_map(|(name, failure)| Some((name, failure.as_ref()?)));
        let wrong: Vec<_> = failures.map(|(name, found)| format!("{name}: {found}")).collect();
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), self.0.len(), wrong.join("\n"));
    }
}

/// Compares the roads to `sinks` on a device in these modes.
fn compare_all<'a>(device: &str, sinks: impl Iterator<Item = &'a Sink> + Clone, modes: &[Mode]) {
    let (mut runner, mut log) = (Runner::new(device), Log::default());
    for (number, operation) in OPERATIONS.iter().enumerate() {
        for (at, sink) in sinks.clone().enumerate().filter(|(_, sink)| sink.takes(operation)) {
            // Half of the pairs in a batch, and the others resumed: both hardly depend on the operation.
            let left_out = if (number + at) % 2 == 0 { Batch } else { Resumed };
            let needs_all = operation.steps.contains("255") || sink.name == "table";
            for &mode in modes.iter().filter(|&&mode| mode != left_out || needs_all) {
                compare(&mut runner, &mut log, operation, sink, mode);
            }
        }
    }
    runner.shut_down();
    log.check();
}

#[test]
fn volumes_take_all_roads() {
    compare_all("cpu", VOLUME_SINKS.iter(), &MODES);
}

#[test]
fn images_take_all_roads() {
    compare_all("cpu", IMAGE_SINKS.iter(), &MODES);
}

#[test]
fn gpu_results_take_the_roads_of_the_cpu() {
    if adapter().is_some() {
        let is_tested = |sink: &&Sink| ["volume", "plane", "image"].contains(&sink.name);
        let sinks = VOLUME_SINKS.iter().chain(&IMAGE_SINKS).filter(is_tested);
        compare_all("gpu", sinks, &[Alone]);
    }
}

#[test]
fn the_library_takes_the_same_road() {
    let (mut runner, mut log) = (Runner::new("cpu"), Log::default());
    let volume = volume();
    for operation in &OPERATIONS {
        for mode in [Alone, InChain] {
            let first = (mode == InChain).then_some(HALF);
            let steps: Vec<_> =
                first.into_iter().chain(operation.steps.split(" --then ")).collect();
            let result = runner.separate(&steps, "a.nrrd").result;
            let expected = fnv(&samples(&runner.path(&result)));
            let found = fnv(&(operation.library)(&Device::cpu(), &volume, mode == InChain));
            let [expected, found] = [expected, found].map(|fact| [(Duty::Samples, fact)].into());
            log.compare([operation.name, "library", mode.name()], &expected, &found);
        }
    }
    runner.shut_down();
    log.check();
}

/// The limits of memory make the sinks `slices` and `rows` work in blocks.
#[test]
fn limits_of_memory_divide_the_work() {
    let runner = Runner::new("cpu");
    for sink in VOLUME_SINKS.iter().chain(&IMAGE_SINKS) {
        let is_divided = sink.parts[0].starts_with("--max-memory");
        for operation in OPERATIONS.iter().filter(|operation| is_divided && sink.takes(operation)) {
            let steps: Vec<_> = operation.steps.split(" --then ").collect();
            let line = &sink.lines(&steps, [".", "o", ""], sink.inputs[0].0)[0];
            let text = works(&runner.path(""), &format!("-v {line}"));
            assert!(text.contains("in blocks of "), "{line}: {text}");
        }
    }
}
