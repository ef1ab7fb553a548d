//! Fields of binary headers.

use super::header::Endian;

/// Reads the fields of a header at their offsets.
pub struct BinaryFields<'a> {
    pub bytes: &'a [u8],
    pub endian: Endian,
}

impl BinaryFields<'_> {
    /// The bytes of a number, the least significant first.
    fn le_bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes: [u8; N] = self.bytes[at..at + N].try_into().expect("N bytes");
        self.endian.to_native(&mut bytes, N);
        bytes
    }

    pub fn i16(&self, at: usize) -> i16 {
        i16::from_le_bytes(self.le_bytes(at))
    }

    pub fn i32(&self, at: usize) -> i32 {
        i32::from_le_bytes(self.le_bytes(at))
    }

    pub fn i64(&self, at: usize) -> i64 {
        i64::from_le_bytes(self.le_bytes(at))
    }

    pub fn f32(&self, at: usize) -> f64 {
        f32::from_le_bytes(self.le_bytes(at)).into()
    }

    pub fn f64(&self, at: usize) -> f64 {
        f64::from_le_bytes(self.le_bytes(at))
    }

    pub fn text(&self, at: usize, len: usize) -> String {
        let bytes = self.bytes[at..at + len].split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(bytes).trim().to_owned()
    }
}
