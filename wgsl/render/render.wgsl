// Draws a triangle mesh: finds the nearest depths, their triangles and normals, then computes light and occlusion.
//
// In: vertices (positions, normals, colours), triangles as vertex numbers. Out: one RGBA word per pixel. Passes:
// `reset`; `raster_small` and `raster_large` for depths, then both again for the triangles at these depths (IDENTIFY);
// `orient` for normals; `shade` for the picture.
//
// All coordinates are in subpixels, SAMPLES x SAMPLES per pixel: x to the right, y down, depth away from the eye.

// Invocations of a workgroup.
const SIZE = 64u;
const SAMPLES = 2u;
// Whether the raster passes find the triangles of known depths; otherwise, they find the depths.
const IDENTIFY = false;
// Whether vertices have colours; otherwise, all surfaces have the colour of bone.
const COLORED = false;
// Triangles with more subpixels in their bounding boxes are drawn by a whole workgroup.
const SMALL = 64;
// Rows of subpixels that a workgroup of `raster_large` draws.
const STRIP = 256u;
const NOTHING = 0xffffffffu;

struct RenderParams {
    right: vec4<f32>,       // world to x: direction times scale, then offset
    down: vec4<f32>,        // world to y
    away: vec4<f32>,        // world to depth, positive everywhere
    background: vec4<f32>,  // stored (sRGB) values and alpha in 0..1, not premultiplied
    width: u32,             // subpixels of a row of this band
    height: u32,            // rows of subpixels of this band, with the halo
    skip: u32,              // rows of halo above the band
    rows: u32,              // rows of pixels to write
    triangles: u32,         // in this chunk
    first: u32,             // number of the chunk's first triangle
    reach: f32,             // maximum distance of an occluder, in subpixels
    span: f32,              // depth of the whole scene, in subpixels
}

@group(0) @binding(0) var<uniform> params: RenderParams;
// Positions, then as many normals, then as many colours if COLORED, sRGB in 0..1. They share a buffer since some
// devices grant a shader only four.
@group(0) @binding(1) var<storage, read> vertices: array<f32>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
// Bits of the nearest depth. Positive floats are ordered like their bits.
@group(0) @binding(3) var<storage, read_write> depths: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> owners: array<atomic<u32>>;
// x and y of the normals that face the eye, as two 16-bit numbers; if COLORED, followed by as many colours of 8 bits
// per channel.
@group(0) @binding(5) var<storage, read_write> facing: array<u32>;
@group(0) @binding(6) var<storage, read_write> picture: array<u32>;
// Sample positions of the search for occluders: offset right and down in whole subpixels, distance, and maximum rise
// towards the eye in units of `reach`.
@group(0) @binding(7) var<storage, read> taps: array<vec4<f32>>;

struct Triangle {
    a: vec3<f32>,
    b: vec3<f32>,
    c: vec3<f32>,
    corners: vec3<u32>,
    low: vec2<i32>,
    high: vec2<i32>,
}

fn invocation(group: vec3<u32>, groups: vec3<u32>, lane: u32) -> u32 {
    return (group.y * groups.x + group.x) * SIZE + lane;
}

fn project(vertex: u32) -> vec3<f32> {
    let p = vec3(vertices[3u * vertex], vertices[3u * vertex + 1u], vertices[3u * vertex + 2u]);
    return vec3(
        dot(params.right.xyz, p) + params.right.w,
        dot(params.down.xyz, p) + params.down.w,
        dot(params.away.xyz, p) + params.away.w,
    );
}

fn triangle(number: u32) -> Triangle {
    var t: Triangle;
    t.corners = vec3(indices[3u * number], indices[3u * number + 1u], indices[3u * number + 2u]);
    t.a = project(t.corners.x);
    t.b = project(t.corners.y);
    t.c = project(t.corners.z);
    // Subpixel centres are at n + 1/2.
    let low = min(min(t.a.xy, t.b.xy), t.c.xy) - 0.5;
    let high = max(max(t.a.xy, t.b.xy), t.c.xy) - 0.5;
    let last = vec2<f32>(vec2(params.width, params.height)) - 1.0;
    t.low = vec2<i32>(ceil(clamp(low, vec2(0.0), last + 1.0)));
    t.high = vec2<i32>(floor(clamp(high, vec2(-1.0), last)));
    return t;
}

// Twice the signed area of p, q and the point. Both triangles of an edge compute it from the lower vertex and get the
// same bits, so no point between them is missed.
fn edge(p: vec3<f32>, q: vec3<f32>, p_corner: u32, q_corner: u32, point: vec2<f32>) -> f32 {
    if p_corner < q_corner {
        return (q.x - p.x) * (point.y - p.y) - (q.y - p.y) * (point.x - p.x);
    }
    return -((p.x - q.x) * (point.y - q.y) - (p.y - q.y) * (point.x - q.x));
}

// Weights of the corners at a point, which sum to 1; negative if the point is outside.
fn weights(t: Triangle, point: vec2<f32>) -> vec3<f32> {
    let w = vec3(
        edge(t.b, t.c, t.corners.y, t.corners.z, point),
        edge(t.c, t.a, t.corners.z, t.corners.x, point),
        edge(t.a, t.b, t.corners.x, t.corners.y, point),
    );
    let area = w.x + w.y + w.z;
    if area == 0.0 || !(all(w >= vec3(0.0)) || all(w <= vec3(0.0))) {
        return vec3(-1.0);
    }
    return w / area;
}

fn visit(t: Triangle, number: u32, x: i32, y: i32) {
    let w = weights(t, vec2(f32(x), f32(y)) + 0.5);
    if w.x < 0.0 {
        return;
    }
    let at = u32(y) * params.width + u32(x);
    let bits = bitcast<u32>(w.x * t.a.z + w.y * t.b.z + w.z * t.c.z);
    if !IDENTIFY {
        atomicMin(&depths[at], bits);
    } else if bits <= atomicLoad(&depths[at]) + 8u {
        // Tolerates some units in the last place, since the two passes may be compiled with different rounding.
        atomicMin(&owners[at], params.first + number);
    }
}

fn is_small(t: Triangle) -> bool {
    let size = t.high - t.low + 1;
    return size.x * size.y <= SMALL;
}

@compute @workgroup_size(SIZE)
fn reset(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = invocation(group, groups, lane);
    if at < params.width * params.height {
        atomicStore(&depths[at], NOTHING);
        atomicStore(&owners[at], NOTHING);
    }
}

// One invocation per triangle.
@compute @workgroup_size(SIZE)
fn raster_small(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = invocation(group, groups, lane);
    if number >= params.triangles {
        return;
    }
    let t = triangle(number);
    if !is_small(t) {
        return;
    }
    for (var y = t.low.y; y <= t.high.y; y++) {
        for (var x = t.low.x; x <= t.high.x; x++) {
            visit(t, number, x, y);
        }
    }
}

// One workgroup for the large ones among SIZE triangles, within a strip of rows. One invocation per column.
@compute @workgroup_size(SIZE)
fn raster_large(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = (group.y * groups.x + group.x) * SIZE;
    let strip = i32(group.z * STRIP);
    for (var number = first; number < min(first + SIZE, params.triangles); number++) {
        let t = triangle(number);
        if is_small(t) {
            continue;
        }
        for (var y = max(t.low.y, strip); y <= min(t.high.y, strip + i32(STRIP) - 1); y++) {
            for (var x = t.low.x + i32(lane); x <= t.high.x; x += i32(SIZE)) {
                visit(t, number, x, y);
            }
        }
    }
}

// Interpolates the normals of this chunk's visible triangles.
@compute @workgroup_size(SIZE)
fn orient(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = invocation(group, groups, lane);
    if at >= params.width * params.height {
        return;
    }
    let number = atomicLoad(&owners[at]) - params.first;
    if number >= params.triangles {
        return;
    }
    let t = triangle(number);
    let point = vec2(f32(at % params.width), f32(at / params.width)) + 0.5;
    let w = max(weights(t, point), vec3(0.0));
    var n = vec3(0.0);
    for (var i = 0u; i < 3u; i++) {
        let v = arrayLength(&vertices) / select(2u, 3u, COLORED) + 3u * t.corners[i];
        n += w[i] * vec3(vertices[v], vertices[v + 1u], vertices[v + 2u]);
    }
    let seen = vec3(dot(params.right.xyz, n), -dot(params.down.xyz, n), -dot(params.away.xyz, n));
    // A surface seen from behind, with clockwise corners (y points down), is lit like its front. Between the corners of
    // a large triangle that faces the eye, an interpolated normal may point away from the eye; it is then projected
    // onto the picture plane.
    let u = t.b.xy - t.a.xy;
    let v = t.c.xy - t.a.xy;
    let side = select(1.0, -1.0, u.x * v.y - u.y * v.x > 0.0);
    let unit = select(length(seen), length(seen.xy), side * seen.z < 0.0);
    facing[at] = pack2x16snorm(side * seen.xy / max(unit, 1e-30));
    if COLORED {
        var color = vec3(0.0);
        for (var i = 0u; i < 3u; i++) {
            let c = 2u * (arrayLength(&vertices) / 3u) + 3u * t.corners[i];
            color += w[i] * vec3(vertices[c], vertices[c + 1u], vertices[c + 2u]);
        }
        facing[params.width * params.height + at] = pack4x8unorm(vec4(color, 1.0));
    }
}

fn depth_at(x: i32, y: i32) -> f32 {
    let last = vec2<i32>(vec2(params.width, params.height)) - 1;
    let at = clamp(vec2(x, y), vec2(0), last);
    let bits = atomicLoad(&depths[u32(at.y) * params.width + u32(at.x)]);
    return select(bitcast<f32>(bits), 1e30, bits == NOTHING);
}

// Openness of the surface, from 0 to 1. Neighbours above its tangent plane occlude it.
fn openness(x: i32, y: i32, depth: f32, normal: vec3<f32>) -> f32 {
    var shade = 0.0;
    for (var i = 0u; i < arrayLength(&taps); i++) {
        let tap = taps[i];
        // Depth of the tangent plane at the tap. y of the normal points up, y of the picture down.
        let plane = depth + (normal.x * tap.x - normal.y * tap.y) / max(normal.z, 0.2);
        let rise = plane - depth_at(x + i32(tap.x), y + i32(tap.y));
        let slope = rise / sqrt(rise * rise + tap.z * tap.z + 1.0);
        let near = clamp(2.0 - rise / (tap.w * params.reach), 0.0, 1.0);
        shade += clamp(slope - 0.08, 0.0, 1.0) * near;
    }
    return clamp(1.0 - 1.5 * shade / f32(arrayLength(&taps)), 0.0, 1.0);
}

fn to_srgb(linear: vec3<f32>) -> vec3<f32> {
    let c = clamp(linear, vec3(0.0), vec3(1.0));
    return select(1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, 12.92 * c, c <= vec3(0.0031308));
}

fn to_linear(stored: vec3<f32>) -> vec3<f32> {
    return select(pow((stored + 0.055) / 1.055, vec3(2.4)), stored / 12.92, stored <= vec3(0.04045));
}

// Linear colour of the unlit surface at a subpixel.
fn color_at(at: u32) -> vec3<f32> {
    if COLORED {
        return to_linear(unpack4x8unorm(facing[params.width * params.height + at]).rgb);
    }
    return vec3(0.84, 0.76, 0.64);
}

// Linear colour of a lit subpixel.
fn lit(x: i32, y: i32, depth: f32, normal: vec3<f32>, color: vec3<f32>) -> vec3<f32> {
    let open = openness(x, y, depth, normal);
    let key = max(dot(normal, vec3(-0.448, 0.647, 0.617)), 0.0);
    let fill = max(dot(normal, vec3(0.808, 0.115, 0.577)), 0.0);
    let shine = pow(max(dot(normal, vec3(-0.249, 0.360, 0.899)), 0.0), 40.0);
    let sky = 0.22 + 0.10 * normal.y;
    let distance = 1.0 - 0.3 * clamp(depth / params.span, 0.0, 1.0);
    let light = sky * open * open + 0.85 * key * mix(0.4, 1.0, open) + 0.18 * fill * open;
    return (color * light + 0.10 * shine * open) * distance;
}

@compute @workgroup_size(SIZE)
fn shade(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = invocation(group, groups, lane);
    let columns = params.width / SAMPLES;
    if at >= columns * params.rows {
        return;
    }
    var colour = vec3(0.0);
    var covered = 0.0;
    for (var sample = 0u; sample < SAMPLES * SAMPLES; sample++) {
        let x = (at % columns) * SAMPLES + sample % SAMPLES;
        let y = (at / columns) * SAMPLES + sample / SAMPLES + params.skip;
        let depth = depth_at(i32(x), i32(y));
        if depth < 1e29 {
            let subpixel = y * params.width + x;
            let xy = unpack2x16snorm(facing[subpixel]);
            let normal = vec3(xy, sqrt(max(1.0 - dot(xy, xy), 0.0)));
            colour += lit(i32(x), i32(y), depth, normal, color_at(subpixel));
            covered += 1.0;
        }
    }
    // Blends the surface over the background. Blends sRGB values, as other programs do.
    let surface = to_srgb(colour / max(covered, 1.0));
    let front = covered / f32(SAMPLES * SAMPLES);
    let behind = params.background.a * (1.0 - front);
    let alpha = front + behind;
    let mixed = (surface * front + params.background.rgb * behind) / max(alpha, 1e-6);
    picture[at] = pack4x8unorm(vec4(mixed, alpha));
}
