//! Smaller copies of an image in a TIFF are not pages: pyramids and slides.

use std::{fs, path::Path};

use predicates::{prelude::PredicateBooleanExt, str::contains};

use crate::{
    common::{Noise, info_json, outcome},
    inputs::{as_f64, load_image},
    tiff_files::{TiffPage, tiff},
};

const SIZES: [[usize; 2]; 4] = [[160, 128], [80, 64], [40, 32], [20, 16]];

fn write(folder: &Path, pages: &[TiffPage]) {
    fs::write(folder.join("in.tif"), tiff(pages)).unwrap();
}

/// A page of one tile, whose samples are all `value`.
fn tiled(size: [usize; 2], value: u8) -> TiffPage {
    let [width, height] = size.map(|side| side.next_multiple_of(16));
    let page = TiffPage::grey(size, 8, vec![value; width * height]);
    page.longs(322, [width as u32]).longs(323, [height as u32])
}

/// Levels that are flat, each with another value.
fn levels() -> Vec<TiffPage> {
    SIZES.iter().zip([10, 20, 30, 40]).map(|(&size, value)| tiled(size, value)).collect()
}

/// The kinds of pyramids: their pages, and the sizes of images that are not levels.
fn pyramids() -> Vec<(&'static str, Vec<TiffPage>, &'static str)> {
    let [full, half, quarter, eighth] = <[TiffPage; 4]>::try_from(levels()).ok().unwrap();
    let copies = |pages: &[&TiffPage]| {
        pages.iter().map(|&page| page.clone().longs(254, [1])).collect::<Vec<_>>()
    };
    let reduced = [vec![full.clone()], copies(&[&half, &quarter, &eighth])].concat();
    let nested = full.clone().with_copy(half.clone()).with_copy(quarter.clone());
    let slide = full.clone().described("Aperio Image Library v11\r\n160x128");
    let label = TiffPage::flat([33, 44], 1).longs(254, [1]);
    let macro_picture = TiffPage::flat([55, 22], 2).longs(254, [9]);
    let thumbnail = TiffPage::flat([64, 47], 3);
    vec![
        ("halved pages", levels(), ""),
        ("NewSubfileType", reduced, ""),
        ("SubIFDs", vec![nested.with_copy(eighth.clone())], ""),
        (
            "Aperio",
            vec![slide, thumbnail, half, quarter, eighth, label, macro_picture],
            "33x44, 55x22, 64x47",
        ),
    ]
}

#[test]
fn levels_are_no_pages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, pages, others) in pyramids() {
        write(folder, &pages);
        let info = &info_json(folder, "in.tif")[0];
        assert_eq!(info["size"], serde_json::json!([160, 128]), "{name}");
        assert_eq!(info["pages"], 1, "{name}");
        let text = info["metadata"].to_string();
        assert!(text.contains("80x64, 40x32, 20x16"), "{name}: {text}");
        assert!(text.contains(others), "{name}: {text}");
        for output in ["o.png", "o.tif", "o.gif", "o.jpg"] {
            let line = format!("blur in.tif {output} --sigma 1");
            outcome(folder, &line).success().stderr(contains("page").not());
            assert_eq!(info_json(folder, output)[0]["size"][0], 160);
        }
        let blurred = load_image(folder.join("o.png"));
        assert!(as_f64(&blurred.samples).iter().all(|&value| value == 10.0), "{name}");
        assert_eq!(info_json(folder, "o.tif")[0]["pages"], 1, "{name}");
    }
}

/// The smallest level that is still twice as large as the result along both axes.
#[test]
fn resize_takes_the_smallest_level_that_suffices() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, pages, _) in pyramids() {
        write(folder, &pages);
        for (flags, value) in [
            ("--max 10", 40.0),
            ("--max 11", 30.0),
            ("--size 20x10", 30.0),
            ("--size 20x17", 20.0),
            ("--max 60", 10.0),
            ("--scale 2", 10.0),
            ("--max 10 --no-shrink-on-load", 10.0),
            ("--max 10 --linear", 10.0),
            ("--max 10 --filter nearest", 10.0),
            ("--max 10 --filter area", 10.0),
            ("--max 10 --max-memory 64M", 40.0),
        ] {
            let line = format!("resize in.tif o.png {flags}");
            let run = outcome(folder, &line).success();
            run.stderr(match flags {
                "--size 20x10" => "in.tif: the aspect ratio changes; --fit keeps it, and --fill cuts off what does not fit\n",
                _ => "",
            });
            let found = as_f64(&load_image(folder.join("o.png")).samples);
            assert!(found.iter().all(|&found| found == value), "{name} {flags}: {found:?}");
        }
        outcome(folder, "resize in.tif o.png --max 10 --then blur --sigma 0").success();
        assert_eq!(as_f64(&load_image(folder.join("o.png")).samples)[0], 40.0, "{name}");
    }
    // Metadata are those of the whole image.
    let mut pages = levels();
    pages[0] = pages[0].clone().described("a slide").resolution(300, 2);
    write(folder, &pages);
    outcome(folder, "resize in.tif o.tif --max 10").success();
    outcome(folder, "info o.tif")
        .success()
        .stdout(contains("300 x 300 per inch").and(contains("a slide")));
    // No level is taken if the image is stored turned, whatever the type of the number that says so.
    let mut pages = pyramids().remove(1).1;
    pages[0] = pages[0].clone().set(274, 5, 1, [6u32, 1].map(u32::to_le_bytes).concat());
    write(folder, &pages);
    outcome(folder, "resize in.tif o.png --max 10").success();
    let image = load_image(folder.join("o.png"));
    assert_eq!(([image.width, image.height], as_f64(&image.samples)[0]), ([8, 10], 10.0));
}

/// Equal pages, pages that are not halved, untiled pages, and two pages alone do not make a pyramid.
#[test]
fn other_pages_stay_pages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [flat, tiled]: [fn([usize; 2], u8) -> TiffPage; 2] = [TiffPage::flat, tiled];
    for (page, sizes) in [
        (tiled, vec![[160, 120], [160, 120], [160, 120]]),
        (tiled, vec![[160, 120], [80, 60], [80, 60]]),
        (tiled, vec![[160, 120], [80, 60], [40, 31]]),
        (tiled, vec![[40, 30], [80, 60], [160, 120]]),
        (tiled, vec![[160, 120], [80, 120], [40, 120]]),
        (tiled, vec![[160, 120], [80, 60]]),
        (flat, vec![[160, 120], [80, 60]]),
        (flat, vec![[160, 120], [80, 60], [40, 30]]),
    ] {
        let pages: Vec<_> = sizes.iter().map(|&size| page(size, 7)).collect();
        write(folder, &pages);
        assert_eq!(info_json(folder, "in.tif")[0]["pages"], sizes.len(), "{sizes:?}");
        outcome(folder, "blur in.tif o.png --sigma 0 --page 2").success();
        assert_eq!(info_json(folder, "o.png")[0]["size"], serde_json::json!(sizes[1]));
    }
    let mut noise = Noise(3);
    let rgb = TiffPage::grey([80, 60], 8, noise.bytes(80 * 60 * 3)).shorts(277, [3]);
    let rgb = rgb.shorts(258, [8; 3]).shorts(262, [2]).longs(322, [80]).longs(323, [60]);
    write(folder, &[tiled([160, 120], 7), rgb, tiled([40, 30], 7)]);
    assert_eq!(info_json(folder, "in.tif")[0]["pages"], 3);
}

/// Frames of an animation have one size: of other pages, the first is written, as to formats of one page.
#[test]
fn unequal_pages_become_no_animation() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = TiffPage::flat([14, 10], 7);
    let wide = TiffPage::grey([14, 10], 16, vec![1; 280]);
    let narrow = TiffPage::flat([9, 20], 8);
    for (other, outputs) in [(narrow, &["o.png", "o.gif", "o.webp"][..]), (wide, &["o.png"])] {
        write(folder, &[first.clone(), other]);
        for output in outputs {
            let line = format!("blur in.tif {output} --sigma 0");
            let message = "only the first of 2 pages is written";
            outcome(folder, &line).success().stderr(contains(message));
            outcome(folder, &format!("{line} --strict")).code(4).stderr(contains(message));
            let image = load_image(folder.join(output));
            assert_eq!([image.width, image.height], [14, 10], "{output}");
        }
        outcome(folder, "blur in.tif o.tif --sigma 0").success().stderr("");
        assert_eq!(info_json(folder, "o.tif")[0]["pages"], 2);
    }
}

/// Halved sides are rounded up or down, each for itself, at every level. One pixel more or less makes another image.
#[test]
fn levels_may_be_rounded_up_or_down() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let full = [165, 131];
    // Sizes of further images, and which of them are levels.
    for (sizes, are_levels) in [
        ([[82, 65], [41, 32]], [true, true]),
        ([[83, 66], [42, 33]], [true, true]),
        ([[82, 66], [41, 33]], [true, true]),
        ([[83, 65], [42, 32]], [true, true]),
        ([[83, 66], [41, 32]], [true, true]),
        // Two levels are left out.
        ([[20, 16], [10, 8]], [true, true]),
        ([[21, 17], [11, 9]], [true, true]),
        ([[81, 65], [41, 32]], [false, true]),
        ([[84, 66], [42, 33]], [false, true]),
        ([[82, 67], [41, 33]], [false, true]),
        ([[82, 64], [41, 32]], [false, true]),
        ([[82, 65], [43, 33]], [true, false]),
        ([[82, 65], [41, 31]], [true, false]),
        ([[82, 32], [41, 16]], [false, false]),
    ] {
        let [first, a, b] = [full, sizes[0], sizes[1]].map(|size| tiled(size, 9));
        write(folder, &[first.clone(), a.clone(), b.clone()]);
        let is_pyramid = are_levels == [true, true];
        let pages = if is_pyramid { 1 } else { 3 };
        assert_eq!(info_json(folder, "in.tif")[0]["pages"], pages, "{sizes:?}");
        // Marked copies are never pages.
        let named = |are_levels: bool, wanted: [bool; 2]| {
            let found = sizes.iter().zip(wanted).filter(|(_, is_level)| *is_level == are_levels);
            let names: Vec<_> = found.map(|([x, y], _)| format!("{x}x{y}")).collect();
            names.join(", ")
        };
        let marked = [first.clone(), a.clone().longs(254, [1]), b.clone().longs(254, [1])];
        for pages in [&marked[..], &[first.with_copy(a).with_copy(b)]] {
            write(folder, pages);
            let info = &info_json(folder, "in.tif")[0];
            assert_eq!(info["pages"], 1, "{sizes:?}");
            for (name, is_level) in [("smaller levels", true), ("further images", false)] {
                let entries = info["metadata"].as_array().unwrap();
                let found = entries.iter().find(|entry| entry[0] == name);
                let text = found.map_or("", |entry| entry[1].as_str().unwrap());
                assert_eq!(text, named(is_level, are_levels), "{sizes:?}: {name}");
            }
        }
    }
}

/// TIFF 6.0, section 8: bit 0 of NewSubfileType (254) is a copy of lower resolution, bit 1 a page of several, bit 2 a
/// mask. The older SubfileType (255) is 1 for a full image, 2 for a copy, and 3 for a page of several.
#[test]
fn copies_and_masks_are_no_pages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [first, last] = [1, 3].map(|value| TiffPage::flat([16, 12], value));
    let other = TiffPage::flat([16, 12], 2);
    let new = (0..8).map(|kind| (other.clone().longs(254, [kind]), kind & 0b101 == 0));
    let old = (1..4).map(|kind| (other.clone().shorts(255, [kind]), kind != 2));
    // The newer tag counts.
    let both = [(0, 2, true), (1, 1, false), (2, 2, true), (4, 3, false)]
        .map(|(new, old, is_page)| (other.clone().longs(254, [new]).shorts(255, [old]), is_page));
    for (number, (page, is_page)) in new.chain(old).chain(both).enumerate() {
        write(folder, &[first.clone(), page, last.clone()]);
        let expected: &[f64] = if is_page { &[1.0, 2.0, 3.0] } else { &[1.0, 3.0] };
        assert_eq!(info_json(folder, "in.tif")[0]["pages"], expected.len(), "{number}");
        for (page, &value) in expected.iter().enumerate() {
            outcome(folder, &format!("blur in.tif o.png --sigma 0 --page {}", page + 1)).success();
            let found = as_f64(&load_image(folder.join("o.png")).samples);
            assert!(found.iter().all(|&found| found == value), "{number}, page {page}: {found:?}");
        }
        let beyond = expected.len() + 1;
        outcome(folder, &format!("blur in.tif o.png --sigma 0 --page {beyond}")).code(4);
    }
    // A file of copies alone has pages.
    let copies = [1, 2].map(|value| TiffPage::flat([16, 12], value).longs(254, [1]));
    write(folder, &copies);
    assert_eq!(info_json(folder, "in.tif")[0]["pages"], 2);
}
