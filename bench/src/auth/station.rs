//! The servers that are measured, each on a project and data of its own.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::issuer::{self, AUDIENCE, ROLE};
use crate::Result;
use crate::http::{Client, post_with};
use crate::load::unexpected;
use crate::mcp::wire;
use crate::product::server::{Launcher, Server, Site};

/// As long as an admin key must be.
const ADMIN_KEY: &str = "the-admin-key-of-a-benchmark-and-of-nothing-else";

/// What a server is measured with.
pub struct Described<'a> {
    pub binary: Option<&'a Path>,
    /// Where its folders are.
    pub dir: &'a Path,
    /// How many plans are tools beside the built-in ones.
    pub tools: usize,
    /// Whom it asks; no one in local mode.
    pub asking: Option<Asking<'a>>,
    /// What runs it.
    pub launcher: &'a Launcher,
}

/// How a server asks for credentials.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// Whose tokens it takes.
    pub issuer: SocketAddr,
    pub policies: &'a str,
    /// Whether allowed reads are in the audit.
    pub audits_reads: bool,
    /// Whether it believes what a request says of where it comes from.
    pub is_behind_proxy: bool,
}

/// A running server.
pub struct Station {
    // First, so that it is stopped before its folders go.
    server: Server,
    site: Site,
    // Held for its folder.
    _data: TempDir,
}

impl Station {
    pub async fn start(described: &Described<'_>) -> Result<Self> {
        let site = Site::build(described.binary, described.dir)?.under(described.launcher);
        wire::write_plans(&site.project(), described.tools)?;
        if let Some(asking) = &described.asking {
            configure(&site.project(), asking)?;
        }
        let data = site.data()?;
        let variables = [("WAYPOST_ADMIN_KEY", ADMIN_KEY)];
        let variables = if described.asking.is_some() { &variables[..] } else { &[] };
        let started = Server::start_with(&site, data.path(), variables).await;
        let server = started.map_err(|error| site.explain(&*error))?;
        Ok(Self { server, site, _data: data })
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// A new key of a member, as a header line.
    pub async fn key(&self) -> Result<String> {
        let admin = format!("x-api-key: {ADMIN_KEY}\r\n");
        let request = post_with(self.address(), "/api/v1/keys", &admin, r#"{"name":"bench"}"#);
        let mut client = Client::connect(self.address()).await?;
        let answer = client.send(&request).await?;
        if answer.status != 201 {
            return Err(unexpected("201 with a key", &answer));
        }
        let made: Value = serde_json::from_slice(answer.body)?;
        let text = made["text"].as_str().ok_or("the new key has no text")?;
        Ok(format!("x-api-key: {text}\r\n"))
    }

    /// The outcome of asking this server; an error comes with the end of its log.
    pub fn explained<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| self.site.explain(&*error).into())
    }

    /// Stops it in order.
    pub fn stop(self) -> Result<()> {
        self.server.stop()
    }
}

/// Has a project ask everybody for credentials: a name under which others reach it is enough.
fn configure(project: &Path, asking: &Asking<'_>) -> Result<()> {
    let path = project.join("waypost.toml");
    let mut settings = std::fs::read_to_string(&path)?;
    let Asking { issuer, policies, audits_reads, is_behind_proxy } = asking;
    let tls = if *is_behind_proxy { "[server.tls]\nby = \"proxy\"\n" } else { "" };
    settings.push_str(&format!(
        "[server]\nhosts = [\"wp.test\"]\n{tls}[audit]\nreads = {audits_reads}\n\
         [auth.issuers.bench]\nurl = \"{}\"\naudience = \"{AUDIENCE}\"\n\
         realms = [\"default\"]\nroles = {{ {ROLE} = [\"member\"] }}\n",
        issuer::url(*issuer)
    ));
    std::fs::write(path, settings)?;
    let folder = project.join("policies");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("bench.cedar"), policies)?;
    Ok(())
}
