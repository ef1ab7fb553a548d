//! Orders of the planes of TIFF stacks, by every kind of description: each combination of channels, slices and times,
//! stored with and without a directory for each page.

use std::{fs, path::Path};

use gpuproc::{
    io::volume::{Layout, VolumeFile},
    util::timings::Timings,
};

use crate::{
    inputs::{as_f64, describe_as},
    tiff_files::{TiffPage, tiff},
};

/// Numbers of slices, channels and times.
type Sizes = [usize; 3];

/// All combinations of up to three slices, channels and times that are more than one plane.
fn all_sizes() -> impl Iterator<Item = Sizes> {
    let sizes = (0..27).map(|i| [1 + i % 3, 1 + i / 3 % 3, 1 + i / 9]);
    sizes.filter(|sizes| sizes.iter().product::<usize>() > 1)
}

/// Number of the plane at a position along slices (Z), channels (C) and times (T). `axes` are from fast to slow.
fn number(axes: &str, sizes: Sizes, position: Sizes) -> usize {
    let mut step = 1;
    let mut number = 0;
    for axis in axes.chars().filter_map(|axis| "ZCT".find(axis)) {
        number += step * position[axis];
        step *= sizes[axis];
    }
    number
}

/// The plane numbers of each volume. The channels of a time follow each other.
fn volumes_of(axes: &str, sizes: Sizes) -> Vec<Vec<usize>> {
    let [slices, channels, times] = sizes;
    let mut volumes = Vec::new();
    for time in 0..times {
        for channel in 0..channels {
            volumes.push((0..slices).map(|z| number(axes, sizes, [z, channel, time])).collect());
        }
    }
    volumes
}

/// A page of 2 x 2 pixels that all are `value`, in 8 or 16 bits.
fn plane(value: usize, bits: u16) -> Vec<u8> {
    let bytes = (value as u16 + 100 * u16::from(bits == 16)).to_le_bytes();
    bytes[..usize::from(bits / 8)].repeat(4)
}

/// A file of a page for each plane.
fn pages(count: usize, bits: u16, description: &str) -> Vec<u8> {
    let mut pages: Vec<TiffPage> =
        (0..count).map(|i| TiffPage::grey([2, 2], bits, plane(i, bits))).collect();
    pages[0] = pages[0].clone().described(description);
    tiff(&pages)
}

/// A file of one page, whose strip is followed by the samples of the other planes.
fn strip(count: usize, bits: u16, description: &str) -> Vec<u8> {
    let samples = (0..count).flat_map(|i| plane(i, bits)).collect();
    tiff(&[TiffPage::grey([2, 2], bits, samples).longs(278, [2]).described(description)])
}

fn open(path: &Path, volume: usize) -> VolumeFile {
    let layout = Layout { volume: Some(volume), stack: true, ..Layout::default() };
    describe_as(path, &layout).unwrap_or_else(|error| panic!("{}", error.one_line()))
}

/// The plane numbers of each volume of a file.
fn read(path: &Path, bits: u16) -> Vec<Vec<usize>> {
    let offset = if bits == 16 { 100.0 } else { 0.0 };
    let planes = |volume| {
        let samples = open(path, volume).read(1 << 20, &Timings::new(false)).unwrap().samples;
        as_f64(&samples).chunks(4).map(|plane| (plane[3] - offset) as usize).collect()
    };
    (0..open(path, 0).volumes).map(planes).collect()
}

/// ImageJ stores channels fastest, then slices, then times; Micro-Manager states another order. Times of a single slice
/// and channel are slices.
#[test]
fn hyperstacks_of_imagej_are_split_by_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tif");
    for sizes @ [slices, channels, times] in all_sizes() {
        let count = slices * channels * times;
        for (order, axes) in [
            ("", "CZT"),
            ("order=default\n", "CZT"),
            ("order=czt\n", "CZT"),
            ("order=zct\n", "ZCT"),
            ("order=tzc\n", "TZC"),
            ("order=ctz\n", "CTZ"),
        ] {
            let description = format!(
                "ImageJ=1.53q\nimages={count}\nchannels={channels}\nslices={slices}\nframes={times}\n{order}"
            );
            let expected = match [slices, channels, times] {
                [1, 1, times] => vec![(0..times).collect()],
                _ => volumes_of(axes, sizes),
            };
            fs::write(&path, pages(count, 8, &description)).unwrap();
            assert_eq!(read(&path, 8), expected, "pages: {description}");
            for bits in [8, 16] {
                fs::write(&path, strip(count, bits, &description)).unwrap();
                assert_eq!(read(&path, bits), expected, "a strip of {bits} bits: {description}");
            }
        }
    }
}

/// Counts that do not fit the pages are not believed.
#[test]
fn wrong_counts_of_imagej_make_one_volume_of_all_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tif");
    for (lines, expected) in [
        ("images=6", vec![vec![0, 1, 2, 3, 4, 5]]),
        ("slices=6", vec![vec![0, 1, 2, 3, 4, 5]]),
        // The number of images is wrong, but the axes fit the pages.
        ("images=4\nchannels=2\nslices=3", vec![vec![0, 2, 4], vec![1, 3, 5]]),
        ("images=6\nchannels=2\nslices=2", vec![vec![0, 1, 2, 3, 4, 5]]),
        ("images=5\nslices=5", vec![vec![0, 1, 2, 3, 4, 5]]),
        ("images=7\nslices=7", vec![vec![0, 1, 2, 3, 4, 5]]),
    ] {
        fs::write(&path, pages(6, 8, &format!("ImageJ=1.53q\n{lines}\n"))).unwrap();
        assert_eq!(read(&path, 8), expected, "{lines}");
        let losses = open(&path, 0).warnings().filter(|text| text.contains("images, but")).count();
        assert_eq!(losses, usize::from(lines.contains("=5") || lines.contains("=7")), "{lines}");
    }
}

/// Python's tifffile calls unspecified pages channels: more than seven are slices.
#[test]
fn many_channels_of_one_slice_are_slices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tif");
    for channels in 6..10 {
        let text = format!("ImageJ=1.53q\nimages={channels}\nchannels={channels}\n");
        fs::write(&path, pages(channels, 8, &text)).unwrap();
        let all = 0..channels;
        let expected = match channels {
            ..8 => all.map(|channel| vec![channel]).collect(),
            _ => vec![all.collect::<Vec<usize>>()],
        };
        assert_eq!(read(&path, 8), expected, "{channels}");
    }
}

/// Elements of OME-XML that say in which pages planes are. Pages are in the order of planes, from plane `first` on for
/// each plane or for runs of planes, or in reverse.
fn tiff_data(axes: &str, sizes: Sizes, kind: &str) -> String {
    let count = sizes.iter().product::<usize>();
    // The position of each plane.
    let mut positions = vec![[0; 3]; count];
    for i in 0..count {
        let position = [i % sizes[0], i / sizes[0] % sizes[1], i / sizes[0] / sizes[1]];
        positions[number(axes, sizes, position)] = position;
    }
    let element = |plane: usize, rest: String| {
        let [z, c, t] = positions[plane];
        format!("<TiffData FirstZ=\"{z}\" FirstC=\"{c}\" FirstT=\"{t}\" {rest}/>")
    };
    let last = count - 1;
    match kind {
        "none" => String::new(),
        "one" => "<TiffData/>".to_owned(),
        "first page" => format!("<TiffData IFD=\"0\" PlaneCount=\"{count}\"/>"),
        // Without PlaneCount, an element with a page is that of one plane.
        "single" => (0..count).map(|i| element(i, format!("IFD=\"{i}\""))).collect(),
        "counted" => {
            (0..count).map(|i| element(i, format!("IFD=\"{i}\" PlaneCount=\"1\""))).collect()
        }
        "unordered" => (0..count).rev().map(|i| element(i, format!("IFD=\"{i}\""))).collect(),
        "reversed" => (0..count).map(|i| element(i, format!("IFD=\"{}\"", last - i))).collect(),
        // Runs of two planes.
        _ => (0..count)
            .step_by(2)
            .map(|i| element(i, format!("IFD=\"{i}\" PlaneCount=\"{}\"", 2.min(count - i))))
            .collect(),
    }
}

#[test]
fn planes_of_ome_tiff_are_in_the_stated_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ome.tif");
    for axes in ["ZCT", "ZTC", "CZT", "CTZ", "TZC", "TCZ"] {
        for sizes @ [z, c, t] in
            [[2, 1, 1], [1, 3, 1], [1, 1, 2], [3, 2, 1], [2, 1, 3], [1, 2, 3], [2, 3, 2]]
        {
            let count = z * c * t;
            for kind in
                ["none", "one", "first page", "single", "counted", "unordered", "reversed", "runs"]
            {
                let text = format!(
                    "<OME><Image><Pixels DimensionOrder=\"XY{axes}\" SizeX=\"2\" SizeY=\"2\" SizeZ=\"{z}\" \
                     SizeC=\"{c}\" SizeT=\"{t}\">{}</Pixels></Image></OME>",
                    tiff_data(axes, sizes, kind)
                );
                fs::write(&path, pages(count, 8, &text)).unwrap();
                let mut expected = volumes_of(axes, sizes);
                if kind == "reversed" {
                    expected.iter_mut().flatten().for_each(|plane| *plane = count - 1 - *plane);
                }
                assert_eq!(read(&path, 8), expected, "{text}");
            }
        }
    }
}

/// A plane without a page, or in a page that the file lacks, makes the pages one volume.
#[test]
fn ome_tiff_with_missing_planes_is_one_volume_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.ome.tif");
    let all = |count: usize| vec![(0..count).collect::<Vec<usize>>()];
    for (pages_of_file, data, is_lost) in [
        (4, "<TiffData IFD=\"0\"/><TiffData FirstZ=\"1\" IFD=\"1\"/>", true),
        (4, "<TiffData IFD=\"1\" PlaneCount=\"4\"/>", true),
        (3, "", true),
        (4, "", false),
    ] {
        let text = format!(
            "<OME><Image><Pixels DimensionOrder=\"XYZCT\" SizeZ=\"2\" SizeC=\"2\" SizeT=\"1\">{data}</Pixels></Image></OME>"
        );
        fs::write(&path, pages(pages_of_file, 8, &text)).unwrap();
        let expected = if is_lost { all(pages_of_file) } else { vec![vec![0, 1], vec![2, 3]] };
        assert_eq!(read(&path, 8), expected, "{text}");
        let message = format!("its OME-XML states 4 planes, but the file has {pages_of_file}");
        assert_eq!(open(&path, 0).warnings().any(|text| text == message), is_lost, "{text}");
    }
    // Pages after those of the first image.
    let text = "<OME><Image><Pixels SizeZ=\"3\" SizeC=\"1\" SizeT=\"1\"/></Image></OME>";
    fs::write(&path, pages(5, 8, text)).unwrap();
    assert_eq!(read(&path, 8), all(3));
    assert!(open(&path, 0).warnings().any(|text| text.starts_with("2 pages that are not of")));
}

/// Tifffile states shape and axes, the slowest first. Unknown axes count as times.
#[test]
fn shapes_of_tifffile_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tif");
    for axes in ["ZCT", "ZTC", "CZT", "CTZ", "TZC", "TCZ"] {
        for sizes in all_sizes().step_by(3).filter(|sizes| sizes[0] > 1) {
            let slow_first: Vec<char> = axes.chars().rev().collect();
            let shape: Vec<String> = slow_first
                .iter()
                .map(|&axis| sizes["ZCT".find(axis).unwrap()].to_string())
                .collect();
            for time in ['T', 'Q', 't'] {
                let letters: String =
                    slow_first.iter().map(|&axis| if axis == 'T' { time } else { axis }).collect();
                let text = format!(
                    "{{\"shape\": [{}, 2, 2], \"axes\": \"{letters}YX\"}}",
                    shape.join(", ")
                );
                fs::write(&path, pages(sizes.iter().product(), 8, &text)).unwrap();
                assert_eq!(read(&path, 8), volumes_of(axes, sizes), "{text}");
            }
        }
    }
}

/// Slices may be as far apart as the description says, in its unit, whatever the unit of pixels.
#[test]
fn spacings_of_stacks_are_those_of_their_descriptions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.tif");
    let near = |found: [f64; 3], expected: [f64; 3]| {
        (0..3).all(|i| (found[i] - expected[i]).abs() < 1e-9 * expected[i].abs().max(1.0))
    };
    let write = |description: &str, resolution: Option<(u32, u16)>| {
        let mut all = vec![TiffPage::flat([2, 2], 1); 3];
        let first = all[0].clone().described(description);
        all[0] = resolution.map_or(first.clone(), |(pixels, unit)| first.resolution(pixels, unit));
        fs::write(&path, tiff(&all)).unwrap();
        let file = open(&path, 0);
        file.placement
            .clone()
            .map(|placement| (placement.spacing(), placement.unit, placement.first))
    };
    let imagej = |lines: &str| format!("ImageJ=1.53q\nimages=3\nslices=3\n{lines}");
    for (lines, resolution, spacing, unit) in [
        ("spacing=2.5\nunit=mm\n", Some((4, 1)), [0.25, 0.25, 2.5], Some("mm")),
        ("spacing=-2.5\nunit=mm\n", Some((4, 1)), [0.25, 0.25, 2.5], Some("mm")),
        ("unit=mm\n", Some((4, 1)), [0.25, 0.25, 1.0], Some("mm")),
        ("spacing=2.5\nunit=um\n", Some((4, 1)), [0.25, 0.25, 2.5], Some("um")),
        // Per centimetre: 40 pixels are 250 um apart.
        ("spacing=2.5\nunit=um\n", Some((40, 3)), [250.0, 250.0, 2.5], Some("um")),
        ("spacing=2.5\n", Some((40, 3)), [0.025, 0.025, 2.5], Some("cm")),
        ("spacing=2.5\n", None, [1.0, 1.0, 2.5], None),
        // Each axis with its own unit is converted to the first.
        ("spacing=2.5\nunit=mm\nzunit=cm\n", Some((4, 1)), [0.25, 0.25, 25.0], Some("mm")),
        ("spacing=2.5\nunit=mm\nyunit=cm\n", Some((4, 1)), [0.25, 2.5, 2.5], Some("mm")),
    ] {
        let (found, found_unit, _) = write(&imagej(lines), resolution).unwrap();
        assert!(
            near(found, spacing) && found_unit.as_deref() == unit,
            "{lines}: {found:?} {found_unit:?}"
        );
    }
    // Origins are in samples, and lie inside: the first sample is before them.
    let (_, _, first) =
        write(&imagej("spacing=2\nunit=mm\nxorigin=3\nyorigin=-1\nzorigin=4\n"), Some((4, 1)))
            .unwrap();
    assert!(near(first, [-0.75, 0.25, -8.0]), "{first:?}");
    assert!(write(&imagej("spacing=0\n"), None).is_none());
    // OME-XML: missing lengths are those of x, else of the first that is known. Without a unit, they are micrometres.
    let ome = |lengths: &str| {
        format!("<OME><Image><Pixels SizeZ=\"3\" SizeC=\"1\" SizeT=\"1\" {lengths}/></Image></OME>")
    };
    for (lengths, spacing, unit) in [
        ("PhysicalSizeX=\"2\" PhysicalSizeY=\"3\" PhysicalSizeZ=\"4\"", [2.0, 3.0, 4.0], "um"),
        ("PhysicalSizeX=\"2\" PhysicalSizeY=\"3\"", [2.0, 3.0, 2.0], "um"),
        ("PhysicalSizeX=\"2\"", [2.0; 3], "um"),
        ("PhysicalSizeY=\"3\" PhysicalSizeZ=\"4\"", [3.0, 3.0, 4.0], "um"),
        ("PhysicalSizeZ=\"4\" PhysicalSizeZUnit=\"mm\"", [4.0; 3], "mm"),
        (
            "PhysicalSizeX=\"2\" PhysicalSizeXUnit=\"mm\" PhysicalSizeY=\"3\" PhysicalSizeYUnit=\"mm\"",
            [2.0, 3.0, 2.0],
            "mm",
        ),
        (
            "PhysicalSizeX=\"2\" PhysicalSizeXUnit=\"mm\" PhysicalSizeY=\"3\" PhysicalSizeYUnit=\"mm\" \
             PhysicalSizeZ=\"4\" PhysicalSizeZUnit=\"cm\"",
            [2.0, 3.0, 40.0],
            "mm",
        ),
    ] {
        let (found, found_unit, _) = write(&ome(lengths), None).unwrap();
        assert!(
            near(found, spacing) && found_unit.as_deref() == Some(unit),
            "{lengths}: {found:?} {found_unit:?}"
        );
    }
    for wrong in [
        "PhysicalSizeX=\"0\"",
        "PhysicalSizeX=\"-2\"",
        "PhysicalSizeX=\"inf\"",
        "PhysicalSizeX=\"x\"",
        "",
    ] {
        assert!(write(&ome(wrong), None).is_none(), "{wrong}");
    }
    // Tifffile, and no description: inches and centimetres are lengths, other resolutions are not.
    let json = r#"{"shape": [3, 2, 2], "axes": "ZYX", "spacing": 2.5, "unit": "mm"}"#;
    for (text, resolution, spacing, unit) in [
        (json, (4, 1), [0.25, 0.25, 2.5], "mm"),
        // Slices are stated in another unit than pixels.
        (json, (4, 3), [2.5, 2.5, 2.5], "mm"),
        ("", (4, 3), [2.5; 3], "mm"),
        ("", (254, 2), [0.1; 3], "mm"),
    ] {
        let (found, found_unit, _) = write(text, Some(resolution)).unwrap();
        assert!(
            near(found, spacing) && found_unit.as_deref() == Some(unit),
            "{text}: {found:?} {found_unit:?}"
        );
    }
    assert!(write("", Some((4, 1))).is_none());
}
