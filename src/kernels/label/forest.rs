//! Disjoint sets of provisional numbers (union-find).

use crate::util::{
    error::{Error, Result},
    memory,
};

/// Provisional numbers of components, in raster order of their first samples. Numbers of the same component are joined
/// to a tree, whose root is its smallest number.
#[derive(Debug, Default)]
pub struct Forest(Vec<u32>);

impl Forest {
    /// Number of provisional numbers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a provisional number and returns it.
    pub fn add(&mut self) -> u32 {
        let number = self.0.len() as u32;
        self.0.push(number);
        number
    }

    /// Makes room for `more` provisional numbers.
    ///
    /// # Errors
    /// If there would be 2^32 of them, or there is not enough memory.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        if self.0.len() + more > u32::MAX as usize {
            return Err(Error::bad_input(
                "the input has too many components: their provisional numbers exceed 32 bits",
            ));
        }
        memory::reserve(&mut self.0, more)
    }

    /// Appends the trees of `other`. Returns the number that was added to theirs.
    ///
    /// # Errors
    /// As [`Forest::reserve`].
    pub fn append(&mut self, other: &Self) -> Result<u32> {
        self.reserve(other.len())?;
        let base = self.0.len() as u32;
        self.0.extend(other.0.iter().map(|parent| base + parent));
        Ok(base)
    }

    /// The root of the tree of `number`. Halves the path to it.
    pub fn root(&mut self, mut number: u32) -> u32 {
        loop {
            let parent = self.0[number as usize];
            if parent == number {
                return number;
            }
            let next = self.0[parent as usize];
            self.0[number as usize] = next;
            number = next;
        }
    }

    /// Joins the trees of `a` and `b`.
    pub fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b) as usize] = a.min(b);
    }

    /// The final number of each provisional number, and how many there are: trees are numbered from 1 in the order of
    /// their roots. Trees of which the sum of `weights` is less than `min` get 0.
    pub fn into_labels(self, mut weights: Vec<u64>, min: u64) -> (Vec<u32>, u32) {
        let mut labels = self.0;
        // A parent is smaller than its children.
        for number in (0..weights.len()).rev() {
            let parent = labels[number] as usize;
            if parent != number {
                weights[parent] += weights[number];
            }
        }
        let mut count = 0;
        for number in 0..labels.len() {
            let parent = labels[number] as usize;
            labels[number] = match parent == number {
                false => labels[parent],
                true if weights.get(number).is_some_and(|&weight| weight < min) => 0,
                true => {
                    count += 1;
                    count
                }
            };
        }
        (labels, count)
    }
}
