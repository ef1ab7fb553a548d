//! Vertex colours from the values of another volume, and colours of previews.

use std::{fs, path::Path};

use gpuproc::data::{noise::Noise, palette::Palette};
use ply_rs_bw::{
    parser::Parser,
    ply::{DefaultElement, Property},
};

use crate::common::{run, works};

/// Writes a ball in a volume of 12 x 11 x 10 samples, and noise of the same size. Returns the noise.
fn write_volumes(folder: &Path) -> Vec<f32> {
    let ball: Vec<u8> = (0..12 * 11 * 10)
        .map(|i| {
            let [x, y, z] = [i % 12, i / 12 % 11, i / 132].map(f64::from);
            let squared = (x - 5.3).powi(2) + (y - 5.1).powi(2) + (z - 4.8).powi(2);
            (200.0 - 40.0 * squared.sqrt()).clamp(0.0, 255.0) as u8
        })
        .collect();
    let mut noise = Noise(3);
    let values: Vec<f32> = (0..ball.len()).map(|_| noise.unit() as f32 * 7.0 - 2.0).collect();
    fs::write(folder.join("ball_12x11x10_uint8.raw"), &ball).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(folder.join("values_12x11x10_float32.raw"), bytes).unwrap();
    values
}

/// Reads the positions and colours of the vertices of a PLY file.
fn read_ply(path: &Path) -> Vec<([f32; 3], [u8; 3])> {
    let bytes = fs::read(path).unwrap();
    let ply = Parser::<DefaultElement>::new().read_ply(&mut &bytes[..]).unwrap();
    let float = |vertex: &DefaultElement, name: &str| vertex[name].to_f32_lossy().unwrap();
    let byte = |vertex: &DefaultElement, name: &str| match vertex[name] {
        Property::UChar(value) => value,
        ref other => panic!("{other:?}"),
    };
    let vertex = |v: &DefaultElement| {
        (["x", "y", "z"].map(|n| float(v, n)), ["red", "green", "blue"].map(|n| byte(v, n)))
    };
    ply.payload["vertex"].iter().map(vertex).collect()
}

/// Trilinear interpolation at a position. Sample i lies at i + 0.5.
fn interpolate(values: &[f32], position: [f32; 3]) -> f64 {
    let dims = [12, 11, 10];
    let at: [f64; 3] = std::array::from_fn(|i| {
        (f64::from(position[i]) - 0.5).clamp(0.0, f64::from(dims[i] as u8 - 1))
    });
    let low = at.map(|v| v.floor() as usize);
    let sample = |x: usize, y: usize, z: usize| {
        let [x, y, z] = [x.min(11), y.min(10), z.min(9)];
        f64::from(values[x + 12 * (y + 11 * z)])
    };
    let mix = |a: f64, b: f64, axis: usize| a + (b - a) * (at[axis] - low[axis] as f64);
    let along_x = |y, z| mix(sample(low[0], y, z), sample(low[0] + 1, y, z), 0);
    let along_y = |z| mix(along_x(low[1], z), along_x(low[1] + 1, z), 1);
    mix(along_y(low[2]), along_y(low[2] + 1), 2)
}

#[test]
fn vertex_colours_are_values_of_another_volume() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let values = write_volumes(folder);
    let base = "mesh ball_12x11x10_uint8.raw --iso 80 --color-by values_12x11x10_float32.raw";
    for (flags, palette) in
        [("", "viridis"), ("--palette jet_r --normals --ascii", "jet_r"), ("--close", "viridis")]
    {
        let stderr = works(folder, &format!("{base} {flags} m.ply"));
        let vertices = read_ply(&folder.join("m.ply"));
        let found: Vec<f64> =
            vertices.iter().map(|(position, _)| interpolate(&values, *position)).collect();
        let low = found.iter().copied().fold(f64::MAX, f64::min);
        let high = found.iter().copied().fold(f64::MIN, f64::max);
        assert!(stderr.contains(&format!("colours: {palette} from ")), "{stderr}");
        let table = palette.parse::<Palette>().unwrap().table();
        let mut far = 0;
        for ((_, color), value) in vertices.iter().zip(&found) {
            let index = (256.0 * (value - low) / (high - low)).min(255.0) as usize;
            // Rounding may give a neighbouring colour.
            let near = [index.saturating_sub(1), index, (index + 1).min(255)];
            assert!(near.iter().any(|&i| table[i] == *color), "{value}: {color:?}");
            far += usize::from(table[index] != *color);
        }
        assert!(vertices.len() > 100 && far * 50 < vertices.len(), "{far}");
    }
    let stderr = works(folder, &format!("{base} --color-range 1,1.5 m.ply"));
    assert!(stderr.contains("viridis from 1 to 1.5 of values"), "{stderr}");
    for (position, color) in read_ply(&folder.join("m.ply")) {
        match interpolate(&values, position) {
            value if value < 0.999 => assert_eq!(color, [0x44, 0x01, 0x54]),
            value if value > 1.501 => assert_eq!(color, [0xfd, 0xe7, 0x25]),
            _ => {}
        }
    }
}

#[test]
fn obj_and_glb_have_the_colours_of_ply() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_volumes(folder);
    let base = "mesh ball_12x11x10_uint8.raw --iso 80 --color-by values_12x11x10_float32.raw";
    for output in ["m.ply", "m.obj", "m.glb"] {
        works(folder, &format!("{base} --normals {output}"));
    }
    let expected = read_ply(&folder.join("m.ply"));
    let text = fs::read_to_string(folder.join("m.obj")).unwrap();
    let found: Vec<[u8; 3]> = text
        .lines()
        .filter_map(|line| line.strip_prefix("v "))
        .map(|line| {
            let all: Vec<f32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            [3, 4, 5].map(|i| (255.0 * all[i]).round() as u8)
        })
        .collect();
    assert!(found.iter().eq(expected.iter().map(|(_, color)| color)));
    let glb = gltf::Gltf::from_slice(&fs::read(folder.join("m.glb")).unwrap()).unwrap();
    let primitive = glb.meshes().next().unwrap().primitives().next().unwrap();
    assert_eq!(primitive.material().pbr_metallic_roughness().base_color_factor(), [1.0; 4]);
    let reader = primitive.reader(|_| glb.blob.as_deref());
    assert!(reader.read_positions().unwrap().eq(expected.iter().map(|(position, _)| *position)));
    assert_eq!(reader.read_normals().unwrap().count(), expected.len());
    // glTF stores vertex colours in linear light.
    let linear = |v: u8| {
        let v = f64::from(v) / 255.0;
        if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
    };
    let colors: Vec<[f32; 4]> = reader.read_colors(0).unwrap().into_rgba_f32().collect();
    assert_eq!(colors.len(), expected.len());
    for (found, (_, color)) in colors.iter().zip(&expected) {
        for i in 0..3 {
            assert!((f64::from(found[i]) - linear(color[i])).abs() < 1e-5, "{found:?} {color:?}");
        }
        assert_eq!(found[3], 1.0);
    }
}

#[test]
fn colour_volume_is_sampled_at_world_coordinates() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_volumes(folder);
    let header = |name: &str, dims: &str, spacing: &str, kind: &str, file: &str| {
        let text = format!(
            "ObjectType = Image\nNDims = 3\nDimSize = {dims}\nElementSpacing = {spacing}\n\
             Offset = 0 0 0\nElementType = {kind}\nElementDataFile = {file}\n"
        );
        fs::write(folder.join(name), text).unwrap();
    };
    header("ball.mhd", "12 11 10", "1 1 1", "MET_UCHAR", "ball_12x11x10_uint8.raw");
    // A third as many samples along x, twice as far apart. The values are x coordinates, and end inside the ball.
    let values: Vec<u8> = (0..4 * 110u16)
        .map(|i| i as u8 % 4)
        .flat_map(|x| (2.0 * f32::from(x)).to_le_bytes())
        .collect();
    fs::write(folder.join("x.raw"), values).unwrap();
    header("x.mhd", "4 11 10", "2 1 1", "MET_FLOAT", "x.raw");
    let flags = "--iso 80 --color-by x.mhd --palette gray --color-range 0,10 m.ply";
    works(folder, &format!("mesh ball.mhd {flags}"));
    let mut beyond = 0;
    for ([x, ..], color) in read_ply(&folder.join("m.ply")) {
        // The last sample of x.mhd is at 6, and its box ends at 7.
        let expected = match x {
            7.02.. => 128,
            _ => (256.0 * x.clamp(0.0, 6.0) / 10.0) as u8,
        };
        beyond += usize::from(x > 7.02);
        let is_near = (6.98..7.02).contains(&x) || color[0].abs_diff(expected) <= 1;
        assert!(is_near && color[0] == color[2], "{x}: {color:?} for {expected}");
    }
    assert!(beyond > 10);
    // Only one of the two files states world coordinates.
    let (code, stderr) = run(folder, &format!("mesh ball_12x11x10_uint8.raw {flags}"));
    assert!(
        code == 4
            && stderr.contains("expected 12x11x10 samples, as in the meshed volume, found 4x11x10"),
        "{stderr}"
    );
}

#[test]
fn rejects_formats_without_vertex_colours() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_volumes(folder);
    let base = "mesh ball_12x11x10_uint8.raw --iso 80 --color-by values_12x11x10_float32.raw";
    for (flags, words) in [
        ("m.stl", "stl is written without colours"),
        ("m.html", "html is written without colours"),
        ("m.3mf", "3mf is written without colours"),
        ("m.glb --to glb-meshopt", "is written without colours"),
        ("m.glb --color red", "--color and --color-by exclude each other"),
        ("m.ply --palette virids", "one of viridis plasma"),
        ("m.ply --color-range 3,1", "the smaller one first"),
    ] {
        let (code, stderr) = run(folder, &format!("{base} {flags}"));
        assert!(code == 2 && stderr.contains(words), "{flags}: {stderr}");
    }
    let (code, stderr) = run(folder, "mesh ball_12x11x10_uint8.raw --iso 80 --palette jet m.ply");
    assert!(code == 2 && stderr.contains("--color-by"), "{stderr}");
}

#[test]
fn preview_has_a_colour_bar() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_volumes(folder);
    let picture = |flags: &str| {
        let line = format!("mesh ball_12x11x10_uint8.raw {flags} --preview p.png");
        works(folder, &line);
        image::open(folder.join("p.png")).unwrap().into_rgba8()
    };
    // The bar is a column of opaque greys from white at the top to black at the bottom.
    let bar = |picture: &image::RgbaImage| {
        (picture.width() * 2 / 3..picture.width()).find(|&x| {
            let column = (0..picture.height()).map(|y| picture.get_pixel(x, y).0);
            let greys: Vec<u8> = column
                .filter(|[r, g, b, alpha]| (r, g, *alpha) == (g, b, 255))
                .map(|pixel| pixel[0])
                .collect();
            // White lies above and below the bar.
            let end = greys.iter().rposition(|&grey| grey < 8).map_or(0, |black| black + 1);
            let bar = &greys[..end];
            bar.len() > 80 && bar.is_sorted_by(|above, below| above >= below) && bar[40] > 128
        })
    };
    let values = "--color-by values_12x11x10_float32.raw --palette gray";
    let ranged = format!("{values} --color-range 0,10 --size 320x200");
    for mesh in ["--iso 80 m.ply", "--iso 80 m.glb", "--iso 40,80 m.glb"] {
        let found = picture(&format!("{mesh} {ranged}"));
        assert_eq!((found.width(), found.height()), (320, 200));
        let x = bar(&found).expect(mesh);
        // Numbers stand right of the bar.
        let is_dark = |x, y| found.get_pixel(x, y).0[1] < 100;
        assert!((x + 24..318).any(|x| (0..200).any(|y| is_dark(x, y))), "{mesh}");
    }
    // The ranges of several surfaces differ, so one bar cannot stand for all.
    for flags in [
        format!("--iso 80 {values} --size 90x80 m.ply"),
        format!("--iso 40,80 {values} --size 320x200 m.glb"),
        "--iso 80 --size 320x200 m.ply".to_owned(),
    ] {
        assert_eq!(bar(&picture(&flags)), None, "{flags}");
    }
}

#[test]
fn preview_shows_mesh_colours() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_volumes(folder);
    let picture = |flags: &str| {
        works(folder, &format!("mesh {flags} --size 90x80 --preview p.png"));
        image::open(folder.join("p.png")).unwrap().into_rgba8()
    };
    let all = |picture: &image::RgbaImage, is_so: fn([u8; 4]) -> bool| {
        picture.pixels().filter(|pixel| pixel.0[3] == 255).all(|pixel| is_so(pixel.0))
    };
    let ball = "ball_12x11x10_uint8.raw --iso 80";
    let bone = picture(&format!("{ball} m.ply"));
    assert!(all(&bone, |[r, g, b, _]| r >= g && g >= b));
    let blue = picture(&format!("{ball} --color blue m.glb"));
    assert!(all(&blue, |[r, g, b, _]| b > r && b > g));
    let green =
        picture(&format!("{ball} --color-by values_12x11x10_float32.raw --palette cool m.ply"));
    let mean = |i: usize| green.pixels().map(|pixel| u64::from(pixel.0[i])).sum::<u64>();
    assert!(mean(2) > mean(0) && mean(2) > mean(1), "cool is blue everywhere");
    // A red ball in a translucent blue one: red shows only in the middle, through blue.
    let two =
        picture("ball_12x11x10_uint8.raw --iso 40,140 --color blue,red --background white m.glb");
    let [outer, inner] = [two.get_pixel(45, 12).0, two.get_pixel(45, 40).0];
    assert!(outer[2] > outer[0] && inner[0] > outer[0] / 2 && inner[2] > 0, "{outer:?} {inner:?}");
    assert!(inner[0] > inner[1] && outer[1] > inner[1], "{outer:?} {inner:?}");
    assert_eq!(two.get_pixel(0, 0).0, [255; 4]);
    let (code, stderr) =
        run(folder, "mesh ball_12x11x10_uint8.raw --iso 40,80 m.ply --preview p.png");
    assert!(code == 2 && stderr.contains("--preview needs {iso}"), "{stderr}");
    // Each label has its own colour.
    let labels: Vec<u8> = (0..8 * 6 * 6).map(|i| if i % 8 < 4 { 1 } else { 2 }).collect();
    fs::write(folder.join("l_8x6x6_uint8.raw"), labels).unwrap();
    let both = picture("l_8x6x6_uint8.raw --labels m.ply");
    let [left, right] = [both.get_pixel(30, 40).0, both.get_pixel(60, 40).0];
    assert!(left[3] == 255 && right[3] == 255);
    let far = (0..3).map(|i| left[i].abs_diff(right[i])).max().unwrap();
    assert!(far > 60, "{left:?} {right:?}");
}
