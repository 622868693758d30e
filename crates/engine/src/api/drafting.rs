//! Plans that a model writes. Plans that do what is wanted already come first; else a model writes
//! one, it is read as any plan of its caller, and its mistakes go back. The result is data:
//! nothing drafted is kept or run here, and every call in it that could change something asks a
//! person first.

use crate::advice::asking::ModelConversation;
use crate::advice::drafting::{Draft, Drafting, Purpose};
use crate::catalog::ranking::best_first;
use crate::handles::Catalog;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::contracts::policy::Resource;
use kernel::definition::plan::Plan;
use kernel::definition::plan::mistake::meant;
use kernel::prompt::draft::opening;
use kernel::tool::call::{Caller, ToolSpec};
use kernel::tool::rules::{BadPattern, Pattern};
use kernel::values::caller::Act;
use kernel::values::ids::RealmId;
use std::sync::Arc;

/// The model that writes where none is named.
const DEFAULT_MODEL: &str = "default";
/// How long a goal may be: more is a plan already.
const GOAL_CHARS_MAX: usize = 4_000;
/// How many patterns may say which tools a plan uses.
const PATTERNS_MAX: usize = 100;
/// How many plans are named that do it already.
const EXISTING_MAX: usize = 5;

/// What a plan is wanted for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DraftRequest {
    pub goal: String,
    /// The model that writes it; the one called `default`, or the only one, if absent.
    pub model: Option<String>,
    /// Patterns of the tools that it may use; all that the caller sees if absent.
    pub tools: Option<Vec<String>>,
    /// Whether a plan is written even if there is one that fits.
    pub fresh: bool,
}

/// The outcome.
#[derive(Debug)]
pub struct DraftOutcome {
    /// The plans that fit the goal already: none where one was written.
    pub existing: Vec<Arc<Plan>>,
    /// What the model wrote.
    pub draft: Option<Draft>,
}

impl Catalog<'_> {
    /// Plans that fit a goal already, or one that a model writes for it. Nothing is kept.
    pub async fn draft_plan(self, caller: &Caller, request: DraftRequest) -> Result<DraftOutcome> {
        let gate = &self.shared.gate;
        gate.permit(caller, Act::Run, Resource::InlinePlan)?;
        let goal = goal(&request)?;
        let only = patterns(&request)?;
        if !request.fresh {
            let existing = self.fitting_plans(caller, goal, EXISTING_MAX);
            if !existing.is_empty() {
                return Ok(DraftOutcome { existing, draft: None });
            }
        }
        let model = self.drafting_model(&caller.realm, request.model.as_deref())?;
        // A model must not write without tools that are on their way.
        gate.arrivals.wait(gate.clock.as_ref()).await;
        let mut tools = gate.visible(caller);
        tools.retain(|spec| is_among(only.as_deref(), spec));
        let shown = best_first(&tools, goal, self.shared.limits.draft_tools_max);
        let messages = opening(goal, &shown);
        let asking = ModelConversation::new(self.shared, caller, model, messages);
        let purpose = Purpose::ToKeep;
        let draft = Some(Drafting { asking, caller, tools, purpose }.run().await?);
        Ok(DraftOutcome { existing: Vec::new(), draft })
    }

    /// The model that writes, of those of the realm.
    fn drafting_model(self, realm: &RealmId, wanted: Option<&str>) -> Result<String> {
        let models = self.shared.models_of(realm);
        let names: Vec<&str> = models.names().collect();
        if let Some(name) = wanted.or(models.get(DEFAULT_MODEL).map(|_| DEFAULT_MODEL)) {
            if models.get(name).is_some() {
                return Ok(name.to_owned());
            }
            let refusal = Refusal::not_found("model", name);
            return Err(match meant(name, names) {
                Some(hint) => refusal.hint(hint),
                None => refusal,
            });
        }
        if let [only] = names.as_slice() {
            return Ok((*only).to_owned());
        }
        let (message, hint) = if names.is_empty() {
            (
                "there is no model that could write a plan",
                "set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GOOGLE_API_KEY` in the environment \
                 or in `.env`, or add `[models.default]` to waypost.toml, and start the server \
                 again",
            )
        } else {
            ("there are several models, and none is called `default`", "name one as `model`")
        };
        let names = names.into_iter().map(str::to_owned).collect();
        Err(Refusal::new(RefusalCode::ModelNeeded(names), message).hint(hint))
    }
}

fn goal(request: &DraftRequest) -> Result<&str> {
    let goal = request.goal.trim();
    let length = goal.chars().count();
    if (1..=GOAL_CHARS_MAX).contains(&length) {
        return Ok(goal);
    }
    let message = format!("a goal has 1 to {GOAL_CHARS_MAX} characters; this one has {length}");
    Err(Refusal::new(RefusalCode::BadDraft, message).hint("say in a sentence what the plan is for"))
}

/// What the tools of the plan must fit; all do where nothing is said.
fn patterns(request: &DraftRequest) -> Result<Option<Vec<Pattern>>> {
    let Some(texts) = &request.tools else { return Ok(None) };
    if texts.len() > PATTERNS_MAX {
        let message = format!("`tools` has {} patterns, more than {PATTERNS_MAX}", texts.len());
        return Err(Refusal::new(RefusalCode::BadDraft, message).hint("use `*`, such as `crm.*`"));
    }
    let bad = |why: BadPattern| {
        Refusal::new(RefusalCode::BadDraft, why.to_string()).hint("such as `crm.*` or `math::add`")
    };
    let patterns: Result<Vec<Pattern>> =
        texts.iter().map(|text| Pattern::new(text).map_err(bad)).collect();
    patterns.map(Some)
}

fn is_among(only: Option<&[Pattern]>, spec: &ToolSpec) -> bool {
    only.is_none_or(|only| only.iter().any(|pattern| pattern.fits(spec.name.as_str())))
}
