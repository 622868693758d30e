//! `waypost mcp login`: someone logs in at an upstream. The server that runs begins it and keeps
//! what comes of it; here the page is shown, and waited for.

use super::browser;
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request, read};
use crate::terminal::output::printable;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use upstreams::UpstreamState;
use wire::rest::{Upstream, UpstreamLogin};

const EXAMPLES: &str = "\
Examples:
  waypost mcp login github                    # opens a browser, and waits until you are back
  waypost mcp login github --no-browser       # on a machine without one: open the page elsewhere
  waypost --json mcp login github --wait 0 | jq -r .url";

/// What `waypost mcp login` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoginArgs {
    /// The upstream's name
    name: String,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(super) dir: Option<PathBuf>,
    /// Only print the page's address
    #[arg(long)]
    no_browser: bool,
    /// How long to wait until the server can be used; 0 does not wait
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    wait: u64,
}

/// A server is asked for several things before it says where its page is.
const BEGIN_SECONDS: u64 = 30;
/// How often we check the upstream while a user logs in.
const LOOK: Duration = Duration::from_millis(500);

/// Begins a login, and waits until it is done.
pub(super) async fn run(args: &LoginArgs, context: &Context) -> Result<Exit> {
    let (client, output) = (context.client().await?, context.output);
    let place = ["upstreams", args.name.as_str(), "login"];
    let request = Request::to(&place).taking(BEGIN_SECONDS).keyed(context.admin_key()?);
    let login: UpstreamLogin = read(&client.post(request, &json!({})).await?)?;
    output.talk(&format!("log in at `{}` on this page:", args.name));
    let document = json!({"name": args.name, "url": login.url});
    output.data(&document, &printable(&login.url))?;
    if !args.no_browser && browser::open(&login.url, context) {
        output.talk("your browser opens it");
    }
    if args.wait == 0 {
        return Ok(Exit::Ok);
    }
    let watch = Watch { client, name: &args.name, login: &login, wait_s: args.wait };
    let waiting = context.progress().during("waiting for the login", watch.until_ready(context));
    let upstream = waiting.await?;
    let talk = format!("`{}` is ready: {} tools", upstream.name, upstream.tools);
    output.done(&json!(upstream), &talk)
}

/// An upstream that a user logs in at.
struct Watch<'a> {
    client: Client,
    name: &'a str,
    login: &'a UpstreamLogin,
    wait_s: u64,
}

/// How a login goes.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// The upstream can be used.
    Done,
    /// A user logged in, and the upstream still cannot be used.
    Failed,
    /// No login is complete yet, or we are connecting.
    UnderWay,
}

impl Watch<'_> {
    async fn until_ready(&self, context: &Context) -> Result<Upstream> {
        let begun = Instant::now();
        let first = self.look(context).await?;
        let mut upstream = first.clone();
        loop {
            match progress(&first, &upstream, &self.login.url) {
                Progress::Done => return Ok(upstream),
                Progress::Failed => return Err(failed(&upstream)),
                Progress::UnderWay if begun.elapsed() >= Duration::from_secs(self.wait_s) => {
                    return Err(self.overdue(&upstream));
                }
                Progress::UnderWay => tokio::time::sleep(LOOK).await,
            }
            upstream = self.look(context).await?;
        }
    }

    async fn look(&self, context: &Context) -> Result<Upstream> {
        let request = Request::to(&["upstreams", self.name]).keyed(context.admin_key()?);
        read(&self.client.get(request).await?)
    }

    fn overdue(&self, upstream: &Upstream) -> Failure {
        let (name, wait_s) = (self.name, self.wait_s);
        let what = format!("no one has logged in at `{name}` within {wait_s} s");
        Failure::new(Exit::Timeout, "login_overdue", what)
            .hint("the page is good for a while: the server continues by itself when you are back")
            .problem(json!(upstream))
    }
}

/// How a login goes, by what the upstream was when it was begun and what it is now.
fn progress(first: &Upstream, now: &Upstream, url: &str) -> Progress {
    let is_open = now.login_url.as_deref() == Some(url);
    let has_turned = (&first.state, &first.since) != (&now.state, &now.since);
    if now.state == UpstreamState::Ready.word() && !is_open {
        Progress::Done
    } else if now.state == UpstreamState::Failing.word() && has_turned && !is_open {
        Progress::Failed
    } else {
        Progress::UnderWay
    }
}

fn failed(upstream: &Upstream) -> Failure {
    let Upstream { name, last_error, .. } = upstream;
    let why = last_error.as_ref().map_or("it is failing", |fault| fault.message.as_str());
    let what = format!("upstream `{name}` cannot be used after the login: {why}");
    let hint = last_error.as_ref().and_then(|fault| fault.hint.clone());
    let failure = Failure::new(Exit::Upstream, "upstream_failing", what).problem(json!(upstream));
    Failure { hint, ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(state: &str, since: &str, login_url: Option<&str>) -> Upstream {
        let mut body = json!({
            "name": "hub", "prefix": "hub.", "kind": "http", "target": "", "origin": "",
            "trusted": false, "journal": true, "state": state, "since": since,
            "tools": 0, "prompts": 0, "resources": 0, "restarts": 0
        });
        if let Some(url) = login_url {
            body["loginUrl"] = json!(url);
        }
        read(&body).unwrap()
    }

    #[test]
    fn a_login_is_done_when_the_upstream_can_be_used() {
        let first = upstream("login", "1", Some("u"));
        let now =
            |state: &str, since: &str, url| progress(&first, &upstream(state, since, url), "u");
        assert_eq!(now("login", "1", Some("u")), Progress::UnderWay);
        assert_eq!(now("connecting", "2", None), Progress::UnderWay);
        assert_eq!(now("ready", "3", None), Progress::Done);
        assert_eq!(now("failing", "3", None), Progress::Failed);
        assert_eq!(now("ready", "1", Some("u")), Progress::UnderWay, "logged in again");
        let failing = upstream("failing", "1", None);
        assert_eq!(progress(&failing, &failing, "u"), Progress::UnderWay, "as it was before");
    }
}
