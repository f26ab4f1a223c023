//! The address that the command connects to: everything goes on to one database, and is noted on the way.

use crate::session::{Log, is_wanted_from_client, is_wanted_from_server};
use crate::upstream::{Admission, SSL, Socket, Target, refusal};
use crate::wire::{Messages, string};
use bytes::{Buf, BufMut};
use pgvet_trace::Error;
use std::cell::{Cell, RefCell};
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Requests before the start of a session. Source: PostgreSQL 18, `src/include/libpq/pqcomm.h`.
const CANCEL: u32 = 80_877_102;
const GSS: u32 = 80_877_104;
/// The first byte of a TLS handshake, with which a client begins that does not ask: `sslnegotiation=direct`.
///
/// Source: RFC 8446, section 5.1, `ContentType`.
const HANDSHAKE: u32 = 0x16;
/// The only major version of the protocol.
const PROTOCOL: u32 = 3;

/// Source: PostgreSQL 18, `src/include/libpq/pqcomm.h`, `MAX_STARTUP_PACKET_LENGTH`.
const LONGEST_START: usize = 10_000;

const BUFFER: usize = 64 << 10;

/// A port of this machine, whose connections wait until a proxy serves them.
pub(crate) struct Listener {
    listener: TcpListener,
    pub(crate) port: u16,
}

/// The listener, and what its connections share.
pub(crate) struct Proxy {
    listener: TcpListener,
    shared: Rc<Shared>,
}

pub(crate) struct Shared {
    target: Target,
    pub(crate) log: RefCell<Log>,
    /// Connections that are open.
    pub(crate) open: Cell<usize>,
    /// Connections that were accepted, whether or not a session came of them.
    pub(crate) accepted: Cell<usize>,
    /// Those that the client ended because they are not encrypted.
    pub(crate) refused_by_client: Cell<usize>,
}

impl Listener {
    /// Listens on a port that is free, for this machine only.
    pub(crate) async fn open() -> Result<Self, Error> {
        let cannot = |error: io::Error| Error::new(format!("cannot listen on a port of this machine: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
        let port = listener.local_addr().map_err(cannot)?.port();
        Ok(Self { listener, port })
    }
}

impl Proxy {
    pub(crate) fn new(Listener { listener, .. }: Listener, target: Target, log: Log) -> Self {
        let [open, accepted, refused_by_client] = [0; 3].map(Cell::new);
        let shared = Shared { target, log: RefCell::new(log), open, accepted, refused_by_client };
        Self { listener, shared: Rc::new(shared) }
    }

    pub(crate) fn shared(&self) -> Rc<Shared> {
        Rc::clone(&self.shared)
    }

    /// Serves connections until it is dropped.
    pub(crate) async fn serve(self) {
        loop {
            let Ok((client, _)) = self.listener.accept().await else { continue };
            let shared = Rc::clone(&self.shared);
            shared.accepted.set(shared.accepted.get() + 1);
            shared.open.set(shared.open.get() + 1);
            tokio::task::spawn_local(async move {
                // A connection that breaks is the command's to report.
                let _ = connection(client, &shared).await;
                shared.open.set(shared.open.get() - 1);
            });
        }
    }
}

/// The beginning of a connection.
enum Start {
    Cancel(Vec<u8>),
    Session { packet: Vec<u8>, parameters: Vec<(String, String)> },
}

async fn connection(mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_nodelay(true)?;
    let start = start(&mut client, shared).await?;
    if let (Start::Session { .. }, Some(password)) = (&start, &shared.target.password)
        && !has_password(&mut client, password).await?
    {
        return client.write_all(&refusal("28P01", "wrong password for the proxy of pgvet capture")).await;
    }
    match shared.target.connect().await {
        Ok(server) => relay(start, client, server, shared).await,
        Err(error) => client.write_all(&refusal("08006", &format!("pgvet cannot reach the server: {error}"))).await,
    }
}

/// Asks the client for the password of the proxy.
async fn has_password(client: &mut TcpStream, password: &str) -> io::Result<bool> {
    // AuthenticationCleartextPassword, which stays on this machine.
    client.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).await?;
    if client.read_u8().await? != b'p' {
        return Ok(false);
    }
    let length = client.read_u32().await? as usize;
    if !(4..=LONGEST_START).contains(&length) {
        return Ok(false);
    }
    let mut given = vec![0; length - 4];
    client.read_exact(&mut given).await?;
    Ok(string(&mut given.as_slice()) == password)
}

/// Reads the first packets. Encryption is refused, because the connection does not leave the machine.
async fn start(client: &mut TcpStream, shared: &Shared) -> io::Result<Start> {
    let mut wants_encryption = false;
    loop {
        let length = client.read_u32().await.inspect_err(|_| {
            shared.refused_by_client.update(|count| count + usize::from(wants_encryption));
        })?;
        if length >> 24 == HANDSHAKE {
            shared.refused_by_client.update(|count| count + 1);
            return Err(io::ErrorKind::Unsupported.into());
        }
        let length = length as usize;
        if !(8..=LONGEST_START).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; length - 4];
        client.read_exact(&mut body).await?;
        let mut rest = &body[..];
        match rest.get_u32() {
            SSL | GSS => {
                wants_encryption = true;
                client.write_all(b"N").await?;
            }
            CANCEL => return Ok(Start::Cancel(packet(&body))),
            version if version >> 16 == PROTOCOL => {
                let mut parameters = Vec::new();
                while rest.first().is_some_and(|byte| *byte != 0) {
                    parameters.push((string(&mut rest), string(&mut rest)));
                }
                parameters.retain(|(name, _)| !matches!(&**name, "user" | "database"));
                let packet = session_packet(version, &shared.target, &parameters);
                return Ok(Start::Session { packet, parameters });
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The start of a session as the database of the run.
fn session_packet(version: u32, target: &Target, parameters: &[(String, String)]) -> Vec<u8> {
    let own = [("user", &target.user), ("database", &target.database)];
    let given = parameters.iter().map(|(name, value)| (name.as_str(), value));
    let mut body = Vec::new();
    body.put_u32(version);
    for (name, value) in own.into_iter().chain(given) {
        for text in [name, value.as_str()] {
            body.put_slice(text.as_bytes());
            body.put_u8(0);
        }
    }
    body.put_u8(0);
    packet(&body)
}

fn packet(body: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(body.len() + 4);
    packet.put_u32(body.len() as u32 + 4);
    packet.put_slice(body);
    packet
}

async fn relay(start: Start, mut client: TcpStream, mut server: Socket, shared: &Shared) -> io::Result<()> {
    let (packet, parameters) = match start {
        Start::Cancel(packet) => {
            server.write_all(&packet).await?;
            return server.shutdown().await;
        }
        Start::Session { packet, parameters } => (packet, parameters),
    };
    server.write_all(&packet).await?;
    let admission = shared.target.authenticate(&mut server).await.unwrap_or_else(|error| Admission {
        messages: refusal("28000", &format!("pgvet cannot authenticate to the server: {error}")),
        is_admitted: false,
    });
    client.write_all(&admission.messages).await?;
    if !admission.is_admitted {
        return client.shutdown().await;
    }
    let session = RefCell::new(shared.log.borrow_mut().session(parameters));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = tokio::io::split(server);
    // The record is made before the bytes go on: no answer can come before its request is known.
    let requests = forward(from_client, to_server, is_wanted_from_client, |message| {
        session.borrow_mut().sent(&mut shared.log.borrow_mut(), message);
    });
    let answers = forward(from_server, to_client, is_wanted_from_server, |message| {
        session.borrow_mut().answered(&mut shared.log.borrow_mut(), message);
    });
    let (requests, answers) = tokio::join!(requests, answers);
    requests.and(answers)
}

/// Forwards bytes until their end, after each message that they complete is noted.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    is_wanted: fn(u8) -> bool,
    mut note: impl FnMut(crate::wire::Message<'_>),
) -> io::Result<()> {
    let mut messages = Messages::new(is_wanted);
    let mut buffer = vec![0; BUFFER];
    loop {
        // A connection that breaks ends like one that is closed: the other side must learn of it.
        let count = from.read(&mut buffer).await.unwrap_or(0);
        if count == 0 {
            return to.shutdown().await;
        }
        messages.read(&buffer[..count], &mut note);
        to.write_all(&buffer[..count]).await?;
    }
}
