//! Files that a hook or a shell names, and whose names read as options.

use crate::error::Failure;
use std::ffi::OsString;
use std::path::Path;

/// Refuses an option that is also the name of a file: `pgvet check *` may mean either.
pub(crate) fn check(mut arguments: impl Iterator<Item = OsString>) -> Result<(), Failure> {
    let is_file = |argument: &OsString| {
        let bytes = argument.as_encoded_bytes();
        bytes.len() > 1 && bytes[0] == b'-' && Path::new(argument).symlink_metadata().is_ok()
    };
    match arguments.by_ref().take_while(|argument| argument != "--").find(is_file) {
        Some(argument) => {
            let name = argument.to_string_lossy();
            let help = "write `./` before the name of a file, or all names after `--`";
            Err(Failure::new(format!("`{name}` is both an option and the name of a file")).help(help))
        }
        None => Ok(()),
    }
}
