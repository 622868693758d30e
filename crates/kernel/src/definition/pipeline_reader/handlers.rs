//! The reasons that a pipeline knows, as they are written, and what is done for each.

use super::Form;
use crate::definition::pipeline::{Handler, HandlerKind, PIPELINES};
use crate::definition::plan::mistake::Mistake;
use crate::definition::plan::read::Spot;
use crate::values::ids::PlanId;
use std::collections::BTreeSet;

const TYPES: &[&str] = &["lookup-enrich", "escalate", "plan: <id>"];

impl Form<'_> {
    pub(super) fn handlers(&mut self, spot: &Spot<'_>) -> Vec<Handler> {
        let list = spot.field("handlers").and_then(|field| self.reader.list(&field));
        let mut handlers = Vec::new();
        let mut reasons = BTreeSet::new();
        for item in list.unwrap_or_default() {
            let Some(handler) = self.handler(&item) else { continue };
            if !reasons.insert(handler.reason.clone()) {
                let what = format!("two handlers have the reason `{}`", handler.reason);
                self.reader.note(&item, Mistake::error(what).hint("keep one of the two"));
            }
            handlers.push(handler);
        }
        handlers
    }

    fn handler(&mut self, spot: &Spot<'_>) -> Option<Handler> {
        if !self.reader.object(spot, "a handler", &["reason", "type", "plan", "params"]) {
            return None;
        }
        let reason = self.reader.need(spot, "reason").and_then(|field| self.reader.text(&field));
        let kind = self.handler_kind(spot);
        Some(Handler { reason: reason?.to_owned(), kind: kind? })
    }

    fn handler_kind(&mut self, spot: &Spot<'_>) -> Option<HandlerKind> {
        match (spot.field("type"), spot.field("plan")) {
            (Some(_), Some(plan)) => {
                let mistake = Mistake::error("`type` and `plan` both say what is done");
                self.reader.note(&plan, mistake.hint("keep one of the two"));
                None
            }
            (None, Some(plan)) => {
                self.no_params(spot, "a plan");
                let id = self.reader.name(&plan)?;
                self.handler_plan(&plan, id)
            }
            (kind, None) => {
                let kind = kind.or_else(|| self.reader.need(spot, "type"))?;
                self.handler_type(spot, &kind)
            }
        }
    }

    fn handler_type(&mut self, spot: &Spot<'_>, kind: &Spot<'_>) -> Option<HandlerKind> {
        let word = self.reader.text(kind)?;
        if let Some(id) = word.strip_prefix("plan:") {
            self.no_params(spot, "a plan");
            return self.handler_plan(kind, id.trim());
        }
        match word {
            "lookup-enrich" => {
                let identifier = self.param(spot, "identifier", "`lookup-enrich`")?.to_owned();
                Some(HandlerKind::LookupEnrich { identifier })
            }
            "escalate" => {
                self.no_params(spot, "`escalate`");
                Some(HandlerKind::Escalate)
            }
            "plan" => {
                let id = self.param(spot, "plan", "`plan`")?;
                self.handler_plan(kind, id)
            }
            _ => {
                self.unknown_type(kind, "handler", TYPES);
                None
            }
        }
    }

    fn handler_plan(&mut self, spot: &Spot<'_>, id: &str) -> Option<HandlerKind> {
        let mistake = if id.is_empty() {
            Mistake::error("no plan is named").hint("write `plan: some/id`")
        } else if id.starts_with(PIPELINES) {
            // It would hand its cases round for ever, or to a pipeline whose bodies are others.
            Mistake::error(format!("`{id}` is a pipeline, not a plan"))
                .hint("name a plan of `plans/`; a pipeline is reached by its route")
        } else {
            return Some(HandlerKind::Plan(PlanId::from(id)));
        };
        self.reader.note(spot, mistake);
        None
    }

    fn no_params(&mut self, spot: &Spot<'_>, of: &str) {
        if let Some(params) = spot.field("params") {
            let mistake = Mistake::error(format!("{of} has no `params`"));
            self.reader.note(&params, mistake.hint("leave them out"));
        }
    }
}
