//! The server behind the proxy: reached and asked to let us in as the user says, so that the command needs no password of it.

use crate::wire::string;
use bytes::{BufMut, BytesMut};
use pgvet_trace::{Address, Error};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use std::io;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::config::{Host, SslMode};

/// Source: PostgreSQL 18, `src/include/libpq/pqcomm.h`.
pub(crate) const SSL: u32 = 80_877_103;

/// Maximum length of a message before a session has begun.
const LONGEST_ANSWER: usize = 64 << 10;

/// Kinds of `Authentication` messages. Source: PostgreSQL 18, `src/include/libpq/protocol.h`.
const OK: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// Where the server is.
#[derive(Debug, Clone)]
enum Place {
    Unix(PathBuf),
    Tcp(String, u16),
}

/// The database that every connection is led to, whatever the client asks for.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    address: Address,
    place: Place,
    pub(crate) user: String,
    pub(crate) database: String,
    /// The password that clients must give to the proxy.
    pub(crate) password: Option<String>,
}

/// How the server answered the start of a session.
pub(crate) struct Admission {
    /// For the client.
    pub(crate) messages: Vec<u8>,
    pub(crate) is_admitted: bool,
}

/// A connection to the server.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

pub(crate) type Socket = Box<dyn Stream>;

impl Target {
    pub(crate) fn new(address: &Address, password: Option<String>) -> Result<Self, Error> {
        let config = address.config();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let place = match (config.get_hosts().first(), config.get_hostaddrs().first()) {
            (Some(Host::Unix(folder)), _) => Place::Unix(folder.join(format!(".s.PGSQL.{port}"))),
            (Some(Host::Tcp(name)), None) => Place::Tcp(name.clone(), port),
            (_, Some(number)) => Place::Tcp(number.to_string(), port),
            (None, None) => return Err(Error::new("the address of the server has no host")),
        };
        let user = config.get_user().unwrap_or("postgres").to_owned();
        let database = address.database_name().to_owned();
        Ok(Self { address: address.clone(), place, user, database, password })
    }

    /// Connects, encrypted as the address asks for.
    pub(crate) async fn connect(&self) -> io::Result<Socket> {
        let (name, port) = match &self.place {
            Place::Unix(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            Place::Tcp(name, port) => (name.as_str(), *port),
        };
        let mut stream = TcpStream::connect((name, port)).await?;
        stream.set_nodelay(true)?;
        let mode = self.address.config().get_ssl_mode();
        if mode == SslMode::Disable {
            return Ok(Box::new(stream));
        }
        stream.write_u32(8).await?;
        stream.write_u32(SSL).await?;
        if stream.read_u8().await? == b'S' {
            let encrypted = self.address.encrypt(stream, name).await;
            return Ok(Box::new(encrypted.map_err(|error| io::Error::other(error.message))?));
        }
        if mode == SslMode::Prefer {
            return Ok(Box::new(stream));
        }
        Err(io::Error::other("the server does not offer encrypted connections"))
    }

    /// Answers the questions of the server after the start of a session. Returns what the client must learn: that it is
    /// let in, or why not.
    pub(crate) async fn authenticate(&self, server: &mut Socket) -> io::Result<Admission> {
        let mut scram: Option<ScramSha256> = None;
        let mut messages = Vec::new();
        loop {
            let message = message(server).await?;
            let (tag, mut body) = (message[0], &message[5..]);
            if tag == b'v' {
                // The server knows an older minor version of the protocol, and goes on with that.
                messages.extend(message);
                continue;
            }
            if tag != b'R' || body.len() < 4 {
                messages.extend(message);
                return Ok(Admission { messages, is_admitted: false });
            }
            let kind = u32::from_be_bytes([body[0], body[1], body[2], body[3]]);
            body = &body[4..];
            let mut answer = BytesMut::new();
            match kind {
                // A server that does not know the password cannot finish.
                OK if scram.is_some() => {
                    return Err(io::Error::other("the server has not proven that it knows the password"));
                }
                OK => {
                    messages.extend(message);
                    return Ok(Admission { messages, is_admitted: true });
                }
                CLEARTEXT => frontend::password_message(self.own_password()?, &mut answer)?,
                MD5 => {
                    let salt = body.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
                    let hash = md5_hash(self.user.as_bytes(), self.own_password()?, salt);
                    frontend::password_message(hash.as_bytes(), &mut answer)?;
                }
                SASL => {
                    let mut offered = std::iter::from_fn(|| Some(string(&mut body)).filter(|name| !name.is_empty()));
                    if !offered.any(|name| name == SCRAM_SHA_256) {
                        return Err(io::Error::other("the server wants a kind of authentication that pgvet lacks"));
                    }
                    let begun = ScramSha256::new(self.own_password()?, ChannelBinding::unsupported());
                    frontend::sasl_initial_response(SCRAM_SHA_256, begun.message(), &mut answer)?;
                    scram = Some(begun);
                }
                SASL_CONTINUE => {
                    let scram = scram.as_mut().ok_or(io::ErrorKind::InvalidData)?;
                    scram.update(body)?;
                    frontend::sasl_response(scram.message(), &mut answer)?;
                }
                SASL_FINAL => {
                    scram.take().ok_or(io::ErrorKind::InvalidData)?.finish(body)?;
                    continue;
                }
                _ => return Err(io::Error::other("the server wants a kind of authentication that pgvet lacks")),
            }
            server.write_all(&answer).await?;
        }
    }

    fn own_password(&self) -> io::Result<&[u8]> {
        self.address.config().get_password().ok_or_else(|| io::Error::other("the server asks for a password"))
    }
}

/// Reads one message with its tag and length.
async fn message(server: &mut Socket) -> io::Result<Vec<u8>> {
    let tag = server.read_u8().await?;
    let length = server.read_u32().await? as usize;
    if !(4..=LONGEST_ANSWER).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![tag];
    message.put_u32(length as u32);
    message.resize(length + 1, 0);
    server.read_exact(&mut message[5..]).await?;
    Ok(message)
}

/// An error as the server would send it.
pub(crate) fn refusal(code: &str, text: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, value) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', code), (b'M', text)] {
        body.put_u8(field);
        body.put_slice(value.as_bytes());
        body.put_u8(0);
    }
    body.put_u8(0);
    let mut message = vec![b'E'];
    message.put_u32(body.len() as u32 + 4);
    message.extend(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authentication(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut message = vec![b'R'];
        message.put_u32(body.len() as u32 + 8);
        message.put_u32(kind);
        message.extend_from_slice(body);
        message
    }

    #[tokio::test]
    async fn a_server_must_prove_that_it_knows_the_password() {
        let mut config = tokio_postgres::Config::new();
        config.host("localhost").user("ann").password("geheim").dbname("shop");
        let target = Target::new(&Address::try_from(config).unwrap(), None).unwrap();
        let (mut server, proxy) = tokio::io::duplex(1 << 16);
        server.write_all(&authentication(SASL, b"SCRAM-SHA-256\0\0")).await.unwrap();
        server.write_all(&authentication(OK, b"")).await.unwrap();
        let admission = target.authenticate(&mut (Box::new(proxy) as Socket)).await;
        assert!(admission.is_err_and(|error| error.to_string().contains("has not proven")));
    }
}
