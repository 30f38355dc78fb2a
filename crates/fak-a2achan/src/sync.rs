//! The lock a mailbox is built on, as a family, so that a concurrency checker can put its own in
//! its place. Nothing else of this crate is generic over it.

use std::ops::DerefMut;

/// A family of mutual exclusion locks.
pub(crate) trait Locks: Send + Sync + 'static {
    /// The lock around a `T`.
    type Lock<T: Send>: Lock<T>;
}

/// One lock.
pub(crate) trait Lock<T>: Send + Sync {
    /// Holds the lock until it is dropped.
    type Guard<'a>: DerefMut<Target = T>
    where
        Self: 'a,
        T: 'a;

    fn new(value: T) -> Self;
    fn lock(&self) -> Self::Guard<'_>;
}

/// The locks of a running system.
pub(crate) struct Native;

impl Locks for Native {
    type Lock<T: Send> = parking_lot::Mutex<T>;
}

impl<T: Send> Lock<T> for parking_lot::Mutex<T> {
    type Guard<'a>
        = parking_lot::MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }
}

/// Keeps its content on cache lines of its own (two, as adjacent lines are fetched in pairs).
#[repr(align(128))]
pub(crate) struct Line<T>(T);

impl<T> Line<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> std::ops::Deref for Line<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The locks of a concurrency checker.
#[cfg(test)]
pub(crate) struct Shuttled;

#[cfg(test)]
impl Locks for Shuttled {
    type Lock<T: Send> = shuttle::sync::Mutex<T>;
}

#[cfg(test)]
impl<T: Send> Lock<T> for shuttle::sync::Mutex<T> {
    type Guard<'a>
        = shuttle::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self::new(value)
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock().unwrap()
    }
}
