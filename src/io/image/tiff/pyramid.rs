//! Pages of a file, and smaller copies of a page: levels of a pyramid, thumbnails, and other images that are not pages.

use super::{
    directory::{Directory, PageList, TiffFile},
    tag,
};
use crate::io::image::error::BoxError;

/// Images of a file that are not pages.
#[derive(Debug, Default)]
pub struct Copies {
    /// Smaller copies of the only page, 2^n times as small, the smallest first: offset of the directory, width and height.
    pub levels: Vec<(u64, [usize; 2])>,
    /// Width and height of others: thumbnails, masks, labels of slides.
    pub others: Vec<[usize; 2]>,
}

/// Properties of an image that its smaller copies share, apart from the size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ImageKind {
    samples: u64,
    bits: u64,
}

impl TiffFile<'_> {
    /// Pages of the file: the main chain without reduced copies and masks of other pages, or the whole chain if it has
    /// nothing else. A slide by Aperio is one page. So are tiled pages if those after the first, at least two, are
    /// smaller and smaller copies of it.
    pub fn pages(&self) -> Result<PageList, BoxError> {
        let (mut pages, mut others) = (Vec::new(), Vec::new());
        // The sizes of the pages as long as each is tiled and a smaller copy of the first.
        let mut levels: Option<Vec<[usize; 2]>> = Some(Vec::new());
        let mut first = None;
        let is_whole = self.for_each_directory(|at, directory| {
            if self.is_reduced(directory) {
                return others.push(at);
            }
            pages.push(at);
            let Some(known) = &mut levels else { return };
            let (size, kind) = (self.size(directory), self.image_kind(directory));
            let first = first.get_or_insert(kind);
            let is_copy = match (&known[..], size) {
                ([], Some(_)) => true,
                ([full, ..], Some(size)) => {
                    let last = known[known.len() - 1];
                    *first == kind && size[0] < last[0] && is_level(*full, size)
                }
                (_, None) => false,
            };
            let is_tiled = directory.find(tag::TILE_WIDTH).is_some();
            match size.filter(|_| is_copy && is_tiled) {
                Some(size) => known.push(size),
                None => levels = None,
            }
        })?;
        if pages.is_empty() {
            std::mem::swap(&mut pages, &mut others);
        } else if pages.len() > 2 && levels.is_some() || pages.len() > 1 && self.is_aperio(pages[0])
        {
            others.extend(pages.drain(1..));
        }
        let loss = (!is_whole).then(|| match pages.len() {
            1 => "pages after the first are missing or damaged".to_owned(),
            count => format!("pages after the first {count} are missing or damaged"),
        });
        Ok(PageList { offsets: pages, others, loss })
    }

    /// Smaller copies of the only one of `pages`, and other images.
    pub fn copies(&self, pages: &PageList) -> Result<Copies, BoxError> {
        /// Maximum number of images.
        const MAX: usize = 64;
        let first = self.directory(pages.offsets[0])?;
        let mut offsets = pages.others.clone();
        if pages.offsets.len() == 1 {
            offsets.extend(
                self.numbers(&first, tag::SUB_IFDS, MAX).ok().flatten().unwrap_or_default(),
            );
        }
        offsets.truncate(MAX);
        let mut copies = Copies::default();
        let (full, kind) = (self.size(&first), self.image_kind(&first));
        for at in offsets {
            let Ok(directory) = self.directory(at) else { continue };
            let Some(size) = self.size(&directory) else { continue };
            let is_copy = pages.offsets.len() == 1
                && full.is_some_and(|full| is_level(full, size))
                && self.image_kind(&directory) == kind;
            match is_copy {
                true => copies.levels.push((at, size)),
                false => copies.others.push(size),
            }
        }
        copies.levels.sort_by_key(|(_, size)| *size);
        Ok(copies)
    }

    /// TIFF 6.0, section 8: bit 0 of NewSubfileType is a reduced image, bit 2 a mask; 2 in the older SubfileType is a
    /// reduced image.
    fn is_reduced(&self, directory: &Directory) -> bool {
        let kind = self.first_number(directory, tag::NEW_SUBFILE_TYPE).ok().flatten();
        let older = self.first_number(directory, tag::SUBFILE_TYPE).ok().flatten();
        kind.map_or(older == Some(2), |kind| kind & 0b101 != 0)
    }

    /// Whether the page is that of a slide by Aperio, which is followed by a thumbnail, levels, and pictures of the label
    /// and of the whole slide.
    fn is_aperio(&self, at: u64) -> bool {
        let text = self.directory(at).ok().and_then(|first| self.text(&first, tag::DESCRIPTION));
        text.is_some_and(|text| text.starts_with("Aperio"))
    }

    fn size(&self, directory: &Directory) -> Option<[usize; 2]> {
        let side = |tag| usize::try_from(self.first_number(directory, tag).ok()??).ok();
        Some([side(tag::WIDTH)?, side(tag::HEIGHT)?])
    }

    fn image_kind(&self, directory: &Directory) -> ImageKind {
        let number = |tag| self.first_number(directory, tag).ok().flatten().unwrap_or(1);
        ImageKind { samples: number(tag::SAMPLES_PER_PIXEL), bits: number(tag::BITS) }
    }
}

/// Whether an image of `size` may be one of `full`, made 2^n times as small along both axes, with n at least 1.
fn is_level(full: [usize; 2], size: [usize; 2]) -> bool {
    let is_side =
        |full: usize, side: usize, n| side == full >> n || side == full.div_ceil(1_usize << n);
    let is_smaller = size[0] < full[0] && size[1] < full[1] && !size.contains(&0);
    is_smaller && (1..32).any(|n| (0..2).all(|axis| is_side(full[axis], size[axis], n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_halved_along_both_axes() {
        for (full, size, expected) in [
            ([46000, 32914], [11500, 8228], true),
            ([46000, 32914], [2875, 2057], true),
            ([101, 51], [51, 26], true),
            ([101, 51], [50, 25], true),
            ([64, 64], [32, 64], false),
            ([64, 64], [32, 16], false),
            ([64, 64], [64, 64], false),
            ([640, 480], [160, 128], false),
            ([2, 2], [2, 2], false),
        ] {
            assert_eq!(is_level(full, size), expected, "{full:?} {size:?}");
        }
    }
}
