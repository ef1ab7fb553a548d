//! Fields of binary headers.

use super::format::Endian;

/// Reads fields of a header at their offsets.
pub struct Fields<'a> {
    pub bytes: &'a [u8],
    pub endian: Endian,
}

impl Fields<'_> {
    fn raw<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes: [u8; N] = self.bytes[at..at + N].try_into().expect("N bytes");
        if self.endian == Endian::Big {
            bytes.reverse();
        }
        bytes
    }

    pub fn i16(&self, at: usize) -> i16 {
        i16::from_le_bytes(self.raw(at))
    }

    pub fn i32(&self, at: usize) -> i32 {
        i32::from_le_bytes(self.raw(at))
    }

    pub fn i64(&self, at: usize) -> i64 {
        i64::from_le_bytes(self.raw(at))
    }

    pub fn f32(&self, at: usize) -> f64 {
        f32::from_le_bytes(self.raw(at)).into()
    }

    pub fn f64(&self, at: usize) -> f64 {
        f64::from_le_bytes(self.raw(at))
    }

    pub fn text(&self, at: usize, len: usize) -> String {
        let bytes = self.bytes[at..at + len].split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(bytes).trim().to_owned()
    }
}
