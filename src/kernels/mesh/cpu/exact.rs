//! Variants of ambiguous cells (see `deciders`). These cells are few, so each is resolved by itself.

use super::{
    super::{
        deciders,
        table::CORNERS,
        variants::Variant,
        voxel::{Voxel, flushed},
    },
    cells::Corners,
    mesher::Mesher,
};

/// Function that returns the variant of a cell, given its point and its case.
pub(super) struct VariantLookup<'a>(
    pub(super) &'a (dyn Fn([usize; 3], u8) -> Option<&'static Variant> + Sync),
);

impl VariantLookup<'_> {
    /// The variant of the cell at bit `bit` of the word that begins at point `[x, y, z]`.
    pub(super) fn variant(
        &self,
        corners: &Corners,
        bit: u32,
        [x, y, z]: [usize; 3],
    ) -> &'static Variant {
        // Converts to the numbers of the case table, where corners 2 and 3, and 6 and 7, are swapped.
        let own = corners.case(bit) as u8;
        let case = own & 0x33 | (own & 0x44) << 1 | (own & 0x88) >> 1;
        let variant = (self.0)([x + bit as usize, y, z], case);
        variant.expect("the cell is ambiguous")
    }

    /// Number of discs after the first, summed over `cells`. A cell with a tunnel and no disc counts -1.
    #[cold]
    #[inline(never)]
    pub(super) fn more_loops(&self, corners: &Corners, mut cells: u64, first: [usize; 3]) -> i32 {
        let mut more_loops = 0;
        while cells != 0 {
            let bit = cells.trailing_zeros();
            more_loops += i32::from(self.variant(corners, bit, first).discs) - 1;
            cells &= cells - 1;
        }
        more_loops
    }
}

impl<T: Voxel> Mesher<'_, T> {
    /// The variant of the cell at `point` of the slab.
    pub(super) fn variant(&self, point: [usize; 3], case: u8) -> Option<&'static Variant> {
        let distances = CORNERS.map(|corner| {
            let [x, y, z]: [usize; 3] =
                std::array::from_fn(|axis| point[axis] + usize::from(corner[axis]));
            let row = self.grid.sample_row(y as isize, z as isize);
            let x = x.checked_sub(self.grid.pad).filter(|&x| x < self.grid.width);
            // A point beyond the samples is outside at distance 0; no variant depends on its distance.
            row.zip(x).map_or(0, |(row, x)| self.distance(self.samples[row + x]))
        });
        deciders::variant(case, &distances)
    }

    /// Bits of the distance of a sample from the isovalue, halved for types whose differences may overflow.
    fn distance(&self, sample: T) -> u32 {
        let (value, level) = (sample.field(&self.iso), self.iso.level);
        let distance = match T::MAY_OVERFLOW {
            false => value - level,
            true => flushed(flushed(value * 0.5) - flushed(level * 0.5)),
        };
        distance.abs().min(f32::MAX).to_bits()
    }
}
