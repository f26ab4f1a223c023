//! PostgreSQL's parse tree where the C parser left it: nothing is copied before someone reads it.
//!
//! The structs in [`crate::nodes`] have the layout of the C structs. All of a tree lives in one memory context, and
//! [`crate::parse`] lends it for as long as that exists; that is the lifetime `'t`.

use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

pub use crate::nodes::*;

/// The kind of a node: the first field of every node.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeTag(pub(crate) u32);

/// A pointer to a node of any kind.
///
/// It may be copied, unlike the nodes themselves: a node that is moved would leave the pointers to it behind.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct NodeRef<'t>(NonNull<NodeTag>, PhantomData<&'t ()>);

impl fmt::Debug for NodeRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node().fmt(f)
    }
}

impl<'t> NodeRef<'t> {
    pub(crate) fn tag(self) -> NodeTag {
        // SAFETY: every node begins with its tag, and lives for `'t`.
        unsafe { *self.0.as_ptr() }
    }

    /// # Safety
    /// The tag must be that of `T`.
    pub(crate) unsafe fn cast<T>(self) -> &'t T {
        // SAFETY: the parser allocates a node of the size and alignment of the struct that its tag names.
        unsafe { self.0.cast::<T>().as_ref() }
    }
}

/// The head of a list in memory.
#[repr(C)]
pub struct ListNode<'t> {
    tag: NodeTag,
    pub(crate) length: i32,
    pub(crate) max_length: i32,
    pub(crate) elements: *const Option<NodeRef<'t>>,
}

impl fmt::Debug for ListNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cells().fmt(f)
    }
}

impl<'t> ListNode<'t> {
    pub fn items(&'t self) -> List<'t> {
        List(Some(self))
    }

    /// The elements; absent ones are null in C.
    fn cells(&self) -> &'t [Option<NodeRef<'t>>] {
        // Lists of numbers have other tags.
        if self.tag != NodeTag::LIST || self.elements.is_null() {
            return &[];
        }
        // SAFETY: `length` elements are in use, each as large as a pointer, and they live as long as the list.
        unsafe { std::slice::from_raw_parts(self.elements, usize::try_from(self.length).unwrap_or(0)) }
    }
}

/// A list of nodes; an empty one is a null pointer in C.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
pub struct List<'t>(Option<&'t ListNode<'t>>);

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(&[][..], ListNode::cells).fmt(f)
    }
}

impl<'t> List<'t> {
    pub const EMPTY: Self = Self(None);

    /// The elements without absent ones.
    pub fn iter(self) -> <Self as IntoIterator>::IntoIter {
        self.into_iter()
    }

    /// How many elements, absent ones included.
    pub fn len(self) -> usize {
        self.0.map_or(0, |list| list.cells().len())
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn first(self) -> Option<NodeRef<'t>> {
        self.iter().next()
    }

    pub fn last(self) -> Option<NodeRef<'t>> {
        self.iter().next_back()
    }
}

impl<'t> IntoIterator for List<'t> {
    type Item = NodeRef<'t>;
    type IntoIter = Nodes<'t>;

    /// The elements without absent ones.
    fn into_iter(self) -> Self::IntoIter {
        let cells = self.0.map_or(&[][..], ListNode::cells);
        Nodes { cells: cells.iter(), left: cells.iter().flatten().count() }
    }
}

/// The elements of a list without absent ones. It knows how many there are.
#[derive(Debug, Clone)]
pub struct Nodes<'t> {
    cells: std::slice::Iter<'t, Option<NodeRef<'t>>>,
    left: usize,
}

impl<'t> Iterator for Nodes<'t> {
    type Item = NodeRef<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.cells.by_ref().copied().flatten().next()?;
        self.left -= 1;
        Some(next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Nodes<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let next = self.cells.by_ref().rev().copied().flatten().next()?;
        self.left -= 1;
        Some(next)
    }
}

impl ExactSizeIterator for Nodes<'_> {}

/// A text; one that is not there reads as the empty text.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text<'t>(*const c_char, PhantomData<&'t str>);

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl<'t> Text<'t> {
    pub fn as_str(&self) -> &'t str {
        if self.0.is_null() {
            return "";
        }
        // SAFETY: the parser ends its texts with NUL and keeps them for `'t`.
        let bytes = unsafe { CStr::from_ptr(self.0) }.to_bytes();
        // The grammar refuses escapes that make no UTF-8, so all of the text is one chunk.
        bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// A code letter of PostgreSQL's, such as `relpersistence`.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Char(u8);

impl Deref for Char {
    type Target = str;

    /// The letter; empty where there is none.
    fn deref(&self) -> &str {
        let letter = std::slice::from_ref(&self.0);
        std::str::from_utf8(letter).map_or("", |letter| letter.trim_end_matches('\0'))
    }
}

impl PartialEq<&str> for Char {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

/// A pointer that is not followed.
#[repr(transparent)]
#[derive(Debug)]
pub struct Opaque(*const c_void);

impl Opaque {
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

/// A constant. In C the value is a union of the value nodes, stored in place.
#[repr(C)]
pub struct AConst<'t> {
    tag: NodeTag,
    pub(crate) value: Value<'t>,
    pub(crate) is_null: bool,
    pub location: i32,
}

/// As large as the largest value node: a tag, and a number or a text.
#[repr(C)]
pub(crate) struct Value<'t> {
    tag: NodeTag,
    content: Text<'t>,
}

impl fmt::Debug for AConst<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A constant without a value has no tag in its union.
        f.debug_struct("AConst").field("value", &self.value()).field("location", &self.location).finish()
    }
}

impl<'t> AConst<'t> {
    /// Integer, Float, Boolean, String or `BitString`; nothing for NULL.
    pub fn value(&'t self) -> Option<Node<'t>> {
        (!self.is_null).then(|| NodeRef(NonNull::from(&self.value).cast(), PhantomData).node())
    }
}

/// Trees without the C library, so that Miri can look at the casts: `cargo +nightly miri test -p pgvet-parser tree::`.
#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    /// The tag, and what the C parser would have allocated.
    fn node<T>(node: &T) -> NodeRef<'_> {
        NodeRef(NonNull::from(node).cast(), PhantomData)
    }

    fn text(text: &CStr) -> Text<'_> {
        Text(text.as_ptr(), PhantomData)
    }

    #[test]
    fn nodes_are_read_by_their_tag() {
        let name = String { tag: NodeTag::STRING, sval: text(c"a") };
        let star = AStar { tag: NodeTag::A_STAR };
        let unknown = NodeTag(u32::MAX);
        assert!(matches!(node(&name).node(), Node::String(name) if name.sval == "a"));
        assert!(matches!(node(&star).node(), Node::AStar(_)));
        assert!(matches!(node(&unknown).node(), Node::Other(tag) if tag.statement().is_none()));
        assert_eq!(
            format!("{:?}", node(&name)),
            "String(String { tag: NodeTag(".to_owned() + &NodeTag::STRING.0.to_string() + "), sval: \"a\" })"
        );
    }

    #[test]
    fn lists_are_read_in_both_directions() {
        let (one, two) = (Integer { tag: NodeTag::INTEGER, ival: 1 }, Integer { tag: NodeTag::INTEGER, ival: 2 });
        let cells = [Some(node(&one)), None, Some(node(&two))];
        let list = ListNode { tag: NodeTag::LIST, length: 3, max_length: 3, elements: cells.as_ptr() };
        let value = |node: NodeRef<'_>| match node.node() {
            Node::Integer(number) => number.ival,
            other => panic!("{other:?}"),
        };
        let list = list.items();
        assert_eq!((list.len(), list.iter().len()), (3, 2));
        assert_eq!(list.iter().map(value).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(list.iter().rev().map(value).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((list.first().map(value), list.last().map(value)), (Some(1), Some(2)));
    }

    #[test]
    fn lists_that_are_none_have_no_elements() {
        let empty = ListNode { tag: NodeTag::LIST, length: 0, max_length: 0, elements: ptr::null() };
        let negative =
            ListNode { tag: NodeTag::LIST, length: -1, max_length: 0, elements: NonNull::dangling().as_ptr() };
        // A list of numbers, as PostgreSQL has them, with another tag.
        let numbers = ListNode { tag: NodeTag(NodeTag::LIST.0 + 1), length: 9, max_length: 9, elements: ptr::null() };
        assert_eq!(List::EMPTY.len(), 0);
        for list in [empty, negative, numbers] {
            assert!(list.items().is_empty());
        }
    }

    #[test]
    fn constants_hold_their_value_in_place() {
        let value = Value { tag: NodeTag::FLOAT, content: text(c"1.5") };
        let constant = AConst { tag: NodeTag::A_CONST, value, is_null: false, location: 0 };
        assert!(matches!(constant.value(), Some(Node::Float(number)) if number.fval == "1.5"));
        let value = Value { tag: NodeTag(0), content: Text(ptr::null(), PhantomData) };
        assert!(AConst { tag: NodeTag::A_CONST, value, is_null: true, location: 0 }.value().is_none());
    }

    #[test]
    fn texts_may_be_absent_or_cut() {
        assert_eq!(Text(ptr::null(), PhantomData).as_str(), "");
        assert_eq!(text(c"\xc3\xa4").as_str(), "\u{e4}");
        assert_eq!(text(c"a\xff").as_str(), "a");
        assert_eq!((&*Char(0), &*Char(b'r'), &*Char(0xff)), ("", "r", ""));
    }
}
