//! The parts of an object, in their order and by name: constraints of a table, labels of an enum, privileges.

use super::{
    Constraint, ConstraintKind, DefaultPrivilege, DomainCheck, EnumLabel, HashMap, Policy, Privilege, Trigger,
};
use imbl::OrdMap;
use imbl::ordmap::{self, DiffItem};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;
use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

/// Something that an object has several of, under names.
pub trait Part: Clone {
    /// What tells the parts of an object apart.
    type Name: Clone + Hash + Eq;

    fn name(&self) -> &Self::Name;
    fn set_name(&mut self, name: Self::Name);

    /// A number that parts have in common that say the same, and others seldom, where that is searched for.
    fn likeness(&self) -> Option<u64> {
        None
    }
}

/// A persistent list of parts: a clone shares all of them, a change copies the few nodes on its path, and a part is found
/// by its name without a look at the others.
#[derive(Debug, Clone)]
pub struct Named<T: Part> {
    /// By numbers that are only there for the order, with gaps for parts that come between others.
    parts: OrdMap<u64, Shared<T>>,
    /// The number of the first part of each name, where there are more than [`FEW`].
    numbers: HashMap<T::Name, u64>,
    /// The same for each likeness.
    alike: HashMap<u64, u64>,
}

/// Up to this number a search by name looks at each part: they are one node of the tree.
const FEW: usize = 16;

/// The distance of the numbers of two parts, as PostgreSQL leaves room in `pg_enum.enumsortorder`.
const GAP: u64 = 1 << 32;

/// A part that is the same only as itself, for the comparison of two states of a list.
#[derive(Debug)]
struct Shared<T>(Arc<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

type Nodes<'a, T> = ordmap::Iter<'a, u64, Shared<T>, imbl::shared_ptr::DefaultSharedPtr>;

/// The parts in their order.
pub struct Iter<'a, T>(Nodes<'a, T>);

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a Arc<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(_, part)| &part.0)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T: Part> Named<T> {
    pub fn new() -> Self {
        Self { parts: OrdMap::new(), numbers: HashMap::new(), alike: HashMap::new() }
    }

    pub fn len(&self) -> usize {
        self.parts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self.parts.iter())
    }

    /// The parts that an earlier state of the list lacks, or that differ there, in their order.
    pub fn unlike<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = &'a Arc<T>> {
        earlier.parts.diff(&self.parts).filter_map(|difference| match difference {
            DiffItem::Add(_, part) | DiffItem::Update { new: (_, part), .. } => Some(&part.0),
            DiffItem::Remove(..) => None,
        })
    }

    /// The first part of that name.
    pub fn get<N: Hash + Eq + ?Sized>(&self, name: &N) -> Option<&Arc<T>>
    where
        T::Name: Borrow<N>,
    {
        self.parts.get(&self.number_of(name)?).map(|part| &part.0)
    }

    /// The first part of the same likeness.
    pub fn first_like(&self, part: &T) -> Option<&Arc<T>> {
        let likeness = part.likeness()?;
        if self.len() > FEW {
            return self.parts.get(self.alike.get(&likeness)?).map(|part| &part.0);
        }
        self.iter().find(|other| other.likeness() == Some(likeness))
    }

    /// The parts from the first of a likeness on, or all where that is not searched for.
    pub(super) fn beginning_with_like(&self, likeness: u64) -> impl Iterator<Item = &Arc<T>> {
        let first = if self.len() > FEW { self.alike.get(&likeness).copied() } else { Some(0) };
        first.into_iter().flat_map(|first| self.parts.range(first..).map(|(_, part)| &part.0))
    }

    pub fn contains<N: Hash + Eq + ?Sized>(&self, name: &N) -> bool
    where
        T::Name: Borrow<N>,
    {
        self.number_of(name).is_some()
    }

    fn number_of<N: Hash + Eq + ?Sized>(&self, name: &N) -> Option<u64>
    where
        T::Name: Borrow<N>,
    {
        if self.len() > FEW {
            return self.numbers.get(name).copied();
        }
        self.parts.iter().find(|(_, part)| part.0.name().borrow() == name).map(|(number, _)| *number)
    }

    /// Adds a part at the end.
    pub fn push(&mut self, part: T) {
        self.push_shared(Arc::new(part));
    }

    fn push_shared(&mut self, part: Arc<T>) {
        let last = self.parts.get_max().map_or(0, |(number, _)| *number);
        self.put(last + GAP, part);
    }

    /// Adds a part before or after the one of that name; at the end if there is none.
    pub fn insert_beside(&mut self, neighbour: &T::Name, after: bool, part: T) {
        let Some(number) = self.number_of(neighbour) else { return self.push(part) };
        let next = if after { self.parts.range(number + 1..).next() } else { self.parts.range(..number).next_back() };
        let other = match next {
            Some((other, _)) => *other,
            None if after => return self.push(part),
            None => 0,
        };
        if number.abs_diff(other) > 1 {
            self.put(u64::midpoint(number, other), Arc::new(part));
        } else {
            *self = self.iter().cloned().collect();
            self.insert_beside(neighbour, after, part);
        }
    }

    fn put(&mut self, number: u64, part: Arc<T>) {
        self.parts.insert(number, Shared(Arc::clone(&part)));
        if self.len() > FEW + 1 {
            self.note(&part, number);
        } else if self.len() == FEW + 1 {
            let parts: Vec<(u64, Arc<T>)> =
                self.parts.iter().map(|(number, part)| (*number, Arc::clone(&part.0))).collect();
            parts.into_iter().for_each(|(number, part)| self.note(&part, number));
        }
    }

    /// Notes where a part is, where there are many.
    fn note(&mut self, part: &T, number: u64) {
        note_first(&mut self.numbers, part.name().clone(), number);
        if let Some(likeness) = part.likeness() {
            note_first(&mut self.alike, likeness, number);
        }
    }

    /// Forgets where a part is: behind it there may be another of its name, or of its likeness.
    fn forget(&mut self, part: &T, number: u64) {
        let behind = |is_meant: &dyn Fn(&T) -> bool| {
            let mut others = self.parts.range(number + 1..);
            others.find(|(_, part)| is_meant(&part.0)).map(|(number, _)| *number)
        };
        if self.numbers.get(part.name()) == Some(&number) {
            let has_doubles = self.numbers.len() < self.len();
            let next = if has_doubles { behind(&|other| other.name() == part.name()) } else { None };
            replace_first(&mut self.numbers, part.name(), next);
        }
        if let Some(likeness) = part.likeness()
            && self.alike.get(&likeness) == Some(&number)
        {
            let next = behind(&|other| other.likeness() == Some(likeness));
            replace_first(&mut self.alike, &likeness, next);
        }
    }

    /// Changes the part of that number.
    fn change(&mut self, number: u64, change: impl FnOnce(&mut T)) {
        let Some(before) = self.parts.get(&number).map(|part| Arc::clone(&part.0)) else { return };
        let mut part = T::clone(&before);
        change(&mut part);
        let is_same = part.name() == before.name() && part.likeness() == before.likeness();
        let part = Arc::new(part);
        if self.len() > FEW && !is_same {
            self.forget(&before, number);
            self.note(&part, number);
        }
        self.parts.insert(number, Shared(part));
    }

    /// Changes the first part of that name. Returns whether there is one.
    pub fn update<N: Hash + Eq + ?Sized>(&mut self, name: &N, change: impl FnOnce(&mut T)) -> bool
    where
        T::Name: Borrow<N>,
    {
        let number = self.number_of(name);
        number.map(|number| self.change(number, change)).is_some()
    }

    /// Changes the last part.
    pub fn update_last(&mut self, change: impl FnOnce(&mut T)) {
        if let Some(last) = self.parts.get_max().map(|(number, _)| *number) {
            self.change(last, change);
        }
    }

    /// Changes the parts for which that is asked.
    pub fn update_where(&mut self, is_meant: impl Fn(&T) -> bool, mut change: impl FnMut(&mut T)) {
        let meant = self.parts.iter().filter(|(_, part)| is_meant(&part.0)).map(|(number, _)| *number);
        for number in meant.collect::<Vec<_>>() {
            self.change(number, &mut change);
        }
    }

    /// Gives the first part of a name another one. Returns whether there is one.
    pub fn rename(&mut self, old: &T::Name, new: T::Name) -> bool {
        self.update(old, |part| part.set_name(new))
    }

    /// Removes the first part of that name.
    pub fn remove(&mut self, name: &T::Name) -> Option<Arc<T>> {
        let number = self.number_of(name)?;
        let removed = self.parts.get(&number).map(|part| Arc::clone(&part.0))?;
        self.forget(&removed, number);
        self.parts.remove(&number);
        if self.len() <= FEW {
            self.numbers.clear();
            self.alike.clear();
        }
        Some(removed)
    }
}

fn note_first<K: Clone + Hash + Eq>(numbers: &mut HashMap<K, u64>, key: K, number: u64) {
    let first = numbers.get(&key).map_or(number, |known| number.min(*known));
    numbers.insert(key, first);
}

fn replace_first<K: Clone + Hash + Eq>(numbers: &mut HashMap<K, u64>, key: &K, next: Option<u64>) {
    match next {
        Some(next) => drop(numbers.insert(key.clone(), next)),
        None => drop(numbers.remove(key)),
    }
}

impl<T: Part> Default for Named<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, T: Part> IntoIterator for &'a Named<T> {
    type Item = &'a Arc<T>;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Part> FromIterator<Arc<T>> for Named<T> {
    fn from_iter<I: IntoIterator<Item = Arc<T>>>(parts: I) -> Self {
        let mut list = Self::new();
        parts.into_iter().for_each(|part| list.push_shared(part));
        list
    }
}

impl<T: Part> FromIterator<T> for Named<T> {
    fn from_iter<I: IntoIterator<Item = T>>(parts: I) -> Self {
        parts.into_iter().map(Arc::new).collect()
    }
}

impl<T: Part + Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|part| &**part))
    }
}

impl<'de, T: Part + Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<T>::deserialize(deserializer)?.into_iter().collect())
    }
}

macro_rules! parts {
    ($($part:ty: $name:ident),*) => {$(
        impl Part for $part {
            type Name = SmolStr;

            fn name(&self) -> &SmolStr {
                &self.$name
            }

            fn set_name(&mut self, name: SmolStr) {
                self.$name = name;
            }
        }
    )*};
}

parts! { DomainCheck: name, EnumLabel: label, Policy: name, Trigger: name }

/// Conditions of CHECKs are compared.
impl Part for Constraint {
    type Name = SmolStr;

    fn name(&self) -> &SmolStr {
        &self.name
    }

    fn set_name(&mut self, name: SmolStr) {
        self.name = name;
    }

    fn likeness(&self) -> Option<u64> {
        match &self.kind {
            ConstraintKind::Check { expression, .. } => Some(super::constraint::likeness(expression)),
            _ => None,
        }
    }
}

/// Parts that an object has only once: nothing but all of it tells them apart.
macro_rules! whole_parts {
    ($($part:ty),+) => {
        $(impl Part for $part {
            type Name = Self;

            fn name(&self) -> &Self {
                self
            }

            fn set_name(&mut self, name: Self) {
                *self = name;
            }
        })+
    };
}

whole_parts!(Privilege, DefaultPrivilege);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct Label(SmolStr);

    impl Part for Label {
        type Name = SmolStr;

        fn name(&self) -> &SmolStr {
            &self.0
        }

        fn set_name(&mut self, name: SmolStr) {
            self.0 = name;
        }
    }

    fn list(count: usize) -> Named<Label> {
        (0..count).map(|at| Label(format!("l{at}").into())).collect()
    }

    fn names(list: &Named<Label>) -> Vec<&str> {
        list.iter().map(|label| label.0.as_str()).collect()
    }

    #[test]
    fn few_and_many_are_found_by_name_after_every_change() {
        for count in [3, FEW, FEW + 1, 100] {
            let mut list = list(count);
            assert!(list.contains("l2") && !list.contains("x"), "{count}");
            assert!(list.rename(&"l1".into(), "x".into()) && !list.rename(&"l1".into(), "y".into()), "{count}");
            assert_eq!(list.get("x").map(|label| label.0.as_str()), Some("x"), "{count}");
            assert_eq!(list.remove(&"l0".into()).map(|label| label.0.clone()), Some("l0".into()), "{count}");
            assert!(!list.contains("l0") && list.contains("x") && list.contains("l2"), "{count}");
            assert_eq!((list.len(), names(&list)[0]), (count - 1, "x"), "{count}");
        }
    }

    #[test]
    fn the_first_of_a_name_counts() {
        for count in [3, 100] {
            let mut list = list(count);
            list.push(Label("l1".into()));
            list.remove(&"l1".into());
            assert!(list.contains("l1"), "{count}");
            list.remove(&"l1".into());
            assert!(!list.contains("l1"), "{count}");
        }
    }

    #[test]
    fn parts_come_between_others_until_there_is_no_room_and_after_it() {
        let mut list = list(2);
        for at in 0..100 {
            list.insert_beside(&"l1".into(), false, Label(format!("b{at}").into()));
            list.insert_beside(&"l0".into(), false, Label(format!("a{at}").into()));
        }
        list.insert_beside(&"l1".into(), true, Label("end".into()));
        let names = names(&list);
        assert_eq!(names[..3], ["a0", "a1", "a2"]);
        assert_eq!(names[99..103], ["a99", "l0", "b0", "b1"]);
        assert_eq!(names[200..], ["b99", "l1", "end"]);
        assert!(list.contains("b50"));
    }

    #[test]
    fn a_later_state_says_what_is_unlike_an_earlier_one() {
        let earlier = list(100);
        let mut later = earlier.clone();
        later.remove(&"l5".into());
        later.push(Label("new".into()));
        later.rename(&"l7".into(), "renamed".into());
        assert_eq!(later.unlike(&earlier).map(|label| label.0.as_str()).collect::<Vec<_>>(), ["renamed", "new"]);
    }

    #[test]
    fn a_list_is_kept_as_its_parts() {
        let kept = postcard::to_stdvec(&list(20)).unwrap();
        assert_eq!(
            kept,
            postcard::to_stdvec(&list(20).iter().map(|label| (**label).clone()).collect::<Vec<_>>()).unwrap()
        );
        let again: Named<Label> = postcard::from_bytes(&kept).unwrap();
        assert_eq!(names(&again), names(&list(20)));
        assert!(again.contains("l19"));
    }
}
