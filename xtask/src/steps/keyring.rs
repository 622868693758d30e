//! The step `keyring`: the secret service of GNOME (`gnome-keyring`) on a bus of its own holds keys
//! that `secret-tool` stored there, and the built server finds them for its agents. The script is
//! `crates/testkit/a2a/keyring.py`; it ends all that it starts.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::child;
use crate::provision::Program;
use crate::shell::{self, Failure};
use crate::steps::interpreters;
use crate::steps::product;
use crate::steps::vault_peers::{ADMIN_KEY, guarded};

/// What it runs, and the Debian packages that bring it. `cargo xtask prove` installs them.
pub const PROGRAMS: &[Program] = &[
    ("dbus-run-session", &["dbus"]),
    ("dbus-send", &["dbus"]),
    ("gnome-keyring-daemon", &["gnome-keyring"]),
    ("secret-tool", &["libsecret-tools"]),
];
const SCRIPT: &str = "keyring.py";
/// The script has a deadline of its own; this is for one that does not keep it.
const RUN_WAIT: Duration = Duration::from_secs(1_200);

/// `cargo xtask keyring`: builds what it needs, then does what the step does.
pub fn run_alone(root: &Path) -> Result<(), Failure> {
    let target = shell::target_folder(root)?;
    product::build(root)?;
    run(root, &target)
}

/// Lets the built server call an agent with what the keyring has.
pub fn run(root: &Path, target: &Path) -> Result<(), Failure> {
    for (program, packages) in PROGRAMS {
        if !shell::is_installed(program) {
            let packages = packages.join("`, `");
            let why = format!("`{program}` is missing; install the Debian package `{packages}`");
            return Err(Failure::new(why));
        }
    }
    let folder = target.join("keyring");
    let server = guarded(target, &folder)?;
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "python3"]).arg(interpreters::a2a_folder(root).join(SCRIPT));
    command.arg(target.join("debug").join("waypost")).args([server.url.as_str(), ADMIN_KEY]);
    let log = folder.join("script.log");
    let checked = child::checks_within("a keyring", &mut command, &log, RUN_WAIT);
    server.stop_after(checked.map(|passed| println!("   a keyring: {passed} checks")))
}
