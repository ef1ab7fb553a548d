//! Commands on empty inputs, on one element, and on odd sizes. The outputs have the same bytes on the CPU, on a GPU,
//! and with the routes that are chosen only on hardware.

use std::{fs, path::Path};

use image::ColorType;

use crate::{
    common::{Noise, subjects},
    serve::Server,
};

/// Runs each line on each device and compares exit code, error and output with those of the CPU. The output is the word
/// of the line that begins with `OUT.`.
fn assert_same_everywhere(folder: &Path, lines: &[String]) {
    let devices = if subjects().is_empty() { &["cpu"][..] } else { &["cpu", "gpu", "hardware"] };
    let mut expected = Vec::new();
    for device in devices {
        let mut server = Server::start(folder, device);
        for (number, line) in lines.iter().enumerate() {
            let answer = server.run_job(line);
            let word = line.split_whitespace().find(|word| word.starts_with("OUT."));
            let output = word.and_then(|name| {
                let bytes = fs::read(folder.join(name)).ok();
                let _ = fs::remove_file(folder.join(name));
                bytes
            });
            let found = (answer["code"].clone(), answer["error"].clone(), output);
            match expected.get(number) {
                None => {
                    // A few lines fail with code 4, such as an Otsu threshold of a constant image, or an empty surface.
                    let is_done = found.0 == 0 && found.2.is_some();
                    assert!(is_done || found.0 == 4, "{line}: {answer}");
                    expected.push(found);
                }
                Some(expected) => assert!(*expected == found, "{line} on {device}: {answer}"),
            }
        }
        server.shut_down();
    }
    let done = expected.iter().filter(|(code, ..)| *code == 0).count();
    assert!(done * 10 > 9 * lines.len(), "only {done} of {} lines succeed", lines.len());
}

#[test]
fn commands_on_arrays_of_any_length_agree_on_all_devices() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    for len in [0, 1, 2, 3, 5, 513, 1027] {
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write(&format!("{len}.raw"), &Noise(len).bytes(8 * len as usize));
        // Small integers, whose sums are exact in every order.
        let small = |i: u64| (Noise(i).next() % 100) as f64 - 50.0;
        let floats: Vec<f64> = (0..len).map(small).collect();
        write(&format!("{len}.f64.raw"), bytemuck::cast_slice(&floats));
        let floats: Vec<f32> = floats.iter().map(|&value| value as f32).collect();
        write(&format!("{len}.f32.raw"), bytemuck::cast_slice(&floats));
        for dtype in ["u32", "i64", "f32", "f64"] {
            let float = format!("{len}.{dtype}.raw");
            let file = if dtype.starts_with('f') { float } else { format!("{len}.raw") };
            for line in [
                "sort FILE OUT.npy",
                "sort FILE OUT.npy --argsort --descending",
                "scan FILE OUT.npy",
                "scan FILE OUT.npy --op max --inclusive",
                "scan FILE OUT.npy --by-key FILE",
            ] {
                lines.push(format!("{} --type {dtype}", line.replace("FILE", &file)));
            }
        }
        lines
            .push(format!("sort {len}.raw OUT.npy --payload {len}.raw --payload-output moved.npy"));
    }
    assert_same_everywhere(folder.path(), &lines);
}

#[test]
fn commands_on_images_of_any_size_agree_on_all_devices() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut lines = Vec::new();
    for [width, height] in [[1, 1], [1, 3], [5, 1], [7, 5], [17, 9]] {
        let size = format!("{width}x{height}");
        image::save_buffer(
            path(&format!("none{size}.png")),
            &vec![0; (width * height) as usize],
            width,
            height,
            ColorType::L8,
        )
        .unwrap();
        let kinds = [
            ("grey8", ColorType::L8),
            ("grey16", ColorType::L16),
            ("alpha8", ColorType::La8),
            ("rgb8", ColorType::Rgb8),
            ("rgb16", ColorType::Rgb16),
            ("rgba8", ColorType::Rgba8),
        ];
        for (index, (kind, color)) in kinds.into_iter().enumerate() {
            let bytes = usize::from(color.bytes_per_pixel()) * (width * height) as usize;
            let (name, noise) = (format!("{kind}{size}.png"), Noise(bytes as u64).bytes(bytes));
            image::save_buffer(path(&name), &noise, width, height, color).unwrap();
            for how in ["--sigma 1", "--method box --radius 2", "--sigma 9 --edge wrap"] {
                lines.push(format!("blur {name} OUT.png {how}"));
            }
            lines.push(format!("histogram {name} -o OUT.json"));
            lines.push(format!("histogram {name} -o OUT.json --bins 1000 --alpha weight"));
            lines.push(format!("histogram {name} -o OUT.csv --bins 3 --mask none{size}.png"));
            lines.push(format!("histogram {name} --equalize OUT.png"));
            lines.push(format!("scan {name} OUT.npy"));
            // Other tests have all types. Here each command has two kinds of pixels.
            let commands = [
                "threshold IN OUT.png --value 99",
                "project IN OUT.tif --method std",
                "resize IN OUT.png --scale 0.4",
                "resize IN OUT.png --size 5x3 --filter cubic --linear",
                "project IN OUT.tif --axis x --method mean",
                "math 255-a IN OUT.png",
                "median IN OUT.png --radius 2",
                "morph IN OUT.png --op tophat --radius 2 --element ball",
                "gradient IN OUT.png",
                "gradient IN OUT.tif --sigma 1.5,0.7 --float",
                "unsharp IN OUT.png --sigma 2 --amount 1.5 --threshold 3",
                "threshold IN OUT.png --local mean --window 5,3",
                "threshold IN OUT.png --hysteresis 60,200",
                "threshold IN OUT.png --local sauvola --window 3",
                "label IN OUT.png --min-size 2",
                "pad IN OUT.png --by 3 --edge mirror",
                "rotate IN OUT.png --angle 90",
                "convert IN OUT.tif --dtype f32 --scale percentile",
                "convert IN OUT.png --channels grey-alpha",
                "convert IN OUT.png --dtype u8 --channels rgb",
            ];
            let own = commands.iter().enumerate().filter(|(number, _)| number % 3 == index % 3);
            lines.extend(own.map(|(_, line)| line.replace("IN", &name)));
        }
        lines.push(format!("threshold rgb8{size}.png OUT.png --otsu"));
        lines.push(format!("blur rgb8{size}.png OUT.jpg --sigma 2"));
        let rgb = image::open(path(&format!("rgb8{size}.png"))).unwrap();
        rgb.save(path(&format!("{size}.jpg"))).unwrap();
        lines.push(format!("blur {size}.jpg OUT.jpg --sigma 2"));
        lines.push(format!("histogram {size}.jpg -o OUT.csv"));
    }
    assert_same_everywhere(folder.path(), &lines);
}

#[test]
fn commands_on_volumes_of_any_size_agree_on_all_devices() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    for [x, y, z] in [[1, 1, 1], [1, 1, 2], [3, 1, 1], [3, 5, 2], [9, 4, 5]] {
        let noise = Noise(x * y * z).bytes((x * y * z) as usize);
        let wide: Vec<u16> = noise.iter().map(|&value| u16::from(value) * 200).collect();
        let labels: Vec<u8> = noise.iter().map(|&value| value % 3).collect();
        let floats: Vec<f32> = noise.iter().map(|&value| f32::from(value) / 8.0).collect();
        let size = format!("{x}x{y}x{z}");
        let kinds = [
            ("uint8", &noise[..]),
            ("uint16", bytemuck::cast_slice(&wide)),
            ("float32", bytemuck::cast_slice(&floats)),
        ];
        // Other tests have all types. Here each command has one.
        for (index, (kind, bytes)) in kinds.into_iter().enumerate() {
            let name = format!("v_{size}_{kind}.raw");
            fs::write(folder.path().join(&name), bytes).unwrap();
            lines.push(format!("mesh {name} OUT.ply --iso 20 --close"));
            lines.push(format!("mesh {name} OUT.stl --iso p50 --close --normals"));
            lines.push(format!("histogram {name} -o OUT.json --range data"));
            let commands = [
                "threshold IN OUT.nrrd --value 13",
                "project IN OUT.nrrd",
                "resize IN OUT.nrrd --size 4x3x2",
                "project IN OUT.tif --axis y --method sum",
                "math a>80 IN OUT.nrrd",
                "median IN OUT.nrrd --percentile 30",
                "transpose IN OUT.nrrd",
                "flip IN OUT.nrrd --axis z",
                "morph IN OUT.nrrd --op gradient --radius 3",
                "label IN OUT.nrrd --equal",
                "gradient IN OUT.nrrd",
                "gradient IN OUT.nrrd --sigma 1",
                "unsharp IN OUT.nrrd --amount 0.5",
                "convert IN OUT.nrrd --scale minmax",
                "threshold IN OUT.nrrd --local gaussian --offset 2",
                "threshold IN OUT.nrrd --local sauvola --window 5",
            ];
            let own = commands.iter().enumerate().filter(|(number, _)| number % 3 == index);
            lines.extend(own.map(|(_, line)| line.replace("IN", &name)));
        }
        lines.push(format!("blur v_{size}_uint8.raw OUT.nrrd --sigma 1"));
        lines.push(format!("blur v_{size}_uint16.raw OUT.nrrd --method box --radius 1"));
        fs::write(folder.path().join(format!("l_{size}_uint8.raw")), labels).unwrap();
        lines.push(format!("mesh l_{size}_uint8.raw OUT.ply --labels"));
        lines.push(format!("mesh v_{size}_uint8.raw OUT.ply --iso 20 --close --preview view.png"));
    }
    assert_same_everywhere(folder.path(), &lines);
}
