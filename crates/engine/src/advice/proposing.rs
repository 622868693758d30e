//! What a model proposes about a failed step: other arguments for its call, or a plan that corrects
//! it. It is checked as if the run's starter had sent it, and what is wrong goes back. Here is
//! decided, too, whether what it calls could change something: then it is a person's to take.

use crate::advice::asking::{ModelConversation, TurnsUsage};
use crate::advice::drafting::{Draft, Drafting, Purpose};
use crate::catalog::models::Models;
use crate::catalog::ranking::best_first;
use crate::refusal::Refusal;
use crate::shared::Shared;
use kernel::ask::remedy::{Drafter, Remedy, RemedyResult};
use kernel::ask::{AskedCall, FixAction, Reply};
use kernel::conversation::llm::Stop;
use kernel::definition::plan::mistake::Mistake;
use kernel::planted::{Switch, is_on};
use kernel::prompt::draft::correction_opening;
use kernel::prompt::masking::{hushed, masked};
use kernel::prompt::propose::{FailedCall, ModelProposal, again, answered, opening};
use kernel::tool::call::{CallProgress, Caller, Reach, ToolSpec};
use kernel::values::fault::Fault;
use kernel::values::ids::{AskId, PlanId, StepId};
use serde_json::{Value, json};
use std::sync::Arc;

/// The fault of a model that proposed nothing.
const NO_PROPOSAL: &str = "NoProposal";
/// How often a model gets back what is wrong with the arguments that it proposes.
const ROUNDS_MAX: u32 = 2;
/// The model that is asked where none is named.
const DEFAULT_MODEL: &str = "default";
/// What the ids of corrections begin with that models wrote.
const DRAFTED: &str = "drafted/";

/// A failed step that a model is asked about.
pub(crate) struct FailedStep {
    /// The starter of its run.
    pub(crate) caller: Caller,
    pub(crate) plan: PlanId,
    pub(crate) step: StepId,
    /// The ask about it.
    pub(crate) ask: AskId,
    /// What failed, and how.
    pub(crate) call: Option<AskedCall>,
    pub(crate) fault: Fault,
    pub(crate) how: CallProgress,
    /// How often it was tried.
    pub(crate) tries: u32,
}

/// The outcome.
pub(crate) struct Proposal {
    pub(crate) found: RemedyResult,
    pub(crate) took: TurnsUsage,
}

impl Proposal {
    /// Nothing: no model was asked.
    pub(crate) fn nothing(fault: Fault) -> Self {
        Self { found: RemedyResult::nothing(fault), took: TurnsUsage::default() }
    }
}

/// Asks a model what could be done about a failed step.
pub(crate) async fn propose(shared: &Arc<Shared>, failed: &FailedStep, does: &Remedy) -> Proposal {
    let models = shared.models_of(&failed.caller.realm);
    let model = match does.model().map(|name| asked_model(&models, name)) {
        Some(Ok(model)) => model,
        Some(Err(fault)) => return Proposal::nothing(fault),
        None => return Proposal::nothing(no_proposal("no model is asked")),
    };
    match does {
        Remedy::Draft(drafter) => correction(shared, failed, drafter, model).await,
        Remedy::Propose(_) | Remedy::Retry | Remedy::Correct(_) => {
            arguments(shared, failed, model).await
        }
    }
}

/// The model of this name; the only one stands for `default`.
fn asked_model(models: &Models, name: &str) -> Result<String, Fault> {
    if models.get(name).is_some() {
        return Ok(name.to_owned());
    }
    let mut names = models.names();
    match (names.next(), names.next()) {
        (Some(only), None) if name == DEFAULT_MODEL => Ok(only.to_owned()),
        _ => {
            let fault = no_proposal(format!("there is no model `{name}` in this project"));
            Err(fault.hint("let the rule name another model, or configure this one"))
        }
    }
}

fn no_proposal(message: impl Into<String>) -> Fault {
    Fault::new(NO_PROPOSAL, message)
}

/// A model that did not answer, as a fault.
fn failed_model(refusal: Refusal) -> Fault {
    let fault = no_proposal(refusal.message);
    Fault { hint: refusal.hint, ..fault }
}

async fn arguments(shared: &Arc<Shared>, failed: &FailedStep, model: String) -> Proposal {
    if let Some(call) = &failed.call {
        // After a restart, the tool of the failed call may still be on its way.
        shared.gate.await_tool(&failed.caller.realm, &call.tool).await;
    }
    let found = failed.call.as_ref().and_then(|call| {
        Some((call, shared.gate.find(&failed.caller, call.tool.as_str())?.tool.spec().clone()))
    });
    let Some((call, spec)) = found else {
        return Proposal::nothing(no_proposal("the tool of the failed call is not there"));
    };
    let shown = FailedCall { call, fault: &failed.fault, spec: &spec };
    let Some(messages) = opening(&shown) else {
        return Proposal::nothing(no_proposal("the call is too large to be shown to a model"));
    };
    let mut asking = ModelConversation::new(shared, &failed.caller, model, messages);
    let found = rounds(&mut asking, failed, &shown).await;
    Proposal { found: found.unwrap_or_else(RemedyResult::nothing), took: asking.took }
}

/// Asks until what is proposed could be sent, a few times.
async fn rounds(
    asking: &mut ModelConversation<'_>,
    failed: &FailedStep,
    shown: &FailedCall<'_>,
) -> Result<RemedyResult, Fault> {
    let mut rounds = 0;
    loop {
        let turn = asking.turn().await.map_err(failed_model)?;
        let read = match turn.stop {
            Stop::Length => Err("the answer was cut off: it is longer than allowed".to_owned()),
            Stop::Done | Stop::Refused => answered(shown, &turn.text),
        };
        let wrong = match read {
            Ok(ModelProposal { arguments: None, why }) => {
                let fault = no_proposal(format!("model `{}` knows no other", asking.model));
                return Ok(RemedyResult { why, ..RemedyResult::nothing(fault) });
            }
            Ok(ModelProposal { arguments: Some(arguments), why }) => {
                match usable(asking.shared, failed, shown, arguments) {
                    Ok(found) => return Ok(RemedyResult { why, ..found }),
                    Err(wrong) => wrong,
                }
            }
            Err(wrong) => wrong,
        };
        if rounds == ROUNDS_MAX {
            let message = format!("model `{}` proposed nothing usable: {wrong}", asking.model);
            return Err(no_proposal(message));
        }
        rounds += 1;
        asking.object(&turn, again(shown, &wrong));
    }
}

/// Arguments that fit the tool's schema and its own check, as a reply: acted upon where the call
/// only reads, with these arguments and with those that failed, else a proposal for a person. A
/// write that a model turns into a read would be left out without a word.
fn usable(
    shared: &Shared,
    failed: &FailedStep,
    shown: &FailedCall<'_>,
    arguments: Value,
) -> Result<RemedyResult, String> {
    if arguments == *shown.call.arguments {
        return Err("these are the arguments that failed".to_owned());
    }
    let formed = shared.gate.well_formed(&failed.caller, &shown.call.tool, &arguments);
    let listed = formed.map_err(|ill| ill.fault.message)?;
    let reads = |arguments: &Value| listed.tool.reach(arguments).0 == Reach::Reads;
    let only_reads = reads(&shown.call.arguments) && reads(&arguments);
    let acts = only_reads || is_on(Switch::ProposedWriteActs);
    let reply = Reply::Fix {
        action: FixAction::Edit,
        arguments: Some(Arc::new(arguments)),
        output: None,
        plan_id: None,
    };
    Ok(RemedyResult { reply: Some(reply), acts, ..RemedyResult::default() })
}

async fn correction(
    shared: &Arc<Shared>,
    failed: &FailedStep,
    drafter: &Drafter,
    model: String,
) -> Proposal {
    // A model must not write without tools that are on their way.
    shared.gate.arrivals.wait(shared.clock.as_ref()).await;
    let tools = shared.gate.visible(&failed.caller);
    let tool = failed.call.as_ref().map(|call| call.tool.as_str()).unwrap_or_default();
    let about = format!("{tool} {} {}", failed.step, failed.fault.message);
    let best = best_first(&tools, &about, shared.limits.draft_tools_max);
    let Some(messages) = correction_opening(&as_shown(failed, &tools), &best) else {
        return Proposal::nothing(no_proposal("the failure is too large to be shown to a model"));
    };
    let id = PlanId::from(format!("{DRAFTED}{}", failed.ask).as_str());
    let mut drafting = Drafting {
        asking: ModelConversation::new(shared, &failed.caller, model, messages),
        caller: &failed.caller,
        tools,
        purpose: Purpose::ToCorrect(id.clone()),
    };
    let drafted = drafting.run().await;
    let took = drafting.asking.took;
    let found = match drafted {
        Ok(draft) => written(draft, id, drafter),
        Err(refusal) => RemedyResult::nothing(failed_model(refusal)),
    };
    Proposal { found, took }
}

/// The failure as a model sees it: what a correction gets as its input, without secrets.
fn as_shown(failed: &FailedStep, tools: &[Arc<ToolSpec>]) -> Value {
    let spec = failed.call.as_ref().and_then(|call| tools.iter().find(|it| it.name == call.tool));
    let schema = spec.map_or(&Value::Null, |spec| &*spec.input_schema);
    let arguments = failed.call.as_ref().map(|call| masked(&call.arguments, schema));
    let told = |text: &str| match &failed.call {
        Some(call) => hushed(text, &call.arguments, schema),
        None => text.to_owned(),
    };
    let hint = failed.fault.hint.as_deref().map(told);
    let message = told(&failed.fault.message);
    // What is for programs cannot be masked: nothing says which of its members are secrets.
    let error = Fault { message, hint, detail: None, ..failed.fault.clone() };
    json!({
        "planId": failed.plan,
        "stepId": failed.step,
        "tool": failed.call.as_ref().map(|call| &call.tool),
        "error": error,
        "how": failed.how,
        "arguments": arguments,
        "tries": failed.tries,
    })
}

/// A correction that can be used, as a reply that runs it. For a call that writes it is a proposal
/// all the same: `Session::judged`.
fn written(draft: Draft, id: PlanId, drafter: &Drafter) -> RemedyResult {
    let Draft { source, plan, mistakes, model, .. } = draft;
    let Some(drafted) = plan else {
        let wrong = mistakes.iter().find(|mistake| mistake.is_error());
        let wrong = wrong.map(Mistake::to_string).unwrap_or_default();
        let message = format!("model `{model}` wrote no plan that can be used: {wrong}");
        return RemedyResult::nothing(no_proposal(message));
    };
    let reads = drafted.reach == Reach::Reads && drafted.writes.is_empty();
    let why = Some(drafted.plan.description).filter(|about| !about.trim().is_empty());
    let reply =
        Reply::Fix { action: FixAction::Correct, arguments: None, output: None, plan_id: Some(id) };
    RemedyResult {
        reply: Some(reply),
        acts: (drafter.auto_reads && reads) || is_on(Switch::WritingDraftRuns),
        plan: Some(Arc::new(source)),
        why,
        fault: None,
    }
}
