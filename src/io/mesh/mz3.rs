//! MZ3, of Surf Ice and NiiVue: a header of sixteen bytes, the triangles, the vertices; little-endian, here not
//! compressed.

use std::io::{self, Write};

use super::chunks::{too_large, write_each};
use crate::data::surface::Surface;

/// The first two bytes of a file, and the bits of the arrays that follow: triangles and vertices.
const MAGIC: u16 = 0x5a4d;
const HAS: u16 = 1 | 2;

pub(super) fn write(out: &mut impl Write, surface: &Surface) -> io::Result<()> {
    let Surface { positions, triangles, .. } = surface;
    let count =
        |len: usize| i32::try_from(len).map_err(|_| too_large("MZ3 counts to 2,147,483,647"));
    out.write_all(&[MAGIC.to_le_bytes(), HAS.to_le_bytes()].concat())?;
    // The third number counts bytes to skip before the arrays.
    let counts = [count(triangles.len())?, count(positions.len())?, 0];
    out.write_all(&counts.map(i32::to_le_bytes).concat())?;
    write_each(out, triangles, |triangle, bytes| {
        triangle.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    })?;
    write_each(out, positions, |position, bytes| {
        position.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    })
}
