//! Rendered meshes: the CPU and the GPU draw the same image, with objects, light and colours in the right places.

use std::f32::consts::{PI, TAU};

use gpuproc::{data::surface::Surface, kernels::render::Render};

use crate::common::assert_twins;

/// Adds a finely triangulated ball to `mesh`.
fn add_ball(mesh: &mut Surface, centre: [f32; 3], radius: f32) {
    add_sphere(mesh, centre, radius, [40, 60]);
}

/// Adds a sphere made of rings from pole to pole, each with the same number of vertices.
fn add_sphere(mesh: &mut Surface, centre: [f32; 3], radius: f32, [rings, spokes]: [u32; 2]) {
    let base = mesh.positions.len() as u32;
    for ring in 0..=rings {
        let theta = PI * ring as f32 / rings as f32;
        for spoke in 0..spokes {
            let phi = TAU * spoke as f32 / spokes as f32;
            let unit = [theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()];
            mesh.positions.push([0, 1, 2].map(|i| centre[i] + radius * unit[i]));
        }
    }
    for ring in 0..rings {
        for spoke in 0..spokes {
            let at = |r: u32, s: u32| base + r * spokes + s % spokes;
            let [a, b] = [at(ring, spoke), at(ring, spoke + 1)];
            let [c, d] = [at(ring + 1, spoke), at(ring + 1, spoke + 1)];
            mesh.triangles.extend([[a, c, b], [b, c, d]]);
        }
    }
}

/// A floor of two large triangles with a ball on it.
fn scene() -> Surface {
    let positions = vec![[-2.0, -2.0, 0.0], [2.0, -2.0, 0.0], [2.0, 2.0, 0.0], [-2.0, 2.0, 0.0]];
    let mut mesh =
        Surface { positions, triangles: vec![[0, 1, 2], [0, 2, 3]], ..Surface::default() };
    add_ball(&mut mesh, [0.0, 0.0, 1.0], 1.0);
    mesh
}

fn draw(mesh: &Surface, render: Render) -> Vec<u8> {
    assert_twins(&render, mesh, |expected, found, name| {
        assert_eq!(expected.len(), found.len(), "{name}");
        // Trigonometry, powers and fused operations differ in the last bits between devices. An edge may therefore
        // cover another subpixel, a quarter of a pixel; nothing else may differ.
        let far = expected.iter().zip(found).filter(|(a, b)| a.abs_diff(**b) > 2).count();
        assert!(far * 500 < expected.len(), "{name}: {far} of {} samples differ", expected.len());
    })
}

const VIEW: Render =
    Render { size: [160, 120], azimuth: 30.0, elevation: 25.0, background: [0.0; 4], frame: None };

#[test]
fn cpu_and_gpu_draw_the_same_image() {
    let picture = draw(&scene(), VIEW);
    let drawn = picture.chunks(4).filter(|pixel| pixel[3] == 255).count();
    assert!(drawn > 4_000, "{drawn} of 19200 pixels are covered");
    if let Some(path) = std::env::var_os("GPUPROC_TEST_PICTURE") {
        image::save_buffer(path, &picture, 160, 120, image::ColorType::Rgba8).unwrap();
    }
}

#[test]
fn ball_is_round_centred_and_lit_from_above_left() {
    let mut mesh = Surface::default();
    add_ball(&mut mesh, [7.0, -3.0, 100.0], 5.0);
    let size = 101;
    let picture = draw(&mesh, Render { size: [size; 2], background: [1.0, 0.0, 0.0, 1.0], ..VIEW });
    let pixel = |x: u32, y: u32| &picture[4 * (y * size + x) as usize..][..4];
    for y in 0..size {
        for x in 0..size {
            let distance = (x as f32 - 50.0).hypot(y as f32 - 50.0);
            // The polygonal outline lies up to 0.3 % inside the circle.
            if distance < 0.46 * 101.0 - 1.5 {
                assert!(pixel(x, y)[2] > 0, "{x} {y} is not covered");
            } else if distance > 0.46 * 101.0 + 1.0 {
                assert_eq!(pixel(x, y), [255, 0, 0, 255], "{x} {y} is not background");
            }
        }
    }
    assert!(pixel(35, 30)[1] > pixel(70, 75)[1], "expected light from the upper left");
}

#[test]
fn draws_vertex_colours() {
    let mut mesh = scene();
    mesh.colors =
        mesh.positions.iter().map(|p| if p[2] > 1.0 { [255, 0, 0] } else { [0, 0, 255] }).collect();
    let picture = draw(&mesh, VIEW);
    let count = |more: usize, less: usize| {
        let pixels = picture.chunks(4).filter(|pixel| pixel[3] == 255);
        pixels.filter(|pixel| pixel[more] > pixel[less].saturating_add(40)).count()
    };
    assert!(count(0, 2) > 1_000 && count(2, 0) > 3_000, "{} {}", count(0, 2), count(2, 0));
}

/// Interpolated normals of a large triangle may point away from the viewer although the triangle faces it. Such pixels
/// must be as dark as their neighbours.
#[test]
fn coarse_surfaces_have_no_bright_pixels_at_their_silhouette() {
    let mut mesh = Surface::default();
    add_sphere(&mut mesh, [0.0; 3], 1.0, [5, 7]);
    mesh.normals = mesh.positions.clone();
    // The light comes from the upper left, so the lower right must be dark.
    for azimuth in [0.0, 20.0, 77.0, 200.0] {
        let picture = draw(&mesh, Render { azimuth, size: [120; 2], ..VIEW });
        for (i, pixel) in picture.chunks(4).enumerate() {
            let [x, y] = [i % 120, i / 120];
            if pixel[3] == 255 && x > 70 && y > 85 {
                assert!(pixel[0] < 150, "{azimuth}: {x} {y} {pixel:?}");
            }
        }
    }
}

#[test]
fn empty_mesh_draws_only_the_background() {
    let mesh = Surface::default();
    let picture = draw(&mesh, Render { background: [0.0, 0.0, 1.0, 1.0], ..VIEW });
    assert!(picture.chunks(4).all(|pixel| pixel == [0, 0, 255, 255]));
}
