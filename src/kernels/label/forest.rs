//! Disjoint sets of provisional numbers (union-find).

use crate::util::{
    error::{Error, Result},
    memory,
};

/// Parent of the trees that are background.
pub const BACKGROUND: u32 = u32::MAX;

/// Provisional numbers of components, in raster order of their first samples. Numbers of the same component are joined
/// to a tree, whose root is its smallest number.
#[derive(Debug, Default)]
pub struct Forest(Vec<u32>);

impl From<Vec<u32>> for Forest {
    /// The trees of these parents, each of which is at most its child.
    fn from(parents: Vec<u32>) -> Self {
        Self(parents)
    }
}

impl Forest {
    /// `count` trees of one number each.
    pub fn of_single_numbers(count: usize) -> Result<Self> {
        let mut parents = memory::room(count)?;
        parents.extend(0..count as u32);
        Ok(Self(parents))
    }

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
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        check_count(self.0.len() + more)?;
        memory::reserve(&mut self.0, more)
    }

    /// Appends the trees of `other`. Returns the number that was added to theirs.
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

    /// The root of each number, or [`BACKGROUND`] in the trees whose roots are among `background`.
    pub fn into_roots(self, background: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut roots = self.0;
        background.for_each(|root| roots[root as usize] = BACKGROUND);
        // A parent is smaller than its children.
        for number in 0..roots.len() {
            let parent = roots[number];
            if parent != BACKGROUND {
                roots[number] = roots[parent as usize];
            }
        }
        roots
    }
}

/// Refuses `count` provisional numbers that exceed 32 bits.
pub fn check_count(count: usize) -> Result<()> {
    if count < u32::MAX as usize {
        return Ok(());
    }
    Err(Error::bad_input(
        "the input has too many components: their provisional numbers exceed 32 bits",
    ))
}
