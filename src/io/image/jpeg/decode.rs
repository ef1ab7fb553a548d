//! Decodes the common kinds of JPEG on all cores. Scans that do not depend on each other are read in
//! parallel, and pixels are made on the other cores while the last scan is still being read.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use super::{
    bands::{Bands, Stream},
    block::BlockRow,
    container::{File, Scan},
    scan::{read_ac, read_dc},
};
use crate::{
    data::{
        image::{Image, Metadata},
        jpeg::Frame,
        samples::Samples,
    },
    memory::{self, raise},
};

/// Decodes a file, allocating about `limit` bytes at most; nothing where it is of another kind, damaged,
/// or too large. The image has the metadata as they are in the file.
pub fn decode(bytes: &[u8], limit: u64) -> Option<Image> {
    let (file, frame) = File::parse(bytes)?;
    decode_parsed(file, &frame, limit)
}

/// [`decode`] of a file whose headers are read.
pub fn decode_parsed(file: File<'_>, frame: &Frame, limit: u64) -> Option<Image> {
    if file.bytes_needed() > limit {
        return None;
    }
    let ([width, height], channels) = (frame.size, frame.colour.channels());
    let samples = Samples::U8(pixels(&file, frame)?);
    let metadata = Metadata { icc: file.icc(), exif: file.exif };
    Some(Image { width, height, channels, samples, is_linear: false, metadata })
}

fn pixels(file: &File<'_>, frame: &Frame) -> Option<Vec<u8>> {
    let empty = |c| (0..file.rows(c)).map(|_| BlockRow::default()).collect();
    let mut planes: Vec<Vec<BlockRow>> = file.components.iter().map(empty).collect();
    let mut dc: Vec<Vec<i16>> = vec![Vec::new(); file.components.len()];
    // The last scan, if it has AC coefficients, is read while pixels are made.
    let (last, earlier) = match file.scans.split_last() {
        Some((last, earlier)) if last.selection.end > 0 => (Some(last), earlier),
        _ => (None, &file.scans[..]),
    };
    read_in_parallel(file, earlier, &mut planes, &mut dc)?;
    let is_last = |c: usize| last.is_some_and(|s| s.members.iter().any(|m| m.component == c));
    let bytes = frame.size[0] * frame.size[1] * frame.colour.channels();
    let mut pixels = memory::zeros(bytes).unwrap_or_else(raise);
    let mut unfinished = Vec::new();
    let mut rows: Vec<Vec<OnceLock<BlockRow>>> = Vec::new();
    for (c, plane) in planes.into_iter().enumerate() {
        if is_last(c) {
            rows.push(plane.iter().map(|_| OnceLock::new()).collect());
            unfinished.push(plane);
        } else {
            rows.push(plane.into_iter().map(OnceLock::from).collect());
        }
    }
    let bands = Bands::new(frame, &dc, rows)?;
    match last {
        None => bands.render_all(&mut pixels),
        Some(scan) => rayon::scope(|scope| {
            let stream = Stream::new(&bands, scope, &mut pixels);
            read_ac(file, scan, unfinished.iter_mut().collect(), Some(stream))
        })?,
    }
    Some(pixels)
}

/// Reads `scans`: DC coefficients, and the AC coefficients of each component, are independent of each
/// other.
fn read_in_parallel(
    file: &File<'_>,
    scans: &[Scan],
    planes: &mut [Vec<BlockRow>],
    dc: &mut [Vec<i16>],
) -> Option<()> {
    let failed = &AtomicBool::new(false);
    let note = |read: Option<()>| {
        if read.is_none() {
            failed.store(true, Ordering::Relaxed);
        }
    };
    let mut planes: Vec<Option<&mut Vec<BlockRow>>> = planes.iter_mut().map(Some).collect();
    rayon::scope(|scope| {
        for c in 0..planes.len() {
            let chain: Vec<&Scan> = scans
                .iter()
                .filter(|scan| scan.selection.end > 0 && scan.members[0].component == c)
                .collect();
            let Some(first) = chain.first() else { continue };
            let members = first.members.iter();
            let mut rows: Vec<&mut Vec<BlockRow>> =
                members.filter_map(|member| planes[member.component].take()).collect();
            scope.spawn(move |_| {
                for scan in chain {
                    let rows = rows.iter_mut().map(|rows| &mut **rows).collect();
                    note(read_ac(file, scan, rows, None));
                }
            });
        }
        for scan in scans.iter().filter(|scan| scan.selection.end == 0) {
            note(read_dc(file, scan, dc));
        }
    });
    (!failed.load(Ordering::Relaxed)).then_some(())
}
