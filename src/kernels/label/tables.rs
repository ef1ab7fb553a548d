//! The trees of provisional numbers, band by band.
//!
//! A band of slices knows the classes that are open at its start, those with samples in the slice before. In the trees of a
//! band, nodes are these classes and the provisional numbers of the band, in this order, so that roots come first in
//! raster order. The classes that are open at the end of a band are roots of its trees. Later bands may join them: a
//! backward pass passes these joins to earlier bands, and a forward pass numbers the roots. Each pass has one band in
//! memory.

use super::forest::{BACKGROUND, Forest};
use crate::util::{
    error::Result,
    memory,
    spill::{Spill, Workspace},
};

/// Sizes of the tables of a band.
#[derive(Clone, Copy, Debug)]
struct BandSizes {
    /// Classes that are open at the start.
    open: usize,
    /// Provisional numbers.
    numbers: usize,
    /// Classes that are open at the end.
    next: usize,
    /// Roots that end in this band and become background.
    light: usize,
}

/// The trees of all bands.
#[derive(Debug)]
pub struct Tables {
    bands: Vec<BandSizes>,
    /// For each band, the root of each provisional number.
    roots: Spill<u32>,
    /// For each band, the roots of the open classes at the start, the roots that are open at the end, and those that
    /// become background.
    links: Spill<u32>,
}

impl Tables {
    /// No bands. Each of two tables takes up to `workspace` in memory.
    pub fn new(workspace: Workspace) -> Self {
        Self { bands: Vec::new(), roots: Spill::new(workspace), links: Spill::new(workspace) }
    }

    /// Number of bands.
    pub fn bands(&self) -> usize {
        self.bands.len()
    }

    /// Number of classes that are open after the last band.
    pub fn open(&self) -> usize {
        self.bands.last().map_or(0, |band| band.next)
    }

    /// Adds a band with these `roots` of its `open` classes at the start and of its provisional numbers. At its end,
    /// the roots `next` are open, in ascending order. The roots `light` end here and become background.
    pub fn add(
        &mut self,
        roots: &[u32],
        open: usize,
        next: &[u32],
        light: impl Iterator<Item = u32>,
    ) -> Result<()> {
        let (before, own) = roots.split_at(open);
        self.roots.append(own)?;
        self.links.append(before)?;
        self.links.append(next)?;
        let mut all = Vec::new();
        for root in light {
            memory::reserve(&mut all, 1)?;
            all.push(root);
        }
        self.links.append(&all)?;
        let (numbers, next, light) = (own.len(), next.len(), all.len());
        self.bands.push(BandSizes { open, numbers, next, light });
        Ok(())
    }

    /// The final number of each provisional number, and how many there are: trees are numbered from 1 in the order of
    /// their roots, and 0 is background.
    pub fn finish(mut self) -> Result<(Spill<u32>, u32)> {
        let (mut number_end, mut link_end) = (self.roots.len(), self.links.len());
        // The root of each class that is open at the end, among these classes.
        let mut joined = Vec::new();
        for band in self.bands.iter().rev() {
            let BandSizes { open, numbers, next, light } = *band;
            number_end -= numbers;
            link_end -= open + next + light;
            let links = self.links.read(link_end..link_end + open + next + light)?;
            let (before, rest) = links.split_at(open);
            let (classes, light) = rest.split_at(next);
            let mut parents = memory::room(open + numbers)?;
            parents.extend_from_slice(before);
            parents.extend_from_slice(&self.roots.read(number_end..number_end + numbers)?);
            let mut forest = Forest::from(parents);
            let ends = || classes.iter().zip(&joined);
            for (&class, &root) in ends().filter(|&(_, &root)| root != BACKGROUND) {
                forest.join(classes[root as usize], class);
            }
            let ended = ends().filter(|&(_, &root)| root == BACKGROUND).map(|(&class, _)| class);
            let mut roots = forest.into_roots(light.iter().copied().chain(ended));
            drop(links);
            self.roots.write(number_end, &roots[open..])?;
            roots.truncate(open);
            joined = roots;
        }
        let (mut count, mut before) = (0, Vec::new());
        for band in &self.bands {
            let BandSizes { open, numbers, next, light } = *band;
            let mut labels = self.roots.read(number_end..number_end + numbers)?.into_owned();
            for number in 0..numbers {
                let root = labels[number];
                labels[number] = match (root as usize).checked_sub(open) {
                    _ if root == BACKGROUND => 0,
                    None => before[root as usize],
                    Some(own) if own < number => labels[own],
                    Some(_) => {
                        count += 1;
                        count
                    }
                };
            }
            let classes = self.links.read(link_end + open..link_end + open + next)?;
            let label = |&class: &u32| match (class as usize).checked_sub(open) {
                None => before[class as usize],
                Some(own) => labels[own],
            };
            before = memory::collected(classes.iter().map(label));
            self.roots.write(number_end, &labels)?;
            number_end += numbers;
            link_end += open + next + light;
        }
        Ok((self.roots, count))
    }
}
