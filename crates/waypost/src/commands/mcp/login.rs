//! `waypost mcp login`: a login at an upstream, for all callers or for the user alone. The running
//! server begins it and keeps the result; here the page is shown, and the result awaited. A
//! personal login is confirmed with the code that the page shows.

use super::browser;
use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::remote::client::{Client, Request, read};
use crate::terminal::output::{counted, printable};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use upstreams::UpstreamState;
use wire::rest::{AccessMode, LoginProof, Upstream, UpstreamLogin, WhoAmI};

const EXAMPLES: &str = "\
Examples:
  waypost mcp login github                    # opens a browser, and waits until you are back
  waypost mcp login github --no-browser       # on a machine without one: open the page elsewhere
  waypost --json mcp login github --wait 0 | jq -r .url
  waypost mcp login github --mine             # for yourself, where it has `login = \"user\"`
  waypost mcp login github --code K7QF-2M9X-RW4T    # what the page of your own login showed";

/// What `waypost mcp login` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoginArgs {
    /// The upstream's name
    name: String,
    /// The project's folder [default: this one, or the nearest above it with a waypost.toml]
    pub(super) dir: Option<PathBuf>,
    /// Log in for yourself, where each caller has a login of its own
    #[arg(long)]
    mine: bool,
    /// Finish a login of your own with the code that its page showed
    #[arg(long, value_name = "CODE", conflicts_with_all = ["no_browser", "wait"])]
    code: Option<String>,
    /// Only print the page's address
    #[arg(long)]
    no_browser: bool,
    /// How long to wait until the server can be used; 0 does not wait
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    wait: u64,
}

/// A server is asked for several things before it says where its page is.
const BEGIN_SECONDS: u64 = 30;
/// The login of a caller's own, in paths.
pub(super) const MINE: &str = "my-login";
/// How often we check the upstream while a user logs in.
const LOOK: Duration = Duration::from_millis(500);

/// Begins a login, and waits until it is done; or finishes one of the caller's own.
pub(super) async fn run(args: &LoginArgs, context: &Context) -> Result<Exit> {
    let client = context.client().await?;
    let output = context.output;
    if let Some(code) = &args.code {
        return prove(&client, &args.name, code, context).await;
    }
    let place = ["upstreams", args.name.as_str(), if args.mine { MINE } else { "login" }];
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
    if args.mine && asks_for_proof(&client, context).await? {
        let name = &args.name;
        output.talk(&format!("then finish it: waypost mcp login {name} --code CODE"));
        output.talk("CODE is what the page shows at the end");
        return Ok(Exit::Ok);
    }
    let name = args.name.as_str();
    let whose = if args.mine { LoginOwner::Own } else { LoginOwner::Shared };
    let watch = Watch { client, name, whose, login: &login, wait_s: args.wait };
    let waiting = context.progress().during("waiting for the login", watch.until_ready(context));
    let upstream = waiting.await?;
    let talk = match watch.whose {
        LoginOwner::Shared => {
            format!("`{}` is ready: {}", upstream.name, counted(upstream.tools, "tool"))
        }
        LoginOwner::Own => logged_in(name),
    };
    output.done(&json!(upstream), &talk)
}

/// Proves that a login was ours.
async fn prove(client: &Client, name: &str, code: &str, context: &Context) -> Result<Exit> {
    let place = ["upstreams", name, MINE];
    let request = Request::to(&place).taking(BEGIN_SECONDS).keyed(context.admin_key()?);
    client.put_only(request, &json!(LoginProof { code: code.to_owned() })).await?;
    context.output.done(&json!({"name": name}), &logged_in(name))
}

fn logged_in(name: &str) -> String {
    format!("you are logged in at `{name}`")
}

/// Whether a server wants to see the code of a login: where all are one caller it does not.
async fn asks_for_proof(client: &Client, context: &Context) -> Result<bool> {
    let request = Request::to(&["whoami"]).keyed(context.admin_key()?);
    let who: WhoAmI = read(&client.get(request).await?)?;
    Ok(who.mode == AccessMode::Credentials)
}

/// Whose login it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoginOwner {
    /// That of all callers.
    Shared,
    /// The caller's own.
    Own,
}

/// An upstream that a user logs in at.
struct Watch<'a> {
    client: Client,
    name: &'a str,
    whose: LoginOwner,
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
            let progress = match self.whose {
                LoginOwner::Shared => progress(&first, &upstream, &self.login.url),
                LoginOwner::Own => own_progress(&upstream),
            };
            match progress {
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
        let name = self.name;
        let wait_s = self.wait_s;
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

/// How a login of the caller's own goes.
fn own_progress(now: &Upstream) -> Progress {
    let is_over = now.your_login.as_ref().is_some_and(|own| own.done && own.url.is_none());
    if is_over { Progress::Done } else { Progress::UnderWay }
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
    use wire::rest::OwnLogin;

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
    fn a_personal_login_is_done_when_no_page_is_left_to_open() {
        let own = |your_login: Option<OwnLogin>| {
            own_progress(&Upstream { your_login, ..upstream("login", "1", None) })
        };
        let page = Some("u".to_owned());
        assert_eq!(own(None), Progress::UnderWay);
        assert_eq!(own(Some(OwnLogin { done: false, url: page.clone() })), Progress::UnderWay);
        assert_eq!(own(Some(OwnLogin { done: true, url: page })), Progress::UnderWay, "once more");
        assert_eq!(own(Some(OwnLogin { done: true, url: None })), Progress::Done);
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
