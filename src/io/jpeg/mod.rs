//! JPEG on all cores: a decoder for the common kinds and an encoder in bands.

mod decode;
mod encode;
mod entropy;
mod render;

pub use decode::{Picture, decode};
pub use encode::Jpeg;
