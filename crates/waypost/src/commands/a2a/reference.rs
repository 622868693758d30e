//! Resolves the agent that a command names, and explains why it cannot be reached.

use crate::context::Context;
use crate::exit::{Exit, Failure, Result};
use crate::plans::parts_of_command;
use clap::Args;
use kernel::values::fault::Fault;
use std::path::PathBuf;
use std::sync::Arc;
use upstreams::{A2aConfig, CardPlace, RemoteParts, Secret};

/// What to do about an address that a card names and a command may not go to.
pub(super) const NOT_ALLOWED_HINT: &str = "`--allow-private` goes to addresses that are not \
     public; without `--header` no credentials are shown";

/// An agent, and what goes with requests to it.
#[derive(Debug, Args)]
pub(super) struct Reference {
    /// The agent's address, the address or the file of its card, or its id at a registry
    #[arg(value_name = "REF")]
    pub(super) agent: String,
    /// The registry where REF is an id
    #[arg(long, value_name = "URL")]
    pub(super) registry: Option<String>,
    /// A header that goes with every request; `${NAME}` is a variable
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = crate::commands::header)]
    pub(super) headers: Vec<(String, String)>,
    /// Go where its card leads, also to an address that is not public
    #[arg(long)]
    pub(super) allow_private: bool,
}

impl Reference {
    /// Whether it is the address of an agent or of its card.
    pub(super) fn is_url(&self) -> bool {
        self.registry.is_none()
            && ["http://", "https://"].iter().any(|begin| self.agent.starts_with(begin))
    }

    /// Where the agent is.
    pub(super) fn config(&self, context: &Context) -> Result<A2aConfig> {
        let card = match &self.registry {
            Some(url) => CardPlace::Registry { url: url.clone(), id: self.agent.clone() },
            None if self.is_url() => CardPlace::Url(self.agent.clone()),
            None => CardPlace::File(PathBuf::from(&self.agent)),
        };
        let secret = |(name, value): (String, String)| (name, Secret::new(value));
        let headers = self.filled_headers(context)?.into_iter().map(secret).collect();
        Ok(A2aConfig { headers, allow_private: self.allow_private, ..A2aConfig::new(card) })
    }

    /// The headers with the values of their variables.
    pub(super) fn filled_headers(&self, context: &Context) -> Result<Vec<(String, String)>> {
        let variable = |name: &str| context.environment.any(name);
        let fill = |(name, value): &(String, String)| -> Result<(String, String)> {
            let value = filled(value, &variable).map_err(|why| {
                Failure::usage(format!("the header `{name}` cannot be sent: {why}"))
            })?;
            Ok((name.clone(), value))
        };
        self.headers.iter().map(fill).collect()
    }
}

/// A text in which `${NAME}` stands for a variable.
fn filled(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after.split_once('}').ok_or("`${` has no `}`")?;
        filled.push_str(before);
        filled.push_str(&variable(name).ok_or(format!("the variable `{name}` is not set"))?);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// What a client is made of; limits are those that hold without settings.
pub(super) fn parts() -> RemoteParts {
    parts_of_command(Arc::default())
}

/// Why an agent could not be talked to.
pub(super) fn failed(fault: Fault) -> Failure {
    let (exit, hint) = match fault.name.as_str() {
        "UpstreamUnauthorized" | "UpstreamForbidden" => {
            let hint = "show who you are: `--header 'Authorization: Bearer ${TOKEN}'`";
            (Exit::Auth, Some(hint))
        }
        "BadSettings" => (Exit::Usage, None),
        "AddressNotAllowed" => (Exit::Upstream, Some(NOT_ALLOWED_HINT)),
        "ConnectFailed" | "Timeout" => {
            (Exit::Unreachable, Some("check its address, and that it runs"))
        }
        _ => (Exit::Upstream, None),
    };
    let failure = Failure::new(exit, &fault.name, fault.message);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_headers_are_expanded() {
        let variable = |name: &str| (name == "KEY").then(|| "k".to_owned());
        assert_eq!(filled("Bearer ${KEY}!", &variable), Ok("Bearer k!".to_owned()));
        assert_eq!(filled("plain", &variable), Ok("plain".to_owned()));
        assert_eq!(filled("${OTHER}", &variable).unwrap_err(), "the variable `OTHER` is not set");
        assert!(filled("${KEY", &variable).is_err());
    }
}
