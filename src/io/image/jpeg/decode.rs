//! The decoder of the common kinds of JPEG, which runs on all cores. Scans that do not depend on each other are read in
//! parallel, and pixels are rendered while the last scan is still being read.

use super::{
    bands::{Bands, Consume, Stream, Target},
    block::BlockRow,
    container::{File, Scan},
    damage::Damage,
    scan::{Finished, read_ac, read_dc, read_sparse},
};
use crate::{
    data::{
        image::{Image, Metadata},
        jpeg::{Frame, SparseCoefficients},
        samples::Samples,
    },
    memory::{self, raise},
};

/// Decodes a file, allocating at most about `limit` bytes; `None` if it is of another kind, or too large. The metadata
/// of the image are as they are in the file. A message tells what is missing of the picture.
pub fn decode(bytes: &[u8], limit: u64) -> Option<(Image, Option<String>)> {
    let (file, frame) = File::parse(bytes)?;
    decode_parsed(&file, &frame, limit)
}

/// [`decode`] of a file whose headers are read.
pub fn decode_parsed(
    file: &File<'_>,
    frame: &Frame,
    limit: u64,
) -> Option<(Image, Option<String>)> {
    if file.bytes_needed() > limit || file.is_thin() {
        return None;
    }
    let ([width, height], channels) = (frame.size, frame.colour.channels());
    let damage = file.no_damage();
    let samples = Samples::U8(pixels(file, frame, &damage)?);
    let metadata = Metadata { icc: file.icc(), exif: file.exif.clone(), ..Metadata::default() };
    let image = Image { width, height, channels, samples, is_linear: false, metadata };
    Some((image, file.in_words(&damage)))
}

/// What is missing of a file that another decoder decodes: `None` if it is not known, as for progressive files, whose
/// coefficients would have to be kept; `Some(None)` if nothing is missing. Only one row of MCUs is in memory at a time.
pub fn missing(file: &File<'_>) -> Option<Option<String>> {
    if file.progressive {
        return None;
    }
    struct Forget;
    impl Finished for Forget {
        fn row(&mut self, _component: usize, _row: BlockRow) {}
    }
    let damage = file.no_damage();
    for scan in &file.scans {
        let empty = |c: usize| (0..file.rows(&file.components[c])).map(|_| BlockRow::default());
        let mut rows: Vec<Vec<BlockRow>> =
            scan.members.iter().map(|member| empty(member.component).collect()).collect();
        read_ac(file, scan, rows.iter_mut().collect(), Some(&mut Forget), &damage);
    }
    Some(file.in_words(&damage))
}

/// Hands all pixels of a file to `consume`, band by band, and returns what is missing, in words; `None` if the file is
/// of another kind, or takes more than about `limit` bytes.
pub fn decode_bands(
    file: &File<'_>,
    frame: &Frame,
    limit: u64,
    consume: &Consume<'_>,
) -> Option<Option<String>> {
    if file.bytes_needed() > limit || file.is_thin() {
        return None;
    }
    let (damage, bytes) = (file.no_damage(), bytes(frame));
    render(file, frame, &damage, |_| Target::Consumer(consume, bytes))?;
    Some(file.in_words(&damage))
}

fn pixels(file: &File<'_>, frame: &Frame, damage: &Damage) -> Option<Vec<u8>> {
    let mut pixels = memory::zeros(bytes(frame)).unwrap_or_else(raise);
    render(file, frame, damage, |bands| bands.picture(&mut pixels))?;
    Some(pixels)
}

/// Bytes of the pixels of a picture.
fn bytes(frame: &Frame) -> usize {
    frame.size[0] * frame.size[1] * frame.colour.channels()
}

/// Renders all pixels; `None` if the resolution of a component is no integer fraction of the picture's.
fn render<'p>(
    file: &File<'_>,
    frame: &Frame,
    damage: &Damage,
    target: impl FnOnce(&Bands<'_>) -> Target<'p>,
) -> Option<()> {
    let Blocks { last, mut unfinished, finished, dc } = Blocks::read(file, damage);
    let bands = Bands::new(frame, &dc)?;
    let target = target(&bands);
    rayon::scope(|scope| {
        let mut stream = Stream::new(&bands, scope, finished, target);
        match last {
            None => stream.mcu_rows(usize::MAX),
            Some(scan) => {
                let planes = unfinished.iter_mut().map(|(_, plane)| plane).collect();
                read_ac(file, scan, planes, Some(&mut stream), damage);
            }
        }
    });
    Some(())
}

/// Minimal number of bits of a coefficient in most files, to estimate the number of coefficients.
const BITS_A_COEFFICIENT: usize = 4;

/// Reads the coefficients of `file`; with what is missing, in words.
pub fn coefficients(file: &File<'_>, frame: &Frame) -> (SparseCoefficients, Option<String>) {
    let damage = file.no_damage();
    let entries =
        8 * file.scans.iter().map(|scan| scan.data.len()).sum::<usize>() / BITS_A_COEFFICIENT;
    let mut sparse = SparseCoefficients::zeros(frame, entries).unwrap_or_else(raise);
    if !file.progressive {
        file.scans.iter().for_each(|scan| read_sparse(file, scan, &mut sparse, &damage));
        return (sparse, file.in_words(&damage));
    }
    let Blocks { last, mut unfinished, finished, dc } = Blocks::read(file, &damage);
    let mut gather = Gather { dc: &dc, sparse: &mut sparse, rows: vec![0; dc.len()] };
    for (c, rows) in finished.into_iter().enumerate() {
        rows.into_iter().for_each(|row| gather.row(c, row));
    }
    if let Some(scan) = last {
        let planes = unfinished.iter_mut().map(|(_, plane)| plane).collect();
        read_ac(file, scan, planes, Some(&mut gather), &damage);
    }
    (sparse, file.in_words(&damage))
}

/// Collects the nonzero coefficients of a progressive file.
struct Gather<'a> {
    /// DC coefficients, one vector for each component.
    dc: &'a [Vec<i16>],
    sparse: &'a mut SparseCoefficients,
    /// For each component, the number of rows that were added.
    rows: Vec<usize>,
}

impl Finished for Gather<'_> {
    fn row(&mut self, c: usize, row: BlockRow) {
        let [across, _] = self.sparse.frame.blocks(c);
        let start = self.rows[c] * across;
        let first = self.sparse.frame.first_block(c) + start;
        self.rows[c] += 1;
        for x in 0..across {
            let (values, nonzero) = match row.nonzero.is_empty() {
                // No scan contains AC coefficients of this row.
                true => (&[0; 64], 0),
                false => (&row.values.as_chunks::<64>().0[x], row.nonzero[x]),
            };
            let dc = self.dc[c].get(start + x).copied().unwrap_or(0);
            self.sparse.set(first + x, values, dc, nonzero).unwrap_or_else(raise);
        }
    }
}

/// The coefficients of all scans but the last, if that has AC coefficients: pixels are rendered while the last scan is
/// read.
struct Blocks<'a> {
    last: Option<&'a Scan>,
    /// The components of the last scan, with their rows so far.
    unfinished: Vec<(usize, Vec<BlockRow>)>,
    /// The rows of the other components, one vector for each component.
    finished: Vec<Vec<BlockRow>>,
    /// DC coefficients of progressive files, one vector for each component.
    dc: Vec<Vec<i16>>,
}

impl<'a> Blocks<'a> {
    fn read(file: &'a File<'_>, damage: &Damage) -> Self {
        let empty = |c| (0..file.rows(c)).map(|_| BlockRow::default()).collect();
        let mut finished: Vec<Vec<BlockRow>> = file.components.iter().map(empty).collect();
        let mut dc: Vec<Vec<i16>> = vec![Vec::new(); file.components.len()];
        let (last, earlier) = match file.scans.split_last() {
            Some((last, earlier)) if last.selection.end > 0 => (Some(last), earlier),
            _ => (None, &file.scans[..]),
        };
        read_in_parallel(file, earlier, &mut finished, &mut dc, damage);
        let members = last.map_or(&[][..], |scan| &scan.members);
        let take = |c| (c, std::mem::take(&mut finished[c]));
        let unfinished = members.iter().map(|member| member.component).map(take).collect();
        Self { last, unfinished, finished, dc }
    }
}

/// Reads `scans` in parallel: scans of DC coefficients, and scans of AC coefficients of different components, are
/// independent of each other.
fn read_in_parallel(
    file: &File<'_>,
    scans: &[Scan],
    planes: &mut [Vec<BlockRow>],
    dc: &mut [Vec<i16>],
    damage: &Damage,
) {
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
                    read_ac(file, scan, rows, None, damage);
                }
            });
        }
        for scan in scans.iter().filter(|scan| scan.selection.end == 0) {
            read_dc(file, scan, dc, damage);
        }
    });
}
