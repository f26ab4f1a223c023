//! PostgreSQL's protocol as a stream of messages.
//!
//! Source: PostgreSQL 18 documentation, 54.7, "Message Formats".

use bytes::Buf;

/// Bytes of one message that are kept; no statement of a migration is longer.
const LIMIT: usize = 16 << 20;

/// Bytes of type and length before the body of a message.
const HEADER: usize = 5;

/// A message, or as much of it as is of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub(crate) tag: u8,
    /// Empty if nobody wants messages of this type, at most [`LIMIT`] bytes otherwise.
    pub(crate) body: &'a [u8],
    /// The length of the body as it was sent.
    pub(crate) length: usize,
}

impl Message<'_> {
    /// The length of the body if it is not kept whole; 0 if it is.
    pub(crate) fn cut_from(&self) -> u64 {
        if self.body.len() < self.length { self.length as u64 } else { 0 }
    }
}

/// Cuts a stream into messages. What is forwarded does not wait for it.
#[derive(Debug)]
pub(crate) struct Messages {
    is_wanted: fn(u8) -> bool,
    header: Vec<u8>,
    body: Vec<u8>,
    /// Bytes of the current body that are still to come, and how many it has.
    remaining: usize,
    length: usize,
}

impl Messages {
    /// `is_wanted` says of which types the body is of interest.
    pub(crate) fn new(is_wanted: fn(u8) -> bool) -> Self {
        Self { is_wanted, header: Vec::with_capacity(HEADER), body: Vec::new(), remaining: 0, length: 0 }
    }

    /// Reads the next bytes of the stream and passes on each message that they complete.
    pub(crate) fn read(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(Message<'_>)) {
        while !bytes.is_empty() {
            if self.header.len() < HEADER {
                let missing = (HEADER - self.header.len()).min(bytes.len());
                self.header.extend_from_slice(&bytes[..missing]);
                bytes.advance(missing);
                if self.header.len() < HEADER {
                    return;
                }
                let length = (&self.header[1..]).get_u32() as usize;
                self.length = length.saturating_sub(4);
                self.remaining = self.length;
            }
            let part = self.remaining.min(bytes.len());
            if (self.is_wanted)(self.header[0]) {
                let kept = part.min(LIMIT - self.body.len());
                self.body.extend_from_slice(&bytes[..kept]);
            }
            bytes.advance(part);
            self.remaining -= part;
            if self.remaining == 0 {
                each(Message { tag: self.header[0], body: &self.body, length: self.length });
                self.header.clear();
                self.body.clear();
            }
        }
    }
}

/// Takes a string that ends with NUL. One that is cut, because its message is too long, ends where it is cut.
pub(crate) fn string(bytes: &mut &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    bytes.advance((end + 1).min(bytes.len()));
    text
}

/// Takes a number of two bytes; 0 where there is none.
pub(crate) fn short(bytes: &mut &[u8]) -> usize {
    if bytes.len() < 2 { 0 } else { bytes.get_u16() as usize }
}

/// Takes a number of four bytes.
pub(crate) fn long(bytes: &mut &[u8]) -> Option<i32> {
    (bytes.len() >= 4).then(|| bytes.get_i32())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() + 4) as u32;
        [&[tag], &length.to_be_bytes()[..], body].concat()
    }

    fn read(messages: &mut Messages, bytes: &[u8]) -> Vec<(u8, Vec<u8>, usize)> {
        let mut found = Vec::new();
        messages.read(bytes, &mut |message| found.push((message.tag, message.body.to_vec(), message.length)));
        found
    }

    #[test]
    fn messages_are_found_wherever_the_stream_is_cut() {
        let stream = [message(b'Q', b"SELECT 1\0"), message(b'd', &[7; 300]), message(b'S', b"")].concat();
        let expected = vec![(b'Q', b"SELECT 1\0".to_vec(), 9), (b'd', Vec::new(), 300), (b'S', Vec::new(), 0)];
        for size in [1, 2, 3, 5, 8, 13, 100, stream.len()] {
            let mut messages = Messages::new(|tag| tag != b'd');
            let found: Vec<_> = stream.chunks(size).flat_map(|chunk| read(&mut messages, chunk)).collect();
            assert_eq!(found, expected, "{size}");
        }
    }

    #[test]
    fn lengths_that_make_no_sense_do_not_panic() {
        let mut messages = Messages::new(|_| true);
        assert_eq!(read(&mut messages, &[b'Q', 0, 0, 0, 0]).len(), 1);
        assert_eq!(read(&mut messages, &[b'Q', 0xff, 0xff, 0xff, 0xff, 1, 2, 3]).len(), 0);
    }

    #[test]
    fn strings_end_with_nul_or_with_the_message() {
        let mut bytes = &b"a\0b"[..];
        assert_eq!(
            (string(&mut bytes), string(&mut bytes), string(&mut bytes)),
            ("a".into(), "b".into(), String::new())
        );
        assert_eq!((short(&mut bytes), long(&mut bytes)), (0, None));
    }
}
