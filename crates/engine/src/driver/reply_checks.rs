//! Checks of a reply to an open ask: the caller may answer, the reply fits the question, and what
//! it changes passes the gate. Nothing is recorded here.

use super::state::Driver;
use crate::gate::admission::AdmittedCall;
use crate::gate::audit::DeniedCall;
use crate::refusal::{Refusal, RefusalCode, Result};
use kernel::ask::reply::{BadReply, check, wordless};
use kernel::ask::{Ask, AskBody, Reply};
use kernel::contracts::policy::{Context, Trigger};
use kernel::tool::call::{CallProgress, Caller, Verdict};
use kernel::values::caller::Act;

impl Driver {
    /// Whether a reply of this caller to an open ask counts.
    pub(super) fn counts(&self, caller: &Caller, ask: &Ask, reply: &Reply) -> Result<()> {
        self.may_answer(caller, ask)?;
        let fits = check(ask, reply, self.shared.schemas.as_ref());
        fits.map_err(|bad| refuse_reply(ask, bad))?;
        self.check_words(ask, reply)?;
        self.check_edits(caller, ask, reply)
    }

    /// A reply that rejects an agent's call says why: its model reads these words.
    fn check_words(&self, ask: &Ask, reply: &Reply) -> Result<()> {
        let Reply::Approve { decisions } = reply else { return Ok(()) };
        let session = self.session.as_ref();
        if session.and_then(|session| session.agent(ask.frame)).is_none() {
            return Ok(());
        }
        let Some(call) = wordless(decisions) else { return Ok(()) };
        let message = format!("call `{call}` is rejected without a word");
        Err(Refusal::new(RefusalCode::FeedbackMissing(Box::new(ask.clone())), message)
            .hint("the ask is still open: say in `feedback` why not, or what instead"))
    }

    /// Edited arguments pass the gate before the reply counts, for who started the run and for who
    /// edits; if refused, the ask stays open.
    fn check_edits(&self, editor: &Caller, ask: &Ask, reply: &Reply) -> Result<()> {
        let edits: Vec<_> = match (&ask.body, reply) {
            (AskBody::Approve { calls }, Reply::Approve { decisions }) => decisions
                .iter()
                .filter_map(|decision| {
                    let call = calls.iter().find(|call| call.call_id == decision.call_id)?;
                    Some((call.tool.clone(), decision.arguments.clone()?))
                })
                .collect(),
            (AskBody::Fix { call: Some(call), .. }, Reply::Fix { arguments: Some(edit), .. }) => {
                vec![(call.tool.clone(), edit.clone())]
            }
            _ => Vec::new(),
        };
        let gate = &self.shared.gate;
        let is_others = ask.answerers.as_ref().is_some_and(|narrowed| narrowed.other);
        if is_others && !edits.is_empty() && !gate.is_free(editor, Act::Answer) {
            let message = "who edits what another person must approve cannot approve it as well";
            for (tool, arguments) in &edits {
                let denied = DeniedCall { tool, arguments, why: message, policies: &[] };
                gate.note_denied(editor, &denied)?;
            }
            return Err(Refusal::new(RefusalCode::EditRefused, message)
                .hint("the ask is still open: approve it as it is, or reject it and say why"));
        }
        let run = self.session.as_ref().and_then(|session| session.runs.get(&ask.run));
        let Some(run) = run else { return Ok(()) };
        // The same subject may come with a credential that covers less than the one it began with.
        let is_judged = !gate.is_free(editor, Act::Call);
        let is_told = editor.admin;
        let starter = run.caller(&self.key.realm);
        let editor = is_judged.then_some(editor);
        for who in std::iter::once(&starter).chain(editor) {
            for (tool, arguments) in &edits {
                let context = Context { trigger: Trigger::Run, ..Context::default() };
                let refused = match gate.admit_by_name(who, tool, arguments, context) {
                    Err(ill_formed) => ill_formed.fault.message,
                    Ok(AdmittedCall { decision, .. }) => {
                        let Verdict::Deny(why) = &decision.verdict else { continue };
                        let policies = &decision.policies;
                        gate.note_denied(who, &DeniedCall { tool, arguments, why, policies })?;
                        match is_told {
                            true => format!("policy refuses `{tool}`: {why}"),
                            false => format!("policy refuses `{tool}`"),
                        }
                    }
                };
                return Err(Refusal::new(RefusalCode::EditRefused, refused)
                    .hint("the ask is still open: send other arguments"));
            }
            self.check_given_output(who, ask, reply)?;
        }
        Ok(())
    }

    /// An output that stands in for that of a call is given by those alone who may make the call. A
    /// tool that is gone keeps nobody from saying what it did.
    fn check_given_output(&self, who: &Caller, ask: &Ask, reply: &Reply) -> Result<()> {
        let (AskBody::Fix { call: Some(call), .. }, Reply::Fix { output: Some(_), .. }) =
            (&ask.body, reply)
        else {
            return Ok(());
        };
        let shared = &self.shared;
        let tool = &call.tool;
        let Some(listed) = shared.catalog.tool(&who.realm, tool.as_str()) else { return Ok(()) };
        let arguments = &call.arguments;
        let context = Context { arguments: Some(arguments), sources: None, trigger: Trigger::Run };
        let decision = shared.gate.decide_call(who, listed.tool.judged(), context);
        let Verdict::Deny(why) = &decision.verdict else { return Ok(()) };
        let policies = &decision.policies;
        shared.gate.note_denied(who, &DeniedCall { tool, arguments, why, policies })?;
        let message = format!("policy refuses `{tool}`, and so an output in its place");
        Err(Refusal::new(RefusalCode::EditRefused, message)
            .hint("the ask is still open: who may call the tool may answer like this"))
    }
}

/// A reply that does not fit leaves its ask open, and says so.
pub(super) fn refuse_reply(ask: &Ask, bad: BadReply) -> Refusal {
    let message = bad.to_string();
    let about = Box::new(ask.clone());
    let (code, misfits) = match bad {
        BadReply::Misfits(misfits) => (RefusalCode::InputMisfit(Some(about)), misfits),
        BadReply::Calls(_) => (RefusalCode::CallsMismatch(about), Vec::new()),
        BadReply::OtherKind { .. } => (RefusalCode::OtherKind(about), Vec::new()),
        BadReply::Action(_) => match ask.body {
            AskBody::Fix { how: CallProgress::Unknown, .. } => {
                (RefusalCode::UnsafeAction(about), Vec::new())
            }
            _ => (RefusalCode::BadAction(about), Vec::new()),
        },
    };
    Refusal::new(code, message).hint("the ask is still open: send another reply").errors(misfits)
}
