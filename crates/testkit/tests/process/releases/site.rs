//! A copy of a recorded folder, with all that its project talks to.

use super::noted::Noted;
use crate::events_out::SECRET;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use tempfile::TempDir;
use testkit::harness::{self, DEMO_TOOLS, Server, StartOptions};
use testkit::llms::FakeModels;
use testkit::servers::login::{Before, LoginServer};
use testkit::servers::receiver::Receiver;
use testkit::servers::webhook::WebhookReceiver;
use testkit::upstream::Upstream;

/// The copy and the servers around it.
pub(super) struct Site {
    pub(super) noted: Noted,
    /// Where orders go.
    pub(super) shop: Receiver,
    /// Where somebody has logged in.
    pub(super) hub: LoginServer,
    /// Where events go.
    pub(super) hook: WebhookReceiver,
    /// What the agents of plans ask.
    pub(super) models: FakeModels,
    /// The server of the provider that is stored.
    _shelf: Upstream,
    folder: TempDir,
}

impl Site {
    /// Copies what was recorded of a release.
    pub(super) fn copy(release: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-release-").tempdir().unwrap();
        let text = fs::read_to_string(release.join("expected.json")).unwrap();
        let noted: Noted = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", release.display()));
        for part in ["project", "data"] {
            copy_folder(&release.join(part), &folder.path().join(part));
        }
        switch_on(&folder.path().join("project/waypost.toml"));
        let shop = Receiver::start(folder.path());
        let shelf = Upstream::start(folder.path(), &[]);
        let (models, hook) = (FakeModels::start(), WebhookReceiver::start(&[SECRET]));
        let (address, refresh) = (noted.hub.address, noted.hub.refresh.as_str());
        let hub = LoginServer::after(&Before { address, refresh, callback: &noted.hub.callback });
        let variables = format!(
            "SHOP_URL=http://{}\nHUB_URL={}\nMODEL_URL={}\nHOOK_URL={}\nHOOK_SECRET={SECRET}\n\
             WAYPOST_PROVIDER_SHELF={}\n",
            shop.address(),
            hub.base,
            models.url(),
            hook.url(),
            shelf.url()
        );
        fs::write(folder.path().join("project/.env"), variables).unwrap();
        Self { noted, shop, hub, hook, models, _shelf: shelf, folder }
    }

    /// A server over a data folder of this site that takes work.
    pub(super) fn start(&self, data: &str) -> Server {
        let (project, data) = (self.path("project"), self.path(data));
        let options = StartOptions { project: &project, data: &data, args: &[] };
        let mut server = Server::start(&options);
        server.wait_until_ready();
        server
    }

    /// From now on its servers ask for credentials, and there is a realm beside the one that the
    /// folder has. The key that administers all of it, made in the folder itself.
    pub(super) fn ask_for_credentials(&self) -> String {
        let settings = self.path("project/waypost.toml");
        let text = fs::read_to_string(&settings).unwrap();
        let asking = text.replacen("[server]\n", "[server]\nhosts = [\"wp.example.com\"]\n", 1);
        assert_ne!(asking, text, "there is no `[server]` to open to others");
        fs::write(settings, format!("{asking}\n[realms.acme]\nmax_find_limit = 100\n")).unwrap();
        let made = ["key", "create", "--name", "root", "--role", "admin", "--realm", "*"];
        let made = [&made[..], &["--data", "data"]].concat();
        let output = harness::waypost(self.folder.path(), &made);
        assert!(output.status.success(), "no first key: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs `waypost` with these arguments; it must end well.
    pub(super) fn waypost(&self, arguments: &[&str]) {
        let ended = harness::waypost(self.folder.path(), arguments);
        assert!(ended.status.success(), "waypost {arguments:?}: {ended:?}");
    }

    /// `waypost doctor` finds nothing that does not work.
    pub(super) fn doctor(&self, server: &Server) {
        let port = server.address().port().to_string();
        self.waypost(&["doctor", "project", "--data", "data", "--port", &port]);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if thread::panicking() {
            // The journal and the server's log are what a failure is found by.
            self.folder.disable_cleanup(true);
            crate::tell(&format!("releases: kept `{}`", self.folder.path().display()));
        }
    }
}

/// A project of 0.1.0 had the tools of the demo by itself: its operator sets the switch, as the
/// changelog says.
fn switch_on(settings: &Path) {
    let text = fs::read_to_string(settings).unwrap();
    if !text.contains("demo = true") {
        fs::write(settings, format!("{text}\n{DEMO_TOOLS}")).unwrap();
    }
}

/// Copies a folder with all in it, for our eyes only: secrets that others may read are refused,
/// and a checkout keeps no such rights.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
}
