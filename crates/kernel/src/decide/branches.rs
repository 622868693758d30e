//! `parallel_branch` and `loop_over_items`: fork, start items, join.

use super::{DecideResult, FrameContext};
use crate::definition::plan::{Branch, Loop, Step};
use crate::event::{BranchStart, Fact, LoopStart};
use crate::expression::pointer::{Fetch, Stop};
use crate::session::frame::LoopState;
use crate::session::{Join, JoinKind};
use crate::values::datum::{Datum, DatumValue, Origin};
use crate::values::fault::Fault;
use crate::values::ids::StepId;
use serde_json::Value;
use std::sync::Arc;

impl FrameContext<'_> {
    pub(super) fn parallel(
        &self,
        step: &Step,
        branches: &[Branch],
        next: Option<&StepId>,
    ) -> DecideResult {
        if let Some(limit) = self.too_many_frames(branches.len()) {
            return Ok(Some(limit));
        }
        let start = |(index, branch): (usize, &Branch)| BranchStart {
            frame: self.new_frame_id(index),
            id: branch.id.clone(),
            start: branch.steps.first().map(|step| step.id.clone()),
        };
        Ok(Some(Fact::BranchesStarted {
            frame: self.frame.id,
            step: step.id.clone(),
            branches: branches.iter().enumerate().map(start).collect(),
            next: self.after(&step.id, next),
        }))
    }

    pub(super) fn looping(&self, step: &Step, looping: &Loop) -> DecideResult {
        let items = self.view().required_opened(&looping.collection, "collectionPath")?;
        let Value::Array(elements) = &items else {
            let message = format!("`collectionPath` of `{}` is not an array", step.id);
            let hint = "point it at an array, such as {jsonPath: $.promptInput.items}";
            return Err(Stop::Fault(Fault::new("LoopError", message).hint(hint)));
        };
        let count = elements.len();
        let max = self.env.limits.loop_items_max;
        if count > max {
            let message = format!("the loop has {count} items, more than {max}");
            return Ok(Some(self.limit("loop_items_max", message)));
        }
        Ok(Some(Fact::LoopStarted(Box::new(LoopStart {
            frame: self.frame.id,
            step: step.id.clone(),
            count: count as u32,
            items: Arc::new(Datum::inline(items, Origin::Plan)),
            alias: looping.alias.clone(),
            concurrency: looping.concurrency,
            collect: looping.collect,
            start: looping.body.first().map(|step| step.id.clone()),
            next: self.after(&step.id, looping.next.as_ref()),
        }))))
    }

    pub(super) fn joining(&self, join: &Join) -> DecideResult {
        let joined = || {
            Some(Fact::FramesJoined { frame: self.frame.id, step: join.step.clone(), blob: None })
        };
        match &join.kind {
            JoinKind::Branches(_) => Ok(join.live.is_empty().then(joined).flatten()),
            JoinKind::Loop(state) if state.ended == state.count => Ok(joined()),
            JoinKind::Loop(state) => {
                if state.started == state.count || join.live.len() as u32 >= state.concurrency {
                    return Ok(None);
                }
                if let Some(limit) = self.too_many_frames(1) {
                    return Ok(Some(limit));
                }
                Ok(Some(Fact::ItemStarted {
                    frame: self.frame.id,
                    child: self.new_frame_id(0),
                    index: state.started,
                    item: self.item(state)?,
                }))
            }
        }
    }

    fn item(&self, state: &LoopState) -> Result<Arc<Datum>, Stop> {
        let index = state.started as usize;
        let inline = |value: &Value| {
            let value = value.get(index).cloned().unwrap_or_default();
            Arc::new(Datum::inline(value, state.items.from.clone()))
        };
        match &state.items.held {
            DatumValue::Value(value) => Ok(inline(value)),
            DatumValue::Blob(blob) => match self.env.fetched.blobs.get(&blob.hash) {
                Some(value) => Ok(inline(value)),
                None => Err(Stop::Want(Fetch::Blob(blob.hash.clone()))),
            },
            DatumValue::Object(_) | DatumValue::Array(_) => Ok(inline(&state.items.to_value())),
        }
    }
}
