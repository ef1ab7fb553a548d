// One dimension of the DCT of Loeffler, Ligtenberg and Moschytz (1989, figure 1) in i32, forward and inverse, as
// libjpeg computes it: constants have 13 fraction bits, values between the pass over rows and that over columns have
// two.

const BITS = 13u;
const PASS_BITS = 2u;

const C0_298 = 2446;
const C0_390 = 3196;
const C0_541 = 4433;
const C0_765 = 6270;
const C0_899 = 7373;
const C1_175 = 9633;
const C1_501 = 12299;
const C1_847 = 15137;
const C1_961 = 16069;
const C2_053 = 16819;
const C2_562 = 20995;
const C3_072 = 25172;

fn descaled(value: i32, shift: u32) -> i32 {
    return (value + (1 << (shift - 1u))) >> shift;
}

fn inverse_line(v: array<i32, 8>, shift: u32) -> array<i32, 8> {
    let rotated = (v[2] + v[6]) * C0_541;
    let t2 = rotated - v[6] * C1_847;
    let t3 = rotated + v[2] * C0_765;
    let t0 = (v[0] + v[4]) << BITS;
    let t1 = (v[0] - v[4]) << BITS;
    let all = (v[7] + v[3] + v[5] + v[1]) * C1_175;
    let z1 = (v[7] + v[1]) * C0_899;
    let z2 = (v[5] + v[3]) * C2_562;
    let z3 = all - (v[7] + v[3]) * C1_961;
    let z4 = all - (v[5] + v[1]) * C0_390;
    let even = vec4(t0 + t3, t1 + t2, t1 - t2, t0 - t3);
    let odd = vec4(
        v[1] * C1_501 - z1 + z4,
        v[3] * C3_072 - z2 + z3,
        v[5] * C2_053 - z2 + z4,
        v[7] * C0_298 - z1 + z3,
    );
    let sums = even + odd;
    let differences = even - odd;
    return array(
        descaled(sums.x, shift), descaled(sums.y, shift), descaled(sums.z, shift), descaled(sums.w, shift),
        descaled(differences.w, shift), descaled(differences.z, shift), descaled(differences.y, shift),
        descaled(differences.x, shift),
    );
}

// Sums that no constant multiplies: the first pass gives them two fraction bits, the second rounds these away. `shift`
// is that of the pass's products.
fn scaled(value: i32, shift: u32) -> i32 {
    if shift < BITS {
        return value << PASS_BITS;
    }
    return descaled(value, PASS_BITS);
}

fn forward_line(v: array<i32, 8>, shift: u32) -> array<i32, 8> {
    let s = vec4(v[0] + v[7], v[1] + v[6], v[2] + v[5], v[3] + v[4]);
    let d = vec4(v[0] - v[7], v[1] - v[6], v[2] - v[5], v[3] - v[4]);
    let a = s.x + s.w;
    let b = s.y + s.z;
    let c = s.y - s.z;
    let e = s.x - s.w;
    let rotated = (c + e) * C0_541;
    let all = (d.x + d.y + d.z + d.w) * C1_175;
    let z1 = (d.w + d.x) * C0_899;
    let z2 = (d.z + d.y) * C2_562;
    let z3 = all - (d.w + d.y) * C1_961;
    let z4 = all - (d.z + d.x) * C0_390;
    return array(
        scaled(a + b, shift),
        descaled(d.x * C1_501 - z1 + z4, shift),
        descaled(rotated + e * C0_765, shift),
        descaled(d.y * C3_072 - z2 + z3, shift),
        scaled(a - b, shift),
        descaled(d.z * C2_053 - z2 + z4, shift),
        descaled(rotated - c * C1_847, shift),
        descaled(d.w * C0_298 - z1 + z3, shift),
    );
}

// Eight blocks of a workgroup, one value per word, in rows of 9 so that columns lie in different banks.
const BLOCK = 72u;
var<workgroup> tile: array<i32, 8u * BLOCK>;

fn put_row(base: u32, row: u32, v: array<i32, 8>) {
    for (var x = 0u; x < 8u; x++) { // unrolled
        tile[base + 9u * row + x] = v[x];
    }
}

fn get_row(base: u32, row: u32) -> array<i32, 8> {
    var v: array<i32, 8>;
    for (var x = 0u; x < 8u; x++) { // unrolled
        v[x] = tile[base + 9u * row + x];
    }
    return v;
}

fn put_column(base: u32, column: u32, v: array<i32, 8>) {
    for (var y = 0u; y < 8u; y++) { // unrolled
        tile[base + 9u * y + column] = v[y];
    }
}

fn get_column(base: u32, column: u32) -> array<i32, 8> {
    var v: array<i32, 8>;
    for (var y = 0u; y < 8u; y++) { // unrolled
        v[y] = tile[base + 9u * y + column];
    }
    return v;
}
