//! NumPy's `.npy` files as volumes: arrays of axes (y, x), (z, y, x) or (volume, z, y, x), whether in C or in Fortran
//! order. There are no world coordinates.

use super::format::{
    BoxError, Endian, Format, Header, Outgoing, Placing, Start, Stored, Units, Writing, dims_of,
};
use crate::{
    data::dtype::Dtype,
    io::array::npy::{self, header},
};

/// The format.
pub const FORMAT: Format = Format {
    name: ".npy",
    extensions: &["npy"],
    has_signature: |bytes| bytes.starts_with(b"\x93NUMPY"),
    header_file: None,
    read,
    write: Some(Writing {
        names: &[".npy"],
        extensions: &["npy"],
        may_be_packed: false,
        keeps: |_| false,
        dtypes: &Dtype::SAMPLES,
        longest: [usize::MAX; 3],
        placing: Placing::Nothing,
        units: Units::Any,
        header: |&Outgoing { dims: [x, y, z], dtype, .. }| header(dtype, &[z, y, x]),
    }),
};

fn read(start: &mut Start<'_>) -> Result<Header, BoxError> {
    let array = npy::Header::read(start)?;
    let (volumes, sizes) = match array.shape[..] {
        [y, x] => (1, [x, y, 1]),
        [z, y, x] => (1, [x, y, z]),
        [volumes, z, y, x] => (volumes, [x, y, z]),
        _ => return Err(format!("axes: it has {}, not 2, 3 or 4", array.shape.len()).into()),
    };
    let dims = dims_of(sizes)?;
    dims_of([volumes; 3])?;
    let mut header = Header::new(dims, Stored::As(array.element.stored), start.position);
    header.volumes = volumes;
    header.endian = if array.element.is_big_endian { Endian::Big } else { Endian::Little };
    header.transposed = array.fortran;
    if header.transposed && volumes > 1 {
        return Err("four axes in Fortran order are not supported".into());
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back() {
        for dtype in Dtype::SAMPLES {
            let outgoing =
                Outgoing { dims: [4, 5, 6], dtype, placement: None, metadata: Vec::new() };
            assert_eq!(FORMAT.write_and_parse(&outgoing).1.volumes, 1);
        }
        for shape in [&[][..], &[7], &[0, 3, 4], &[1, 2, 3, 4, 5]] {
            let bytes = header(Dtype::U8, shape);
            assert!(FORMAT.parse(&bytes).is_err(), "{shape:?}");
        }
    }
}
