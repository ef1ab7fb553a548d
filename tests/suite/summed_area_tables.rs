//! Summed area tables against naive sums.

use std::fs;

use gpuproc::kernels::scan::{Axis, Table, TableScan};

use crate::{
    common::assert_twins,
    scan::{bytes, noise},
    scan_command::{assert_fails, gpuproc, stdout_of},
};

/// The sum of all pixels to the left and above each pixel, added up one by one.
fn naive_summed_area_table(grid: &Table<u32>, axis: Axis, inclusive: bool) -> Vec<u32> {
    let Table { width, height, channels, ref values } = *grid;
    let (width, height) = (width as isize, height as isize);
    let at = |x: isize, y: isize, c: usize| values[(y * width + x) as usize * channels + c];
    let mut sums = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for c in 0..channels {
                let one_more = isize::from(inclusive);
                let across = if axis == Axis::Y { x..x + 1 } else { 0..x + one_more };
                let down = if axis == Axis::X { y..y + 1 } else { 0..y + one_more };
                let pixels = down.flat_map(|y| across.clone().map(move |x| (x, y)));
                sums.push(pixels.fold(0, |sum: u32, (x, y)| sum.wrapping_add(at(x, y, c))));
            }
        }
    }
    sums
}

#[test]
fn summed_area_tables_equal_naive_sums() {
    for (width, height, channels) in [(1, 1, 1), (7, 130, 1), (65, 64, 3), (130, 66, 4)] {
        let values = noise(width * height * channels, 77);
        let grid = Table { width, height, channels, values };
        for axis in [Axis::X, Axis::Y, Axis::Both] {
            for inclusive in [false, true] {
                let table = TableScan::<u32>::new(axis, inclusive);
                let found = assert_twins(&table, &grid, |cpu, gpu, name| {
                    assert!(cpu == gpu, "{width} x {height}, {table:?} on {name}");
                });
                assert!(
                    found.values == naive_summed_area_table(&grid, axis, inclusive),
                    "{table:?}"
                );
            }
        }
    }
}

#[test]
fn summed_area_tables_of_wide_tall_and_empty_images() {
    // Rows longer than a workgroup processes at once, and several blocks on the small device.
    for (width, height, channels) in [(2049, 300, 1), (33, 9001, 3), (70_000, 2, 1)] {
        let values = noise(width * height * channels, 78);
        let grid = Table { width, height, channels, values };
        let table = TableScan::<u32>::new(Axis::Both, true);
        let found = assert_twins(&table, &grid, |cpu, gpu, name| {
            assert!(cpu == gpu, "{width} x {height} on {name}");
        });
        // The last pixel holds the sum of all pixels.
        for c in 0..channels {
            let of_channel = grid.values[c..].iter().step_by(channels);
            let sum = of_channel.fold(0u32, |sum, &value| sum.wrapping_add(value));
            assert_eq!(found.values[found.values.len() - channels + c], sum);
        }
    }
    for (width, height, channels) in [(0, 5, 1), (1 << 40, 0, 3), (usize::MAX, 0, 2)] {
        let empty = Table { width, height, channels, values: Vec::new() };
        let table = TableScan::<u32>::new(Axis::Both, true);
        assert_twins(&table, &empty, |cpu, gpu, name| assert_eq!(cpu, gpu, "{name}"));
    }
}

#[test]
fn writes_summed_area_tables_of_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("grey.pgm"), b"P5 3 2 255\n\x01\x02\x03\x0a\x14\xff").unwrap();
    let (image, table) = (path("grey.pgm"), path("table.txt"));
    for (arguments, text) in [
        (&["--inclusive"][..], "1 3 6\n11 33 291\n"),
        (&[], "0 0 0\n0 1 3\n"),
        (&["--inclusive", "--axis", "x"], "1 3 6\n10 30 285\n"),
        (&["--axis", "y", "--type", "f64"], "0 0 0\n1 2 3\n"),
    ] {
        gpuproc(&[&["scan", &image, &table], arguments].concat()).assert().success();
        assert_eq!(fs::read_to_string(&table).unwrap(), text, "{arguments:?}");
    }
    // The same from an array, in C and Fortran order.
    for (order, numbers) in
        [("False", "\x01\x02\x03\x0a\x14\x7f"), ("True", "\x01\x0a\x02\x14\x03\x7f")]
    {
        let header = format!("{{'descr': '|u1', 'fortran_order': {order}, 'shape': (2, 3), }}");
        let start = format!("NUMPY\x01\0{}\0{header}{numbers}", header.len() as u8 as char);
        fs::write(path("grey.npy"), [&b"\x93"[..], start.as_bytes()].concat()).unwrap();
        for (arguments, text) in [
            (&["--inclusive", "--axis", "both"][..], "1 3 6\n11 33 163\n"),
            (&["--inclusive", "--axis", "y"], "1 2 3\n11 22 130\n"),
            (&["--inclusive"], "1\n3\n6\n16\n36\n163\n"),
        ] {
            gpuproc(&[&["scan", &path("grey.npy"), &table], arguments].concat()).assert().success();
            assert_eq!(fs::read_to_string(&table).unwrap(), text, "{order} {arguments:?}");
        }
    }
    let line = ["scan", "--axis", "x", "-"];
    assert_fails(&line, "1 2", 2, "--axis is for images and for .npy arrays");
    // The default format on standard output is .npy.
    let npy = stdout_of(&["scan", "--inclusive", &image], "");
    let header = String::from_utf8_lossy(&npy[..128]).into_owned();
    assert!(header.contains("'<u4'") && header.contains("(2, 3)"), "{header}");
    assert!(npy[128..] == *bytes(&[1u32, 3, 6, 11, 33, 291]));
    assert_fails(
        &["scan", "--op", "max", &image, &table],
        "",
        2,
        "summed-area tables support only --op sum",
    );
    // 65,535 times 65,538 no longer fits 32 bits.
    let mut wide = b"P5 65538 1 65535\n".to_vec();
    wide.extend([0xff; 2 * 65_538]);
    fs::write(path("wide.pgm"), wide).unwrap();
    gpuproc(&["scan", "--inclusive", &path("wide.pgm"), &path("wide.txt")]).assert().success();
    let text = fs::read_to_string(path("wide.txt")).unwrap();
    assert_eq!(text.split_whitespace().last().unwrap(), (65_535u64 * 65_538).to_string());
}
