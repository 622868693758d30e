//! What all parts of a server stand on: this machine, the limits, what is stored, and the secrets
//! that it is sealed with.

use super::error::AssembleError;
use super::setup::Setup;
use crate::secrets::secret::keyring;
use crate::secrets::vault::System;
use a2a::{CardKeys, given_keys};
use engine::system::clock::{SystemClock, SystemEntropy, TokioSpawn};
use kernel::limits::Limits;
use outbound::seal::Keyring;
use std::sync::Arc;
use stores::{FatalHandler, OpenStore};

/// What all parts of a server stand on.
pub(super) struct Platform {
    pub(super) system: System,
    pub(super) limits: Arc<Limits>,
    /// What is stored in the data folder.
    pub(super) opened: OpenStore,
    /// The secrets.
    pub(super) keys: Keyring,
    /// What signs agent cards.
    pub(super) card_keys: Arc<CardKeys>,
}

impl Platform {
    /// Opens the data folder, on the current tokio runtime.
    pub(super) fn open(setup: &Setup) -> Result<Self, AssembleError> {
        let system = system();
        let limits = Arc::new(setup.project.config.limits.clone());
        let parts = store_parts(&system, &limits, setup.fatal.clone());
        let opened = stores::open(&setup.store_location(), parts)?;
        // After the store: it makes the folder and holds it alone.
        let keys = keyring(&setup.data, setup.secret_key.as_deref())?;
        let given = given_keys(&setup.project);
        let card_keys = Arc::new(CardKeys::open(&setup.data, &given)?);
        Ok(Self { system, limits, opened, keys, card_keys })
    }
}

/// Time, randomness and tasks of this machine.
pub(crate) fn system() -> System {
    let spawn = Arc::new(TokioSpawn::new(tokio::runtime::Handle::current()));
    System { clock: Arc::new(SystemClock), entropy: Arc::new(SystemEntropy), spawn }
}

pub(super) fn store_parts(
    system: &System,
    limits: &Arc<Limits>,
    fatal: FatalHandler,
) -> stores::Parts {
    let System { clock, spawn, .. } = system.clone();
    stores::Parts { spawn, clock, limits: limits.clone(), fatal, vfs: None }
}
