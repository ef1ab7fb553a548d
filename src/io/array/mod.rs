//! Arrays of numbers: text, raw little-endian binary, and NumPy's `.npy`. They are read and written block by block, so
//! they may be larger than memory.

mod format;
mod layout;
pub mod npy;
mod raw;
mod reader;
pub mod text;
mod writer;

pub use format::ArrayFormat;
pub use layout::{Separator, TextLayout};
pub use raw::Element;
pub use reader::ArrayReader;
pub use writer::ArrayWriter;
