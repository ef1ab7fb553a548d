//! For all counting routes: bands of pixels that fit a binding, and how many invocations count them.

use crate::{
    gpu::{Batch, Buffer, Context, DeviceLimits},
    util::error::Result,
};

/// Bytes of input on the device at a time.
const BAND: u64 = 256 << 20;

/// Uploads `bytes`, pixels of `pixel_bytes` each, band by band, and adds up the `counters` counters of all bands in 64
/// bits. `record` adds the passes over a band: it gets the band's pixels, their number, and counters that hold zeros.
///
/// # Errors
/// [`Kind::Gpu`](crate::util::error::Kind::Gpu) when the device fails.
pub fn count_bands(
    context: &Context,
    bytes: &[u8],
    pixel_bytes: usize,
    counters: usize,
    record: impl Fn(&mut Batch<'_>, &Buffer, u32, &Buffer) -> Result<()>,
) -> Result<Vec<u64>> {
    let mut sums = vec![0u64; counters];
    if bytes.is_empty() {
        return Ok(sums);
    }
    let most = context.max_binding().min(BAND) / 16 * 16 / pixel_bytes as u64 * pixel_bytes as u64;
    let band_bytes = (bytes.len() as u64).min(most);
    // Shaders read whole vectors of 16 bytes.
    let data = context.allocate("pixels", band_bytes.next_multiple_of(16))?;
    let counts = context.allocate("counts", counters as u64 * 4)?;
    for band in bytes.chunks(band_bytes as usize) {
        context.write(&data, 0, band)?;
        let mut batch = context.batch();
        batch.clear(&counts);
        record(&mut batch, &data, (band.len() / pixel_bytes) as u32, &counts)?;
        batch.run()?;
        let counted: Vec<u32> = context.read(&counts, counters)?;
        sums.iter_mut().zip(counted).for_each(|(sum, more)| *sum += u64::from(more));
    }
    Ok(sums)
}

/// Invocations a workgroup: `wanted`, where workgroup memory and limits allow that, else the 256 that every device
/// grants. All invocations of a workgroup share its counters.
pub fn workgroup_size(limits: &DeviceLimits, wanted: u32) -> u32 {
    if has_little_memory(limits) || limits.workgroup_size < wanted { 256 } else { wanted }
}

/// Whether a workgroup's memory has no room for 8192 counters.
pub fn has_little_memory(limits: &DeviceLimits) -> bool {
    limits.workgroup_bytes < 32 << 10
}

/// The most workgroups that stride over the pixels: this many fill large GPUs, and each one adds its counters to the
/// result.
pub fn most_workgroups(context: &Context) -> u64 {
    u64::from(context.limits.workgroups).min(528)
}
