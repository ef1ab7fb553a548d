//! MZ3 of Surf Ice and NiiVue: a header of sixteen bytes, the triangles, the vertices; little-endian and uncompressed.

use super::{
    Details, Out,
    chunks::{to_count, write_triples},
};
use crate::data::surface::Surface;

/// The first two bytes of a file, and the bits of the arrays that follow: triangles and vertices.
pub(super) const MAGIC: u16 = 0x5a4d;
pub(super) const ARRAYS: u16 = 1 | 2;

pub(super) fn write(out: &mut Out<'_>, surface: &Surface, _: Details) -> std::io::Result<()> {
    let count =
        |len: usize| to_count::<i32>(len, "MZ3 holds at most 2,147,483,647 vertices and triangles");
    out.write_all(&[MAGIC.to_le_bytes(), ARRAYS.to_le_bytes()].concat())?;
    // The third number is the number of bytes to skip before the arrays.
    let counts = [count(surface.triangles.len())?, count(surface.positions.len())?, 0];
    out.write_all(&counts.map(i32::to_le_bytes).concat())?;
    write_triples(out, &surface.triangles)?;
    write_triples(out, &surface.positions)
}
