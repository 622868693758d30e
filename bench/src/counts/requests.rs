//! The requests that are counted, each with the server that it is sent to.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;

use crate::Result;
use crate::a2a;
use crate::auth::{self, Signer, Station};
use crate::child::{self, Child};
use crate::gateway::Chain;
use crate::http::{Client, post};
use crate::load::{self, Check, READ_ONLY_RUN, RUNS_PATH, unexpected};
use crate::mcp::wire;
use crate::product::paused::ASKING_RUN;
use crate::product::server::{Launcher, Server, Site};

/// A request that is counted.
#[derive(Clone, Copy, Debug)]
pub enum Counted {
    /// A built-in tool, called over MCP in local mode.
    Call,
    /// The same with an API key, and 200 policies.
    CallWithKey,
    /// The same with a token that is known.
    CallWithToken,
    /// A tool of a server behind this one, called over MCP.
    GatewayCall,
    /// A run of three steps.
    Run,
    /// The answer to a question of a run, until the run is over.
    Reply,
    /// A message of A2A that starts a task and waits for it.
    Message,
}

/// All of them, in the order of the report.
pub const REQUESTS: &[Counted] = &[
    Counted::Call,
    Counted::CallWithKey,
    Counted::CallWithToken,
    Counted::GatewayCall,
    Counted::Run,
    Counted::Reply,
    Counted::Message,
];

/// A server under callgrind, and what is sent to it.
pub struct Prepared {
    /// One after the other, each once.
    pub requests: Vec<Vec<u8>>,
    /// Refuses an answer that is not what the request is about.
    pub check: Check,
    server: Serving,
}

/// What is running for a request.
enum Serving {
    Alone {
        // First, so that it is stopped before its folders go.
        server: Server,
        site: Site,
        _data: tempfile::TempDir,
    },
    Guarded {
        station: Station,
        _issuer: Child,
    },
    Gateway(Box<Chain>),
}

impl Serving {
    fn server(&self) -> &Server {
        match self {
            Self::Alone { server, .. } => server,
            Self::Guarded { station, .. } => station.server(),
            Self::Gateway(chain) => chain.gateway(),
        }
    }
}

impl Prepared {
    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.server.server().address()
    }

    pub fn pid(&self) -> u32 {
        self.server.server().pid()
    }

    /// The outcome of asking this server; an error comes with the end of its log.
    pub fn explained<T>(&self, outcome: Result<T>) -> Result<T> {
        match &self.server {
            Serving::Alone { site, .. } => outcome.map_err(|error| site.explain(&*error).into()),
            Serving::Guarded { station, .. } => station.explained(outcome),
            Serving::Gateway(chain) => chain.explained(outcome),
        }
    }
}

impl Counted {
    /// As the report and the committed table call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "a call of a built-in tool",
            Self::CallWithKey => "the same with a key",
            Self::CallWithToken => "the same with a token",
            Self::GatewayCall => "a call through the gateway",
            Self::Run => "a stored run of three steps",
            Self::Reply => "a reply",
            Self::Message => "a message of A2A",
        }
    }

    /// Starts its server, and makes so many requests for it.
    pub async fn prepare(
        self,
        launcher: &Launcher,
        binary: &Path,
        dir: &Path,
        count: usize,
    ) -> Result<Prepared> {
        match self {
            Self::Call => {
                let server = alone(Site::build(Some(binary), dir)?, launcher).await?;
                let request = wire::call(server.server().address());
                Ok(Prepared { requests: vec![request; count], check: wire::called, server })
            }
            Self::CallWithKey | Self::CallWithToken => {
                let issuer = Child::start(child::ISSUER)?;
                let station = auth::guarded(binary, dir, issuer.address(), launcher).await?;
                let credential = match self {
                    Self::CallWithKey => station.explained(station.key().await)?,
                    _ => Signer::new(issuer.address())?.token(0)?,
                };
                let request = wire::call_as(station.address(), &credential);
                let server = Serving::Guarded { station, _issuer: issuer };
                Ok(Prepared { requests: vec![request; count], check: wire::called, server })
            }
            Self::GatewayCall => {
                let chain = Chain::start_under(launcher, Some(binary), Some(binary), dir).await?;
                let request = chain.read_request().await?;
                let server = Serving::Gateway(Box::new(chain));
                Ok(Prepared { requests: vec![request; count], check: wire::called, server })
            }
            Self::Run => {
                let server = alone(Site::build(Some(binary), dir)?, launcher).await?;
                let request = post(server.server().address(), RUNS_PATH, READ_ONLY_RUN);
                Ok(Prepared { requests: vec![request; count], check: load::completed, server })
            }
            Self::Reply => {
                let server = alone(Site::build(Some(binary), dir)?, launcher).await?;
                let requests = replies(server.server().address(), count).await?;
                Ok(Prepared { requests, check: load::completed, server })
            }
            Self::Message => {
                let server = alone(a2a::site(binary, dir)?, launcher).await?;
                let (requests, check) = a2a::messages(server.server().address(), count);
                Ok(Prepared { requests, check, server })
            }
        }
    }
}

async fn alone(site: Site, launcher: &Launcher) -> Result<Serving> {
    let site = site.under(launcher);
    let data = site.data()?;
    let started = Server::start(&site, data.path()).await;
    let server = started.map_err(|error| site.explain(&*error))?;
    Ok(Serving::Alone { server, site, _data: data })
}

/// Starts runs that ask, and gives the requests that answer them.
async fn replies(address: SocketAddr, count: usize) -> Result<Vec<Vec<u8>>> {
    let mut client = Client::connect(address).await?;
    let mut requests = Vec::with_capacity(count);
    for _ in 0..count {
        let answer = client.send(&post(address, RUNS_PATH, ASKING_RUN)).await?;
        let started: Value = serde_json::from_slice(answer.body)?;
        let ask = started["run"]["asks"][0]["id"].as_str();
        let ask = ask.ok_or_else(|| unexpected("a run that asks", &answer))?;
        requests.push(post(address, &format!("/api/v1/asks/{ask}"), r#"{"answer":"yes"}"#));
    }
    Ok(requests)
}
