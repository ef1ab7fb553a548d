//! NumPy's `.npy` files as volumes: arrays of axes (y, x), (z, y, x) or (volume, z, y, x), whether in C or in Fortran
//! order. There are no world coordinates.

use super::{
    format::{Format, HeaderContent, WriteSupport},
    header::{BoxError, Description, Endian, HeaderReader, StoredType, checked_dims},
};
use crate::io::array::npy;

/// The format.
pub const FORMAT: Format = Format {
    has_signature: |bytes| bytes.starts_with(b"\x93NUMPY"),
    write: Some(WriteSupport {
        extensions: &["npy"],
        header: |&HeaderContent { dims: [x, y, z], dtype, .. }| npy::header(dtype, &[z, y, x]),
        ..WriteSupport::BASE
    }),
    ..Format::new(".npy", &["npy"], |input| input.with_header(parse))
};

fn parse(reader: &mut HeaderReader<'_>) -> Result<Description, BoxError> {
    let array = npy::Header::read(reader)?;
    let (volumes, sizes) = match array.shape[..] {
        [y, x] => (1, [x, y, 1]),
        [z, y, x] => (1, [x, y, z]),
        [volumes, z, y, x] => (volumes, [x, y, z]),
        _ => return Err(format!("array has {} axes; expected 2, 3 or 4", array.shape.len()).into()),
    };
    let dims = checked_dims(sizes)?;
    checked_dims([volumes; 3])?;
    let stored = match array.element.is_f16 {
        true => StoredType::F16,
        false => StoredType::As(array.element.stored),
    };
    let mut header = Description::new(dims, stored, reader.position);
    header.volumes = volumes;
    header.endian = if array.element.is_big_endian { Endian::Big } else { Endian::Little };
    header.transposed = array.fortran;
    if header.transposed && volumes > 1 {
        return Err("four axes in Fortran order are not supported".into());
    }
    Ok(header)
}
