//! Asks for a password on the terminal, where the server wants one that nobody has told, as psql does.

use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use crate::trace::{block_on, unless_interrupted};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Read, Write};
use std::time::Duration;

/// What the keys send: Ctrl-C, Ctrl-D, and what takes a character back.
const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;

/// How often the terminal is asked for keys.
const INTERVAL: Duration = Duration::from_millis(20);

/// The address with its password. Without a terminal the connection will say what is missing. Not for async code.
pub fn with_password(mut address: Address) -> Result<Address, Error> {
    if address.config.get_password().is_some() || !std::io::stdin().is_terminal() {
        return Ok(address);
    }
    let Ok(terminal) = OpenOptions::new().read(true).write(true).open("/dev/tty") else { return Ok(address) };
    if !wants_password(&address)? {
        return Ok(address);
    }
    let user = address.config.get_user().unwrap_or_default();
    let password = ask(&terminal, &format!("Password for user {user}: "))?;
    address.config.password(password);
    Ok(address)
}

fn wants_password(address: &Address) -> Result<bool, Error> {
    block_on(async { Ok(Connection::open(address, "provider").await.is_err_and(|error| error.is_missing_password())) })
}

/// A terminal that shows nothing of what is typed. It becomes what it was with this value.
struct Hidden<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn new(terminal: &'a File) -> Result<Self, rustix::io::Errno> {
        let before = tcgetattr(terminal)?;
        let mut hidden = before.clone();
        // An interruption comes as a character, so that the terminal is never left as it is now.
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        // Reading does not wait, so that a signal can end it.
        hidden.special_codes[SpecialCodeIndex::VMIN] = 0;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// What is typed. A signal ends it, and is listened for before the terminal becomes another.
fn ask(mut terminal: &File, question: &str) -> Result<String, Error> {
    let cannot = |error: std::io::Error| Error::new(format!("cannot ask for a password: {error}"));
    let typed = block_on(unless_interrupted(async {
        let _hidden = Hidden::new(terminal).map_err(|error| cannot(error.into()))?;
        terminal.write_all(question.as_bytes()).map_err(cannot)?;
        let mut line = Line::default();
        let mut byte = [0];
        loop {
            match terminal.read(&mut byte).map_err(cannot)? {
                0 => tokio::time::sleep(INTERVAL).await,
                _ if line.ends_with(byte[0]) => return line.typed().ok_or_else(|| Error::new("interrupted")),
                _ => {}
            }
        }
    }));
    terminal.write_all(b"\n").map_err(cannot)?;
    typed
}

/// What has been typed so far.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    interrupted: bool,
}

impl Line {
    /// Takes a key, and says whether it is the last one.
    fn ends_with(&mut self, key: u8) -> bool {
        match key {
            b'\n' | b'\r' | END => return true,
            INTERRUPT => {
                self.interrupted = true;
                return true;
            }
            BACKSPACE | DELETE => {
                let mut text = self.text();
                text.pop();
                self.bytes = text.into();
            }
            other => self.bytes.push(other),
        }
        false
    }

    /// `None` where it was interrupted (Ctrl-C).
    fn typed(&self) -> Option<String> {
        (!self.interrupted).then(|| self.text())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> Option<String> {
        let mut line = Line::default();
        assert!(keys.bytes().any(|key| line.ends_with(key)));
        line.typed()
    }

    #[test]
    fn a_line_is_typed_corrected_or_interrupted() {
        assert_eq!(typed("geheim\nmore").as_deref(), Some("geheim"));
        assert_eq!(typed("gä\u{7f}eheimx\u{8}\r").as_deref(), Some("geheim"));
        assert_eq!(typed("\u{7f}a\n").as_deref(), Some("a"));
        assert_eq!(typed("ge\u{3}heim\n"), None);
    }
}
