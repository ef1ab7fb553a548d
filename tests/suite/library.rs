//! The public API, as its users call it.

use gpuproc::{
    Blur, BlurMethod, ChannelName, Channels, Device, Edge, ElementShape, ErrorKind, Histogram,
    Image, Interpolation, Label, LabelMeshes, MarchingCubes, Morph, MorphOperation, PerAxis,
    Projection, Resize, Scan, ScanOp, Size, Sort, Threshold, Volume, auto_levels, equalize,
    histogram, mesh, statistics, summed_area_table,
};

use crate::common::{Noise, adapter};

/// The CPU, the best device, and the GPU if there is one.
fn devices() -> Vec<Device> {
    let gpu = adapter().map(|_| Device::gpu().expect("the adapter opens"));
    [Device::cpu(), Device::best()].into_iter().chain(gpu).collect()
}

#[test]
fn devices_have_names_and_can_be_shared() {
    fn assert_shareable<T: Send + Sync>(_: &T) {}
    for device in devices() {
        assert_shareable(&device);
        assert!(!device.name().is_empty());
    }
    assert_eq!(Device::cpu().name(), "CPU");
    assert_eq!(Device::named("Abacus").unwrap_err().kind(), ErrorKind::NoDevice);
    if let Some(adapter) = adapter() {
        assert_eq!(Device::named(&adapter.info.name).unwrap().name(), adapter.info.name);
    }
}

#[test]
fn blurs_images_of_every_type() {
    for device in devices() {
        let gray = Image::new(3, 3, Channels::Gray, vec![0u8, 0, 0, 0, 90, 0, 0, 0, 0]).unwrap();
        let mean = Blur::box_filter(1).run(&device, &gray).unwrap();
        assert_eq!(mean.samples()[4], 10, "{}", device.name());
        assert_eq!([mean.width(), mean.height(), mean.channels().count()], [3, 3, 1]);
        let rows = Blur::box_filter([1, 0, 5]).run(&device, &gray).unwrap();
        assert_eq!(rows.into_samples(), [0, 0, 0, 30, 30, 30, 0, 0, 0]);
        let wrapped = Blur::box_filter([1, 0, 0]).edge(Edge::Constant(30.0)).run(&device, &gray);
        assert_eq!(wrapped.unwrap().samples()[..3], [10, 0, 10]);
        // A constant image stays constant, whatever the sample type.
        let wide = Image::new(9, 5, Channels::Rgba, vec![40_000u16; 180]).unwrap();
        assert_eq!(Blur::gaussian(3.0).run(&device, &wide).unwrap(), wide);
        let light =
            Blur::gaussian(1.0).iterations(2usize).linear_light(true).run(&device, &wide).unwrap();
        assert_eq!(light, wide);
        let float = Image::new(5, 4, Channels::GrayAlpha, vec![0.5f32; 40]).unwrap();
        let soft = Blur::gaussian([2.0, 1.0, 0.0]).run(&device, &float).unwrap();
        assert!(soft.samples().iter().all(|v| (v - 0.5).abs() < 2e-6));
        let even = Blur::default().method(BlurMethod::Box).size(PerAxis::from([2, 1, 1]));
        assert_eq!(even.run(&device, &gray).unwrap().samples()[3..6], [0, 45, 45]);
        let row = Image::new(3, 1, Channels::Rgb, vec![0u8, 0, 0, 0, 0, 0, 90, 90, 90]).unwrap();
        let mean = Blur::box_filter([1, 0, 0]);
        let wrapped = mean.clone().edge([Edge::Wrap, Edge::Clamp, Edge::Clamp]);
        assert_eq!(wrapped.run(&device, &row).unwrap().into_samples(), [30; 9]);
        let red = mean.channels([ChannelName::Red]);
        let expected = [0, 0, 0, 30, 0, 0, 60, 90, 90];
        assert_eq!(red.run(&device, &row).unwrap().into_samples(), expected);
        let volume = Volume::new([3, 1, 1], vec![0u8; 3]).unwrap();
        let error = red.run(&device, &volume).unwrap_err();
        assert_eq!(error.to_string(), "channels is for images; this is a volume");
    }
}

#[test]
fn blurs_and_meshes_volumes_without_changing_them() {
    for device in devices() {
        let mut samples = vec![-1000i16; 125];
        samples[62] = 1700;
        let volume = Volume::new([5; 3], samples.clone()).unwrap();
        let soft = Blur::box_filter(1).run(&device, &volume).unwrap();
        assert_eq!((soft.samples()[62], soft.samples()[0]), (-900, -1000), "{}", device.name());
        // One voxel inside: an octahedron.
        let surface = mesh(&device, &volume, 350.0).unwrap();
        assert_eq!([surface.positions.len(), surface.triangles.len()], [6, 8]);
        assert!(surface.positions.contains(&[2.0, 2.5, 2.5]) && surface.normals.is_empty());
        let placed = MarchingCubes::new(350.0).spacing([2.0; 3]).origin([10.0, 0.0, 0.0]).normals();
        let placed = placed.run(&device, &volume).unwrap();
        assert!(placed.positions.contains(&[14.0, 5.0, 5.0]));
        assert_eq!(placed.normals.len(), 6);
        let all = MarchingCubes::new(-2000.0);
        assert_eq!(all.run(&device, &volume).unwrap().triangles.len(), 0);
        assert!(!all.close().run(&device, &volume).unwrap().triangles.is_empty());
        assert_eq!(volume.into_samples(), samples);
    }
}

#[test]
fn counts_samples_of_every_type() {
    let noise = Noise(1).bytes(10_000);
    let mut expected = vec![0; 256];
    noise.iter().for_each(|&v| expected[usize::from(v)] += 1);
    for device in devices() {
        assert_eq!(histogram(&device, &noise).unwrap(), expected, "{}", device.name());
        // The bins of floats span the range of the data.
        let counts = Histogram::new(4).run(&device, &[3.0f32, 1.0, f32::NAN, 5.0, 1.9]).unwrap();
        assert_eq!(
            (&counts.bins[..], counts.range, counts.nan),
            (&[2, 0, 1, 1][..], (1.0, 5.0), 1)
        );
        let counts = Histogram::new(2).range(-10.0, 10.0).run(&device, &[-11i32, 0, 9, 11, 12]);
        let counts = counts.unwrap();
        assert_eq!((&counts.bins[..], counts.below, counts.above), (&[0, 2][..], 1, 2));
        assert_eq!(histogram::<f64>(&device, &[]).unwrap(), [0; 256]);
    }
}

#[test]
fn rejects_invalid_sizes_and_parameters() {
    let device = Device::cpu();
    let bad_image = Image::new(2, 2, Channels::Rgb, vec![0u8; 11]).unwrap_err();
    assert_eq!(bad_image.kind(), ErrorKind::BadInput);
    assert!(bad_image.to_string().starts_with("expected 2 x 2 x 3 samples"), "{bad_image}");
    let too_large = Image::new(usize::MAX, 2, Channels::Gray, vec![0u8; 11]).unwrap_err();
    assert_eq!(too_large.kind(), ErrorKind::BadInput);
    assert!(Volume::new([usize::MAX, 2, 2], vec![0u8]).is_err());
    let image = Image::new(1, 1, Channels::Gray, vec![0u8]).unwrap();
    for blur in [
        Blur::gaussian(-1.0),
        Blur::gaussian(500.1),
        Blur::gaussian(f64::NAN),
        Blur::box_filter(10_001),
    ] {
        assert_eq!(blur.run(&device, &image).unwrap_err().kind(), ErrorKind::Usage);
    }
    for histogram in [Histogram::new(0), Histogram::new(65_537), Histogram::new(9).range(2.0, 1.0)]
    {
        assert_eq!(histogram.run(&device, &[1u8]).unwrap_err().kind(), ErrorKind::Usage);
    }
    // Empty inputs are valid.
    let nothing = Image::new(0, 7, Channels::Rgb, Vec::<u8>::new()).unwrap();
    assert_eq!(Blur::gaussian(1.0).run(&device, &nothing).unwrap(), nothing);
    assert_eq!(Threshold::above(1.0).run(&device, &nothing).unwrap().width(), 0);
    for dims in [[0, 1, 1], [4, 0, 4], [4, 4, 0], [0; 3]] {
        let nothing = Volume::new(dims, Vec::<u8>::new()).unwrap();
        for cubes in [MarchingCubes::new(1.0), MarchingCubes::new(-1.0).close().normals()] {
            let found = cubes.run(&device, &nothing).unwrap();
            assert_eq!(found.positions.len(), 0, "{dims:?}");
        }
        assert!(LabelMeshes::new().run(&device, &nothing).unwrap().is_empty(), "{dims:?}");
    }
}

#[test]
fn filters_images_and_volumes() {
    for device in devices() {
        let gray = Image::new(4, 1, Channels::Gray, vec![10u16, 20, 200, 210]).unwrap();
        let row = Volume::new([4, 1, 1], vec![10i16, 20, 200, 210]).unwrap();
        let mask = Threshold::above(20.0).run(&device, &row).unwrap();
        assert_eq!(mask.samples(), [0, 0, 255, 255], "{}", device.name());
        let classes = Threshold::classes(&[15.0, 205.0]).run(&device, &gray).unwrap();
        assert_eq!(classes.samples(), [0, 1, 1, 2]);
        assert_eq!(Threshold::otsu(2).run(&device, &gray).unwrap().samples(), mask.samples());
        let color = Image::new(1, 1, Channels::Rgba, vec![9u8, 9, 9, 255]).unwrap();
        let mask = Threshold::above(8.0).run(&device, &color).unwrap();
        assert_eq!((mask.channels(), mask.samples()), (Channels::Gray, &[255][..]));

        let parts = Volume::new([4, 1, 1], vec![3i16, 3, 7, 7]).unwrap();
        let labels = Label::new(26).equal(true).min_size(2usize).run(&device, &parts).unwrap();
        assert_eq!(labels.samples(), [1, 1, 2, 2]);
        assert!(Label::new(8).run(&device, &row).is_err());
        let eroded = Morph::new(MorphOperation::Erode, [1; 3]).run(&device, &row).unwrap();
        assert_eq!(eroded.samples(), [10, 10, 20, 200]);
        let ball = Morph::new(MorphOperation::Dilate, [2; 3]).element(ElementShape::Ball);
        assert_eq!(ball.run(&device, &gray).unwrap().samples(), [200, 210, 210, 210]);

        let half = Resize::new(Size::Scale([0.5; 3])).interpolation(Interpolation::Area);
        assert_eq!(half.run(&device, &row).unwrap().samples(), [15, 205]);
        let half = Resize::new(Size::Exact([Some(2), Some(1), None]));
        let half = half.interpolation(Interpolation::Nearest).run(&device, &gray).unwrap();
        assert_eq!((half.width(), half.height()), (2, 1));

        let x = Projection::along(0);
        assert_eq!(x.max(&device, &row).unwrap().samples(), [210]);
        assert_eq!(x.min(&device, &gray).unwrap().samples(), [10]);
        assert_eq!(x.mean(&device, &gray).unwrap().samples(), [110.0]);
        assert_eq!(x.sum(&device, &row).unwrap().samples(), [440.0]);
        // The mean of the squared differences 100, 90, 90 and 100.
        assert_eq!(x.std(&device, &row).unwrap().samples(), [9050f32.sqrt()]);

        assert_eq!(equalize(&device, &gray).unwrap().samples(), [0, 21845, 43690, 65535]);
        let levels = auto_levels(&device, &gray, 0.0).unwrap();
        assert_eq!(levels.samples(), [0, 3277, 62258, 65535]);
    }
}

#[test]
fn scans_and_sorts_numbers() {
    for device in devices() {
        let numbers = [3i32, -1, 4, 1];
        let sums = Scan::new(ScanOp::Sum).run(&device, &numbers).unwrap();
        assert_eq!(sums, [3, 2, 6, 7], "{}", device.name());
        let maxima = Scan::new(ScanOp::Max).exclusive().run(&device, &numbers).unwrap();
        assert_eq!(maxima, [i32::MIN, 3, 3, 4]);
        assert_eq!(summed_area_table(&device, numbers.to_vec(), 2).unwrap(), [3, 2, 7, 7]);
        assert!(summed_area_table(&device, Vec::<u64>::new(), 0).unwrap().is_empty());
        assert_eq!(Sort::ascending().run(&device, numbers.to_vec()).unwrap(), [-1, 1, 3, 4]);
        let order = Sort::descending().indices(&device, vec![1.0f64, f64::NAN, 2.0]).unwrap();
        assert_eq!(order, [2, 0, 1]);

        let found = statistics(&device, &[1u8, 1, 4], &[100.0]).unwrap().unwrap();
        assert_eq!((found.mean, found.median, found.percentiles), (2.0, 1.0, vec![(100.0, 4.0)]));
        let found = statistics(&device, &[1.5f64, f64::NAN, 2.5], &[]).unwrap().unwrap();
        assert_eq!((found.count, found.mean, found.deviation), (2.0, 2.0, 0.5));
        assert_eq!(statistics::<u32>(&device, &[], &[]).unwrap(), None);
    }
}

#[test]
fn meshes_labels_and_changes_meshes() {
    for device in devices() {
        let volume = Volume::new([2, 1, 1], vec![7u16, 9]).unwrap();
        let labels = LabelMeshes::new().smoothing(0).spacing([2.0, 1.0, 1.0]);
        let meshes = labels.run(&device, &volume).unwrap();
        let summary: Vec<_> = meshes.iter().map(|(l, mesh)| (*l, mesh.triangles.len())).collect();
        assert_eq!(summary, [(7, 12), (9, 12)], "{}", device.name());
        assert!(meshes[1].1.positions.iter().all(|p| [2.0, 4.0].contains(&p[0])));

        let at = |i: usize| (i % 16) as f32 - 7.5;
        let distance = |i: usize| at(i).hypot(at(i / 16)).hypot(at(i / 256));
        let samples: Vec<f32> = (0..4096).map(|i| 6.0 - distance(i)).collect();
        let ball = mesh(&device, &Volume::new([16; 3], samples).unwrap(), 0.0).unwrap();
        let count = ball.triangles.len();
        let small = ball.clone().simplify(0.5).unwrap();
        assert!((count / 2 - 1..=count / 2 + 1).contains(&small.triangles.len()));
        let smooth = ball.clone().smooth(3).unwrap();
        assert_eq!(smooth.triangles, ball.triangles);
        assert_ne!(smooth.positions, ball.positions);
    }
}

#[test]
fn invalid_parameters_of_all_operations_are_errors() {
    let device = Device::cpu();
    let volume = Volume::new([2, 1, 1], vec![1u8, 2]).unwrap();
    let image = Image::new(2, 1, Channels::Gray, vec![0.0f32, 1.0]).unwrap();
    let nan = f64::NAN;
    let usage = [
        MarchingCubes::new(nan).run(&device, &volume).unwrap_err(),
        MarchingCubes::new(1.0).spacing([0.0, -1.0, nan]).run(&device, &volume).unwrap_err(),
        MarchingCubes::new(1.0).origin([nan; 3]).run(&device, &volume).unwrap_err(),
        LabelMeshes::new().spacing([0.0; 3]).run(&device, &volume).unwrap_err(),
        Blur::gaussian(1.0).iterations(0usize).run(&device, &volume).unwrap_err(),
        Blur::gaussian(1.0).iterations(11usize).run(&device, &image).unwrap_err(),
        Threshold::classes(&[]).run(&device, &image).unwrap_err(),
        Threshold::classes(&[2.0, 1.0]).run(&device, &image).unwrap_err(),
        Threshold::above(nan).run(&device, &image).unwrap_err(),
        Threshold::otsu(0).run(&device, &image).unwrap_err(),
        Threshold::otsu(17).run(&device, &image).unwrap_err(),
        Morph::new(MorphOperation::Open, [10_001; 3]).run(&device, &image).unwrap_err(),
        Resize::new(Size::Scale([nan; 3])).run(&device, &image).unwrap_err(),
        Resize::new(Size::Longest(0)).run(&device, &image).unwrap_err(),
        Resize::new(Size::Exact([None, None, Some(2)])).run(&device, &image).unwrap_err(),
        Projection::along(2).max(&device, &image).unwrap_err(),
        Projection::along(3).max(&device, &volume).unwrap_err(),
        Blur::gaussian(1.0).edge(Edge::Constant(nan)).run(&device, &image).unwrap_err(),
        auto_levels(&device, &image, 0.5).unwrap_err(),
        statistics(&device, &[1u8], &[101.0]).unwrap_err(),
        mesh(&device, &volume, 1.5).unwrap().simplify(1.5).unwrap_err(),
    ];
    for error in usage {
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    let nothing = Volume::new([0, 1, 1], Vec::<u8>::new()).unwrap();
    let mut torn = mesh(&device, &volume, 1.5).unwrap();
    torn.triangles.push([0, 1, 99]);
    let bad_input = [
        Projection::along(0).max(&device, &nothing).unwrap_err(),
        Resize::new(Size::Longest(1)).run(&device, &nothing).unwrap_err(),
        equalize(&device, &image).unwrap_err(),
        summed_area_table(&device, vec![1u32; 5], 2).unwrap_err(),
        torn.smooth(1).unwrap_err(),
    ];
    for error in bad_input {
        assert_eq!(error.kind(), ErrorKind::BadInput, "{error}");
    }
}

#[test]
fn gpus_are_listed() {
    let listed = Device::list();
    assert_eq!(listed.is_empty(), adapter().is_none());
    assert!(listed.iter().all(|info| !info.name.is_empty() && !info.backend.is_empty()));
}
