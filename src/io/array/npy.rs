//! Header of NumPy's `.npy` files (format 1.0 to 3.0, numpy.org/devdocs/reference/generated/
//! numpy.lib.format.html): a magic number, a version, and a Python dictionary of three entries.
//!
//! The crates `npyz` and `ndarray-npy` parse the dictionary with a generated parser for all Python literals: 17 more
//! crates, one of which builds assembly, in place of 40 lines here.

use std::io::{self, Read};

use super::raw::{Element, read_values};
use crate::{io::source::read_full, util::memory};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Maximum number of bytes of a header. The header of an array of plain numbers has about a hundred.
const MAX_HEADER: usize = 1 << 20;

/// The content of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Storage of each number.
    pub element: Element,
    /// Numbers along each axis, the last axis fastest.
    pub shape: Vec<usize>,
    /// Count of all numbers.
    pub len: u64,
    /// Whether the first axis is the fastest in the file.
    pub fortran: bool,
    /// Offset of the first number in the file.
    pub begin: u64,
}

fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl Header {
    /// Reads the header, up to the first number.
    pub fn read(input: &mut impl Read) -> io::Result<Self> {
        let mut start = [0; 8];
        let got = read_full(input, &mut start)?;
        if !start.starts_with(MAGIC) {
            return Err(broken("bad magic number"));
        }
        if got < start.len() {
            return Err(broken("file ends within its header"));
        }
        let length_bytes = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => return Err(broken(format!("unsupported version {version}"))),
        };
        let mut length = [0; 4];
        input.read_exact(&mut length[..length_bytes])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_HEADER {
            return Err(broken(format!(
                "header has {length} bytes, expected at most {MAX_HEADER}"
            )));
        }
        let mut text = vec![0; length];
        input.read_exact(&mut text)?;
        let begin = (start.len() + length_bytes + length) as u64;
        Ok(Self { begin, ..Self::parse(&String::from_utf8_lossy(&text))? })
    }

    fn parse(text: &str) -> io::Result<Self> {
        let entry = |key: &str| {
            let quoted = [format!("'{key}'"), format!("\"{key}\"")];
            let after = quoted.iter().find_map(|key| Some(&text[text.find(key)? + key.len()..]));
            after
                .and_then(|after| after.trim_start().strip_prefix(':'))
                .map(str::trim_start)
                .ok_or_else(|| broken(format!("header has no entry `{key}`")))
        };
        let descr = entry("descr")?;
        let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let descr = quote.and_then(|quote| descr[1..].split(quote).next());
        let descr = descr.ok_or_else(|| {
            broken("`descr` is not one number type; structured arrays are not supported")
        })?;
        let element = Element::from_descr(descr)
            .ok_or_else(|| broken(format!("unsupported number type `{descr}`")))?;
        let shape = entry("shape")?.strip_prefix('(').and_then(|s| s.split(')').next());
        let shape = shape.ok_or_else(|| broken("`shape` is not a tuple of integers"))?;
        let shape: Vec<usize> = shape
            .split(',')
            .map(str::trim)
            .filter(|axis| !axis.is_empty())
            .map(|axis| axis.trim_end_matches('L').parse())
            .collect::<Result<_, _>>()
            .map_err(|_| broken("`shape` is not a tuple of integers"))?;
        // The limit of NumPy.
        if shape.len() > 64 {
            return Err(broken(format!("array has {} axes, expected at most 64", shape.len())));
        }
        let len = shape.iter().try_fold(1u64, |len, &axis| len.checked_mul(axis as u64));
        let len = len
            .filter(|len| len.checked_mul(8).is_some())
            .ok_or_else(|| broken("shape is too large"))?;
        // For one axis, both orders are the same.
        let fortran = entry("fortran_order")?.starts_with("True") && shape.len() > 1;
        Ok(Self { element, shape, len, fortran, begin: 0 })
    }
}

/// Reads an array in Fortran order of numbers of `size` bytes, and reorders them so that the last axis of `shape` is the
/// fastest. If the data end early, returns the bytes up to there.
pub fn read_in_c_order(input: &mut impl Read, shape: &[usize], size: usize) -> io::Result<Vec<u8>> {
    let len: usize = shape.iter().product();
    let mut bytes = Vec::new();
    read_values::<u8>(input, &mut bytes, len * size, 0)?;
    if bytes.len() != len * size {
        return Ok(bytes);
    }
    // Strides in the file: the first axis is the fastest.
    let mut steps = Vec::new();
    let mut step = 1;
    for &axis in shape {
        steps.push(step);
        step *= axis;
    }
    let mut ordered = memory::room(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut place = vec![0; shape.len()];
    let mut from = 0;
    for _ in 0..len {
        ordered.extend_from_slice(&bytes[from * size..][..size]);
        for axis in (0..place.len()).rev() {
            place[axis] += 1;
            from += steps[axis];
            if place[axis] < shape[axis] {
                break;
            }
            from -= steps[axis] * place[axis];
            place[axis] = 0;
        }
    }
    Ok(ordered)
}

/// Header (version 1.0) of a little-endian array of `element` in C order.
pub fn header(element: impl Into<Element>, shape: &[usize]) -> Vec<u8> {
    let Element { stored, is_bool, .. } = element.into();
    let code = if is_bool { "|b1".to_owned() } else { format!("<{}", stored.numpy_code()) };
    // A Python tuple of one element ends with a comma.
    let axes: String = match shape {
        [one] => format!("{one},"),
        more => more.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({axes}), }}");
    // The header ends with a newline, and the numbers begin at a multiple of 64 bytes.
    let before = MAGIC.len() + 4;
    let length = (before + text.len() + 1).next_multiple_of(64) - before;
    text.extend(std::iter::repeat_n(' ', length - text.len() - 1));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.into_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dtype::Dtype;

    #[test]
    fn broken_headers_are_refused() {
        let read = |text: &str| Header::parse(text);
        let fine = "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(read(fine).unwrap().element.dtype(), Dtype::I32);
        for (from, to) in [
            (">i2", ">c8"),
            ("'>i2'", "[('a', '<i2')]"),
            ("(2,)", "(2,x)"),
            ("(2,)", "(4294967296, 4294967296)"),
            ("(2,)", "2"),
            ("'shape'", "'form'"),
        ] {
            assert!(read(&fine.replace(from, to)).is_err(), "{to}");
        }
        let fortran = fine.replace("False", "True");
        assert!(!read(&fortran).unwrap().fortran, "one axis has one order");
        assert!(read(&fortran.replace("(2,)", "(2, 2)")).unwrap().fortran);
    }

    #[test]
    fn fortran_order_becomes_c_order() {
        // The value of each number is its position: its three indices as digits.
        let mut bytes = Vec::new();
        for z in 0..2 {
            for y in 0..3 {
                bytes.extend([100, 0].map(|x: u8| 100 - x + 10 * y + z));
            }
        }
        let ordered = read_in_c_order(&mut &bytes[..], &[2, 3, 2], 1).unwrap();
        assert_eq!(ordered, [0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121]);
        assert_eq!(read_in_c_order(&mut &bytes[..5], &[2, 3, 2], 1).unwrap().len(), 5);
    }
}
