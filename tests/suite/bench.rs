//! `gpuproc bench`: figures are consistent in every format, and `--check` detects wrong results.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use assert_cmd::assert::Assert;
use gpuproc::{
    commands::bench::{self, Case, Input},
    data::dtype::Dtype,
    gpu::Context,
    kernels::scan::{Algorithm, Op, ScanBuffers, ScanSpec},
    util::error::Result,
};
use predicates::{prelude::*, str::contains};
use serde_json::Value;

use super::common::{Noise, Subject, subjects};
use crate::asserts::assert_near;

/// Runs `gpuproc bench` in `folder` on the CPU with few runs.
fn run_bench(folder: &Path, arguments: &[&str]) -> Assert {
    let mut command = crate::common::gpuproc();
    command.current_dir(folder).args([
        "bench",
        "--device",
        "cpu",
        "--repeats",
        "5",
        "--warmup",
        "1",
    ]);
    command.args(arguments).assert()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn figures_are_consistent_in_table_json_and_csv() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let outputs = ["-o", "f.csv", "-o", "f.json"];
    let arguments = [&["histogram", "--only", "613x377"][..], &outputs].concat();
    let table = run_bench(folder.path(), &arguments).success().get_output().stdout.clone();
    let table = String::from_utf8(table).unwrap();
    // One line for the device, one of column heads, and one for each of the two cases.
    assert_eq!(table.lines().count(), 4, "{table}");

    let report = read_json(&path("f.json"));
    let copy = report["copy_gb_per_s"].as_f64().unwrap();
    let figures = report["figures"].as_array().unwrap();
    assert_eq!((figures.len(), &report["checked"]), (2, &Value::Bool(false)));
    for figure in figures {
        let number = |name: &str| figure[name].as_f64().unwrap();
        let order = ["min_ms", "lower_quartile_ms", "median_ms", "upper_quartile_ms", "max_ms"];
        assert!(order.map(number).is_sorted(), "{figure}");
        let bytes = number("gb_per_s") * number("median_ms") * 1e6;
        assert!((bytes - 613.0 * 377.0 * 4.0).abs() < 1.0, "{figure}");
        assert_near(number("of_copy") * copy, number("gb_per_s"), 1e-9);
        assert_eq!((number("runs"), &figure["clock"]), (5.0, &Value::from("wall")));
    }

    let mut reader = csv::Reader::from_path(path("f.csv")).unwrap();
    let heads = reader.headers().unwrap().clone();
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let records: Vec<csv::StringRecord> = reader.records().map(|record| record.unwrap()).collect();
    assert_eq!(records.len(), figures.len());
    for (record, figure) in records.iter().zip(figures) {
        assert_eq!(&record[at("problem")], figure["problem"]);
        let median: f64 = record[at("median_ms")].parse().unwrap();
        // The JSON parser may round the last bit.
        let same = figure["median_ms"].as_f64().unwrap();
        assert!((median - same).abs() <= 1e-12 * median, "{median} {same}");
    }
}

#[test]
fn meshes_input_volume_at_several_isovalues() {
    let folder = tempfile::tempdir().unwrap();
    let volume = "v_20x16x12_uint8.raw";
    fs::write(folder.path().join(volume), Noise(60).bytes(20 * 16 * 12)).unwrap();
    run_bench(folder.path(), &["--input", volume, "--only", "iso 1", "-o", "f.json"]).success();
    let report = read_json(&folder.path().join("f.json"));
    let figures = report["figures"].as_array().unwrap();
    let problems: Vec<&str> = figures.iter().map(|f| f["problem"].as_str().unwrap()).collect();
    assert_eq!(problems, ["100", "110"].map(|iso| format!("{volume}, iso {iso}")));
    assert!(figures.iter().all(|figure| figure["family"] == "mesh"));

    let wrong = |arguments: &[&str], code: i32, remedy: &str| {
        let one_line = contains("error: ").count(1).and(contains(remedy));
        run_bench(folder.path(), arguments).code(code).stderr(one_line);
    };
    wrong(&["scan", "--input", volume], 2, "for the cases of mesh");
    wrong(&["mesh", "--input", "none_2x2x2_uint8.raw"], 7, "none_2x2x2_uint8.raw");
    wrong(&["blurs"], 2, "histogram");
    wrong(&["scan", "--check"], 2, "--check compares results of a GPU");
    wrong(&["copy", "--only", "nothing"], 2, "--only");
    wrong(&["copy", "-o", "f.png"], 2, ".json");
    run_bench(folder.path(), &["--input", volume, "--full"]).code(2);
}

#[test]
fn lists_baselines_last_and_gives_copies_no_relative_speed() {
    let folder = tempfile::tempdir().unwrap();
    if !subjects().is_empty() {
        let arguments = ["bench", "scan", "--only", "2^16", "--repeats", "1", "--device", "gpu"];
        let run = crate::common::gpuproc().args(arguments).assert().success();
        let table = String::from_utf8(run.get_output().stdout.clone()).unwrap();
        let names: Vec<&str> = table.lines().skip(2).map(|line| line[11..36].trim()).collect();
        assert_eq!(names, ["exclusive sum", "exclusive sum", "Blelloch *"], "{table}");
    }
    let arguments = ["copy", "sort", "--only", "i", "-o", "f.json"];
    let run = run_bench(folder.path(), &arguments).success();
    run.stdout(contains("device CPU (").and(contains(" threads)")));
    let report = read_json(&folder.path().join("f.json"));
    let figures = report["figures"].as_array().unwrap();
    for figure in figures {
        assert_eq!(figure["of_copy"].is_null(), figure["family"] == "copy");
    }
}

#[test]
fn transfers_are_checked_and_timed_by_wall_clock() {
    if subjects().is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["bench", "transfer", "--check", "--repeats", "2", "--device", "gpu", "-o"];
    let mut command = crate::common::gpuproc();
    command.current_dir(folder.path()).args(arguments).arg("f.json").assert().success();
    let report = read_json(&folder.path().join("f.json"));
    assert_eq!(report["checked"], true);
    let figures = report["figures"].as_array().unwrap();
    let algorithms: Vec<&str> = figures.iter().map(|f| f["algorithm"].as_str().unwrap()).collect();
    assert_eq!(algorithms, ["upload", "readback"]);
    for figure in figures {
        assert!(figure["of_copy"].is_null() && figure["clock"] == "wall", "{figure}");
    }
}

#[test]
fn check_detects_wrong_results() {
    /// Kernel that adds the number of earlier calls, so that no two results are the same.
    #[derive(Default)]
    struct Wrong(AtomicU32);
    impl gpuproc::device::Kernel for Wrong {
        type In = [u32];
        type Out = Vec<u32>;
        const NAME: &'static str = "wrong";
        fn cpu(&self, input: &[u32]) -> Result<Vec<u32>> {
            let calls = self.0.fetch_add(1, Ordering::Relaxed);
            Ok(input.iter().map(|v| v + calls).collect())
        }
        fn gpu(&self, _: &Context, input: &[u32]) -> Result<Vec<u32>> {
            self.cpu(input)
        }
    }
    let input = Input::new("three".into(), 12, || Ok([1, 2, 3].into()));
    let names = ["test", "wrong"];
    let case = Case::new(names, "three".into(), Wrong::default(), &input, 12, PartialEq::eq);
    let mut work = (case.prepare)().unwrap();
    assert!(work.check(None).is_err());
    work.run(None).unwrap();
    assert_eq!(work.check(None).unwrap_err().to_string(), "the result differs from the CPU's");
}

#[test]
fn gpu_results_match_the_cpu_in_every_case() {
    // Baselines bind whole buffers, which exceed the limits of the small device.
    let mut roomy = subjects().iter().filter(|subject| subject.context.max_binding() >= 64 << 20);
    let Some(Subject { context, .. }) = roomy.next() else { return };
    for case in bench::cases(false) {
        let mut work = (case.prepare)().unwrap();
        work.run(Some(context)).unwrap();
        work.check(Some(context)).unwrap_or_else(|error| panic!("{case:?}: {error}"));
    }
}

/// A recorded batch can run again with the data that is already on the device.
#[test]
fn recorded_batch_replays_all_device_work() {
    for Subject { name, context } in subjects() {
        let numbers: Vec<u32> = (0..5001).collect();
        let spec = ScanSpec {
            dtype: Dtype::U32,
            op: Op::Sum,
            inclusive: true,
            algorithm: Algorithm::Reduce,
        };
        let recorded = context.record(|| {
            let source = context.allocate("source", 20_016)?;
            context.write(&source, 0, &numbers)?;
            let result = context.allocate("result", 20_016)?;
            let carry = context.upload("carry", &[7u32, 0])?;
            for _ in 0..2 {
                let mut batch = context.batch();
                let arrays =
                    ScanBuffers { source: &source, result: &result, len: 5001, carry: &carry };
                spec.record(context, &mut batch, arrays)?;
                batch.run()?;
            }
            Ok((source, result, carry))
        });
        let ((source, result, carry), batch) = recorded.unwrap();
        let expected: Vec<u32> = context.read(&result, 5001).unwrap();
        assert_eq!((expected[0], expected[5000]), (7, 7 + 5000 * 5001 / 2), "{name}");
        for buffer in [&source, &result] {
            context.write(buffer, 0, &[9u32; 5004]).unwrap();
        }
        context.write(&carry, 0, &[9u32; 2]).unwrap();
        batch.run().unwrap();
        assert!(!batch.is_empty());
        assert_eq!(context.read::<u32>(&result, 5001).unwrap(), expected, "{name}");
        assert!(context.record(|| context.read::<u32>(&result, 1)).unwrap().1.is_empty());
    }
}

#[test]
fn every_family_has_cases() {
    for full in [false, true] {
        let cases = bench::cases(full);
        for family in ["blur", "histogram", "scan", "sort", "mesh", "copy"] {
            assert!(
                cases.iter().any(|case| case.family == family && case.runs_on_cpu()),
                "{family}"
            );
        }
        assert!(cases.iter().any(|case| case.family == "transfer" && !case.runs_on_cpu()));
        let unlike = |case: &Case| case.bytes == 0 || case.problem.is_empty();
        assert!(!cases.iter().any(unlike));
    }
}
