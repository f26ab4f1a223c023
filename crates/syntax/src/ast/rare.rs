//! What few nodes have.

use serde::{Deserialize, Serialize};

/// An `Option` that takes no more than a pointer: a file may have hundreds of thousands of nodes without the part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rare<T>(Option<Box<T>>);

impl<T> Rare<T> {
    pub const NONE: Self = Self(None);

    pub fn as_ref(&self) -> Option<&T> {
        self.0.as_deref()
    }

    pub fn as_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    pub fn iter(&self) -> std::option::IntoIter<&T> {
        self.as_ref().into_iter()
    }

    pub fn iter_mut(&mut self) -> std::option::IntoIter<&mut T> {
        self.as_mut().into_iter()
    }
}

impl<T> From<Option<T>> for Rare<T> {
    fn from(part: Option<T>) -> Self {
        Self(part.map(Box::new))
    }
}

impl<'a, T> IntoIterator for &'a Rare<T> {
    type Item = &'a T;
    type IntoIter = std::option::IntoIter<&'a T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Rare<T> {
    type Item = &'a mut T;
    type IntoIter = std::option::IntoIter<&'a mut T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
