//! What of a project can change while it is served: agents, plans, pipelines and the models that
//! these name. Everything is read and checked before anything changes; then it comes in together,
//! or what was served before stays. Runs that began keep what they pin.

use crate::assemble::load::without_models;
use crate::assemble::pipelines::{misplaced, misplaced_own};
use crate::assemble::{AssembleError, opened};
use crate::counted::Portion;
use crate::realms::files::{ServedFiles, check};
use crate::realms::keeper::RealmKeeper;
use engine::{Engine, Models};
use identity::Identity;
use kernel::definition::agent::Agent;
use kernel::definition::pipeline::Pipeline;
use kernel::definition::plan::mistake::Mistake;
use kernel::values::ids::{AgentName, PipelineName, RealmId};
use llms::config::{ModelConfig, ModelKind};
use project::agents;
use project::folder::{Project, RealmFiles, readable};
use project::realm::default_realm;
use project::upstream_entries::Variables;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What became of files that were read again.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Whether something was taken.
    pub(crate) taken: bool,
    /// The names of the files whose change was taken.
    pub(crate) changed: Vec<String>,
    pub(crate) warnings: Vec<Mistake>,
    /// What was not taken, with what is wrong with it.
    pub(crate) refused: Vec<(Portion, Vec<Mistake>)>,
}

impl Outcome {
    /// The same with what became of one portion more.
    pub(crate) fn add(&mut self, portion: Portion, taken: Result<Outcome, Vec<Mistake>>) {
        match taken {
            Ok(Outcome { taken, changed, warnings, refused }) => {
                self.taken |= taken;
                self.changed.extend(changed);
                self.warnings.extend(warnings);
                self.refused.extend(refused);
            }
            Err(mistakes) => self.refused.push((portion, mistakes)),
        }
    }
}

/// What a project's files say, as far as it can change while it is served.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Parts {
    files: RealmFiles,
    /// The pipelines of the realm that every server has, as far as they can be read, each with its
    /// file.
    readable: Vec<(String, Pipeline)>,
    models: Vec<ModelConfig>,
    /// The files of rules among them; rules can also stand in a pipeline, or be our own.
    rules: Vec<PathBuf>,
    /// The agent of requests that name none.
    default: Option<AgentName>,
}

impl Parts {
    /// Those of this project, or what is wrong with its models.
    pub(crate) fn of(project: &Project, variables: &Variables<'_>) -> Result<Self, Vec<Mistake>> {
        let models = project.models(variables)?;
        let files = models.iter().filter_map(rules_of).map(|(file, _)| file);
        let rules = files.filter(|file| project.folder.join(file).is_file());
        let rules = rules.map(Path::to_path_buf).collect();
        let files = project.realm_files();
        let here = files.of(&default_realm());
        let readable = readable(&here.pipelines, &project.config.limits);
        let default = project.config.agents.default.clone();
        Ok(Self { files, readable, models, rules, default })
    }

    /// The files of its rules, by their paths in the project's folder.
    pub(crate) fn rules(&self) -> &[PathBuf] {
        &self.rules
    }

    /// The names of the files that say something else than they do in the other.
    fn names_beside(&self, other: &Parts) -> Vec<String> {
        let (now, before) = (self.texts(), other.texts());
        let all: BTreeSet<&str> = now.keys().chain(before.keys()).copied().collect();
        let changed = all.into_iter().filter(|file| now.get(file) != before.get(file));
        changed.map(str::to_owned).collect()
    }

    /// All texts, by file.
    fn texts(&self) -> BTreeMap<&str, &str> {
        let all = || std::iter::once(&self.files.all).chain(self.files.own.values());
        let agents = all().flat_map(|files| &files.agents);
        let agents = agents.map(|file| (file.file.as_str(), file.text.as_str()));
        let plans = all().flat_map(|files| &files.plans);
        let plans = plans.map(|file| (file.file.as_str(), file.text.as_str()));
        let pipelines = all().flat_map(|files| &files.pipelines);
        let pipelines = pipelines.map(|file| (file.file.as_str(), file.text.as_str()));
        let rules = self.models.iter().filter_map(rules_of);
        let rules = rules.filter(|(file, _)| self.rules.iter().any(|known| known == file));
        let rules = rules.filter_map(|(file, text)| Some((file.to_str()?, text)));
        agents.chain(plans).chain(pipelines).chain(rules).collect()
    }
}

/// Takes what changed into a server that runs.
pub(crate) struct Reload {
    engine: Engine,
    identity: Arc<Identity>,
    /// Where realms that are made later get the files from.
    served: Arc<ServedFiles>,
    realm: RealmId,
    /// What is served now.
    taken: Parts,
    /// Models that no file brings.
    given: Vec<String>,
    /// The ports of pipelines that are open: all that there were at the start.
    open: BTreeSet<Port>,
}

/// A pipeline and the port that it wants for itself.
type Port = (PipelineName, u16);

impl Reload {
    /// For an engine that serves this, in the realms that there are.
    pub(crate) fn new(engine: Engine, keeper: &RealmKeeper, taken: Parts) -> Self {
        let realm = default_realm();
        let mut given = engine.catalog().model_names();
        given.retain(|name| !taken.models.iter().any(|config| config.name == *name));
        let open = ports(&taken.readable);
        let (identity, served) = (keeper.identity.clone(), keeper.files.clone());
        Self { engine, identity, served, realm, taken, given, open }
    }

    /// What is served now.
    pub(crate) fn taken(&self) -> &Parts {
        &self.taken
    }

    /// Serves this from now on: all of it, or nothing of it.
    pub(crate) fn take(&mut self, parts: Parts) -> Outcome {
        let mut outcome = Outcome::default();
        if parts != self.taken {
            let taken = self.take_whole(parts);
            outcome.add(Portion::Files, taken);
        }
        outcome
    }

    /// The same of what changed; all mistakes where it is not taken.
    fn take_whole(&mut self, parts: Parts) -> Result<Outcome, Vec<Mistake>> {
        let configured = parts.models.iter().map(|config| config.name.clone());
        let names: Vec<String> = configured.chain(self.given.iter().cloned()).collect();
        let mut wrong = misplaced(&parts.readable, Some(&names));
        wrong.extend(misplaced_own(&parts.files, Some(&names), self.engine.limits()));
        let realms = self.identity.directory().realms.clone();
        wrong.extend(check(&self.engine, &realms, &parts.files));
        let models = self.models(&parts);
        let here = parts.files.of(&self.realm);
        let read = self.engine.catalog().read_files(&self.realm, &here);
        let (models, (files, mut warnings)) = match (models, read) {
            (Ok(models), Ok(read)) if wrong.is_empty() => (models, read),
            (models, read) => {
                let mistakes = models.err().into_iter().chain(read.err());
                return Err(mistakes.flatten().chain(wrong).collect());
            }
        };
        // Models come before who names them.
        self.engine.catalog().replace_models(models);
        self.engine.catalog().set_files(&self.realm, files);
        warnings.extend(self.served.replace(&self.engine, &realms, &parts.files));
        warnings.extend(parts.files.strangers(&realms));
        warnings.extend(self.idle_agents(&parts, &names));
        warnings.extend(other_ports(&self.open, &self.taken.readable, &parts.readable));
        let changed = parts.names_beside(&self.taken);
        self.taken = parts;
        Ok(Outcome { taken: true, changed, warnings, ..Outcome::default() })
    }

    /// The models that are served, with those that changed opened again. The others stay as they
    /// are, connections included. One that no one names any more stays too: a run in flight may
    /// pin an agent that does.
    fn models(&self, parts: &Parts) -> Result<Models, Vec<Mistake>> {
        let known = &self.taken.models;
        let changed = parts.models.iter().filter(|config| !known.contains(config)).cloned();
        let fresh = opened(changed.collect()).map_err(AssembleError::into_mistakes)?;
        let mut models = (*self.engine.catalog().models()).clone();
        for name in fresh.names() {
            if let Some(model) = fresh.get(name) {
                models = models.with(name, model.clone());
            }
        }
        Ok(models)
    }

    /// Warnings of agents and rules whose models are not there, and of the agent that is asked
    /// where no one is named.
    fn idle_agents(&self, parts: &Parts, models: &[String]) -> Vec<Mistake> {
        let mut warnings = without_models(&parts.files, models, self.engine.limits());
        let agents = |parts: &Parts| parts.files.of(&self.realm).agents;
        if agents(parts) != agents(&self.taken) {
            let known = self.engine.catalog().all_agents(&self.realm).into_iter();
            let known: Vec<Arc<Agent>> = known.map(|known| known.agent).collect();
            warnings.extend(agents::no_default(parts.default.as_ref(), &known));
        }
        warnings
    }
}

/// Warnings of ports that pipelines want now or want no more: those that are open were opened at
/// the start, and stay.
fn other_ports(
    open: &BTreeSet<Port>,
    before: &[(String, Pipeline)],
    now: &[(String, Pipeline)],
) -> Vec<Mistake> {
    let (before, wanted) = (ports(before), ports(now));
    let is_new = |port: &&Port| !before.contains(*port) && !open.contains(*port);
    let is_gone = |port: &&Port| before.contains(*port) && !wanted.contains(*port);
    let comes = wanted.iter().filter(is_new).map(|(name, _)| {
        let what = format!("the port of pipeline `{name}` is opened at the next start");
        let hint = "until then the server's own port serves its route";
        (name, Mistake::warning(what).hint(hint))
    });
    let goes = open.iter().filter(is_gone).map(|(name, _)| {
        let what = format!("the port of pipeline `{name}` stays open until the next start");
        (name, Mistake::warning(what))
    });
    let filed = |(name, mistake): (&PipelineName, Mistake)| {
        let file = now.iter().find(|(_, pipeline)| pipeline.name == *name);
        Mistake { file: file.map(|(file, _)| file.clone()), ..mistake }
    };
    comes.chain(goes).map(filed).collect()
}

/// The file and the text of a rule-based model.
fn rules_of(config: &ModelConfig) -> Option<(&Path, &str)> {
    match &config.kind {
        ModelKind::Rules { text, file } => Some((file.as_path(), text.as_str())),
        ModelKind::OpenAi(_) | ModelKind::Anthropic(_) | ModelKind::Gemini(_) => None,
    }
}

/// The ports that these pipelines want for themselves.
fn ports(pipelines: &[(String, Pipeline)]) -> BTreeSet<Port> {
    let wanted = |(_, pipeline): &(String, Pipeline)| Some((pipeline.name.clone(), pipeline.port?));
    pipelines.iter().filter_map(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::definition::pipeline_reader::read_text;
    use kernel::limits::Limits;

    fn desk(port: &str) -> Vec<(String, Pipeline)> {
        let text = format!(
            "http: {{route: /desk{port}}}\nschema: {{caseIdField: id, allowedFields: [id, reason], \
             requiredFields: [id, reason]}}\ntools: [case.raiseTicket]\nllm: {{type: stub}}\n"
        );
        let read = read_text(&text, "desk.yaml", "desk", &Limits::default());
        vec![("desk.yaml".to_owned(), read.unwrap().0)]
    }

    #[test]
    fn ports_are_told_when_they_come_and_when_they_go() {
        let (none, one, other) = (desk(""), desk(", port: 1"), desk(", port: 2"));
        let open = ports(&one);
        let told = |before: &[(String, Pipeline)], now: &[(String, Pipeline)]| -> Vec<String> {
            other_ports(&open, before, now).iter().map(Mistake::to_string).collect()
        };
        let comes = "desk.yaml: warning: the port of pipeline `desk` is opened at the next start; \
            hint: until then the server's own port serves its route";
        let stays = "warning: the port of pipeline `desk` stays open until the next start";
        assert_eq!(told(&one, &one), Vec::<String>::new());
        assert_eq!(told(&one, &other), [comes.to_owned(), format!("desk.yaml: {stays}")]);
        assert_eq!(told(&other, &other), Vec::<String>::new(), "it is told once");
        assert_eq!(told(&none, &one), Vec::<String>::new(), "it is open");
        assert_eq!(told(&one, &[]), [stays]);
    }
}
