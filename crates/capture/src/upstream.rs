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
use tokio_postgres::config::{ChannelBinding as WantedBinding, Host, SslMode};

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
enum Endpoint {
    Unix(PathBuf),
    /// `name` is the one that the server's certificate must have.
    Tcp {
        host: String,
        port: u16,
        name: String,
    },
}

/// The database to which every connection goes, whatever the client asks for.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    address: Address,
    endpoint: Endpoint,
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
        if config.get_channel_binding() == WantedBinding::Require {
            return Err(Error::new("a capture cannot bind a password to its encrypted connection")
                .help("omit channel_binding=require, and verify the server with sslmode=verify-full"));
        }
        if config.get_hosts().len() > 1 {
            return Err(Error::new("the address names several servers").help("name the one with the clone"));
        }
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let number = config.get_hostaddrs().first().map(ToString::to_string);
        let endpoint = match (config.get_hosts().first(), number) {
            (Some(Host::Unix(folder)), _) => Endpoint::Unix(folder.join(format!(".s.PGSQL.{port}"))),
            (Some(Host::Tcp(name)), number) => {
                Endpoint::Tcp { host: number.unwrap_or_else(|| name.clone()), port, name: name.clone() }
            }
            (None, Some(number)) => Endpoint::Tcp { host: number.clone(), port, name: number },
            (None, None) => return Err(Error::new("the address of the server has no host")),
        };
        let user = config.get_user().unwrap_or("postgres").to_owned();
        let database = address.database_name().to_owned();
        Ok(Self { address: address.clone(), endpoint, user, database, password })
    }

    /// Connects, encrypted as the address asks for.
    pub(crate) async fn connect(&self) -> io::Result<Socket> {
        let (host, port, name) = match &self.endpoint {
            Endpoint::Unix(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            Endpoint::Tcp { host, port, name } => (host.as_str(), *port, name),
        };
        let mut stream = TcpStream::connect((host, port)).await?;
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
        let mut scram = Scram::default();
        let mut messages = Vec::new();
        loop {
            let message = message(server).await?;
            if message[0] == b'v' {
                // The server knows an older minor version of the protocol, and goes on with that.
                messages.extend(message);
                continue;
            }
            let Some((kind, body)) = message[5..].split_first_chunk().filter(|_| message[0] == b'R') else {
                messages.extend(message);
                return Ok(Admission { messages, is_admitted: false });
            };
            let kind = u32::from_be_bytes(*kind);
            if kind == OK {
                scram.ensure_proof()?;
                messages.extend(message);
                return Ok(Admission { messages, is_admitted: true });
            }
            let answer = self.answer(kind, body, &mut scram)?;
            server.write_all(&answer).await?;
        }
    }

    /// The answer to a question; empty if the server expects none.
    fn answer(&self, kind: u32, mut body: &[u8], scram: &mut Scram) -> io::Result<BytesMut> {
        let mut answer = BytesMut::new();
        match kind {
            CLEARTEXT => frontend::password_message(self.own_password()?, &mut answer)?,
            MD5 => {
                let salt = body.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
                let hash = md5_hash(self.user.as_bytes(), self.own_password()?, salt);
                frontend::password_message(hash.as_bytes(), &mut answer)?;
            }
            SASL => {
                let mut offered = std::iter::from_fn(|| Some(string(&mut body)).filter(|name| !name.is_empty()));
                if !offered.any(|name| name == SCRAM_SHA_256) {
                    return Err(unsupported());
                }
                let begun = ScramSha256::new(self.own_password()?, ChannelBinding::unsupported());
                frontend::sasl_initial_response(SCRAM_SHA_256, begun.message(), &mut answer)?;
                *scram = Scram::Begun(Box::new(begun));
            }
            SASL_CONTINUE => {
                let begun = scram.begun()?;
                begun.update(body)?;
                frontend::sasl_response(begun.message(), &mut answer)?;
            }
            SASL_FINAL => {
                scram.begun()?.finish(body).map_err(|_| not_proven())?;
                *scram = Scram::Proven;
            }
            _ => return Err(unsupported()),
        }
        Ok(answer)
    }

    fn own_password(&self) -> io::Result<&[u8]> {
        self.address.config().get_password().ok_or_else(|| io::Error::other("it asks for a password"))
    }
}

/// An exchange in which both sides prove that they know the password.
#[derive(Default)]
enum Scram {
    #[default]
    NotAsked,
    Begun(Box<ScramSha256>),
    Proven,
}

impl Scram {
    fn begun(&mut self) -> io::Result<&mut ScramSha256> {
        match self {
            Self::Begun(scram) => Ok(scram),
            Self::NotAsked | Self::Proven => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Refuses a server that has begun the exchange and not sent its signature: it may be another server.
    ///
    /// Source: RFC 5802, section 5.
    fn ensure_proof(&self) -> io::Result<()> {
        if matches!(self, Self::Begun(_)) { Err(not_proven()) } else { Ok(()) }
    }
}

fn not_proven() -> io::Error {
    io::Error::other("it does not prove that it knows the password")
}

fn unsupported() -> io::Error {
    io::Error::other("it requires an authentication method that pgvet does not support")
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
    use pgvet_trace::provider::Config;
    use tokio::io::DuplexStream;

    fn target(config: &str) -> Result<Target, Error> {
        Target::new(&Address::try_from(config.parse::<Config>().unwrap()).unwrap(), None)
    }

    /// Sends an `Authentication` message, and reads the answer if there is one.
    async fn ask(client: &mut DuplexStream, kind: u32, body: &str, is_answered: bool) -> String {
        client.write_u8(b'R').await.unwrap();
        client.write_u32(body.len() as u32 + 8).await.unwrap();
        client.write_u32(kind).await.unwrap();
        client.write_all(body.as_bytes()).await.unwrap();
        if !is_answered {
            return String::new();
        }
        assert_eq!(client.read_u8().await.unwrap(), b'p');
        let mut answer = vec![0; client.read_u32().await.unwrap() as usize - 4];
        client.read_exact(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Authenticates with a server that leaves the exchange after this many of its messages and lets everybody in.
    fn authenticate(messages: usize) -> io::Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(1 << 10);
            let mut ours: Socket = Box::new(ours);
            let server = async move {
                if messages > 0 {
                    let first = ask(&mut theirs, SASL, "SCRAM-SHA-256\0\0", true).await;
                    let nonce = first.rsplit_once("r=").unwrap().1.to_owned();
                    if messages > 1 {
                        ask(&mut theirs, SASL_CONTINUE, &format!("r={nonce}x,s=c2FsdA==,i=4096"), true).await;
                    }
                    if messages > 2 {
                        ask(&mut theirs, SASL_FINAL, "v=c2lnbmF0dXJl", false).await;
                    }
                }
                ask(&mut theirs, OK, "", false).await;
            };
            let target = target("host=h user=ann password=secret").unwrap();
            let (admission, ()) = tokio::join!(target.authenticate(&mut ours), server);
            admission.map(|admission| admission.is_admitted)
        })
    }

    #[test]
    fn a_server_that_asks_for_scram_has_to_prove_that_it_knows_the_password() {
        assert!(authenticate(0).unwrap(), "a server that asks for nothing has nothing to prove");
        for messages in 1..=3 {
            let error = authenticate(messages).unwrap_err();
            assert_eq!(error.to_string(), "it does not prove that it knows the password", "{messages}");
        }
    }

    #[test]
    fn an_address_that_promises_more_is_refused() {
        let refused = |config| target(config).unwrap_err().message;
        assert!(refused("host=h channel_binding=require").contains("cannot bind a password"));
        assert!(refused("host=one,other port=1,2").contains("names several servers"));
        assert!(target("host=h hostaddr=127.0.0.1 channel_binding=prefer").is_ok());
    }
}
