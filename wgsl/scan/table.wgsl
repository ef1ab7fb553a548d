// Summed-area tables (Crow 1984) of u32, in place: sums along the rows, then down the columns.
//
// In and out: `data`, a band of rows; `above`. Layout: rows from the top, channels interleaved. Chosen for u32;
// other types are scanned on the CPU.

struct Band {
    width: u32,
    // Rows of the band.
    height: u32,
    channels: u32,
    inclusive: u32,
}

@group(0) @binding(0) var<storage, read_write> data: array<u32>;
// The sum of each column above this band. The sum of this band is added at the end.
@group(0) @binding(1) var<storage, read_write> above: array<u32>;
@group(0) @binding(2) var<uniform> band: Band;

const LANES = 256u;
// Neighbouring pixels of an invocation at a time.
const EACH = 4u;

var<workgroup> line: array<u32, LANES>;

// A workgroup scans one channel of one row, LANES * EACH pixels at a time.
@compute @workgroup_size(256)
fn rows(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = id.y * groups.x + id.x;
    if number >= band.height * band.channels {
        return;
    }
    let start = number / band.channels * band.width * band.channels + number % band.channels;
    var before = 0u;
    for (var first = 0u; first < band.width; first += LANES * EACH) {
        var own: array<u32, EACH>;
        var sum = 0u;
        for (var i = 0u; i < EACH; i++) {
            let x = first + lane * EACH + i;
            own[i] = select(0u, data[start + min(x, band.width - 1u) * band.channels], x < band.width);
            sum += own[i];
        }
        line[lane] = sum;
        workgroupBarrier();
        var upto = sum;
        for (var distance = 1u; distance < LANES; distance <<= 1u) {
            if lane >= distance {
                upto += line[lane - distance];
            }
            workgroupBarrier();
            line[lane] = upto;
            workgroupBarrier();
        }
        var running = before + upto - sum;
        before += line[LANES - 1u];
        for (var i = 0u; i < EACH; i++) {
            let x = first + lane * EACH + i;
            if x < band.width {
                data[start + x * band.channels] =
                    select(running, running + own[i], band.inclusive != 0u);
            }
            running += own[i];
        }
        workgroupBarrier();
    }
}

// An invocation scans one column of one channel.
@compute @workgroup_size(256)
fn columns(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let column = (id.y * groups.x + id.x) * LANES + lane;
    let pitch = band.width * band.channels;
    if column >= pitch {
        return;
    }
    var sum = above[column];
    for (var y = 0u; y < band.height; y++) {
        let at = y * pitch + column;
        let before = sum;
        sum += data[at];
        data[at] = select(before, sum, band.inclusive != 0u);
    }
    above[column] = sum;
}
