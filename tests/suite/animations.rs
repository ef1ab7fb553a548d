//! Animations in GIF, APNG and WebP.

use std::fs;

use gpuproc::{
    data::{
        image::{Image, Metadata},
        samples::Samples,
    },
    io::{
        Limits, Sink, Source,
        image::{Encoding, ImageFile, ImageFormat, ImageTarget, Series, read_image},
    },
    util::timings::Timings,
};

use crate::{
    asserts::assert_absent,
    inputs::png_chunk,
    pages::{folder, image_source, pages, run},
};

/// CRC-32 of the pixels as RGBA. Fully transparent pixels count as 0.
pub fn checksum(image: &Image) -> u32 {
    let Samples::U8(samples) = &image.samples else { panic!("expected u8 samples") };
    let rgba = samples.chunks_exact(image.channels).flat_map(|pixel| match *pixel {
        [grey] => [grey, grey, grey, 255],
        [_, 0] | [_, _, _, 0] => [0; 4],
        [grey, alpha] => [grey, grey, grey, alpha],
        [r, g, b] => [r, g, b, 255],
        [r, g, b, a] => [r, g, b, a],
        _ => unreachable!("one to four channels"),
    });
    crc32fast::hash(&rgba.collect::<Vec<_>>())
}

/// Name, channels, number of plays, delays in milliseconds, and checksums of the frames.
type AnimationCase = (&'static str, usize, u32, &'static [u32], &'static [u32]);

/// Frames as Pillow 13 composes them.
pub const ANIMATIONS: [AnimationCase; 7] = [
    (
        "animation.png",
        4,
        3,
        &[50, 100, 30, 500, 70],
        &[0xed57512c, 0xbdb2c2e3, 0x2c76c107, 0x94d331ca, 0x9ad49452],
    ),
    // Pillow also counts the still picture that replaces the animation.
    ("still.png", 3, 0, &[40, 40, 40, 40], &[0x7a0ff1ea, 0x444ebeb4, 0x8f19e7b, 0x60bd77e1]),
    (
        "animation.webp",
        4,
        4,
        &[50, 100, 30, 500, 70],
        &[0x254af15, 0x54dc87b6, 0xf590ab0f, 0xead608ca, 0xb21bf015],
    ),
    (
        "opaque.webp",
        3,
        0,
        &[40, 40, 40, 40, 40],
        &[0x4f69ac39, 0x7a0ff1ea, 0x444ebeb4, 0x8f19e7b, 0x60bd77e1],
    ),
    (
        "clear.gif",
        4,
        3,
        &[50, 100, 30, 500, 70],
        &[0xed57512c, 0xc3deec78, 0x2c76c107, 0x94d331ca, 0x6a4d56b],
    ),
    (
        "opaque.gif",
        3,
        0,
        &[50, 100, 30, 500, 70],
        &[0x4f69ac39, 0x7a0ff1ea, 0x444ebeb4, 0x8f19e7b, 0x60bd77e1],
    ),
    // Composed by ImageMagick, since Pillow clears to another colour.
    (
        "mixed.gif",
        4,
        0,
        &[70, 70, 70, 70, 70],
        &[0x4f69ac39, 0xe4e35e34, 0x64c997cf, 0xf03dbf50, 0x647143d9],
    ),
];

#[test]
fn frames_equal_those_of_pillow() {
    for (name, channels, plays, milliseconds, checksums) in ANIMATIONS {
        let (images, animation) = pages(&image_source(name));
        assert!(images.iter().all(|image| image.channels == channels), "{name}");
        let found: Vec<u32> = images.iter().map(checksum).collect();
        assert_eq!(found, checksums, "{name}");
        let animation = animation.expect(name);
        assert_eq!(animation.plays, plays, "{name}");
        let delays = animation.delays.iter().map(|delay| delay.in_units(1000, u32::MAX));
        assert_eq!(delays.collect::<Vec<_>>(), milliseconds, "{name}");
    }
}

/// Frames that are decoded one by one from the last to the first equal those decoded in order.
#[test]
fn decodes_frames_in_any_order() {
    for (name, _, _, _, checksums) in ANIMATIONS {
        let (source, timings) = (image_source(name), Timings::new(false));
        let file = ImageFile::read(&source, Limits::from(1 << 30), &timings).unwrap();
        let mut pages = file.pages(&timings).unwrap();
        for page in (0..pages.count()).rev() {
            assert_eq!(checksum(&pages.decode(page, &timings).unwrap()), checksums[page], "{name}");
        }
    }
}

/// All three formats keep frames, delays and the number of plays. The fixtures have at most 256 colours, but GIF cannot
/// store the partial transparency of animation.webp.
#[test]
fn converts_animations_between_formats() {
    let names: Vec<&str> = ANIMATIONS.iter().map(|animation| animation.0).collect();
    let folder = folder(&names);
    for (name, _, plays, milliseconds, checksums) in ANIMATIONS {
        for format in ["png", "webp", "gif"] {
            let output = format!("o.{format}");
            run(folder.path(), &["blur", name, &output, "--sigma", "0", "-q"]).success();
            let (images, animation) = pages(&Source::from(folder.path().join(&output)));
            let animation = animation.expect(name);
            assert_eq!(animation.plays, plays, "{name} {format}");
            let delays = animation.delays.iter().map(|delay| delay.in_units(1000, u32::MAX));
            assert_eq!(delays.collect::<Vec<_>>(), milliseconds, "{name} {format}");
            if (name, format) != ("animation.webp", "gif") {
                let found: Vec<u32> = images.iter().map(checksum).collect();
                assert_eq!(found, checksums, "{name} {format}");
            }
        }
    }
}

/// An animation has alpha if any of its frames has.
#[test]
fn writes_frames_with_and_without_alpha_to_one_animation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("o.webp");
    let (sink, timings) = (Sink::File(path.clone()), Timings::new(false));
    let target = ImageTarget::new(&sink, ImageFormat::WebP, Encoding::default(), &timings);
    let image = |channels, samples| Image {
        width: 2,
        height: 1,
        channels,
        samples: Samples::U8(samples),
        is_linear: false,
        metadata: Metadata::default(),
    };
    let images = [image(2, vec![10, 0, 20, 255]), image(3, vec![77; 6])];
    let series = Series { count: 2, sample_bytes: 0, animation: None };
    target
        .encode_pages(series, |writer| {
            images.iter().try_for_each(|image| writer.page(image.clone()))
        })
        .and_then(gpuproc::io::Finished::commit)
        .unwrap();
    let (found, _) = pages(&Source::from(path));
    let found: Vec<u32> = found.iter().map(checksum).collect();
    assert_eq!(found, images.each_ref().map(checksum));
}

/// Exit code 4: trying again does not help.
#[test]
fn images_too_wide_for_gif_are_bad_input() {
    let folder = folder(&[]);
    let wide = image::GrayImage::from_pixel(65_536, 1, image::Luma([7]));
    wide.save(folder.path().join("wide.png")).unwrap();
    run(folder.path(), &["blur", "wide.png", "wide.gif", "--sigma", "0"])
        .code(4)
        .stderr("error: cannot encode wide.gif: GIF images have at most 65,535 pixels per side; write .png or .tif\n");
    assert_absent(folder.path().join("wide.gif"));
}

/// An image with at most 256 colours is lossless in GIF.
#[test]
fn gif_keeps_up_to_256_colours() {
    let folder = tempfile::tempdir().unwrap();
    for (count, code) in [(256, 0), (257, 4)] {
        let picture = image::RgbImage::from_fn(count, 2, |x, y| {
            image::Rgb([
                x as u8,
                (x >> 8) as u8,
                if x < 256 { (x as u8).wrapping_mul(7) } else { y as u8 },
            ])
        });
        picture.save(folder.path().join("in.png")).unwrap();
        let assert = run(folder.path(), &["blur", "in.png", "o.gif", "--sigma", "0", "--strict"]);
        let output = assert.code(code);
        let stderr = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
        assert_eq!(stderr.contains("colours are reduced to 256 per page"), code == 4, "{stderr}");
        if code == 0 {
            let source = Source::from(folder.path().join("o.gif"));
            let found = read_image(&source, 1 << 30, &Timings::new(false)).unwrap();
            assert!(found.samples.as_bytes() == picture.as_raw().as_slice());
        }
    }
}

/// An animated PNG with one frame and a separate still image for programs without animation support.
#[test]
fn shows_the_single_frame_of_an_animation_with_a_still_image() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let rows = |grey: u8, [width, height]: [usize; 2]| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        let row = [vec![0], vec![grey; width]].concat();
        (0..height).for_each(|_| std::io::Write::write_all(&mut encoder, &row).unwrap());
        encoder.finish().unwrap()
    };
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let control = |number: u32, size: [u32; 2], at: [u32; 2]| {
        let head = words(&[number, size[0], size[1], at[0], at[1]]);
        png_chunk(b"fcTL", &[&head[..], &[0, 1, 0, 10, 0, 0]].concat())
    };
    let start = [
        &b"\x89PNG\r\n\x1a\n"[..],
        &png_chunk(b"IHDR", &[&words(&[4, 3])[..], &[8, 0, 0, 0, 0]].concat()),
        &png_chunk(b"acTL", &words(&[1, 0])),
    ]
    .concat();
    let still = png_chunk(b"IDAT", &rows(10, [4, 3]));
    let frame = |size: [u32; 2], at: [u32; 2]| {
        let data = [&words(&[1])[..], &rows(200, size.map(|side| side as usize))].concat();
        [control(0, size, at), png_chunk(b"fdAT", &data)].concat()
    };
    let end = png_chunk(b"IEND", &[]);
    let write = |parts: &[&[u8]]| fs::write(folder.join("a.png"), parts.concat()).unwrap();
    let message = "the still image for viewers without animation is left out";
    let blur_and_decode = |says: &str| {
        let done = run(folder, &["blur", "a.png", "o.png", "--sigma", "0"]).success();
        let stderr = String::from_utf8(done.get_output().stderr.clone()).unwrap();
        assert!(
            if says.is_empty() { stderr.is_empty() } else { stderr.contains(says) },
            "{stderr}"
        );
        image::open(folder.join("o.png")).unwrap()
    };
    write(&[&start, &still, &frame([4, 3], [0, 0]), &end]);
    assert_eq!(blur_and_decode(message).into_luma8().into_raw(), [200; 12]);
    let counted = run(folder, &["histogram", "a.png", "-o", "h.csv"]).success();
    let stderr = String::from_utf8(counted.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains(message), "{stderr}");
    let output = run(folder, &["info", "a.png"]).success().get_output().stdout.clone();
    let words_of =
        String::from_utf8(output).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words_of.contains("animation 1 frame in 0.1 s, forever"), "{words_of}");
    // The frame covers part of the canvas; the rest is transparent.
    write(&[&start, &still, &frame([2, 1], [1, 2]), &end]);
    let pixels = blur_and_decode(message).into_luma_alpha8();
    let expected = |x: u32, y: u32| if y == 2 && (1..3).contains(&x) { [200, 255] } else { [0, 0] };
    assert!(pixels.enumerate_pixels().all(|(x, y, pixel)| pixel.0 == expected(x, y)));
    // The still image is the frame.
    write(&[&start, &control(0, [4, 3], [0, 0]), &still, &end]);
    assert_eq!(blur_and_decode("").into_luma8().into_raw(), [10; 12]);
}
