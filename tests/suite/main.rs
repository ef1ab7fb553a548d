//! The test suite, one binary: naive references judge both twins of every kernel, on every device at
//! hand and on a deliberately small one; the program is run as a user would.

mod blur;
mod common;
mod histogram;
mod image;
mod mesh;
mod scan;
mod shaders;
