//! Agents of others that speak A2A: each skill of an agent is a tool, and one more sends any
//! message. The card says where the agent is and in which words it is spoken to; it is read again
//! now and then, and a change is reported. Tasks are looked at, not streamed.
//!
//! The order of the modules below is the order of reading and of import.

mod card;
mod signature;
mod place;
mod exchange;
mod dialect;
mod agent;
mod asks;
mod output;
mod course;
mod tool;

use self::agent::Agent;
use self::card::{Believed, Card};
use self::dialect::Endpoint;
use self::exchange::{Request, Way};
use self::place::{CardAt, Places};
use crate::RemoteParts;
use crate::config::{A2aConfig, UpstreamConfig};
use crate::rest::Credentials;
use crate::state::Board;
use kernel::contracts::Tool;
use kernel::values::canonical;
use kernel::values::fault::Fault;
use kernel::values::ids::ContentHash;
use outbound::answer::Effect;
use outbound::client::GuardedClient;
use reqwest::{Method, Url};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::io::AsyncReadExt;

/// How large a card may be.
const CARD_BYTES_MAX: usize = 1024 * 1024;
/// Both extensions of ours, as a header names them.
const BOTH_EXTENSIONS: &str = "https://waypost.dev/a2a/skills/v1,https://waypost.dev/a2a/asks/v1";

/// What an agent has.
pub(crate) struct Loaded {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The digest of the card that they were made of.
    pub(crate) card: ContentHash,
}

/// What an agent has, by its card as it is now; none if that is the one of this digest.
pub(crate) async fn load(
    upstream: &UpstreamConfig,
    config: &A2aConfig,
    parts: &RemoteParts,
    board: &Arc<Board>,
    known: Option<&ContentHash>,
) -> Result<Option<Loaded>, Fault> {
    let loader = Loader { upstream, config, parts };
    let places = Places::new(config).map_err(|why| loader.bad_settings(&why))?;
    let credentials = Credentials::of(&config.headers, config.auth.as_ref())
        .map_err(|why| loader.bad_settings(&why))?;
    let has_credentials = !credentials.is_empty();
    let options = parts.client_options().following();
    let client = GuardedClient::new(places.settings.clone(), options);
    let way = Way { name: upstream.name.clone(), client, credentials };
    let document = loader.document(&places, &way).await?;
    let digest = canonical::digest(&document);
    if known == Some(&digest) {
        return Ok(None);
    }
    let believed = loader.believed(&document)?;
    let card = Card::read(&document, believed).map_err(|why| loader.bad_card(&why))?;
    let url = places.endpoint(&card.url, has_credentials);
    let url = url.map_err(|why| loader.fault("AddressNotAllowed", &why))?;
    if known.is_some() {
        let (agent, version) = (upstream.name.as_str(), card.version.as_str());
        tracing::warn!(agent, version, "the card of an agent has changed");
    }
    board.greeted(card.dialect.words(), &card.server());
    let endpoint =
        Endpoint { dialect: card.dialect, url: url.clone(), tenant: card.tenant.clone() };
    let way = Way { credentials: way.credentials.hiding(&url), ..way };
    let agent = Arc::new(Agent {
        way,
        endpoint,
        extensions: extensions(&card),
        parts: parts.clone(),
        board: Arc::downgrade(board),
        origin: upstream.origin.clone(),
        timeout_ms: upstream.timeout_ms,
    });
    Ok(Some(Loaded { tools: tool::tools(upstream, &card, &agent), card: digest }))
}

/// The header that names what an agent knows of ours.
fn extensions(card: &Card) -> Option<&'static str> {
    match card.extensions.as_slice() {
        [] => None,
        [one] => Some(*one),
        _ => Some(BOTH_EXTENSIONS),
    }
}

/// What a card is read with.
struct Loader<'a> {
    upstream: &'a UpstreamConfig,
    config: &'a A2aConfig,
    parts: &'a RemoteParts,
}

impl Loader<'_> {
    async fn document(&self, places: &Places, way: &Way) -> Result<Value, Fault> {
        match &places.card {
            CardAt::File(path) => self.file(path).await,
            CardAt::Url(url) => self.fetched(way, url).await,
            CardAt::Registry(url) => {
                // A registry is not shown what is for the agent.
                let stranger = Way {
                    name: way.name.clone(),
                    client: GuardedClient::new(
                        places.settings.clone(),
                        self.parts.client_options().following(),
                    ),
                    credentials: Credentials::default(),
                };
                let mut entry = self.fetched(&stranger, url).await?;
                match entry.get_mut("card_data").map(Value::take) {
                    Some(card) if card.is_object() => Ok(card),
                    _ => Err(self.bad_card("the registry's entry has no `card_data`")),
                }
            }
        }
    }

    async fn file(&self, path: &Path) -> Result<Value, Fault> {
        let unread = |why: String| self.bad_card(&format!("`{}`: {why}", path.display()));
        let file = tokio::fs::File::open(path).await;
        let file = file.map_err(|error| unread(error.to_string()))?;
        let mut bytes = Vec::new();
        let most = CARD_BYTES_MAX as u64 + 1;
        let read = file.take(most).read_to_end(&mut bytes).await;
        read.map_err(|error| unread(error.to_string()))?;
        if bytes.len() > CARD_BYTES_MAX {
            return Err(unread(format!("it has more than {CARD_BYTES_MAX} bytes")));
        }
        serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string()))
    }

    async fn fetched(&self, way: &Way, url: &Url) -> Result<Value, Fault> {
        let request = Request {
            method: Method::GET,
            url: url.clone(),
            headers: Vec::new(),
            media_type: "application/json",
            body: None,
            effect: Effect::Reads,
            bytes_max: CARD_BYTES_MAX,
            trace: None,
        };
        let ms = self.parts.limits.upstream_connect_timeout_ms;
        let reply = self.parts.within(ms, way.exchange(request)).await;
        let late = || self.fault("Timeout", &format!("its card did not come within {ms} ms"));
        let reply = reply.ok_or_else(late)?.map_err(|error| error.fault)?;
        match reply.status {
            200..=299 if reply.body.is_object() => Ok(reply.body),
            200..=299 => Err(self.bad_card(&format!("it is no JSON object: `{}`", reply.told))),
            status => Err(self.bad_card(&format!("HTTP {status}: {}", reply.told))),
        }
    }

    /// What of a card counts, by its signatures and by what the operator wants of them.
    fn believed(&self, document: &Value) -> Result<Believed, Fault> {
        if self.config.keys.is_empty() && !self.config.require_signature {
            return Ok(Believed::All);
        }
        let Err(why) = signature::verify(document, &self.config.keys) else {
            return Ok(Believed::Signed);
        };
        let is_signed = document["signatures"].as_array().is_some_and(|all| !all.is_empty());
        if self.config.require_signature || is_signed {
            return Err(self.fault("CardNotTrusted", &format!("its card is not trusted: {why}")));
        }
        let agent = self.upstream.name.as_str();
        tracing::warn!(agent, "the card of an agent is not signed, and signatures are optional");
        Ok(Believed::All)
    }

    fn bad_settings(&self, why: &str) -> Fault {
        self.fault("BadSettings", why)
    }

    fn bad_card(&self, why: &str) -> Fault {
        self.fault("CardUnusable", &format!("its card cannot be used: {why}"))
    }

    fn fault(&self, name: &str, why: &str) -> Fault {
        Fault::new(name, format!("agent `{}`: {why}", self.upstream.name))
            .hint(format!("it is configured in {}", self.upstream.origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::a2a::{ASKS_EXTENSION, SKILLS_EXTENSION};

    #[test]
    fn both_extensions_stand_in_one_header() {
        assert_eq!(BOTH_EXTENSIONS, format!("{SKILLS_EXTENSION},{ASKS_EXTENSION}"));
    }
}
