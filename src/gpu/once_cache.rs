//! Values that are made once and kept.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Values by key. Whoever asks for one that is being made waits for it; others are made at the same time.
#[derive(Debug)]
pub struct OnceCache<T> {
    places: Mutex<HashMap<String, Place<T>>>,
}

/// The place of a value, empty until it is made.
type Place<T> = Arc<Mutex<Option<T>>>;

impl<T> Default for OnceCache<T> {
    fn default() -> Self {
        Self { places: Mutex::default() }
    }
}

impl<T: Clone> OnceCache<T> {
    /// The value of `key`, by `make` at the first call and after each that failed.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_make<E>(&self, key: String, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let places = self.places.lock();
        let place = places.unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        let mut value = place.lock().unwrap_or_else(PoisonError::into_inner);
        if value.is_none() {
            *value = Some(make()?);
        }
        Ok(value.clone().expect("made above"))
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Barrier, thread};

    use super::*;

    #[test]
    fn values_are_made_once_and_side_by_side() {
        let kept = OnceCache::default();
        let both = Barrier::new(2);
        let make = |key: &'static str| {
            let value = kept.get_or_make(key.to_owned(), || {
                // Each waits here until the other is being made, too.
                both.wait();
                Ok::<_, Infallible>(key.len())
            });
            assert_eq!(value, Ok(key.len()));
        };
        thread::scope(|scope| {
            scope.spawn(|| make("a"));
            scope.spawn(|| make("ab"));
        });
        assert_eq!(kept.get_or_make("ab".to_owned(), || Err(())), Ok(2));
    }

    #[test]
    fn failures_are_not_kept() {
        let kept = OnceCache::default();
        assert_eq!(kept.get_or_make(String::new(), || Err("no")), Err("no"));
        assert_eq!(kept.get_or_make(String::new(), || Ok::<_, ()>(1)), Ok(1));
    }
}
