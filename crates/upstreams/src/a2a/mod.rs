//! A2A agents as upstreams: each skill of an agent is a tool, and one more tool sends any message.
//! The card says where the agent is and which dialect it speaks; it is read again periodically, and
//! changes are reported. Tasks are polled, not streamed.
//!
//! The order of the modules below is the order of reading and of import.

mod schemes;
mod card;
mod signature;
mod location;
mod keyring;
mod token;
mod exchange;
mod grpc;
mod dialect;
mod agent;
mod asks;
mod output;
mod invocation;
mod tool;
mod peer;

pub use self::peer::{Peer, permitted_address, read_card};

use self::agent::{Agent, Followers};
use self::card::{Card, CardTrust};
use self::dialect::Endpoint;
use self::exchange::{AgentChannel, Request};
use self::location::{AgentLocation, CardLocation};
use self::token::Tokens;
use crate::RemoteParts;
use crate::config::{
    A2aConfig, KeyPlace, Keyring, KeysByCard, RestAuth, Secret, StoredKey, TokenClient,
    UpstreamConfig,
};
use crate::rest::Credentials;
use crate::state::{AgentFacts, Board};
use kernel::contracts::Tool;
use kernel::values::canonical;
use kernel::values::fault::Fault;
use kernel::values::ids::ContentHash;
use kernel::values::members::take;
use outbound::answer::Effect;
use outbound::client::GuardedClient;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Weak};
use tokio::io::AsyncReadExt;

/// How large a card may be.
const CARD_BYTES_MAX: usize = 1024 * 1024;
/// Both extensions of ours, as a header names them.
const BOTH_EXTENSIONS: &str = "https://waypost.dev/a2a/skills/v1,https://waypost.dev/a2a/asks/v1";

pub(crate) struct AgentTools {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The digest of the card that they were made of.
    pub(crate) card: ContentHash,
    /// Whether the card shows none of its skills now.
    pub(crate) is_withholding: bool,
}

/// Loads the tools of an agent from its card; `None` if the card still has this digest.
pub(crate) async fn load(
    upstream: &UpstreamConfig,
    config: &A2aConfig,
    parts: &RemoteParts,
    board: &Arc<Board>,
    known: Option<&ContentHash>,
) -> Result<Option<AgentTools>, Fault> {
    let loader = Loader { upstream, config, parts };
    let prepared = loader.prepared().await?;
    let document = loader.document(&prepared).await?;
    let public = canonical::digest(&document);
    // What the extended card says may change without the public one.
    if known == Some(&public) && !card::offers_extended(&document) {
        return Ok(None);
    }
    let OpenedAgent { card, is_signed, channel, endpoint } =
        loader.opened(prepared, &document).await?;
    let mut agent = loader.agent(&card, channel, endpoint, Arc::downgrade(board));
    let extended = loader.extended(&card, &agent, &public, known).await?;
    let (card, digest, is_signed) = match extended {
        Some(ExtendedCard { card: extended, digest, is_signed: is_also }) => {
            (card.with_skills_of(extended), digest, is_signed && is_also)
        }
        None => (card, public, is_signed),
    };
    if known == Some(&digest) {
        return Ok(None);
    }
    agent.extensions = extensions(&card);
    let address = shown_address(&agent.endpoint.url);
    let facts = AgentFacts { card: digest.clone(), is_signed, address, changes: 0 };
    if board.carded(facts) {
        let agent = upstream.name.as_str();
        let version = card.version.as_str();
        tracing::warn!(agent, version, "the card of an agent has changed");
    }
    board.greeted(card.dialect.words(), &card.server());
    let tools = tool::tools(upstream, &card, &Arc::new(agent));
    Ok(Some(AgentTools { tools, card: digest, is_withholding: card.is_withholding }))
}

/// Where an agent is spoken to, without what may be a secret.
fn shown_address(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

/// The header that names what an agent knows of ours.
fn extensions(card: &Card) -> Option<&'static str> {
    match card.extensions.as_slice() {
        [] => None,
        [one] => Some(*one),
        _ => Some(BOTH_EXTENSIONS),
    }
}

/// Where to look for an agent, and as whom.
struct AgentSource {
    places: AgentLocation,
    channel: AgentChannel,
    /// The key, or the client as which we ask for tokens, as far as the settings name one.
    stored: StoredKey,
}

/// An agent that its card leads to.
struct OpenedAgent {
    card: Card,
    /// Whether a pinned key signed it.
    is_signed: bool,
    channel: AgentChannel,
    endpoint: Endpoint,
}

/// A card for callers with credentials.
struct ExtendedCard {
    card: Card,
    /// The digest of both cards, without the signatures of this one: they may differ each time.
    digest: ContentHash,
    /// Whether a pinned key signed it.
    is_signed: bool,
}

struct Loader<'a> {
    upstream: &'a UpstreamConfig,
    config: &'a A2aConfig,
    parts: &'a RemoteParts,
}

impl Loader<'_> {
    /// Where the settings lead, and the way there.
    async fn prepared(&self) -> Result<AgentSource, Fault> {
        let places = AgentLocation::new(self.config).map_err(|why| self.bad_settings(&why))?;
        let places = if self.parts.is_open() { places } else { places.only_public() };
        let A2aConfig { auth, key, client, keyring, .. } = self.config;
        let stored = match keyring {
            Some(keyring) if auth.is_none() && key.is_none() && client.is_none() => {
                self.in_keyring(keyring).await?
            }
            _ => StoredKey { key: key.clone(), client: client.clone() },
        };
        // Which header its key goes in is not known before the card.
        let usual = stored.key.clone().map(RestAuth::vault_key);
        let credentials = self.credentials(usual.as_ref().or(auth.as_ref()))?;
        let channel = self.channel(&places, credentials);
        Ok(AgentSource { places, channel, stored })
    }

    async fn in_keyring(&self, keyring: &Keyring) -> Result<StoredKey, Fault> {
        let found = keyring::looked_up(keyring, self.parts).await;
        let found = found.map_err(|why| self.fault("CredentialMissing", &why))?;
        if found.is_empty() {
            let why = format!("the keyring has no key `{}`", keyring.id);
            return Err(self.fault("CredentialMissing", &why));
        }
        Ok(found)
    }

    /// The key stored under the id in the card. Where only signed members count there is none: the
    /// id is no member of 1.0.
    async fn key_by_card(
        &self,
        keys: &KeysByCard,
        document: &Value,
        believed: CardTrust,
    ) -> Result<StoredKey, Fault> {
        let id = schemes::service_id(document).filter(|_| believed == CardTrust::All);
        let Some(id) = id else {
            let why = "its card does not say, or does not sign, which key is for it; \
                       `service = \"..\"` names it";
            return Err(self.fault("CredentialMissing", why));
        };
        let agent = self.upstream.name.as_str();
        let service = id.as_str();
        tracing::info!(agent, service, "the card of an agent names its key");
        if let Some(stored) = keys.file.get(&id) {
            return Ok(stored.clone());
        }
        let Some(command) = keys.keyring.clone() else {
            let why = format!("its card names the key `{id}`, which is not in the file of keys");
            return Err(self.fault("CredentialMissing", &why));
        };
        self.in_keyring(&Keyring { id, command }).await
    }

    /// The agent of this card; its status board also signals the stop.
    fn agent(
        &self,
        card: &Card,
        channel: AgentChannel,
        endpoint: Endpoint,
        board: Weak<Board>,
    ) -> Agent {
        Agent {
            channel,
            endpoint,
            extensions: extensions(card),
            parts: self.parts.clone(),
            board,
            origin: self.upstream.origin.clone(),
            timeout_ms: self.upstream.timeout_ms,
            followers: Followers::default(),
        }
    }

    /// The headers of the settings, and this.
    fn credentials(&self, auth: Option<&RestAuth>) -> Result<Credentials, Fault> {
        let credentials = Credentials::of(&self.config.headers, auth);
        credentials.map_err(|why| self.bad_settings(&why))
    }

    fn channel(&self, places: &AgentLocation, credentials: Credentials) -> AgentChannel {
        let options = self.parts.client_options().following();
        let client = GuardedClient::new(places.settings.clone(), options);
        let http2 =
            GuardedClient::new(places.settings.clone(), self.parts.client_options().http2());
        AgentChannel { name: self.upstream.name.clone(), client, http2, credentials, tokens: None }
    }

    /// The agent that a card leads to, if the card is believed and may lead there.
    async fn opened(&self, prepared: AgentSource, document: &Value) -> Result<OpenedAgent, Fault> {
        let AgentSource { places, channel, stored } = prepared;
        let believed = self.believed(document)?;
        let stored = match &self.config.keys_by_card {
            Some(keys) => self.key_by_card(keys, document, believed).await?,
            None => stored,
        };
        let has_credentials = !channel.credentials.is_empty() || !stored.is_empty();
        let permits = |url: &str| places.endpoint(url, has_credentials).is_ok();
        let card = Card::read(document, believed, permits).map_err(|why| self.bad_card(&why))?;
        let url = places.endpoint(&card.url, has_credentials);
        let url = url.map_err(|why| self.fault("AddressNotAllowed", &why))?;
        if self.parts.leads_back(url.as_str()) {
            let why = "its card names this server itself, whose tools are here already";
            return Err(self.fault("AddressNotAllowed", why));
        }
        // A key is preferred to a token, where the card takes both.
        let StoredKey { key, client } = stored;
        let has_key = key.is_some() || self.config.auth.is_some();
        let client = client.filter(|_| !has_key || card.schemes.wants_token_only());
        let (credentials, tokens) = match (client, key) {
            (Some(client), _) => {
                // The key, if there is one, is not for this agent.
                (self.credentials(None)?, Some(self.tokens(&places, &card, client)?))
            }
            (None, Some(key)) => (self.credentials(Some(&self.named_key(&card, key)?))?, None),
            (None, None) => (channel.credentials, None),
        };
        let endpoint =
            Endpoint { dialect: card.dialect, url: url.clone(), tenant: card.tenant.clone() };
        let channel = AgentChannel { credentials: credentials.hiding(&url), tokens, ..channel };
        Ok(OpenedAgent { card, is_signed: believed == CardTrust::Signed, channel, endpoint })
    }

    /// The extended card, if the public one offers it and we have credentials to show. One that
    /// cannot be read leaves the skills of the public card. Where more is known already, it stays
    /// for a failure that passes.
    async fn extended(
        &self,
        card: &Card,
        agent: &Agent,
        public: &ContentHash,
        known: Option<&ContentHash>,
    ) -> Result<Option<ExtendedCard>, Fault> {
        if !card.has_extended || !agent.channel.has_credentials() {
            return Ok(None);
        }
        let fault = match self.asked_for_extended(agent, public).await {
            Ok(extended) => return Ok(extended),
            Err(fault) => fault,
        };
        let is_first_time = known != Some(public);
        if fault.passing && is_first_time && known.is_some() {
            return Err(fault);
        }
        let agent = self.upstream.name.as_str();
        let told = "the extended card of an agent cannot be read; its public card counts";
        match is_first_time {
            true => tracing::warn!(agent, %fault, "{told}"),
            false => tracing::debug!(agent, %fault, "{told}"),
        }
        Ok(None)
    }

    async fn asked_for_extended(
        &self,
        agent: &Agent,
        public: &ContentHash,
    ) -> Result<Option<ExtendedCard>, Fault> {
        let ms = self.parts.limits.upstream_connect_timeout_ms;
        let asking = Box::pin(agent.extended_card(CARD_BYTES_MAX, ms));
        let asked = self.parts.within(ms, asking).await;
        let late = || {
            let why = format!("its extended card did not come within {ms} ms");
            self.fault("Timeout", &why).passing()
        };
        let document = asked.ok_or_else(late)?.map_err(|error| error.fault)?;
        let Some(mut document) = document else { return Ok(None) };
        let believed = self.believed(&document)?;
        // It is read for its skills alone.
        let card = Card::read(&document, believed, |_| true).map_err(|why| self.bad_card(&why))?;
        if let Some(members) = document.as_object_mut() {
            take(members, "signatures");
        }
        let digest = canonical::digest(&json!([public.as_str(), document]));
        Ok(Some(ExtendedCard { card, digest, is_signed: believed == CardTrust::Signed }))
    }

    /// A key in the header that the card names.
    fn named_key(&self, card: &Card, value: Secret) -> Result<RestAuth, Fault> {
        let name = card.schemes.key_header().map_err(|why| self.bad_card(&why))?;
        Ok(RestAuth::ApiKey { name: name.to_owned(), place: KeyPlace::Header, value })
    }

    /// Where this client gets its tokens. A card is from outside: it sends our secret only to the
    /// server that it is from.
    fn tokens(
        &self,
        places: &AgentLocation,
        card: &Card,
        client: TokenClient,
    ) -> Result<Tokens, Fault> {
        let Some(place) = &card.schemes.token else {
            let why = "there is a client for it, and its card does not say where tokens are given";
            return Err(self.fault("CredentialMissing", why));
        };
        let url = places.endpoint(&place.url, true);
        let url = url.map_err(|why| self.fault("AddressNotAllowed", &why))?;
        let scopes = match client.scopes.is_empty() {
            true => place.scopes.clone(),
            false => client.scopes,
        };
        let client = TokenClient { scopes, ..client };
        Ok(Tokens::new(client, url, self.parts.clock.clone()))
    }

    async fn document(&self, prepared: &AgentSource) -> Result<Value, Fault> {
        let places = &prepared.places;
        match &places.card {
            CardLocation::File(path) => self.file(path).await,
            CardLocation::Url(url) => self.fetched(&prepared.channel, url).await,
            CardLocation::Registry(url) => {
                // A registry is not shown what is for the agent.
                let stranger = self.channel(places, Credentials::default());
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

    async fn fetched(&self, channel: &AgentChannel, url: &Url) -> Result<Value, Fault> {
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
        let reply = self.parts.within(ms, channel.exchange(request)).await;
        let late = || self.fault("Timeout", &format!("its card did not come within {ms} ms"));
        let reply = reply.ok_or_else(late)?.map_err(|error| error.fault)?;
        match reply.status {
            200..=299 if reply.body.is_object() => Ok(reply.body),
            200..=299 => Err(self.bad_card(&format!("it is no JSON object: `{}`", reply.told))),
            status => Err(self.bad_card(&format!("HTTP {status}: {}", reply.told))),
        }
    }

    /// Which members of a card are trusted, by its signatures and the operator's settings.
    fn believed(&self, document: &Value) -> Result<CardTrust, Fault> {
        if self.config.keys.is_empty() && !self.config.require_signature {
            return Ok(CardTrust::All);
        }
        let Err(why) = signature::verify(document, &self.config.keys) else {
            return Ok(CardTrust::Signed);
        };
        let is_signed = document["signatures"].as_array().is_some_and(|all| !all.is_empty());
        if self.config.require_signature || is_signed {
            return Err(self.fault("CardNotTrusted", &format!("its card is not trusted: {why}")));
        }
        let agent = self.upstream.name.as_str();
        tracing::warn!(agent, "the card of an agent is not signed, and signatures are optional");
        Ok(CardTrust::All)
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
