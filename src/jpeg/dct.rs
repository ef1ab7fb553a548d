//! The discrete cosine transforms of libjpeg ("islow"): per dimension a product with an integer matrix of 13 fraction
//! bits, then a division with rounding.
//!
//! The matrix is that of Loeffler, Ligtenberg and Moschytz (1989, figure 1), whose constants are rounded one by one.
//! Sums wrap around in 32 bits, so that damaged files give the same samples on all devices.

/// Fraction bits of the matrix.
pub(super) const BITS: u32 = 13;
/// Fraction bits between the two passes for samples of 8 bits, and for samples of 12 bits.
pub(super) const PASS_BITS: u32 = 2;
const PASS_BITS_12: u32 = 1;

/// A block, row by row.
pub type Values8x8 = [[i32; 8]; 8];

/// The basis functions of the frequencies 0, 2, 4 and 6, at samples 0 to 3. They are symmetric about the center.
pub(super) const EVEN: [[i32; 4]; 4] = {
    let (one, a) = (1 << BITS, fixed(0.541196100));
    let (b, c) = (a + fixed(0.765366865), a - fixed(1.847759065));
    [[one; 4], [b, a, -a, -b], [one, -one, -one, one], [a, c, -c, -a]]
};

/// The basis functions of the frequencies 1, 3, 5 and 7, at samples 0 to 3. They are antisymmetric about the center.
pub(super) const ODD: [[i32; 4]; 4] = {
    let all = fixed(1.175875602);
    let (z1, z2) = (fixed(0.899976223), fixed(2.562915447));
    let (z3, z4) = (fixed(1.961570560), fixed(0.390180644));
    let [t0, t1] = [fixed(0.298631336), fixed(2.053119869)];
    let [t2, t3] = [fixed(3.072711026), fixed(1.501321110)];
    [
        [t3 - z1 + all - z4, all, all - z4, all - z1],
        [all, t2 - z2 + all - z3, all - z2, all - z3],
        [all - z4, all - z2, t1 - z2 + all - z4, all],
        [all - z1, all - z3, all, t0 - z1 + all - z3],
    ]
};

const fn fixed(value: f64) -> i32 {
    (value * (1 << BITS) as f64 + 0.5) as i32
}

/// A positive constant of the colour conversion with 16 fraction bits, rounded.
#[inline(always)]
pub(super) const fn fixed_16(value: f64) -> i32 {
    (value * 65536.0 + 0.5) as i32
}

/// Multiplies coefficients, row by row, by their quantization steps. Products wrap around.
pub(super) fn dequantized<S: Copy + Into<i32>>(block: &[i16; 64], steps: &[S; 64]) -> Values8x8 {
    let product = |i: usize| i32::from(block[i]).wrapping_mul(steps[i].into());
    std::array::from_fn(|y| std::array::from_fn(|x| product(8 * y + x)))
}

/// The transpose of a matrix.
pub(super) const fn transposed(matrix: [[i32; 4]; 4]) -> [[i32; 4]; 4] {
    let (mut out, mut i) = ([[0; 4]; 4], 0);
    while i < 16 {
        out[i % 4][i / 4] = matrix[i / 4][i % 4];
        i += 1;
    }
    out
}

/// The inverse DCT of a block of 8-bit samples, without the shift of 128.
pub fn inverse(block: Values8x8) -> Values8x8 {
    inverse_passes(block, PASS_BITS)
}

/// [`inverse`] for samples of 12 bits, of which libjpeg keeps one fraction bit less between the passes.
pub fn inverse_12_bits(block: Values8x8) -> Values8x8 {
    inverse_passes(block, PASS_BITS_12)
}

/// The columns come first. The result of both passes is 8 times too large before the last shift.
fn inverse_passes(block: Values8x8, pass_bits: u32) -> Values8x8 {
    let [[dc, others @ ..], rows @ ..] = &block;
    if *others == [0; 7] && *rows == [[0; 8]; 7] {
        let [first, ..] = inverse_line([*dc, 0, 0, 0, 0, 0, 0, 0], BITS - pass_bits);
        return [inverse_line([first, 0, 0, 0, 0, 0, 0, 0], BITS + pass_bits + 3); 8];
    }
    let columns = transpose_block(block).map(|column| inverse_line(column, BITS - pass_bits));
    transpose_block(columns).map(|row| inverse_line(row, BITS + pass_bits + 3))
}

fn inverse_line(v: [i32; 8], shift: u32) -> [i32; 8] {
    let even = product(&const { transposed(EVEN) }, [v[0], v[2], v[4], v[6]]);
    let odd = product(&const { transposed(ODD) }, [v[1], v[3], v[5], v[7]]);
    std::array::from_fn(|x| match x {
        0..4 => rounded(even[x].wrapping_add(odd[x]), shift),
        _ => rounded(even[7 - x].wrapping_sub(odd[7 - x]), shift),
    })
}

/// The forward DCT, 8 times too large: first the rows, then the columns.
pub fn forward(block: Values8x8) -> Values8x8 {
    let rows = block.map(|row| forward_line(row, BITS - PASS_BITS));
    transpose_block(transpose_block(rows).map(|column| forward_line(column, BITS + PASS_BITS)))
}

fn forward_line(v: [i32; 8], shift: u32) -> [i32; 8] {
    let even = product(&EVEN, std::array::from_fn(|x| v[x] + v[7 - x]));
    let odd = product(&ODD, std::array::from_fn(|x| v[x] - v[7 - x]));
    std::array::from_fn(|k| rounded(if k % 2 == 0 { even[k / 2] } else { odd[k / 2] }, shift))
}

fn product(matrix: &[[i32; 4]; 4], v: [i32; 4]) -> [i32; 4] {
    matrix.map(|row| (0..4).fold(0i32, |sum, i| sum.wrapping_add(row[i].wrapping_mul(v[i]))))
}

/// `value` divided by `1 << shift`.
fn rounded(value: i32, shift: u32) -> i32 {
    value.wrapping_add(1 << (shift - 1)) >> shift
}

fn transpose_block(block: Values8x8) -> Values8x8 {
    std::array::from_fn(|y| std::array::from_fn(|x| block[x][y]))
}
