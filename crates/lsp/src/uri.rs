//! Addresses of documents and paths of files.

use lsp_types::Uri;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The path of a `file:` address; `None` for a document that is in no file.
pub(crate) fn to_path(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    // `file:///a`, or `file://host/a`.
    let path = &rest[rest.find('/')?..];
    let path = decode(path)?;
    // `/c:/a` on Windows.
    let is_drive = path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if cfg!(windows) && is_drive { path[1..].replace('/', "\\") } else { path }))
}

/// The address of an absolute path.
pub(crate) fn from_path(path: &Path) -> Option<Uri> {
    let path = std::path::absolute(path).ok()?;
    let path = path.to_str()?.replace('\\', "/");
    let mut text = String::from(if path.starts_with('/') { "file://" } else { "file:///" });
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    Uri::from_str(&text).ok()
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push((digit()? * 16 + digit()?) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths_lead_to_each_other() {
        for (path, address) in [("/a/b.sql", "file:///a/b.sql"), ("/a b/ü#.sql", "file:///a%20b/%C3%BC%23.sql")] {
            let uri = from_path(Path::new(path)).unwrap();
            assert_eq!(uri.as_str(), address);
            assert_eq!(to_path(&uri), Some(PathBuf::from(path)));
        }
    }

    #[test]
    fn other_addresses_have_no_path() {
        for address in ["untitled:Untitled-1", "git:/a.sql", "file:///%zz"] {
            assert_eq!(Uri::from_str(address).ok().as_ref().and_then(to_path), None, "{address}");
        }
    }
}
