//! Bounds on the memory (`--max-memory`) and the CPU time of commands, with untrusted inputs.
#![cfg(target_os = "linux")]

use std::fs::{self};

use crate::{
    common::{Noise, measured},
    hostile,
    memory_inputs::{dwa_block, exr, input_folder, run_within_memory},
};

/// A volume that does not fit into memory is blurred slab by slab; the output has the same bytes.
#[test]
fn blurs_volumes_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_120x110x350_uint16.raw"), Noise(8).bytes(2 * 120 * 110 * 350))
        .unwrap();
    for (edge, name) in [
        ("reflect", "o.nii"),
        ("wrap", "o.nii"),
        ("zero", "o.nii.gz"),
        ("clamp", "o_120x110x350_uint16.raw"),
    ] {
        let line = |name: &str| {
            format!("blur v_120x110x350_uint16.raw {name} --sigma 1.5 --edge {edge} --device cpu")
        };
        run_within_memory(folder, 1024, &line(name));
        let whole = fs::read(folder.join(name)).unwrap();
        let run = run_within_memory(folder, 16, &line(name));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(whole.len() > 1_000_000 && whole == fs::read(folder.join(name)).unwrap(), "{edge}");
    }
    // The output must not replace the volume while it is being read.
    let line = "blur v_120x110x350_uint16.raw v_120x110x350_uint16.raw --sigma 1.5 --edge clamp";
    assert_eq!(run_within_memory(folder, 16, &format!("{line} --device cpu")).code, Some(0));
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(read("v_120x110x350_uint16.raw") == read("o_120x110x350_uint16.raw"));
}

/// If blurring succeeds with little memory, it succeeds with more, with the same output.
#[test]
fn more_memory_never_causes_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let pixels = Noise(9).bytes(900 * 700 * 3);
    for name in ["a.tif", "a.png"] {
        let picture = folder.path().join(name);
        image::save_buffer(&picture, &pixels, 900, 700, image::ColorType::Rgb8).unwrap();
    }
    fs::write(folder.path().join("a_150x150x150_uint8.raw"), Noise(8).bytes(150 * 150 * 150))
        .unwrap();
    let volume = "a_150x150x150_uint8.raw o.raw";
    for (files, output, sigma) in [
        ("a.tif o.tif", "o.tif", "3"),
        ("a.png o.png", "o.png", "3"),
        (volume, "o.raw", "1"),
        (volume, "o.raw", "12"),
    ] {
        let command = format!("blur {files} --sigma {sigma} --device cpu");
        let mut before = None;
        for mib in (1..=25).step_by(2).chain([32, 40]) {
            let run = run_within_memory(folder.path(), mib, &command);
            let blurred =
                (run.code == Some(0)).then(|| fs::read(folder.path().join(output)).unwrap());
            assert!(before.is_none() || blurred == before, "{command}, {mib} MiB: {run:?}");
            before = blurred;
        }
        assert!(before.is_some(), "{command}");
    }
}

/// Surfaces that are simplified concurrently stay within the memory limit together.
#[test]
fn concurrent_volumes_share_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = Noise(3);
    let names = ["a", "b", "c", "d"].map(|name| format!("{name}_60x60x60_uint8.raw"));
    for name in &names {
        fs::write(folder.path().join(name), noise.bytes(60 * 60 * 60)).unwrap();
    }
    let command = format!(
        "mesh {} --iso 128 --simplify 0.8 --out-dir o --device cpu --threads 4",
        names.join(" ")
    );
    let run = run_within_memory(folder.path(), 240, &command);
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// The memory of a batch is planned for the results where these are larger than the inputs.
#[test]
fn concurrent_enlargements_share_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c", "d"].map(|name| format!("{name}.ppm"));
    for name in &names {
        let bytes = [b"P6 200 200 255\n".to_vec(), Noise(3).bytes(200 * 200 * 3)].concat();
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let command = format!("resize {} -o o/ --scale 20 --threads 4", names.join(" "));
    let run = run_within_memory(folder.path(), 290, &command);
    assert_eq!(run.code, Some(0), "{run:?}");
    // All four channels count.
    let names = names.map(|name| name.replace("ppm", "tif"));
    for name in &names {
        let pixels = Noise(4).bytes(300 * 300 * 4);
        let path = folder.path().join(name);
        image::save_buffer(path, &pixels, 300, 300, image::ColorType::Rgba8).unwrap();
    }
    let command = format!("resize {} -o o/ --scale 4 --threads 4", names.join(" "));
    let run = run_within_memory(folder.path(), 40, &command);
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn every_command_respects_its_memory_limit() {
    let folder = input_folder();
    let folder = folder.path();
    for mib in [64, 256, 1024] {
        for command in [
            "blur bomb.exr o.png --sigma 0",
            "histogram claim.exr",
            "scan count.exr o.npy",
            "blur tile.exr o.png",
            "blur groups.webp o.png",
            "blur strip.tif o.png",
            "histogram some.webp",
            "mesh thin_40000x40000x4_uint8.raw --iso 3 o.ply",
            "mesh row_1x200000x1_uint8.raw --close --iso 99 o.ply",
            "mesh noise_80x80x80_uint8.raw --iso 250 o.ply --preview o.png --size 8192x8192",
            "mesh noise_30x30x30_uint8.raw --iso 128 o.ply --simplify 0.5",
            "info bomb.exr tile.exr thin_40000x40000x4_uint8.raw",
            "info profile.png texts.png",
            "blur profile.png o.tif",
            "histogram profile.png",
            "histogram segments.jpg",
            "blur metadata.tif o.png",
            "blur deflate.tif o.png",
            "mesh shared.tif --iso 3 o.ply",
            "mesh planes.ome.tif --iso 3 --close o.ply",
            "blur canvas.gif o.png",
            "blur restore.gif o.webp",
            "histogram canvas.png",
            "blur canvas.webp o.png",
            "mesh frames.dcm --iso 3 o.ply",
        ] {
            run_within_memory(folder, mib, command);
        }
    }
    for command in [
        "blur p.ppm o.png --sigma 1",
        "blur w.pgm o.tif --method box --radius 2",
        "blur noise_80x80x80_uint8.raw o.raw --sigma 1",
        "histogram w.pgm --equalize o.png",
        "histogram wide_5000x4000x4_uint8.raw -o o.csv",
        "scan p.ppm o.npy",
        "scan n.raw o.raw",
        "scan n.raw o.raw --by-key n.raw",
        "sort n.raw o.raw",
        "sort n.raw o.raw --argsort",
        "mesh wide_5000x4000x4_uint8.raw --iso 3 o.ply",
        "mesh floats_1500x1500x6_float32.raw --iso 3 --normals o.ply",
        "mesh noise_80x80x80_uint8.raw --iso 128 --normals --ascii o.ply",
        "mesh noise_80x80x80_uint8.raw --iso 128 --largest --stats o.stl",
        "mesh noise_80x80x80_uint8.raw --iso 128 --smooth 2 o.obj",
        "mesh noise_80x80x80_uint8.raw --iso 128 o.glb",
        "bench scan",
        "devices",
    ] {
        run_within_memory(folder, 64, command);
    }
}

/// The error names the step that exceeds the limit. With enough memory the job succeeds.
#[test]
fn mesh_error_states_the_memory_that_it_needs() {
    let folder = input_folder();
    let folder = folder.path();
    for (mib, command, message) in [
        (64, "mesh wide_5000x4000x4_uint8.raw --iso 3 o.ply", "a layer with the slices around it"),
        (64, "mesh layer_800x800x2_uint8.raw --iso 99 o.ply", "the surface of slices 0 to 1"),
        (64, "mesh noise_60x60x60_uint8.raw --iso 128 o.ply --simplify 0.5", "simplifying"),
        (64, "mesh noise_60x60x60_uint8.raw --iso 128 o.ply --smooth 1", "smoothing"),
        (32, "mesh noise_60x60x60_uint8.raw --iso 128 o.ply --stats", "measuring"),
        (
            64,
            "mesh noise_80x80x80_uint8.raw --iso 250 o.ply --preview o.png --size 4096x4096",
            "4096x4096",
        ),
    ] {
        let run = run_within_memory(folder, mib, command);
        assert_eq!(run.code, Some(4), "{command}: {run:?}");
        assert!(run.stderr.contains(message) && run.stderr.contains("--max-memory"), "{run:?}");
    }
    // A little more than ten slices of 20 MB.
    let run = run_within_memory(folder, 256, "mesh wide_5000x4000x4_uint8.raw --iso 3 o.ply");
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// Histograms of 65,536 bins take 512 KiB per image, together more than the limit.
#[test]
fn histograms_of_many_images_fit_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let picture = [b"P5 20 10 65535\n", &Noise(9).bytes(400)[..]].concat();
    fs::write(folder.path().join("w.pgm"), picture).unwrap();
    let inputs = "w.pgm ".repeat(400);
    let run = run_within_memory(
        folder.path(),
        64,
        &format!("histogram {inputs}--bins 65536 --stats -o o.csv"),
    );
    assert_eq!(run.code, Some(0), "{run:?}");
    let rows = fs::read_to_string(folder.path().join("o.csv")).unwrap().lines().count();
    assert_eq!(rows, 1 + 400);
}

/// The file is the same whether the volume is meshed at once, in halves, or slab by slab.
#[test]
fn mesh_is_independent_of_the_memory_limit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("v_60x50x40_uint8.raw"), Noise(8).bytes(60 * 50 * 40)).unwrap();
    for more in ["", " --normals --close"] {
        let mesh = |limit: &str| {
            let command =
                format!("--max-memory {limit} mesh v_60x50x40_uint8.raw --iso 128 o.ply{more}");
            let run = measured(folder, command.split(' '));
            assert_eq!(run.code, Some(0), "{run:?}");
            fs::read(folder.join("o.ply")).unwrap()
        };
        let whole = mesh("1G");
        for limit in ["16M", "8M", "4M", "2M"] {
            assert!(mesh(limit) == whole, "{limit}{more}");
        }
    }
}

/// Files whose decoder would need unbounded memory fail with one line each; the other files of the batch are done.
#[test]
fn bad_files_do_not_stop_the_rest_of_a_batch() {
    let folder = input_folder();
    let folder = folder.path();
    let files = "p.ppm claim.exr count.exr bomb.exr tile.exr groups.webp w.pgm";
    let command = format!("--max-memory 256M blur --out-dir out --sigma 0 {files}");
    let run = measured(folder, command.split(' '));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert_eq!(run.stderr.matches("error: cannot decode").count(), 5, "{run:?}");
    for (name, is_done) in [("p.ppm", true), ("w.pgm", true), ("claim.exr", false)] {
        assert_eq!(folder.join("out").join(name).exists(), is_done, "{name}");
    }
}

/// A decoder whose memory is not known in advance runs in a child process, with the same result.
#[test]
fn lossless_webp_is_decoded_in_a_child_process_if_memory_is_low() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let picture = image::RgbaImage::from_raw(300, 200, Noise(7).bytes(300 * 200 * 4)).unwrap();
    picture.save(folder.join("in.webp")).unwrap();
    for (limit, uses_child) in [("2G", false), ("32M", true)] {
        let command = format!("-v --max-memory {limit} blur in.webp o.png --sigma 0");
        let run = measured(folder, command.split(' '));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.stderr.contains("in a child process"), uses_child, "{run:?}");
        assert!(image::open(folder.join("o.png")).unwrap().into_rgba8() == picture, "{limit}");
    }
    // The child process reports damage in the same words.
    let file = fs::read(folder.join("in.webp")).unwrap();
    fs::write(folder.join("cut.webp"), &file[..file.len() / 2]).unwrap();
    let cut = |limit: &str| {
        let command = format!("--max-memory {limit} blur cut.webp o.png --sigma 0");
        measured(folder, command.split(' ')).stderr
    };
    for limit in ["2G", "32M"] {
        let stderr = cut(limit);
        assert!(
            stderr.contains("cannot decode cut.webp") && stderr.contains("Corrupt"),
            "{stderr}"
        );
    }
}

/// The CPU time of a computation, divided by its time in an optimised build on an idle machine, where sorting this
/// noise takes 60 ms; at least 1.
fn slowness() -> f64 {
    use nix::sys::{
        resource::{UsageWho, getrusage},
        time::TimeValLike,
    };
    let used = || getrusage(UsageWho::RUSAGE_THREAD).unwrap().user_time().num_microseconds();
    let start = used();
    let mut noise = Noise(1);
    let mut numbers: Vec<u64> = (0..1 << 20).map(|_| noise.next()).collect();
    numbers.sort_by(|a, b| b.cmp(a));
    assert!(numbers.is_sorted_by(|a, b| a >= b));
    ((used() - start) as f64 / 60e3).max(1.0)
}

/// Small files on which a command once was slow, or might be. Options may still increase the work, such as the radius
/// of a Gaussian.
#[test]
fn small_inputs_finish_quickly() {
    /// Maximum CPU time of both threads in seconds, in an optimised build on an idle machine.
    const MAX_CPU_SECONDS: f64 = 6.0;
    let slowness = slowness();
    if slowness > 8.0 {
        return crate::harness::ignore(
            "built without optimisation: filters take 200 times as long",
        );
    }
    let limit = MAX_CPU_SECONDS * slowness;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let mut noise = Noise(3);
    write("deep_1x1x100000_uint8.raw", &noise.bytes(100_000));
    write("deep_1x1x20000_float32.raw", &noise.bytes(80_000));
    write("high_1x100000x1_uint8.raw", &noise.bytes(100_000));
    write("row_1x20000x1_uint8.raw", &noise.bytes(20_000));
    write("high.pgm", &[b"P5 1 65535 255\n", &noise.bytes(65_535)[..]].concat());
    write("wide.pgm", &[b"P5 65535 1 255\n", &noise.bytes(65_535)[..]].concat());
    // Many samples equal the isovalue 1, which creates sheets back to back.
    let tied: Vec<u8> = noise.bytes(32 * 32 * 32).iter().map(|v| v % 4).collect();
    write("tied_32x32x32_uint8.raw", &tied);
    write("digits.txt", &vec![b'1'; 100_000]);
    write("blanks.txt", &vec![b' '; 100_000]);
    write("claim.exr", &exr([64, 64], 8, None, &dwa_block(1 << 49, 0, &[1])));
    hostile::write(folder);
    let rows = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({}, 0), }}", u32::MAX);
    let length = (rows.len() as u16).to_le_bytes();
    write("empty.npy", &[b"\x93NUMPY\x01\0", &length[..], rows.as_bytes()].concat());
    for command in [
        "--max-memory 1M mesh deep_1x1x100000_uint8.raw --iso auto --close o.ply",
        "--max-memory 1M mesh deep_1x1x20000_float32.raw --iso auto --close o.ply",
        "--max-memory 1M mesh deep_1x1x100000_uint8.raw --iso 99 --close o.ply",
        "--max-memory 1M histogram deep_1x1x100000_uint8.raw",
        "--max-memory 1M histogram deep_1x1x20000_float32.raw --range data",
        "mesh high_1x100000x1_uint8.raw --iso auto --close --stats o.ply",
        "mesh row_1x20000x1_uint8.raw --iso 99 --close --simplify 0.1 --smooth 5 o.ply",
        "mesh tied_32x32x32_uint8.raw --iso 1 --simplify 0.03 o.ply",
        "blur deep_1x1x20000_float32.raw o.raw",
        "blur high.pgm o.png",
        "blur high.pgm o.png --method box --radius 50 --edge wrap",
        "blur wide.pgm o.png --sigma 50 --edge mirror",
        "blur wide.pgm o.png --sigma 50 --linear",
        "blur claim.exr o.png",
        "histogram high.pgm --equalize o.png --bins 65536 -o o.csv",
        "scan high.pgm o.npy",
        "scan empty.npy o.npy --axis both",
        "scan empty.npy o.npy",
        "scan digits.txt o.txt",
        "scan blanks.txt o.txt",
        "sort digits.txt o.txt",
        "sort empty.npy o.npy",
        "info deep_1x1x100000_uint8.raw claim.exr empty.npy digits.txt",
        "info shared.tif chain.tif planes.ome.tif frames.dcm",
        "histogram shared.tif",
        "histogram chain.tif",
        "mesh chain.tif --iso 3 o.ply",
        "mesh planes.ome.tif --iso 3 --close o.ply",
        "blur frames.gif o.webp --sigma 0",
        "mesh frames.dcm --iso 3 o.ply",
    ] {
        let run = measured(folder, format!("--timeout 300 {command}").split(' '));
        assert_ne!(run.code, Some(124), "{command} timed out");
        assert!(
            run.cpu_seconds < limit,
            "{command} took {} s; the limit is {limit} s",
            run.cpu_seconds
        );
    }
}
