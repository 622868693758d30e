//! What the endpoint has at hand beside the state that all endpoints share.

use crate::card_keys::CardKeys;
use crate::choice::ChooseSkill;
use crate::documents::CardInputs;
use crate::push_parts::PushParts;
use edge::request::answer::documents::Documents;
use edge::request::server_state::{self, EndpointState};
use project::a2a_serving::A2aServing;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How agents of others call this server.
pub struct A2a {
    pub server: server_state::Shared,
    /// What the settings say.
    pub serving: A2aServing,
    /// What signs the cards.
    pub card_keys: Arc<CardKeys>,
    /// Which skill a message is for, where the host program knows.
    pub choose_skill: Option<ChooseSkill>,
    /// What webhooks are kept and posted with; none where there are no webhooks.
    pub push: Option<Arc<PushParts>>,
    pub(crate) cards: Documents<CardInputs>,
    /// Those of AgentVault's profile.
    pub(crate) vault_cards: Documents<CardInputs>,
    /// Those of callers with credentials, as clients of 1.0 alone read them.
    pub(crate) extended_cards: Documents<CardInputs>,
    /// One permit for each stream that is open.
    pub(crate) streams: Arc<Semaphore>,
}

/// The state as handlers get it.
pub type Shared = Arc<A2a>;

impl A2a {
    pub fn new(
        server: server_state::Shared,
        serving: A2aServing,
        card_keys: Arc<CardKeys>,
        push: Option<Arc<PushParts>>,
        choose_skill: Option<ChooseSkill>,
    ) -> Self {
        let streams = Arc::new(Semaphore::new(serving.limits.a2a_streams_max));
        Self {
            server,
            serving,
            card_keys,
            choose_skill,
            push,
            cards: Documents::default(),
            vault_cards: Documents::default(),
            extended_cards: Documents::default(),
            streams,
        }
    }
}

impl EndpointState for A2a {
    fn server(&self) -> &server_state::Shared {
        &self.server
    }
}
