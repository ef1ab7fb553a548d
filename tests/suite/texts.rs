//! Text and attributes of image files: kept if the output format can store them, otherwise reported.
//! `fixtures/images/texts.py` wrote the files.

use std::{
    fs,
    io::{BufReader, Cursor, Read},
    path::Path,
};

use exr::meta::{MetaData, attribute::AttributeValue};
use gpuproc::{
    data::image::{DensityUnit, StackDescription, Text},
    io::{
        Sink,
        image::{Encoding, ImageFormat, ImageTarget},
    },
    util::timings::Timings,
};

use crate::{
    asserts::assert_near,
    common::{output_of, run, works},
    inputs::{fixture, load_image, png_chunk, zlib},
};

/// Keywords and texts of an image, in order.
fn texts(path: impl AsRef<Path>) -> Vec<(String, String)> {
    load_image(path).metadata.texts.into_iter().map(|text| (text.keyword, text.text)).collect()
}

fn blurred(folder: &Path, input: &str, output: &str) -> String {
    works(folder, &format!("blur {} {output} --sigma 0", fixture("images").join(input).display()))
}

fn pair(keyword: &str, text: &str) -> (String, String) {
    (keyword.into(), text.into())
}

/// The texts of a PNG file as the png crate reads them.
fn png_texts(path: &Path) -> Vec<(String, String)> {
    let mut reader =
        png::Decoder::new(BufReader::new(fs::File::open(path).unwrap())).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    reader.finish().unwrap();
    let info = reader.info();
    let latin = info.uncompressed_latin1_text.iter();
    let mut found: Vec<(String, String)> =
        latin.map(|text| (text.keyword.clone(), text.text.clone())).collect();
    found.extend(info.utf8_text.iter().map(|t| (t.keyword.clone(), t.get_text().unwrap())));
    found.sort();
    found
}

#[test]
fn png_text_is_kept_or_reported_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let long = "so long a text ".repeat(40);
    let all = [
        pair("Title", "\u{c4} title"),
        pair("Author", "Jane"),
        pair("Description", &long),
        pair("Comment", "\u{65e5}\u{672c}\u{8a9e}"),
        pair("Software", "Pillow"),
        pair("Camera lens", "50 mm"),
        pair("Source", "a scanner"),
    ];
    assert_eq!(texts(fixture("images/texts.png")), all);
    assert_eq!(blurred(folder, "texts.png", "o.png"), "");
    let mut sorted = all.to_vec();
    sorted.sort();
    assert_eq!(png_texts(&folder.join("o.png")), sorted);
    // Text is also kept if the image is blurred in blocks.
    let input = fixture("images/texts.png");
    works(folder, &format!("blur {} o.png --sigma 0 --max-memory 3k", input.display()));
    assert_eq!(png_texts(&folder.join("o.png")), sorted);
    let strict = format!("blur {} o.png --sigma 0 --strict", input.display());
    assert_eq!(run(folder, &strict).0, 0);
    let info = png::Decoder::new(Cursor::new(fs::read(folder.join("o.png")).unwrap()));
    let gamma = info.read_info().unwrap().info().gamma().unwrap();
    assert_eq!(gamma.into_scaled(), 100_000);

    let colours = "colour chunks of PNG (cICP, gAMA, cHRM) are dropped";
    for (output, lost, kept) in [
        ("o.jpg", "the texts Title, Author and 2 more are dropped", Some("Comment")),
        ("o.tif", "the texts Camera lens and Source are dropped", None),
        ("o.gif", "the texts Title, Author and 2 more are dropped", Some("Comment")),
        ("o.webp", "the texts Title, Author and 4 more are dropped", None),
        ("o.bmp", "the texts Title, Author and 4 more are dropped", None),
        ("o.exr", colours, Some("Author")),
    ] {
        let stderr = blurred(folder, "texts.png", output);
        assert!(stderr.contains(lost) && stderr.contains(colours), "{output}: {stderr}");
        let line = format!("blur {} {output} --sigma 0 --strict", input.display());
        assert_eq!(run(folder, &line).0, 4, "{output}");
        if let Some(kept) = kept {
            let found = texts(folder.join(output));
            assert!(found.iter().any(|(keyword, _)| keyword == kept), "{output}: {found:?}");
        }
    }
    let found = texts(folder.join("o.jpg"));
    assert_eq!(found, [pair("Comment", &long), pair("Comment", &all[3].1)]);
    let mut tiff =
        tiff::decoder::Decoder::new(BufReader::new(fs::File::open(folder.join("o.tif")).unwrap()))
            .unwrap();
    for (tag, wanted) in [(269, "\u{c4} title"), (315, "Jane"), (305, "Pillow")] {
        let found = tiff.get_tag_ascii_string(tiff::tags::Tag::Unknown(tag)).unwrap();
        assert_eq!(found, wanted, "{tag}");
    }
    let found = tiff.get_tag_ascii_string(tiff::tags::Tag::ImageDescription).unwrap();
    assert_eq!(found, format!("{long}\n{}", all[3].1));
}

#[test]
fn converts_comments_between_formats() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let comment = "says d\u{e9}j\u{e0} vu";
    for input in ["comment.jpg", "comment.gif"] {
        assert_eq!(texts(fixture("images").join(input)), [pair("Comment", comment)], "{input}");
        for output in ["o.jpg", "o.png", "o.gif", "o.exr"] {
            let stderr = blurred(folder, input, output);
            assert!(!stderr.contains("text"), "{input} {output}: {stderr}");
            assert_eq!(texts(folder.join(output)), [pair("Comment", comment)], "{input} {output}");
        }
        blurred(folder, input, "o.tif");
        works(folder, "blur o.tif again.jpg --sigma 0 --strict");
        let info = output_of(folder, "info again.jpg");
        assert!(info.contains(&format!("description  {comment}")), "{info}");
        let stderr = blurred(folder, input, "o.webp");
        assert!(stderr.contains("the text Comment is dropped"), "{stderr}");
    }
}

/// Comments of PNM files are in the header, where netpbm, ImageMagick and GIMP write them.
#[test]
fn pnm_comments_are_kept_or_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let comment = "says d\u{e9}j\u{e0} vu\n2 300";
    let comments = "# says d\u{e9}j\u{e0} vu\n#2 300\n";
    for (name, before, after, samples) in [
        ("a.pgm", "P5\n", "2 1\n255\n", &b"# "[..]),
        ("b.pgm", "P2 2\n", "1 255\n", b"35 32\n"),
        ("c.ppm", "P6 2 1 ", "255\n", b"######"),
        ("d.pbm", "P1 ", "\t2 1\n", b"1 0\n"),
        (
            "e.pam",
            "P7\nWIDTH 2\nHEIGHT 1\n",
            "DEPTH 1\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\n",
            b"#\n",
        ),
    ] {
        let file = [before.as_bytes(), comments.as_bytes(), after.as_bytes(), samples].concat();
        fs::write(folder.join(name), file).unwrap();
        assert_eq!(texts(folder.join(name)), [pair("Comment", comment)], "{name}");
        for output in ["o.pnm", "o.png", "o.jpg"] {
            works(folder, &format!("blur {name} {output} --sigma 0 --strict"));
            assert_eq!(texts(folder.join(output)), [pair("Comment", comment)], "{name} {output}");
        }
        let stderr = works(folder, &format!("blur {name} o.bmp --sigma 0"));
        assert!(stderr.contains("the text Comment is dropped"), "{stderr}");
    }
    // Images with alpha are written as PAM, which has another header.
    fs::write(folder.join("f.png"), png_with(&[(b"tEXt", b"Comment\0one\ntwo".to_vec())])).unwrap();
    works(folder, "blur f.png o.ppm --sigma 0 --strict");
    assert!(fs::read(folder.join("o.ppm")).unwrap().starts_with(b"P5\n# one\n# two\n1 1\n255\n"));
    works(folder, &format!("blur {} o.pam --sigma 0", fixture("images/clear.gif").display()));
    assert!(fs::read(folder.join("o.pam")).unwrap().starts_with(b"P7"));
    let long = [b"P5\n".to_vec(), b"# so long\n".repeat(20_000), b"1 1 255\n7".to_vec()].concat();
    fs::write(folder.join("long.pgm"), long).unwrap();
    let stderr = works(folder, "blur long.pgm o.png --sigma 0");
    assert!(stderr.contains("the text Comment of 6") && stderr.contains("left out"), "{stderr}");
    // A sample with the value of `#` is not a comment. A comment without an end is an error.
    for (bytes, name) in [(&b"P5 1 1 255\n#"[..], "g.pgm"), (b"P5 # 1 1 255", "h.pgm")] {
        fs::write(folder.join(name), bytes).unwrap();
    }
    assert_eq!(texts(folder.join("g.pgm")), []);
    assert_eq!(run(folder, "blur h.pgm o.png").0, 4);
}

/// The header of a file as the exr crate reads it.
fn exr_header(path: &Path) -> exr::meta::header::Header {
    // Reading the pixels also validates the offset table.
    let image = exr::prelude::read_first_rgba_layer_from_file(
        path,
        |_, _| (),
        |(), _, _: (f32, f32, f32, f32)| {},
    );
    image.unwrap();
    MetaData::read_from_file(path, true).unwrap().headers[0].clone()
}

#[test]
fn keeps_exr_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let input = fixture("images/attributes.exr");
    let density = load_image(&input).metadata.density.unwrap();
    assert_eq!((density.pixels, density.unit), ([300.0, 600.0], DensityUnit::Inch));
    let before = exr_header(&input);
    let stderr = works(folder, &format!("blur {} o.exr --sigma 0 --strict", input.display()));
    assert_eq!(stderr, "");
    let after = exr_header(&folder.join("o.exr"));
    let (shared, attributes) = (&after.shared_attributes, &after.own_attributes);
    assert_eq!(shared.chromaticities, before.shared_attributes.chromaticities);
    assert!(shared.chromaticities.is_some());
    assert_eq!(shared.pixel_aspect, 2.0);
    assert_eq!(attributes.horizontal_density, Some(300.0));
    assert_eq!(attributes.comments, before.own_attributes.comments);
    assert_eq!(attributes.comments.as_ref().unwrap().to_string(), "lit by two lamps");
    assert_eq!(attributes.owner, before.own_attributes.owner);
    assert_eq!((attributes.exposure, attributes.capture_date.is_some()), (Some(0.25), true));
    let long =
        attributes.other.iter().find(|(name, _)| name.to_string().starts_with("an attribute"));
    assert_eq!(long.unwrap().1, &AttributeValue::Text("long".into()));
    assert_eq!(load_image(folder.join("o.exr")).samples, load_image(&input).samples);
    // In other formats, texts are kept and other attributes are reported.
    let stderr = works(folder, &format!("blur {} o.png --sigma 0", input.display()));
    assert!(stderr.contains("attributes of OpenEXR are dropped"), "{stderr}");
    let found = texts(folder.join("o.png"));
    assert!(found.contains(&pair("Comment", "lit by two lamps")), "{found:?}");
    assert!(found.contains(&pair("Copyright", "Jane")), "{found:?}");
    // PNG stores the density in whole pixels per metre.
    let density = load_image(folder.join("o.png")).metadata.density.unwrap();
    assert_near(density.pixels[1] / density.pixels[0], 2.0, 1e-3);
}

/// A PNG file of one pixel with additional chunks.
fn png_with(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(png_chunk(b"IHDR", &[0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]));
    for (name, data) in chunks {
        file.extend(png_chunk(name, data));
    }
    file.extend(png_chunk(b"IDAT", &zlib(&[0, 7])));
    file.extend(png_chunk(b"IEND", &[]));
    file
}

#[test]
fn malformed_and_long_text_chunks_are_bounded_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ztxt = |text: &[u8]| [b"Comment\0\0".to_vec(), zlib(text)].concat();
    let bomb = ztxt(&vec![b' '; 50 << 20]);
    let many: Vec<(&[u8; 4], Vec<u8>)> =
        (0..2000).map(|_| (b"zTXt", ztxt(&[b'a'; 60_000]))).collect();
    for (name, chunks, message) in [
        (
            "bomb",
            vec![(b"zTXt", bomb)],
            "the text Comment that cannot be read, or is too long, is left out",
        ),
        ("many", many, "the text Comment of 60000 bytes is left out"),
        (
            "broken",
            vec![(b"zTXt", b"Comment\0\0no zlib".to_vec())],
            "the text Comment that cannot be read",
        ),
        (
            "nameless",
            vec![(b"tEXt", b"no end of a keyword".to_vec())],
            "a text that cannot be read is left out",
        ),
        (
            "long",
            vec![(b"tEXt", [b"Comment\0".to_vec(), vec![b'x'; 70_000]].concat())],
            "the text Comment",
        ),
        (
            "XMP",
            vec![(b"iTXt", b"XML:com.adobe.xmp\0\x01\0\0\0no zlib".to_vec())],
            "XMP that cannot be read",
        ),
    ] {
        fs::write(folder.join("in.png"), png_with(&chunks)).unwrap();
        let stderr = works(folder, "blur in.png o.png --sigma 0");
        assert!(stderr.contains(message), "{name}: {stderr}");
        assert!(stderr.len() < 8000, "{name}: {stderr}");
        let kept: usize = texts(folder.join("o.png")).iter().map(|(_, text)| text.len()).sum();
        assert!(kept <= 1 << 20, "{name}: {kept}");
        assert_eq!(run(folder, "blur in.png o.png --sigma 0 --strict").0, 4, "{name}");
    }
    // Text with the name of a standard EXR attribute is dropped.
    let text = |keyword: &str| [keyword.as_bytes(), b"\0text"].concat();
    let chunks = ["channels", "dataWindow", "name"].map(|name| (b"tEXt", text(name)));
    fs::write(folder.join("in.png"), png_with(&chunks)).unwrap();
    let stderr = works(folder, "blur in.png o.exr --sigma 0");
    assert!(stderr.contains("the texts channels, dataWindow and 1 more are dropped"), "{stderr}");
    assert_eq!(load_image(folder.join("o.exr")).width, 1);
}

#[test]
fn rejects_keywords_that_the_format_does_not_allow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.png");
    fs::write(&path, png_with(&[])).unwrap();
    let mut image = load_image(&path);
    let (long, longer) = ("k".repeat(80), "k".repeat(256));
    for (keyword, in_png, in_exr) in [
        ("lens", true, true),
        ("two  blanks", false, true),
        (long.as_str(), false, true),
        (longer.as_str(), false, false),
        ("dataWindow", true, false),
        ("", false, false),
    ] {
        image.metadata.texts = vec![Text { keyword: keyword.into(), text: "text".into() }];
        for (format, is_held) in [(ImageFormat::Png, in_png), (ImageFormat::OpenExr, in_exr)] {
            let (sink, timings) = (Sink::File("o".into()), Timings::new(false));
            let mut target = ImageTarget::new(&sink, format, Encoding::default(), &timings);
            target.strict = true;
            assert_eq!(target.check(&image).is_ok(), is_held, "{keyword} {format:?}");
        }
    }
}

/// ImageJ and OME descriptions of a stack are kept with any selection of pages, or reported as lost.
#[test]
fn stacks_keep_their_spacing_with_selected_pages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let description_in = |output: &str| -> Option<StackDescription> {
        load_image(folder.join(output)).metadata.pages
    };
    let imagej = fixture("tiff/stack_imagej.tif").display().to_string();
    let original = load_image(&imagej).metadata;
    let spacing =
        |text: &str| text.lines().find_map(|line| line.strip_prefix("spacing=").map(str::to_owned));
    let wanted = spacing(&original.pages.as_ref().unwrap().text);
    assert!(wanted.is_some());
    let count = original.pages.unwrap().pages;
    for (flags, pages) in [(" --pages", count), (" --page 2..", count - 1), (" --page 2..3", 2)] {
        assert_eq!(works(folder, &format!("blur {imagej} o.tif --sigma 0 --strict{flags}")), "");
        let found = description_in("o.tif").unwrap();
        assert_eq!((found.pages, spacing(&found.text)), (pages, wanted.clone()), "{flags}");
        assert!(found.text.contains(&format!("images={pages}\n")), "{}", found.text);
        assert_eq!(load_image(folder.join("o.tif")).metadata.density, original.density, "{flags}");
        let stderr = works(folder, &format!("blur {imagej} o.png --sigma 0{flags}"));
        assert!(stderr.contains("the slice spacing is dropped"), "{flags}: {stderr}");
    }
    // A single page has no slice spacing, but keeps the pixel size.
    works(folder, &format!("blur {imagej} o.tif --sigma 0 --strict --page 2"));
    let found = load_image(folder.join("o.tif")).metadata;
    assert_eq!((found.pages, found.density), (None, original.density));

    let ome = fixture("tiff/stack.ome.tif").display().to_string();
    let original = load_image(&ome).metadata;
    assert_eq!(works(folder, &format!("blur {ome} o.tif --sigma 0 --strict --pages")), "");
    assert_eq!(description_in("o.tif"), original.pages);
    for (output, flags) in [("o.tif", " --page 2.."), ("o.tif", " --page 2"), ("o.png", " --pages")]
    {
        let stderr = works(folder, &format!("blur {ome} {output} --sigma 0{flags}"));
        assert!(stderr.contains("OME-XML is dropped"), "{output}{flags}: {stderr}");
        let density = load_image(folder.join(output)).metadata.density.unwrap();
        let [found, wanted] = [density, original.density.unwrap()]
            .map(|d| d.per(DensityUnit::Centimetre).unwrap()[0]);
        assert!((found / wanted - 1.0).abs() < 1e-3, "{output}{flags}: {found} {wanted}");
    }
    let mut bytes = Vec::new();
    fs::File::open(folder.join("o.png")).unwrap().read_to_end(&mut bytes).unwrap();
    assert!(!bytes.windows(4).any(|found| found == b"<OME"));
}

#[test]
fn reports_dropped_mpf_images_and_keeps_the_exif_resolution() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let jpeg = fs::read(fixture("images/comment.jpg")).unwrap();
    // A multi-picture index (CIPA DC-007): a directory with the number of images.
    let mut body = b"MPF\0II*\0\x08\0\0\0\x01\0\x01\xb0\x04\0\x01\0\0\0\x02\0\0\0\0\0\0\0".to_vec();
    let segment = |body: &[u8]| {
        let len = (body.len() as u16 + 2).to_be_bytes();
        [&jpeg[..2], &[0xff, 0xe2], &len, body, &jpeg[2..]].concat()
    };
    fs::write(folder.join("two.jpg"), segment(&body)).unwrap();
    body[22] = 1;
    fs::write(folder.join("one.jpg"), segment(&body)).unwrap();
    let loss = "further images in the file (MPF) are dropped";
    let stderr = works(folder, "blur two.jpg o.jpg --sigma 0");
    assert!(stderr.contains(loss), "{stderr}");
    assert_eq!(works(folder, "blur one.jpg o.jpg --sigma 0"), "");
    assert_eq!(works(folder, "histogram two.jpg --strict -o h.csv"), "");
    // A resolution that is only in EXIF is also written to the native fields of the output format.
    let exif = b"Exif\0\0II*\0\x08\0\0\0\x02\0\
        \x1a\x01\x05\0\x01\0\0\0\x26\0\0\0\x28\x01\x03\0\x01\0\0\0\x02\0\0\0\0\0\0\0\
        \x2c\x01\0\0\x01\0\0\0";
    let len = (exif.len() as u16 + 2).to_be_bytes();
    let with_exif = [&jpeg[..2], &[0xff, 0xe1], &len, &exif[..], &jpeg[2..]].concat();
    fs::write(folder.join("exif.jpg"), with_exif).unwrap();
    for output in ["o.png", "o.jpg", "o.tif", "o.bmp"] {
        works(folder, &format!("blur exif.jpg {output} --sigma 0"));
        let density = load_image(folder.join(output)).metadata.density.unwrap();
        let per_inch = density.per(DensityUnit::Inch).unwrap()[0];
        assert!((per_inch - 300.0).abs() < 0.1, "{output}: {per_inch}");
    }
}
