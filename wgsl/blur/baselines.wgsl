// The plain ways to blur RGBA bytes, kept to be measured against: all taps in two dimensions, and a box
// that adds up its taps anew at every pixel. Outside lies the nearest pixel.

struct PlainParams {
    width: u32,
    height: u32,
    radius: u32,
    total: u32, // pixels
}

const ACROSS = true; // the box goes along x, else y

@group(0) @binding(0) var<uniform> params: PlainParams;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>; // taps 0 to radius
@group(0) @binding(3) var<storage, read_write> target_: array<u32>;

fn pixel(x: i32, y: i32) -> vec4<f32> {
    let inside = clamp(vec2(x, y), vec2(0), vec2(i32(params.width), i32(params.height)) - vec2(1));
    let word = source[u32(inside.y) * params.width + u32(inside.x)];
    return vec4<f32>((vec4(word) >> vec4(0u, 8u, 16u, 24u)) & vec4(0xffu));
}

fn store(number: u32, value: vec4<f32>) {
    let v = vec4<u32>(value + vec4(0.5));
    target_[number] = v.x | (v.y << 8u) | (v.z << 16u) | (v.w << 24u);
}

@compute @workgroup_size(64)
fn direct(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.total {
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
fn naive(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) count: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = (id.y * count.x + id.x) * 64u + local;
    if number >= params.total {
        return;
    }
    let at = vec2(i32(number % params.width), i32(number / params.width));
    let radius = i32(params.radius);
    var sum: vec4<f32>;
    for (var i = -radius; i <= radius; i++) {
        let step = select(vec2(0, i), vec2(i, 0), ACROSS);
        sum += pixel(at.x + step.x, at.y + step.y);
    }
    store(number, sum * (1.0 / f32(2u * params.radius + 1u)));
}
