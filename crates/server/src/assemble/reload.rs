//! What of a project can change while it is served: agents, plans, pipelines and the models that
//! these name. Everything is read and checked before anything changes; then it comes in together,
//! or what was served before stays. A realm whose own files are wrong keeps what it had, and keeps
//! nothing from others. Runs that began keep what they pin.

use crate::assemble::load::without_models;
use crate::assemble::pipelines::{misplaced, misplaced_own};
use crate::assemble::{AssembleError, opened};
use edge::counters::FilesPart;
use edge::realms::files::{ServedFiles, check};
use edge::realms::keeper::RealmKeeper;
use engine::{CheckedFiles, Engine, Models};
use identity::Identity;
use kernel::definition::agent::Agent;
use kernel::definition::pipeline::Pipeline;
use kernel::definition::plan::mistake::Mistake;
use kernel::identity::realm::Realms;
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
    pub(crate) refused: Vec<(FilesPart, Vec<Mistake>)>,
}

impl Outcome {
    /// The same with what became of one portion more.
    pub(crate) fn add(&mut self, portion: FilesPart, taken: Result<Outcome, Vec<Mistake>>) {
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
pub(crate) struct ProjectSnapshot {
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

impl ProjectSnapshot {
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
    fn names_beside(&self, other: &ProjectSnapshot) -> Vec<String> {
        let now = self.texts();
        let before = other.texts();
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
    taken: ProjectSnapshot,
    /// Models that no file brings.
    given: Vec<String>,
    /// The ports of pipelines that are open: all that there were at the start.
    open: BTreeSet<Port>,
    /// Realms that kept what they had when the files of all realms changed.
    behind: BTreeSet<RealmId>,
}

/// What is wrong with the own files of realms.
pub(crate) type OwnMistakes = BTreeMap<RealmId, Vec<Mistake>>;

/// What a check of files found.
struct FilesCheck {
    /// The names of all models.
    names: Vec<String>,
    models: Option<Models>,
    /// What the files bring to the realm that every server has, with warnings.
    here: Option<(CheckedFiles, Vec<Mistake>)>,
    /// What is wrong with the files of all realms.
    wrong: Vec<Mistake>,
    of_realms: OwnMistakes,
}

/// A pipeline and the port that it wants for itself.
type Port = (PipelineName, u16);

impl Reload {
    /// For an engine that serves this, in the realms that there are.
    pub(crate) fn new(engine: Engine, keeper: &RealmKeeper, taken: ProjectSnapshot) -> Self {
        let realm = default_realm();
        let mut given = engine.catalog().model_names();
        given.retain(|name| !taken.models.iter().any(|config| config.name == *name));
        let open = ports(&taken.readable);
        let identity = keeper.identity.clone();
        let served = keeper.files.clone();
        let behind = BTreeSet::new();
        Self { engine, identity, served, realm, taken, given, open, behind }
    }

    /// The realms that there are now.
    pub(crate) fn realms(&self) -> Vec<RealmId> {
        self.identity.directory().realms.0.keys().cloned().collect()
    }

    /// What is served now.
    pub(crate) fn taken(&self) -> &ProjectSnapshot {
        &self.taken
    }

    /// Serves this from now on: what is every realm's all of it, or nothing of it. A realm whose
    /// own files are wrong, or could not be read, keeps all that is served there.
    pub(crate) fn take(&mut self, mut parts: ProjectSnapshot, unread: OwnMistakes) -> Outcome {
        // What could be read is checked beside what stays.
        self.keep_own(&mut parts, unread.keys());
        if unread.is_empty() && self.behind.is_empty() && parts == self.taken {
            return Outcome::default();
        }
        let realms = self.identity.directory().realms.clone();
        let FilesCheck { names, models, here, wrong, of_realms } =
            self.found(&parts, &realms, unread);
        let kept: BTreeSet<RealmId> = of_realms.keys().cloned().collect();
        let refused = of_realms.into_iter();
        let refused =
            refused.map(|(realm, mistakes)| (FilesPart::Realm(realm), mistakes)).collect();
        let mut outcome = Outcome { refused, ..Outcome::default() };
        let Some(models) = models.filter(|_| wrong.is_empty()) else {
            outcome.refused.insert(0, (FilesPart::Files, wrong));
            return outcome;
        };
        self.keep_own(&mut parts, kept.iter());
        let is_behind = self.behind.iter().any(|realm| !kept.contains(realm));
        if parts == self.taken && !is_behind {
            return outcome;
        }
        // Models come before who names them.
        self.engine.catalog().replace_models(models);
        let mut warnings = Vec::new();
        if let Some((files, found)) = here.filter(|_| !kept.contains(&self.realm)) {
            self.engine.catalog().set_files(&self.realm, files);
            warnings.extend(found);
        }
        warnings.extend(self.served.replace(&self.engine, &realms, &parts.files, &kept));
        warnings.extend(parts.files.strangers(&realms));
        warnings.extend(self.idle_agents(&parts, &names));
        warnings.extend(other_ports(&self.open, &self.taken.readable, &parts.readable));
        outcome.taken = true;
        outcome.warnings = warnings;
        outcome.changed = parts.names_beside(&self.taken);
        let all_changed = parts.files.all != self.taken.files.all;
        let mut behind = kept;
        behind.retain(|realm| all_changed || self.behind.contains(realm));
        self.behind = behind;
        self.taken = parts;
        outcome
    }

    /// Puts the own files of these realms that are served into the place of those that are there.
    fn keep_own<'r>(&self, parts: &mut ProjectSnapshot, realms: impl Iterator<Item = &'r RealmId>) {
        for realm in realms {
            match self.taken.files.own.get(realm) {
                Some(own) => parts.files.own.insert(realm.clone(), own.clone()),
                None => parts.files.own.remove(realm),
            };
            if *realm == self.realm {
                let here = parts.files.of(realm);
                parts.readable = readable(&here.pipelines, self.engine.limits());
            }
        }
    }

    /// Reads and checks all of it: what is wrong with one realm's own files, and with all else.
    fn found(&self, parts: &ProjectSnapshot, realms: &Realms, unread: OwnMistakes) -> FilesCheck {
        let configured = parts.models.iter().map(|config| config.name.clone());
        let names: Vec<String> = configured.chain(self.given.iter().cloned()).collect();
        let mut all = misplaced(&parts.readable, Some(&names));
        all.extend(misplaced_own(&parts.files, Some(&names), self.engine.limits()));
        all.extend(check(&self.engine, realms, &parts.files));
        let models = self.models(parts).map_err(|mistakes| all.extend(mistakes)).ok();
        let here = parts.files.of(&self.realm);
        let here = self.engine.catalog().read_files(&self.realm, &here);
        let here = here.map_err(|mistakes| all.extend(mistakes)).ok();
        let mut wrong = Vec::new();
        let mut of_realms = unread;
        for mistake in all.into_iter().filter(Mistake::is_error) {
            match parts.files.owner(mistake.file.as_deref()) {
                Some(realm) => of_realms.entry(realm.clone()).or_default().push(mistake),
                None => wrong.push(mistake),
            }
        }
        FilesCheck { names, models, here, wrong, of_realms }
    }

    /// The models that are served, with those that changed opened again. The others stay as they
    /// are, connections included. One that no one names any more stays too: a run in flight may
    /// pin an agent that does.
    fn models(&self, parts: &ProjectSnapshot) -> Result<Models, Vec<Mistake>> {
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
    fn idle_agents(&self, parts: &ProjectSnapshot, models: &[String]) -> Vec<Mistake> {
        let mut warnings = without_models(&parts.files, models, self.engine.limits());
        let agents = |parts: &ProjectSnapshot| parts.files.of(&self.realm).agents;
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
    let before = ports(before);
    let wanted = ports(now);
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
        let none = desk("");
        let one = desk(", port: 1");
        let other = desk(", port: 2");
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
