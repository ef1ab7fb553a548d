//! A map whose values are created once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Values by key. A thread that asks for a value that another thread is creating waits for it; values of different keys
/// are created in parallel.
#[derive(Debug)]
pub struct OnceCache<T> {
    entries: Mutex<HashMap<String, Entry<T>>>,
}

/// A value, or `None` until it is created.
type Entry<T> = Arc<Mutex<Option<T>>>;

impl<T> Default for OnceCache<T> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<T: Clone> OnceCache<T> {
    /// The value of `key`, created by `create` unless an earlier call has succeeded.
    pub fn get_or_create<E>(
        &self,
        key: String,
        create: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let entries = self.entries.lock();
        let entry = entries.unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        let mut value = entry.lock().unwrap_or_else(PoisonError::into_inner);
        if value.is_none() {
            *value = Some(create()?);
        }
        Ok(value.clone().expect("created above"))
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Barrier, thread};

    use super::*;

    #[test]
    fn values_are_created_once_and_in_parallel() {
        let cache = OnceCache::default();
        let both = Barrier::new(2);
        let create = |key: &'static str| {
            let value = cache.get_or_create(key.to_owned(), || {
                // Each waits here until the other one is being created, too.
                both.wait();
                Ok::<_, Infallible>(key.len())
            });
            assert_eq!(value, Ok(key.len()));
        };
        thread::scope(|scope| {
            scope.spawn(|| create("a"));
            scope.spawn(|| create("ab"));
        });
        assert_eq!(cache.get_or_create("ab".to_owned(), || Err(())), Ok(2));
    }

    #[test]
    fn failures_are_not_cached() {
        let cache = OnceCache::default();
        assert_eq!(cache.get_or_create(String::new(), || Err("no")), Err("no"));
        assert_eq!(cache.get_or_create(String::new(), || Ok::<_, ()>(1)), Ok(1));
    }
}
