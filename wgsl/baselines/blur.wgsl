// Direct blurs of RGBA u8 images, for comparison in `gpuproc bench`: all taps of a two-dimensional Gaussian, or all
// taps of a box along one axis. One pixel per invocation, in f32. Edge mode: clamp.
//
// In and out: one pixel per word, rows without padding.

struct DirectBlurParams {
    width: u32,
    height: u32,
    radius: u32,
    vertical: u32, // whether the box is along y, not x
}

@group(0) @binding(0) var<uniform> params: DirectBlurParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>; // at distances 0 to radius
@group(0) @binding(3) var<storage, read_write> target_: array<u32>;

fn pixel(x: i32, y: i32) -> vec4<f32> {
    let at = clamp(vec2(x, y), vec2(0), vec2(i32(params.width), i32(params.height)) - vec2(1));
    let word = source[u32(at.y) * params.width + u32(at.x)];
    return vec4<f32>((vec4(word) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu));
}

fn store(number: u32, value: vec4<f32>) {
    let v = vec4<u32>(value + vec4(0.5));
    target_[number] = v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u);
}

@compute @workgroup_size(64)
fn gaussian(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.width * params.height {
        return;
    }
    let at = vec2(i32(number % params.width), i32(number / params.width));
    let radius = i32(params.radius);
    var sum: vec4<f32>;
    for (var y = -radius; y <= radius; y++) {
        var row: vec4<f32>;
        for (var x = -radius; x <= radius; x++) {
            row += weights[u32(abs(x))] * pixel(at.x + x, at.y + y);
        }
        sum += weights[u32(abs(y))] * row;
    }
    store(number, sum);
}

@compute @workgroup_size(64)
fn box_filter(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.width * params.height {
        return;
    }
    let at = vec2(i32(number % params.width), i32(number / params.width));
    let radius = i32(params.radius);
    var sum: vec4<f32>;
    for (var i = -radius; i <= radius; i++) {
        let step = select(vec2(i, 0), vec2(0, i), params.vertical == 1u);
        sum += pixel(at.x + step.x, at.y + step.y);
    }
    store(number, sum * (1.0 / f32(2u * params.radius + 1u)));
}
