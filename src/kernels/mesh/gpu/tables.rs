//! The tables of cases and variants in the layout of `wgsl/mesh/cubes.wgsl`.

use super::{
    super::{table::CASES, variants::VARIANTS},
    layout::SHADER,
};

use crate::util::memory;

/// [`CASES`] in the layout of the shader.
pub(super) fn case_words() -> Vec<u32> {
    let info = SHADER.constant("CASE_INFO") as usize;
    let mut words = memory::filled(0, SHADER.constant("VARIANTS") as usize);
    for (number, case) in CASES.iter().enumerate() {
        for (i, &edge) in case.triangles.iter().flatten().enumerate() {
            words[2 * number + i / 8] |= u32::from(edge) << (4 * (i % 8));
        }
        let [first, end] = [VARIANTS.first[number], VARIANTS.first[number + 1]].map(u32::from);
        let has_variants = if first < end { SHADER.constant("HAS_VARIANTS") } else { 0 };
        words[info + number] = case.triangles.len() as u32
            | u32::from(case.loops.saturating_sub(1)) << 4
            | u32::from(VARIANTS.faces[number]) << 8
            | has_variants
            | first << 16;
    }
    words
}

/// [`VARIANTS`] in the layout of the shader, from its offset `VARIANTS` on.
pub(super) fn variant_words() -> Vec<u32> {
    let [first, size, end] =
        ["VARIANTS", "VARIANT_WORDS", "SECTIONS"].map(|name| SHADER.constant(name) as usize);
    let mut words = memory::filled(0, end - first);
    let rows = words.chunks_exact_mut(size);
    assert_eq!(rows.len(), VARIANTS.all.len(), "the shader's table has one row per variant");
    for (words, variant) in rows.zip(&VARIANTS.all) {
        for (i, &edge) in variant.triangles.as_flattened().iter().enumerate() {
            words[i / 8] |= u32::from(edge) << (4 * (i % 8));
        }
        words[4] = u32::from_le_bytes([
            variant.triangles.len() as u8,
            variant.discs,
            variant.tunnels,
            variant.tunnel,
        ]);
    }
    words
}
