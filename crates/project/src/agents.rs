//! Reports problems of agents when a server starts: unknown models, and stored agents that a file
//! hides. A file overrides what is stored, so that a reader of the project sees what runs.

use crate::models::instead;
use engine::AgentFile;
use kernel::contracts::Definition;
use kernel::definition::agent::Agent;
use kernel::definition::agent_reader::{read_text, read_value};
use kernel::definition::plan::mistake::{Mistake, meant};
use kernel::definition::plan::source::Node;
use kernel::limits::Limits;
use kernel::values::ids::AgentName;
use std::sync::Arc;

/// The kind of stored agents among the definitions.
pub const KIND: &str = "agent";

/// Warnings of files whose agents name models that are not there.
pub fn without_models(files: &[AgentFile], models: &[String], limits: &Limits) -> Vec<Mistake> {
    let mut warnings = Vec::new();
    for AgentFile { file, text } in files {
        // Its reader reports what cannot be read.
        let Ok((agent, _)) = read_text(text, file, limits) else { continue };
        let node = Node::parse(text, limits).ok();
        for (keys, mistake) in missing(&agent, models) {
            let at = |key: &&str| node.as_ref().and_then(|node| node.get(key));
            let place = keys.iter().find_map(at).map(Node::begin).unwrap_or_default();
            let mut mistake = mistake.at(place, format!("/{}", keys[0]));
            mistake.file = Some(file.clone());
            warnings.push(mistake);
        }
    }
    warnings
}

/// Warnings of what is stored: agents that a file of the same name hides, agents whose models are
/// not there.
pub fn idle(stored: &[Definition], of_files: &[Arc<Agent>], models: &[String]) -> Vec<Mistake> {
    let mut warnings = Vec::new();
    for definition in stored {
        let name = definition.name.as_str();
        if of_files.iter().any(|agent| agent.name.as_str() == name) {
            let what = format!(
                "the stored agent `{name}` is not used: a file of the project has that name"
            );
            warnings.push(Mistake::warning(what).hint("give one of them another `refName`"));
            continue;
        }
        // The engine reports what cannot be read, and leaves it out.
        if let Ok((agent, _)) = read_value(&definition.body) {
            warnings.extend(missing(&agent, models).into_iter().map(|(_, mistake)| mistake));
        }
    }
    warnings
}

/// A warning if the agent of requests that name none is not there.
pub fn no_default(default: Option<&AgentName>, agents: &[Arc<Agent>]) -> Option<Mistake> {
    let default = default.filter(|name| !agents.iter().any(|agent| agent.name == **name))?;
    let what = format!("`default` of `[agents]` names the agent `{default}`, which is not there");
    let hint = meant(default.as_str(), agents.iter().map(|agent| agent.name.as_str()));
    Some(Mistake::warning(what).hint(hint.unwrap_or_else(|| {
        "write `agents/<name>.yaml`, or store one with `waypost agent apply`".to_owned()
    })))
}

/// The models that an agent names and that are not there, each with the key that names it.
fn missing(agent: &Agent, models: &[String]) -> Vec<(&'static [&'static str], Mistake)> {
    const ACTS: &[&str] = &["llmConfigRef", "llm_config_ref"];
    const ROUTES: &[&str] = &["routerLlmConfigRef", "router_llm_config_ref"];
    let acts = (ACTS, &*agent.model);
    let routes = agent.router_model.as_deref().map(|model| (ROUTES, model));
    let named = std::iter::once(acts).chain(routes);
    let absent = named.filter(|(_, model)| !models.iter().any(|known| known == model));
    let warning = |(keys, model): (&'static [&'static str], &str)| {
        let what = format!(
            "agent `{}` names the model `{model}`, which is not there: its turns will fail",
            agent.name
        );
        (keys, Mistake::warning(what).hint(instead(model, models)))
    };
    absent.map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::values::ids::Millis;
    use serde_json::json;

    fn file(name: &str, text: &str) -> AgentFile {
        AgentFile { file: format!("agents/{name}.yaml"), text: text.to_owned() }
    }

    fn told(mistakes: &[Mistake]) -> Vec<String> {
        mistakes.iter().map(Mistake::to_string).collect()
    }

    #[test]
    fn an_unknown_model_is_reported_where_it_is_named() {
        let text =
            "refName: a\nllmConfigRef: fsat\nrouterLlmConfigRef: fast\ntool_types: {t: [x]}\n";
        let files = [file("a", text)];
        let models = ["fast".to_owned()];
        assert_eq!(
            told(&without_models(&files, &models, &Limits::default())),
            ["agents/a.yaml:2:15: warning: agent `a` names the model `fsat`, which is not there: \
              its turns will fail; hint: did you mean `fast`?"]
        );
        assert_eq!(without_models(&files, &[], &Limits::default()).len(), 2);
    }

    #[test]
    fn stored_agents_that_cannot_work_are_reported() {
        let stored = |name: &str| Definition {
            kind: KIND.to_owned(),
            name: name.to_owned(),
            version: 1,
            body: json!({"refName": name, "llmConfigRef": "gone"}),
            updated_at: Millis(0),
            by: None,
        };
        let (agent, _) =
            read_text("refName: a\nllmConfigRef: m\n", "a.yaml", &Limits::default()).unwrap();
        let of_files = [Arc::new(agent)];
        let warnings = told(&idle(&[stored("a"), stored("b")], &of_files, &["m".to_owned()]));
        assert!(warnings[0].contains("the stored agent `a` is not used"), "{warnings:?}");
        assert!(warnings[1].contains("agent `b` names the model `gone`"), "{warnings:?}");
        assert_eq!(warnings.len(), 2);
    }

    #[test]
    fn an_unknown_default_agent_is_reported() {
        let text = "refName: assistant\nllmConfigRef: m\n";
        let (agent, _) = read_text(text, "a.yaml", &Limits::default()).unwrap();
        let agents = [Arc::new(agent)];
        let said = |name: &str| no_default(Some(&AgentName::from(name)), &agents);
        assert_eq!(no_default(None, &agents), None);
        assert_eq!(said("assistant"), None);
        assert!(said("asistant").unwrap().hint.unwrap().contains("`assistant`"));
        assert!(said("x").unwrap().hint.unwrap().contains("waypost agent apply"));
    }
}
