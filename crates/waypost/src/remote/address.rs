//! Where the server of a data folder listens. A process that serves a folder over HTTP leaves its
//! address beside the data: a process that finds the folder held knows whom to ask, and a client in
//! the project's folder finds the project's own server.

use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, UNTRUSTED};
use engine::system::clock::SystemEntropy;
use kernel::contracts::Entropy;
use project::atomic_file::{FileAccess, replace_file};
use server::instance::proof;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use wire::rest::Instance;

const FILE: &str = "address";

/// The file of a data folder that holds the address.
pub(crate) fn file(data: &Path) -> PathBuf {
    data.join(FILE)
}

/// Leaves this process's address beside the data that it holds, with the token by which clients
/// recognise its server. It stays after the end: no one can prove to have its token then.
pub(crate) fn leave(data: &Path, url: &str, token: &str) {
    let text = format!("pid {}\nurl {url}\ntoken {token}\n", std::process::id());
    if let Err(error) = replace_file(&file(data), text.as_bytes(), FileAccess::Private) {
        tracing::warn!(%error, "other processes will not find this server by its data folder");
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes what an earlier holder left: the process that holds the folder now does not listen.
pub(crate) fn forget(data: &Path) {
    if let Err(error) = remove(&file(data)) {
        tracing::warn!(%error, "the address of an earlier server stays beside the data");
    }
}

/// What a server left beside its data.
struct AddressFile {
    pid: u32,
    url: String,
    token: String,
}

/// What was left in this folder, if it leads to this machine: a folder may be someone else's, and
/// must not send us elsewhere.
fn read(data: &Path) -> Option<AddressFile> {
    let text = fs::read_to_string(file(data)).ok()?;
    let after = |word: &str| text.lines().find_map(|line| line.strip_prefix(word));
    let url = after("url ").filter(|url| is_here(url))?.to_owned();
    let token = after("token ")?.to_owned();
    Some(AddressFile { pid: after("pid ")?.parse().ok()?, url, token })
}

/// The address of the server that holds this folder, if it left one on this machine. The holder's
/// process id may be unknown where the system lets no one read a file that is locked.
pub(crate) fn of_holder(data: &Path, holder: Option<u32>) -> Option<String> {
    let left = read(data)?;
    let is_theirs = holder.is_none_or(|holder| holder == left.pid);
    is_theirs.then_some(left.url)
}

/// What the address in a data folder leads to.
#[derive(Debug)]
pub(crate) enum AddressState {
    /// There is no address.
    Nothing,
    /// The folder's own server listens here.
    Running(String),
    /// The address leads nowhere, or to another server: in words.
    Stale(String),
}

/// Finds the server of this folder by the address that it left, and has it prove that it is the
/// one. Fails where it may be that server, but does not answer.
pub(crate) async fn find(data: &Path) -> Result<AddressState> {
    let Some(AddressFile { pid, url, .. }) = read(data) else { return Ok(AddressState::Nothing) };
    match ask(&url, data).await {
        Ok(RunningServer { is_ours: true, .. }) => Ok(AddressState::Running(url)),
        Ok(_) => Ok(AddressState::Stale(format!("another server listens at {url}"))),
        // It may well be ours: that its certificate is not trusted must not lead elsewhere.
        Err(failure) if failure.code == UNTRUSTED => Err(failure),
        Err(failure) if failure.exit == Exit::Unreachable => {
            Ok(AddressState::Stale(format!("no server listens at {url}")))
        }
        Err(failure) if failure.exit == Exit::Timeout && is_alive(pid) => {
            let what = format!("this folder's server (pid {pid}) does not answer at `{url}`");
            Err(Failure::new(Exit::Timeout, "timeout", what)
                .hint("look at its log, or name another server with `--server URL`"))
        }
        Err(_) => Ok(AddressState::Stale(format!("another program listens at {url}"))),
    }
}

/// A server that answers.
pub(crate) struct RunningServer {
    /// Whether it is the one of the data folder.
    pub(crate) is_ours: bool,
    /// What it says of itself.
    pub(crate) instance: Instance,
}

/// Which server answers at this URL, and whether it is the one of this data folder.
pub(crate) async fn ask(url: &str, data: &Path) -> Result<RunningServer> {
    let challenge = format!("{:032x}", SystemEntropy.bits());
    let instance = Client::new(url)?.instance(&challenge).await?;
    let is_ours = read(data).is_some_and(|left| proof(&left.token, &challenge) == instance.proof);
    Ok(RunningServer { is_ours, instance })
}

/// The Waypost that listens at this URL, in words; none where another program does.
pub(crate) async fn holder_at(url: &str, data: &Path) -> Option<String> {
    match ask(url, data).await {
        Ok(RunningServer { is_ours: true, .. }) => Some("this folder's server".to_owned()),
        Ok(RunningServer { instance, .. }) => Some(another(&instance)),
        Err(_) => None,
    }
}

/// A server of another folder, as far as it says which one:
/// `another Waypost (pid 7, folder /srv/shop/.waypost)`.
pub(crate) fn another(instance: &Instance) -> String {
    let pid = instance.pid.map(|pid| format!("pid {pid}"));
    let folder = instance.data.as_ref().map(|data| format!("folder {data}"));
    let known: Vec<String> = pid.into_iter().chain(folder).collect();
    let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
    format!("another Waypost{known}")
}

/// Whether an address is one that we could have left.
fn is_here(url: &str) -> bool {
    let address = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let address = address.and_then(|address| address.parse().ok());
    address.is_some_and(|address: SocketAddr| address.ip().is_loopback())
}

/// Whether there is a process of this id, also one of another person.
#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Elsewhere no one can say so: it may be there.
#[cfg(not(unix))]
fn is_alive(_pid: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_only_for_the_process_that_wrote_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        assert_eq!(of_holder(data, None), None);
        let url = Some("http://127.0.0.1:8420".to_owned());
        leave(data, "http://127.0.0.1:8420", "secret");
        let ours = std::process::id();
        assert_eq!(of_holder(data, Some(ours)), url);
        assert_eq!(of_holder(data, None), url);
        assert_eq!(of_holder(data, Some(ours + 1)), None, "left by an earlier one");
        leave(data, "https://[::1]:8420", "secret");
        assert_eq!(of_holder(data, None).as_deref(), Some("https://[::1]:8420"));
        for elsewhere in ["https://192.0.2.1:80", "http://127.0.0.1.evil.test:80", "nowhere"] {
            std::fs::write(data.join(FILE), format!("pid {ours}\nurl {elsewhere}\ntoken x\n"))
                .unwrap();
            assert_eq!(of_holder(data, Some(ours)), None, "{elsewhere}");
        }
        forget(data);
        forget(data);
        assert_eq!(of_holder(data, Some(ours)), None);
    }

    #[cfg(unix)]
    #[test]
    fn an_address_file_is_private_also_where_one_existed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path());
        std::fs::write(&path, "pid 1\nurl http://127.0.0.1:1\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(folder.path()).is_none(), "it has no token");
        leave(folder.path(), "http://127.0.0.1:8420", "secret");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(folder.path()).unwrap().token, "secret");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn our_own_process_is_alive() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(0) && !is_alive(u32::MAX));
    }
}
