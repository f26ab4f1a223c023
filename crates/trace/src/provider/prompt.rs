//! Asks for a password on the terminal, where the server wants one that nobody has told, as psql does.

use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, IsTerminal, Read, Write};

/// What the keys send: Ctrl-C, Ctrl-D, and what takes a character back.
const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;

/// The address with its password. Without a terminal the connection will say what is missing.
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

/// On a thread of its own, for a runtime cannot be started within another.
fn wants_password(address: &Address) -> Result<bool, Error> {
    let attempt = || {
        let opened = crate::trace::runtime()?.block_on(Connection::open(address, "provider"));
        Ok(opened.is_err_and(|error| error.is_missing_password()))
    };
    std::thread::scope(|scope| scope.spawn(attempt).join()).unwrap_or(Ok(false))
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
        tcsetattr(terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

fn ask(mut terminal: &File, question: &str) -> Result<String, Error> {
    let cannot = |error: std::io::Error| Error::new(format!("cannot ask for a password: {error}"));
    let hidden = Hidden::new(terminal).map_err(|error| cannot(error.into()))?;
    terminal.write_all(question.as_bytes()).map_err(cannot)?;
    let typed = read_line(&mut BufReader::new(terminal).bytes());
    drop(hidden);
    terminal.write_all(b"\n").map_err(cannot)?;
    typed.map_err(cannot)?.ok_or_else(|| Error::new("interrupted"))
}

/// What is typed up to the end of the line; `None` where it is interrupted (Ctrl-C).
fn read_line(bytes: &mut dyn Iterator<Item = std::io::Result<u8>>) -> std::io::Result<Option<String>> {
    let mut typed: Vec<u8> = Vec::new();
    for byte in bytes {
        match byte? {
            b'\n' | b'\r' | END => break,
            INTERRUPT => return Ok(None),
            BACKSPACE | DELETE => {
                let whole = String::from_utf8_lossy(&typed).chars().count();
                typed =
                    String::from_utf8_lossy(&typed).chars().take(whole.saturating_sub(1)).collect::<String>().into();
            }
            other => typed.push(other),
        }
    }
    Ok(Some(String::from_utf8_lossy(&typed).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &str) -> Option<String> {
        read_line(&mut keys.bytes().map(Ok)).unwrap()
    }

    #[test]
    fn a_line_is_typed_corrected_or_interrupted() {
        assert_eq!(typed("geheim\nmore").as_deref(), Some("geheim"));
        assert_eq!(typed("gä\u{7f}eheimx\u{8}\r").as_deref(), Some("geheim"));
        assert_eq!(typed("\u{7f}a").as_deref(), Some("a"));
        assert_eq!(typed("ge\u{3}heim\n"), None);
    }
}
