// The published pipeline of marching cubes on GPUs, with three vertices per triangle, for u8.
// Chosen by `gpuproc bench` alone.
//
// In: volume. Out: corners of all triangles. A cell is marked if the surface passes through it. The host scans the
// marks, and `compact` lists the marked cells. Their vertices are counted, scanned, and emitted. In each pass, an
// invocation takes one item.

// Invocations of a workgroup.
const SIZE = 256u;
// Words of the cases.
const CASES = 512u;

struct ClassicParams {
    // Samples along x, y and z.
    x: u32,
    y: u32,
    z: u32,
    // Items of this pass.
    count: u32,
    level: f32,
    // Where the tables begin in `volume`, in words.
    tables: u32,
}

@group(0) @binding(0) var<uniform> params: ClassicParams;
// The samples, four per word, then the tables, since some devices grant a shader only four buffers:
//   two words per case   15 edge numbers of 4 bits, the corners of its triangles; above, how many triangles
//   one word per edge    x, y, z of one end in bits 0..2, of the other in bits 3..5
@group(0) @binding(1) var<storage, read> volume: array<u32>;
@group(0) @binding(2) var<storage, read_write> values: array<u32>;
@group(0) @binding(3) var<storage, read_write> offsets: array<u32>;
@group(0) @binding(4) var<storage, read_write> active_cells: array<u32>;
@group(0) @binding(5) var<storage, read_write> corners: array<f32>;

fn item(group: vec3<u32>, groups: vec3<u32>, lane: u32) -> u32 {
    return (group.y * groups.x + group.x) * SIZE + lane;
}

fn sample(place: vec3<u32>) -> f32 {
    let index = (place.z * params.y + place.y) * params.x + place.x;
    return f32((volume[index / 4u] >> (8u * (index % 4u))) & 0xffu);
}

fn place_of(cell: u32) -> vec3<u32> {
    let row = cell / (params.x - 1u);
    let slice = row / (params.y - 1u);
    return vec3(cell - row * (params.x - 1u), row - slice * (params.y - 1u), slice);
}

fn case_words(number: u32) -> vec2<u32> {
    let at = params.tables + 2u * number;
    return vec2(volume[at], volume[at + 1u]);
}

fn case_of(cell: u32) -> u32 {
    let place = place_of(cell);
    var found = 0u;
    for (var corner = 0u; corner < 8u; corner++) {
        // x, y: 00, 10, 11, 01, then the same above.
        let offset = vec3(((corner + 1u) >> 1u) & 1u, (corner >> 1u) & 1u, corner >> 2u);
        found |= u32(sample(place + offset) > params.level) << corner;
    }
    return found;
}

@compute @workgroup_size(SIZE)
fn mark(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let cell = item(group, groups, lane);
    if cell < params.count {
        let found = case_of(cell);
        values[cell] = u32(found != 0u && found != 255u);
    }
}

@compute @workgroup_size(SIZE)
fn compact(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let cell = item(group, groups, lane);
    if cell < params.count && values[cell] == 1u {
        active_cells[offsets[cell]] = cell;
    }
}

@compute @workgroup_size(SIZE)
fn count(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = item(group, groups, lane);
    if i < params.count {
        values[i] = 3u * (case_words(case_of(active_cells[i])).y >> 28u);
    }
}

@compute @workgroup_size(SIZE)
fn emit(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = item(group, groups, lane);
    if i >= params.count {
        return;
    }
    let place = place_of(active_cells[i]);
    let found = case_words(case_of(active_cells[i]));
    let count = 3u * (found.y >> 28u);
    for (var corner = 0u; corner < count; corner++) {
        let number = (found[corner / 8u] >> (4u * (corner % 8u))) & 15u;
        let edge = volume[params.tables + CASES + number];
        let from_bits = (vec3(edge) >> vec3(0u, 1u, 2u)) & vec3(1u);
        let to_bits = (vec3(edge) >> vec3(3u, 4u, 5u)) & vec3(1u);
        let a = sample(place + from_bits);
        let b = sample(place + to_bits);
        let t = (params.level - a) / (b - a);
        let start = vec3<f32>(place + from_bits) + vec3(0.5);
        let vertex = start + t * vec3<f32>(to_bits - from_bits);
        let at = 3u * (offsets[i] + corner);
        corners[at] = vertex.x;
        corners[at + 1u] = vertex.y;
        corners[at + 2u] = vertex.z;
    }
}
