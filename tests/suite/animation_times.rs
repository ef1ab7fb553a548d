//! Durations and numbers of plays of animations in the units of each format, and ranges of frames.

use std::{fs, path::Path};

use crate::{
    common::{run, works},
    inputs::{load_image, png_chunk, zlib},
};

/// An animated PNG of grey frames of 3 x 2 pixels, of which frame `i` has the value `10 * i`, with these delays.
fn apng(plays: u32, delays: &[[u16; 2]]) -> Vec<u8> {
    let header = [&3u32.to_be_bytes()[..], &2u32.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    let mut file = [&b"\x89PNG\r\n\x1a\n"[..], &png_chunk(b"IHDR", &header)].concat();
    file.extend(png_chunk(b"acTL", &[delays.len() as u32, plays].map(u32::to_be_bytes).concat()));
    let mut sequence = 0u32;
    let mut next = || {
        sequence += 1;
        (sequence - 1).to_be_bytes()
    };
    for (number, delay) in delays.iter().enumerate() {
        let place = [3u32, 2, 0, 0].map(u32::to_be_bytes).concat();
        let control =
            [&next()[..], &place, &delay.map(u16::to_be_bytes).concat(), &[0, 0]].concat();
        file.extend(png_chunk(b"fcTL", &control));
        let row = [0, 10 * number as u8, 10 * number as u8, 10 * number as u8];
        let data = zlib(&[row, row].concat());
        match number {
            0 => file.extend(png_chunk(b"IDAT", &data)),
            _ => file.extend(png_chunk(b"fdAT", &[&next()[..], &data].concat())),
        }
    }
    file.extend(png_chunk(b"IEND", &[]));
    file
}

/// All positions of `part` in `file`.
fn positions<'a>(file: &'a [u8], part: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    file.windows(part.len()).enumerate().filter(move |(_, found)| *found == part).map(|(at, _)| at)
}

/// Delays as numerator and denominator, and plays (0 for forever), as in a file.
fn times(path: &Path) -> (u32, Vec<[u32; 2]>) {
    let file = fs::read(path).unwrap();
    let half = |at: usize| u32::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let big = |at: usize| u32::from(u16::from_be_bytes([file[at], file[at + 1]]));
    match path.extension().unwrap().to_str().unwrap() {
        // Graphic control extensions, and the number of repetitions after the first play.
        "gif" => {
            let delays = positions(&file, &[0x21, 0xf9, 4]).map(|at| [half(at + 4), 100]).collect();
            let again = positions(&file, b"NETSCAPE2.0\x03\x01").next().map(|at| half(at + 13));
            (again.map_or(1, |again| if again == 0 { 0 } else { again + 1 }), delays)
        }
        "webp" => {
            let millis = |at: usize| half(at + 20) | u32::from(file[at + 22]) << 16;
            let delays = positions(&file, b"ANMF").map(|at| [millis(at), 1000]).collect();
            (half(positions(&file, b"ANIM").next().unwrap() + 12), delays)
        }
        _ => {
            let delays = positions(&file, b"fcTL").map(|at| [big(at + 24), big(at + 26)]).collect();
            let at = positions(&file, b"acTL").next().unwrap() + 8;
            (u32::from_be_bytes(file[at..at + 4].try_into().unwrap()), delays)
        }
    }
}

#[test]
fn delays_and_plays_have_the_units_of_each_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Delays of APNG, and the same in hundredths and in thousandths of a second, rounded. A denominator of 0 is 100.
    let delays = [
        ([1u16, 3], 33, 333),
        ([2, 3], 67, 667),
        ([1, 100], 1, 10),
        ([0, 10], 0, 0),
        ([3, 0], 3, 30),
        ([4, 1000], 0, 4),
        ([5, 1000], 1, 5),
        ([1, 2000], 0, 1),
        ([1, 2001], 0, 0),
        ([655, 1], 65_500, 655_000),
        ([656, 1], 65_535, 656_000),
        ([20_000, 1], 65_535, 16_777_215),
    ];
    let own = delays.map(|(delay, ..)| delay);
    for plays in [0, 1, 2, 7] {
        fs::write(folder.join("a.png"), apng(plays, &own)).unwrap();
        for output in ["o.gif", "o.webp", "o.png"] {
            works(folder, &format!("blur a.png {output} --sigma 0"));
            let (found_plays, found) = times(&folder.join(output));
            assert_eq!(found_plays, plays, "{output}");
            assert_eq!(found.len(), delays.len(), "{output}");
            for ([number, unit], (delay, hundredths, thousandths)) in found.into_iter().zip(delays)
            {
                let expected = match output {
                    "o.gif" => [hundredths, 100],
                    "o.webp" => [thousandths, 1000],
                    _ => [delay[0].into(), if delay[1] == 0 { 100 } else { delay[1].into() }],
                };
                assert_eq!([number, unit], expected, "{output}: {delay:?}");
            }
        }
        // Back from the other formats.
        for input in ["o.gif", "o.webp"] {
            works(folder, &format!("blur {input} back.png --sigma 0"));
            let (found_plays, found) = times(&folder.join("back.png"));
            assert_eq!((found_plays, found.len()), (plays, delays.len()), "{input}");
            for ([number, unit], (_, hundredths, thousandths)) in found.into_iter().zip(delays) {
                let (stated, per_second) =
                    if input == "o.gif" { (hundredths, 100) } else { (thousandths, 1000) };
                // A numerator of 16 bits holds up to 65.535 seconds in thousandths.
                let exact = f64::from(stated) / f64::from(per_second);
                let seconds = f64::from(number) / f64::from(unit);
                assert!(
                    (seconds - exact.min(65.535)).abs() < 1e-9 || (seconds - exact).abs() < 1e-9,
                    "{input}: {number}/{unit}, {exact}"
                );
            }
        }
    }
}

/// Frames are chosen by numbers from 1 on; both ends of a range belong to it.
#[test]
fn ranges_of_frames_include_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.png"), apng(3, &[[1, 10], [2, 10], [3, 10], [4, 10]])).unwrap();
    for (range, first, delays) in [
        ("1", 0u8, &[][..]),
        ("4", 30, &[]),
        ("2..3", 10, &[20, 30]),
        ("2..2", 10, &[]),
        ("3..", 20, &[30, 40]),
        ("1..4", 0, &[10, 20, 30, 40]),
    ] {
        works(folder, &format!("blur a.png o.gif --sigma 0 --page {range}"));
        let image = load_image(folder.join("o.gif"));
        assert!(image.samples.as_bytes().iter().all(|&value| value == first), "{range}");
        let (plays, found) = times(&folder.join("o.gif"));
        let found: Vec<u32> = found.into_iter().map(|[number, _]| number).collect();
        if !delays.is_empty() {
            assert_eq!((plays, &found[..]), (3, delays), "{range}");
        }
    }
    for (range, code) in [("5", 4), ("3..5", 4), ("0", 2), ("3..2", 2), ("..2", 2), ("a", 2)] {
        assert_eq!(
            run(folder, &format!("blur a.png o.gif --sigma 0 --page {range}")).0,
            code,
            "{range}"
        );
    }
}
