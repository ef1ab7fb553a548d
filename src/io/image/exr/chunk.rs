//! A check of the sizes that a block states.

use exr::{
    block::chunk::{Chunk, CompressedBlock},
    compression::Compression,
    math::Vec2,
    meta::header::Header,
};

use crate::io::image::error::BoxError;

/// Returns an error if the header of a block with DWA compression claims more data than its pixels can have. The
/// decoder would allocate the claimed size.
pub fn check(header: &Header, chunk: &Chunk) -> Result<(), BoxError> {
    let data = match &chunk.compressed_block {
        CompressedBlock::ScanLine(block) => &block.compressed_pixels_le,
        CompressedBlock::Tile(block) => &block.compressed_pixels_le,
        _ => return Err("deep data are not supported".into()),
    };
    if !matches!(header.compression, Compression::DWAA(_) | Compression::DWAB(_)) {
        return Ok(());
    }
    // The block header is eleven u64: version; unpacked and packed bytes of channels that are only deflated; packed
    // bytes of AC, DC and run-length data; packed and unpacked bytes of run lengths; number of AC and of DC
    // coefficients; AC compression.
    let counters = data.as_chunks::<8>().0.iter().take(11).map(|bytes| u64::from_le_bytes(*bytes));
    let counters: Vec<u64> = counters.collect();
    let &[_, deflated, _, _, _, _, runs, run_samples, ac, dc, _] = &counters[..] else {
        // A block without a header holds uncompressed samples.
        return Ok(());
    };
    // Transforms work on 8 x 8 samples. Run-length data are at most twice as long as what they encode.
    let Vec2(across, down) = header.max_block_pixel_size();
    let pixels = across.next_multiple_of(8) as u64 * down.next_multiple_of(8) as u64;
    let bytes = pixels.saturating_mul(header.channels.bytes_per_pixel as u64);
    let counts = [deflated, runs / 2, run_samples, ac.saturating_mul(2), dc.saturating_mul(2)];
    match counts.into_iter().all(|count| count <= bytes) {
        true => Ok(()),
        false => Err("a block claims more data than its pixels can have".into()),
    }
}
