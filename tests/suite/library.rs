//! The public API, as its users call it.

use gpuproc::{
    Blur, Channels, Device, Edge, ErrorKind, Histogram, Image, MarchingCubes, Volume, histogram,
    mesh,
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
        let rows = Blur::box_filter_xyz([1, 0, 5]).run(&device, &gray).unwrap();
        assert_eq!(rows.into_samples(), [0, 0, 0, 30, 30, 30, 0, 0, 0]);
        let wrapped =
            Blur::box_filter_xyz([1, 0, 0]).edge(Edge::Constant(30.0)).run(&device, &gray);
        assert_eq!(wrapped.unwrap().samples()[..3], [10, 0, 10]);
        // A constant image stays constant, whatever the sample type.
        let wide = Image::new(9, 5, Channels::Rgba, vec![40_000u16; 180]).unwrap();
        assert_eq!(Blur::gaussian(3.0).run(&device, &wide).unwrap(), wide);
        let light = Blur::gaussian(1.0).iterations(2).linear_light().run(&device, &wide).unwrap();
        assert_eq!(light, wide);
        let float = Image::new(5, 4, Channels::GrayAlpha, vec![0.5f32; 40]).unwrap();
        let soft = Blur::gaussian_xyz([2.0, 1.0, 0.0]).run(&device, &float).unwrap();
        assert!(soft.samples().iter().all(|v| (v - 0.5).abs() < 2e-6));
    }
}

#[test]
fn blurs_and_meshes_volumes_without_changing_them() {
    for device in devices() {
        let mut samples = vec![-1000i16; 125];
        samples[62] = 1700;
        let volume = Volume::new([5; 3], samples.clone()).unwrap();
        let light = Blur::box_filter(1).linear_light().run(&device, &volume).unwrap_err();
        assert_eq!(light.kind(), ErrorKind::Usage);
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
    let nothing = Volume::new([0, 1, 1], Vec::<u8>::new()).unwrap();
    assert_eq!(mesh(&device, &nothing, 1.0).unwrap().positions.len(), 0);
}
