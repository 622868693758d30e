//! Keys of agents in the keyring of who runs this server, as AgentVault's clients keep them. They
//! are read by the platform's own command.

use crate::RemoteParts;
use crate::config::{Keyring, StoredKey, TokenClient};
use kernel::values::secret::Secret;
use std::process::Stdio;
use tokio::process::Command;

/// How long the command may take: it may ask a person to unlock the keyring.
const LOOKUP_MS: u64 = 20_000;

/// Looks an agent's key and client up.
pub(super) async fn looked_up(keyring: &Keyring, parts: &RemoteParts) -> Result<StoredKey, String> {
    let id = keyring.id.as_str();
    let looking = async {
        let key = lookup(keyring, &format!("agentvault:{id}"), id).await?;
        let place = format!("agentvault:oauth:{id}");
        let client_id = lookup(keyring, &place, "clientId").await?;
        let secret = lookup(keyring, &place, "clientSecret").await?;
        // One half of a pair is of no use.
        let client = client_id.zip(secret).map(|(id, secret)| TokenClient {
            id: id.expose().to_owned(),
            secret,
            scopes: Vec::new(),
        });
        Ok::<_, String>(StoredKey { key, client })
    };
    let looked = parts.within(LOOKUP_MS, looking).await;
    looked.ok_or_else(|| format!("the keyring did not answer within {LOOKUP_MS} ms"))?
}

async fn lookup(keyring: &Keyring, service: &str, user: &str) -> Result<Option<Secret>, String> {
    let mut command = Command::new(&keyring.command);
    match cfg!(target_os = "macos") {
        true => command.args(["find-generic-password", "-s", service, "-a", user, "-w"]),
        false => command.args(["lookup", "service", service, "username", user]),
    };
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let ended = command.output().await.map_err(|error| {
        format!("the keyring cannot be asked: `{}`: {error}", keyring.command.display())
    })?;
    // It ends with a failure where it has no such entry.
    let text = String::from_utf8(ended.stdout).unwrap_or_default();
    let text = text.trim_end_matches(['\r', '\n']);
    Ok((ended.status.success() && !text.is_empty()).then(|| Secret::new(text)))
}
