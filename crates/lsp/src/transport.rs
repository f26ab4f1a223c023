//! Messages in and out, each on a thread of its own. A message that makes no sense is reported and skipped.

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use lsp_server::{ErrorCode, Message, RequestId, ResponseError};
use serde::Serialize;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::thread::{self, JoinHandle};

/// A message that the reader passes on.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Box<Message>),
    /// Something that is no message, and why.
    Malformed(String),
}

/// Where messages to the client go. They are put into words at once, so that nothing is copied twice.
#[derive(Debug, Clone)]
pub(crate) struct Outbox(Sender<String>);

#[derive(Debug)]
pub(crate) struct Threads {
    writer: JoinHandle<()>,
}

impl Threads {
    /// Waits until everything is written. Every [`Outbox`] must be gone.
    pub(crate) fn finish(self) {
        // The reader is not waited for: a client that goes away may leave its end open.
        let _ = self.writer.join();
    }
}

pub(crate) fn start(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<(Receiver<Incoming>, Outbox, Threads)> {
    // A client that floods the server has to wait.
    let (sender, inbox) = bounded(4096);
    thread::Builder::new().name("reader".to_owned()).spawn(move || read(&mut BufReader::new(input), &sender))?;
    let (outbox, receiver) = unbounded();
    let writer = thread::Builder::new().name("writer".to_owned()).spawn(move || write(output, &receiver))?;
    Ok((inbox, Outbox(outbox), Threads { writer }))
}

fn read(input: &mut impl BufRead, sender: &Sender<Incoming>) {
    loop {
        let incoming = match frame(input).and_then(|text| text.map(|text| parse(&text)).transpose()) {
            Ok(Some(message)) => Incoming::Message(Box::new(message)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Incoming::Malformed(error.to_string()),
            Ok(None) | Err(_) => return,
        };
        let is_exit = matches!(&incoming, Incoming::Message(message) if matches!(&**message, Message::Notification(n) if n.method == "exit"));
        if sender.send(incoming).is_err() || is_exit {
            return;
        }
    }
}

/// Most bytes of a message, which holds the text of a document at most, and of a line of its header.
const MAX_MESSAGE: u64 = 256 << 20;
const MAX_HEADER: u64 = 8 << 10;

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

fn parse(text: &[u8]) -> io::Result<Message> {
    serde_json::from_slice(text).map_err(|error| invalid(error.to_string()))
}

/// The next message as it was sent. No memory is reserved for a length that only its header claims. `None`: the client
/// is gone.
fn frame(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        input.by_ref().take(MAX_HEADER).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n").map(std::str::from_utf8) {
            None if line.is_empty() => return Ok(None),
            Some(Ok("")) => break,
            Some(Ok(field)) => {
                let (name, value) =
                    field.split_once(": ").ok_or_else(|| invalid(format!("malformed header: {field:?}")))?;
                if name.eq_ignore_ascii_case("Content-Length") {
                    length = Some(value.parse::<u64>().map_err(|error| invalid(error.to_string()))?);
                }
            }
            _ => return Err(invalid("malformed header")),
        }
    }
    let length = length.ok_or_else(|| invalid("no Content-Length"))?;
    if length > MAX_MESSAGE {
        io::copy(&mut input.take(length), &mut io::sink())?;
        return Err(invalid(format!("a message of {length} bytes is too large")));
    }
    let mut text = Vec::new();
    input.take(length).read_to_end(&mut text)?;
    Ok(Some(text))
}

fn write(output: impl Write, receiver: &Receiver<String>) {
    let mut output = BufWriter::new(output);
    for text in receiver {
        let written = write!(output, "Content-Length: {}\r\n\r\n{text}", text.len());
        if written.and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

#[derive(Serialize)]
struct Response<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: T,
}

#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RequestId>,
    error: ResponseError,
}

#[derive(Serialize)]
struct Notification<'a, T> {
    jsonrpc: &'static str,
    method: &'a str,
    params: T,
}

#[derive(Serialize)]
struct Request<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    method: &'a str,
    params: T,
}

const JSONRPC: &str = "2.0";

impl Outbox {
    pub(crate) fn respond(&self, id: &RequestId, result: impl Serialize) {
        self.send(&Response { jsonrpc: JSONRPC, id, result });
    }

    /// `None` for a message whose id could not be read.
    pub(crate) fn fail(&self, id: Option<&RequestId>, code: ErrorCode, message: String) {
        let error = ResponseError { code: code as i32, message, data: None };
        self.send(&ErrorResponse { jsonrpc: JSONRPC, id, error });
    }

    pub(crate) fn notify<N: lsp_types::notification::Notification>(&self, params: N::Params) {
        self.send(&Notification { jsonrpc: JSONRPC, method: N::METHOD, params });
    }

    pub(crate) fn request<R: lsp_types::request::Request>(&self, id: &RequestId, params: R::Params) {
        self.send(&Request { jsonrpc: JSONRPC, id, method: R::METHOD, params });
    }

    fn send(&self, message: &impl Serialize) {
        // Types of the protocol can be written, and a client that is gone needs no answer.
        if let Ok(text) = serde_json::to_string(message) {
            let _ = self.0.send(text);
        }
    }

    #[cfg(test)]
    pub(crate) fn to(sender: Sender<String>) -> Self {
        Self(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_memory_is_reserved_for_what_a_header_claims() {
        let (sender, inbox) = unbounded();
        let promises = format!("Content-Length: {}\r\n\r\n{{}}", u64::MAX);
        read(&mut promises.as_bytes(), &sender);
        read(&mut format!("Content-Length: {MAX_MESSAGE}\r\n\r\n{{}}").as_bytes(), &sender);
        read(&mut "x".repeat(1 << 20).as_bytes(), &sender);
        drop(sender);
        assert!(inbox.into_iter().all(|incoming| matches!(incoming, Incoming::Malformed(_))));
    }

    #[test]
    fn what_is_no_message_is_skipped() {
        let good = r#"{"jsonrpc":"2.0","method":"a"}"#;
        let framed = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
        let input = [
            &framed("{nonsense"),
            &framed(r#"{"jsonrpc":"2.0"}"#),
            "garbage\r\n\r\n",
            "Content-Length: many\r\n\r\n",
            &framed(good),
            &framed(r#"{"jsonrpc":"2.0","method":"exit"}"#),
            &framed(good),
        ]
        .concat();
        let (sender, inbox) = unbounded();
        read(&mut input.as_bytes(), &sender);
        drop(sender);
        let methods: Vec<String> = inbox
            .into_iter()
            .filter_map(|incoming| match incoming {
                Incoming::Message(message) => match *message {
                    Message::Notification(notification) => Some(notification.method),
                    _ => None,
                },
                Incoming::Malformed(_) => None,
            })
            .collect();
        assert_eq!(methods, ["a", "exit"]);
    }
}
