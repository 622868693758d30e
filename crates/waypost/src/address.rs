//! Where the server of a data folder listens. Whoever serves a folder over HTTP leaves its address
//! beside the data, so that a process that finds the folder held knows whom to ask.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

const FILE: &str = "address";

/// Leaves this process's address beside the data that it holds. It stays after the end: its process
/// id says that it is old, and the folder may have another holder by then.
pub(crate) fn leave(data: &Path, address: SocketAddr) {
    let text = format!("pid {}\nurl http://{address}\n", std::process::id());
    if let Err(error) = std::fs::write(data.join(FILE), text) {
        tracing::warn!(%error, "other processes will not find this server by its data folder");
    }
}

/// Removes what an earlier holder left: whoever holds the folder now does not listen.
pub(crate) fn forget(data: &Path) {
    match std::fs::remove_file(data.join(FILE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(%error, "the address of an earlier server stays beside the data");
        }
        Ok(()) | Err(_) => {}
    }
}

/// The address of the server that holds this folder, if it left one on this machine: a folder may
/// be somebody else's, and must not send us elsewhere. The holder's process id may be unknown where
/// the system lets nobody read a file that is locked.
pub(crate) fn of_holder(data: &Path, holder: Option<u32>) -> Option<String> {
    let text = std::fs::read_to_string(data.join(FILE)).ok()?;
    let after = |word: &str| text.lines().find_map(|line| line.strip_prefix(word));
    let pid: u32 = after("pid ")?.parse().ok()?;
    let is_theirs = holder.is_none_or(|holder| holder == pid);
    after("url ").filter(|url| is_theirs && is_here(url)).map(str::to_owned)
}

/// Whether an address is one that we could have left.
fn is_here(url: &str) -> bool {
    let address = url.strip_prefix("http://").and_then(|address| address.parse().ok());
    address.is_some_and(|address: SocketAddr| address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_holders() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        assert_eq!(of_holder(data, None), None);
        leave(data, SocketAddr::from(([127, 0, 0, 1], 8420)));
        let ours = std::process::id();
        let url = Some("http://127.0.0.1:8420".to_owned());
        assert_eq!(of_holder(data, Some(ours)), url);
        assert_eq!(of_holder(data, None), url);
        assert_eq!(of_holder(data, Some(ours + 1)), None, "left by an earlier one");
        for elsewhere in ["http://192.0.2.1:80", "http://127.0.0.1.evil.test:80", "nowhere"] {
            std::fs::write(data.join(FILE), format!("pid {ours}\nurl {elsewhere}\n")).unwrap();
            assert_eq!(of_holder(data, Some(ours)), None, "{elsewhere}");
        }
        forget(data);
        forget(data);
        assert_eq!(of_holder(data, Some(ours)), None);
    }
}
