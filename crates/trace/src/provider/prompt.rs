//! Asks for a password on the terminal, where the server wants one that nobody has told, as psql does.

use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use crate::runtime::{block_on, unless_interrupted};
use rustix::fs::OFlags;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// How often the terminal is asked whether a line is there.
const INTERVAL: Duration = Duration::from_millis(20);

/// The address with its password. Without a terminal the connection will say what is missing. Not for async code.
pub fn with_password(address: Address) -> Result<Address, Error> {
    with_password_or(address, &|error| error)
}

/// The same, with what is to be said where the server refuses for another reason.
pub(super) fn with_password_or(mut address: Address, refused: &dyn Fn(Error) -> Error) -> Result<Address, Error> {
    if address.config.get_password().is_some() || !io::stdin().is_terminal() {
        return Ok(address);
    }
    // Reading does not wait, so that a signal can end it.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let terminal = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open("/dev/tty");
    let Ok(terminal) = terminal else { return Ok(address) };
    if !wants_password(&address).map_err(refused)? {
        return Ok(address);
    }
    let user = address.config.get_user().unwrap_or_default();
    let password = ask(&terminal, &format!("Password for user {user}: "))?;
    address.config.password(password);
    Ok(address)
}

fn wants_password(address: &Address) -> Result<bool, Error> {
    block_on(async {
        match Connection::open(address, "provider").await {
            Ok(_) => Ok(false),
            Err(error) if error.is_missing_password() => Ok(true),
            Err(error) => Err(error),
        }
    })
}

/// A terminal that does not show what is typed. Dropping this value restores its settings.
struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn new(terminal: &'a File) -> Result<Self, rustix::io::Errno> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// The line that is typed. A signal ends it, and is listened for before the terminal becomes another.
fn ask(mut terminal: &File, question: &str) -> Result<String, Error> {
    let cannot = |error: io::Error| Error::new(format!("cannot ask for a password: {error}"));
    let typed = block_on(unless_interrupted(async {
        let _hidden = Hidden::new(terminal).map_err(|error| cannot(error.into()))?;
        terminal.write_all(question.as_bytes()).map_err(cannot)?;
        line(terminal).await.map_err(cannot)
    }));
    terminal.write_all(b"\n").map_err(cannot)?;
    typed
}

/// A line without its end, or what there is before the end of the file.
async fn line(mut terminal: &File) -> io::Result<String> {
    let mut line = Vec::new();
    let mut piece = [0; 1024];
    loop {
        match terminal.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => line.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(INTERVAL).await,
            Err(error) => return Err(error),
        }
        if line.ends_with(b"\n") {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
}
