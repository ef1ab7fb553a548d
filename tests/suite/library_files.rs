//! Files of the public API: what it writes is read by other programs' rules, and what it reads is what was written.

use std::{fs, path::Path};

use gpuproc::{
    Channels, Content, Device, ErrorKind, Image, Mesh, ReadOptions, Result, Sample, SampleType,
    Volume, WriteOptions, mesh, read, write,
};
use tempfile::{TempDir, tempdir};

use crate::common::Noise;

/// Samples of a type, all different from their neighbours.
fn samples<T: Sample>(count: usize, sample: impl Fn(u16) -> T) -> Vec<T> {
    Noise(3).bytes(2 * count).as_chunks().0.iter().map(|&b| sample(u16::from_le_bytes(b))).collect()
}

/// Writes a volume to each format that holds its type, and compares what is read.
fn assert_kept<T: Sample + PartialEq + std::fmt::Debug>(
    folder: &TempDir,
    sample_type: SampleType,
    sample: impl Fn(u16) -> T,
) {
    let volume = Volume::new([5, 4, 3], samples(60, sample)).unwrap();
    for name in ["a.nii", "a.nii.gz", "a.nrrd", "a.mha", "a.npy", "a.zarr"] {
        let path = folder.path().join(name);
        write(&path, &volume).unwrap();
        let content = read(&path).unwrap();
        let found = (content.is_volume(), content.dims(), content.channels());
        assert_eq!(found, (true, [5, 4, 3], 1), "{name}");
        assert_eq!(content.sample_type(), sample_type, "{name}");
        assert_eq!(content.into_volume::<T>().unwrap(), volume, "{name} {sample_type}");
    }
}

#[test]
fn volumes_of_all_types_are_kept() {
    let folder = tempdir().unwrap();
    assert_kept(&folder, SampleType::U8, |v| v as u8);
    assert_kept(&folder, SampleType::I8, |v| v as i8);
    assert_kept(&folder, SampleType::U16, |v| v);
    assert_kept(&folder, SampleType::I16, |v| v as i16);
    assert_kept(&folder, SampleType::U32, |v| u32::from(v) << 15);
    assert_kept(&folder, SampleType::I32, |v| (i32::from(v) << 15) - (1 << 30));
    assert_kept(&folder, SampleType::F32, |v| f32::from(v) / 7.0);
    assert_kept(&folder, SampleType::F64, |v| f64::from(v) / 7.0);
}

#[test]
fn nifti_and_nrrd_have_the_published_layout() {
    let folder = tempdir().unwrap();
    let samples = samples(24, |v| v as i16);
    let volume = Volume::new([4, 3, 2], samples.clone()).unwrap();
    let bytes: Vec<u8> = samples.iter().flat_map(|v| v.to_le_bytes()).collect();

    let path = folder.path().join("a.nii");
    let affine = [
        [0.0, -2.0, 0.0, 10.0],
        [0.0, 0.0, 3.0, -20.0],
        [1.0, 0.0, 0.0, 5.0],
        [0.0, 0.0, 0.0, 1.0],
    ];
    WriteOptions::new().affine(affine).write(&path, &volume).unwrap();
    let file = fs::read(&path).unwrap();
    // `dim` is at byte 40 of the header, `datatype` at 70, `pixdim` at 76, `vox_offset` at 108, `xyzt_units` at 123, the
    // rows of the matrix at 280 (nifti1.h).
    let number = |at: usize| f32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let dims = file[40..50].as_chunks().0.iter().map(|b| i16::from_le_bytes(*b));
    assert_eq!(dims.collect::<Vec<_>>()[1..4], [4, 3, 2]);
    assert_eq!((file[70], file[123] & 7), (4, 2), "INT16, millimetres");
    assert_eq!([80, 84, 88].map(number), [1.0, 2.0, 3.0]);
    let rows: Vec<f64> = (0..12).map(|i| f64::from(number(280 + 4 * i))).collect();
    assert_eq!(rows, affine[..3].concat());
    assert_eq!(file[number(108) as usize..], bytes);
    let content = read(&path).unwrap();
    assert_eq!((content.affine(), content.is_ras()), (Some(affine), true));
    assert_eq!((content.spacing(), content.unit()), (Some([1.0, 2.0, 3.0]), Some("mm")));

    let path = folder.path().join("a.nrrd");
    WriteOptions::new().spacing([0.5, 0.25, 4.0]).unit("um").write(&path, &volume).unwrap();
    let file = fs::read(&path).unwrap();
    let end = file.windows(2).position(|bytes| bytes == b"\n\n").unwrap();
    let header = String::from_utf8(file[..end].to_vec()).unwrap();
    assert!(header.starts_with("NRRD000") && header.contains("\nsizes: 4 3 2"), "{header}");
    assert_eq!(file[end + 2..], bytes);
    let content = read(&path).unwrap();
    // Readers of NRRD take lengths for millimetres.
    assert_eq!((content.spacing(), content.is_ras()), (Some([0.0005, 0.00025, 0.004]), false));
    assert_eq!(content.unit(), Some("mm"));
}

/// Writes an image in several formats and compares it with what the crate `image`, and gpuproc, read.
fn assert_seen<T: Sample + PartialEq + std::fmt::Debug>(
    names: &[&str],
    image: &Image<T>,
    decoded: impl Fn(image::DynamicImage) -> Vec<T>,
) {
    let folder = tempdir().unwrap();
    for name in names {
        let path = folder.path().join(name);
        write(&path, image).unwrap();
        let theirs = image::open(&path).unwrap();
        let sizes = (theirs.width() as usize, theirs.height() as usize);
        assert_eq!(sizes, (image.width(), image.height()), "{name}");
        assert_eq!(decoded(theirs), image.samples(), "{name}");
        assert_eq!(read(&path).unwrap().into_image::<T>().unwrap(), *image, "{name}");
    }
}

#[test]
fn images_are_those_that_other_readers_see() {
    let bytes = |channels: Channels| {
        Image::new(7, 5, channels, Noise(5).bytes(35 * channels.count())).unwrap()
    };
    let all = ["a.png", "a.tif", "a.bmp", "a.webp"];
    assert_seen(&all, &bytes(Channels::Rgb), |found| found.into_rgb8().into_raw());
    assert_seen(&all[..2], &bytes(Channels::Rgba), |found| found.into_rgba8().into_raw());
    assert_seen(&all[..2], &bytes(Channels::Gray), |found| found.into_luma8().into_raw());
    let deep = Image::new(7, 5, Channels::Rgb, samples(105, |v| v)).unwrap();
    assert_seen(&all[..2], &deep, |found| found.into_rgb16().into_raw());
    let gray = Image::new(9, 2, Channels::GrayAlpha, samples(36, |v| v)).unwrap();
    assert_seen(&all[..1], &gray, |found| found.into_luma_alpha16().into_raw());
}

#[test]
fn the_quality_of_jpeg_is_set() {
    let folder = tempdir().unwrap();
    let ramp = |i: usize| (2 * (i / 3 % 64) + i / 3 / 64 + 20 * (i % 3)) as u8;
    let image = Image::new(64, 48, Channels::Rgb, (0..64 * 48 * 3).map(ramp).collect()).unwrap();
    let mut sizes = Vec::new();
    for quality in [1, 50, 90, 100] {
        let path = folder.path().join("a.jpg");
        WriteOptions::new().quality(quality).write(&path, &image).unwrap();
        let found = read(&path).unwrap().into_image::<u8>().unwrap();
        let theirs = image::open(&path).unwrap().into_rgb8().into_raw();
        let max = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(max(found.samples(), &theirs) <= 3, "quality {quality}");
        assert!(quality < 90 || max(found.samples(), image.samples()) <= 8, "quality {quality}");
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    assert!(sizes.is_sorted() && sizes[0] < sizes[3], "{sizes:?}");
    let (default, explicit) = (folder.path().join("b.jpg"), folder.path().join("c.jpg"));
    write(&default, &image).unwrap();
    WriteOptions::new().quality(90).write(&explicit, &image).unwrap();
    assert_eq!(fs::read(default).unwrap(), fs::read(explicit).unwrap());
}

#[test]
fn alpha_is_straight_in_memory() {
    // OpenEXR holds colours that are multiplied by alpha.
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.exr");
    let image = Image::new(2, 1, Channels::Rgba, vec![1.0f32, 0.5, 0.25, 0.5, 8.0, 4.0, 2.0, 0.25]);
    let image = image.unwrap();
    write(&path, &image).unwrap();
    assert_eq!(read(&path).unwrap().into_image::<f32>().unwrap(), image);
    // Numbers have no full intensity, so formats without alpha drop a channel that would be alpha.
    let numbers = Image::new(1, 1, Channels::GrayAlpha, vec![100i16, 200]).unwrap();
    write(folder.path().join("a.jpg"), &numbers).unwrap();
    let found = read(folder.path().join("a.jpg")).unwrap().into_image::<u8>().unwrap();
    assert_eq!((found.channels(), found.samples()), (Channels::Gray, &[100][..]));
}

#[test]
fn pages_levels_and_places_are_chosen() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let volume = Volume::new([6, 5, 4], samples(120, |v| v)).unwrap();
    write(path("a.tif"), &volume).unwrap();
    for page in 0..4 {
        let image = ReadOptions::new().page(page).read(path("a.tif")).unwrap();
        let image = image.into_image::<u16>().unwrap();
        assert_eq!(image.samples(), &volume.samples()[30 * page..30 * (page + 1)]);
        write(path(&format!("slice{page}.png")), &image).unwrap();
    }
    let stack = |path: &Path| ReadOptions::new().stack().read(path)?.into_volume::<u16>();
    assert_eq!(stack(&path("a.tif")).unwrap(), volume);
    fs::remove_file(path("a.tif")).unwrap();
    assert_eq!(stack(folder.path()).unwrap(), volume);
    let none = ReadOptions::new().page(4).read(path("slice0.png")).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::BadInput);

    // The second level of a pyramid has half the samples, each the mean of eight.
    let wide = Volume::new([300, 2, 2], (0..1200).map(|i| (i % 300) as f32).collect()).unwrap();
    WriteOptions::new().spacing([0.1, 0.2, 0.2]).write(path("a.zarr"), &wide).unwrap();
    for options in
        [ReadOptions::new().level(9), ReadOptions::new().channel(1), ReadOptions::new().time(1)]
    {
        assert!(options.read(path("a.zarr")).is_err(), "{options:?}");
    }
    let coarse = ReadOptions::new().level(1).read(path("a.zarr")).unwrap();
    let found = coarse.spacing().unwrap();
    assert!((found[0] - 0.2).abs() < 1e-9 && coarse.unit() == Some("mm"), "{found:?}");
    let coarse = coarse.into_volume::<f32>().unwrap();
    assert_eq!((coarse.dims()[0], coarse.samples()[1]), (150, 2.5));

    let image = Image::new(3, 2, Channels::Gray, vec![1u8; 6]).unwrap();
    WriteOptions::new().spacing([50.0, 25.0, 1.0]).unit("um").write(path("b.tif"), &image).unwrap();
    let content = read(path("b.tif")).unwrap();
    let [x, y, _] = content.spacing().unwrap();
    assert!((x - 0.05).abs() < 1e-6 && (y - 0.025).abs() < 1e-6 && content.unit() == Some("mm"));
    let copy = WriteOptions::new().placed_as(&content);
    copy.write(path("c.tif"), &content.clone().into_image::<u8>().unwrap()).unwrap();
    assert_eq!(read(path("c.tif")).unwrap(), content);
}

#[test]
fn samples_are_converted_by_value() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.npy");
    write(&path, &Volume::new([4, 1, 1], vec![-1.5f32, 2.5, f32::NAN, 300.0]).unwrap()).unwrap();
    let content = read(&path).unwrap();
    let wrong = content.clone().into_volume::<u8>().unwrap_err();
    assert_eq!(wrong.to_string(), "expected a volume of u8 samples, found a volume of f32 samples");
    assert_eq!(content.clone().into_image::<f32>().unwrap_err().kind(), ErrorKind::BadInput);
    let bytes = content.converted::<u8>().and_then(Content::into_volume::<u8>).unwrap();
    assert_eq!((bytes.samples()[0], &bytes.samples()[2..]), (0, &[0, 255][..]));
}

#[test]
fn meshes_are_kept() {
    let folder = tempdir().unwrap();
    let at = |i: usize| (i % 12) as f32 - 5.5;
    let distance = |i: usize| at(i).hypot(at(i / 12)).hypot(at(i / 144));
    let ball = Volume::new([12; 3], (0..1728).map(|i| 4.0 - distance(i)).collect()).unwrap();
    let ball = mesh(&Device::cpu(), &ball, 0.0).unwrap();
    for name in ["ply", "obj", "off", "glb", "vtp", "3mf", "gii", "mz3", "stl"] {
        let path = folder.path().join("a").with_extension(name);
        ball.write(&path).unwrap();
        let found = Mesh::read(&path).unwrap();
        // STL has corners only, of which those at the same place are joined.
        let corners = |mesh: &Mesh| {
            let corners = mesh.triangles.iter().flatten();
            corners.map(|&corner| mesh.positions[corner as usize]).collect::<Vec<_>>()
        };
        assert_eq!(corners(&found), corners(&ball), "{name}");
        assert_eq!(found.positions.len(), ball.positions.len(), "{name}");
    }
    let file = fs::read(folder.path().join("a.stl")).unwrap();
    assert_eq!(file.len(), 84 + 50 * ball.triangles.len());
    ball.write(folder.path().join("a.precomputed")).unwrap();
    let fragment = fs::read(folder.path().join("a.precomputed/1")).unwrap();
    assert_eq!(fragment.len(), 4 + 12 * (ball.positions.len() + ball.triangles.len()));
    let kind = |result: Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(ball.write(folder.path().join("a.html"))), ErrorKind::Usage);
    assert_eq!(kind(ball.write(folder.path().join("a"))), ErrorKind::Usage);
    let mut broken = ball.clone();
    broken.triangles[7][1] = u32::MAX;
    assert_eq!(kind(broken.write(folder.path().join("a.stl"))), ErrorKind::BadInput);
    assert_eq!(fs::read(folder.path().join("a.stl")).unwrap(), file);
    fs::write(folder.path().join("a.stl"), &file[..200]).unwrap();
    let kind = |name: &str| Mesh::read(folder.path().join(name)).unwrap_err().kind();
    let kinds = ["a.stl", "missing.ply", "a.png"].map(kind);
    assert_eq!(kinds, [ErrorKind::BadInput, ErrorKind::Io, ErrorKind::Usage]);
}

#[test]
fn damaged_files_are_errors() {
    let folder = tempdir().unwrap();
    let kind = |name: &str| read(folder.path().join(name)).unwrap_err().kind();
    assert_eq!(["a.png", "a.nii", "a.zarr"].map(kind), [ErrorKind::Io; 3]);
    let image = Image::new(9, 9, Channels::Rgb, Noise(8).bytes(243)).unwrap();
    let volume = Volume::new([9, 9, 3], Noise(8).bytes(243)).unwrap();
    for name in ["a.png", "a.bmp", "a.webp", "a.nii", "a.nii.gz", "a.nrrd", "a.mha", "a.npy"] {
        let path = folder.path().join(name);
        match ["a.png", "a.bmp", "a.webp"].contains(&name) {
            true => write(&path, &image).unwrap(),
            false => write(&path, &volume).unwrap(),
        }
        let file = fs::read(&path).unwrap();
        for len in [0, 1, 20, file.len() / 2, file.len() - 20] {
            fs::write(&path, &file[..len]).unwrap();
            // Some decoders fill what is missing, with a warning.
            if let Err(error) = read(&path) {
                assert_eq!(error.kind(), ErrorKind::BadInput, "{name} of {len} bytes: {error}");
                assert!(error.to_string().contains(name), "{error}");
            } else {
                assert!(len > 20 && !name.contains(".n"), "{name} of {len} bytes was read");
            }
        }
    }
    write(folder.path().join("b.nii"), &volume).unwrap();
    write(folder.path().join("b.png"), &image).unwrap();
    for name in ["b.nii", "b.png"] {
        let small = ReadOptions::new().max_bytes(200).read(folder.path().join(name));
        assert_eq!(small.unwrap_err().kind(), ErrorKind::BadInput, "{name}");
        let large = ReadOptions::new().max_bytes(1 << 20).read(folder.path().join(name));
        assert_eq!(large.unwrap().dims()[..2], [9, 9]);
    }
}

#[test]
fn wrong_options_are_errors_and_leave_files_alone() {
    let folder = tempdir().unwrap();
    let volume = Volume::new([2, 2, 2], vec![1u8; 8]).unwrap();
    let image = Image::new(2, 2, Channels::Rgb, vec![1u8; 12]).unwrap();
    let nii = folder.path().join("a.nii");
    fs::write(&nii, "old").unwrap();
    let options = WriteOptions::new;
    let with =
        |row: [f64; 4]| [row, [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]];
    for options in [
        options().quality(0),
        options().quality(101),
        options().spacing([1.0, f64::NAN, 1.0]),
        options().spacing([1.0, 0.0, 1.0]),
        options().spacing([1.0, 1.0, -1.0]),
        options().spacing([f64::INFINITY, 1.0, 1.0]),
        options().affine(with([0.0, 1.0, 0.0, 0.0])),
        options().affine(with([1.0, 0.0, 0.0, f64::NAN])),
        options().affine(with([1.0, 0.0, 0.0, 0.0])).spacing([1.0; 3]),
        // A matrix by columns.
        options().affine([
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 0.0, 0.0],
            [0.0, 0.0, 1.0, 0.0],
            [5.0, 5.0, 5.0, 1.0],
        ]),
    ] {
        let error = options.write(&nii, &volume).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{options:?}");
    }
    let kind = |name: &str, result: &dyn Fn(&Path) -> Result<()>| {
        let error = result(&folder.path().join(name)).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        error.kind()
    };
    assert_eq!(kind("a.nii", &|path| write(path, &image)), ErrorKind::Usage);
    for name in ["a.png", "a.xyz", "a"] {
        assert_eq!(kind(name, &|path| write(path, &volume)), ErrorKind::Usage);
    }
    for name in ["a.jxl", "a.xyz", "a"] {
        assert_eq!(kind(name, &|path| write(path, &image)), ErrorKind::Usage);
    }
    for name in ["missing/a.nii", "missing/a.zarr"] {
        assert_eq!(kind(name, &|path| write(path, &volume)), ErrorKind::Io);
    }
    let empty = Image::new(0, 3, Channels::Gray, Vec::<u8>::new()).unwrap();
    let flat = Volume::new([3, 0, 3], Vec::<u8>::new()).unwrap();
    for name in ["a.png", "a.jpg", "a.tif"] {
        assert_eq!(kind(name, &|path| write(path, &empty)), ErrorKind::BadInput);
    }
    for name in ["a.nii", "a.zarr", "a.tif"] {
        assert_eq!(kind(name, &|path| write(path, &flat)), ErrorKind::BadInput);
    }
    fs::create_dir(folder.path().join("mine.zarr")).unwrap();
    fs::write(folder.path().join("mine.zarr/file"), "mine").unwrap();
    assert_eq!(kind("mine.zarr", &|path| write(path, &volume)), ErrorKind::Usage);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    assert_eq!(fs::read_to_string(&nii).unwrap(), "old");
    write(&nii, &volume).unwrap();
    assert_eq!(read(&nii).unwrap().into_volume::<u8>().unwrap(), volume);
}
