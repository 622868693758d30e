//! Applies facts of frames: fork, end, join.

use super::apply::{item_context, new_frame};
use super::frame::{BranchResult, Join, JoinKind, LoopState};
use super::{Context, Frame, FrameKind, FrameState, Session};
use crate::event::{BranchStart, LoopStart, PlanEntry};
use crate::planted::{Switch, is_on};
use crate::values::datum::{BlobRef, Datum, DatumValue, Origin};
use crate::values::fault::Fault;
use crate::values::history::{ForkMode, PathSegment};
use crate::values::ids::{FrameId, StepId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Session {
    pub(super) fn start_branches(
        &mut self,
        parent: FrameId,
        step: &StepId,
        branches: &[BranchStart],
        next: Option<StepId>,
    ) {
        self.forget_ask_of(parent);
        self.clear_ready(parent);
        for (index, branch) in branches.iter().enumerate() {
            let kind = FrameKind::Branch { index: index as u32 };
            self.add_child(parent, branch.frame, kind, ForkMode::Apart);
            self.enter(branch.frame, branch.start.clone());
        }
        let join = Join {
            step: step.clone(),
            next,
            kind: JoinKind::Branches(branches.iter().map(|branch| branch.id.clone()).collect()),
            live: branches.iter().map(|branch| branch.frame).collect(),
            left: BTreeMap::new(),
        };
        self.with_frame(parent, |frame| frame.state = FrameState::Joining(Box::new(join)));
        self.look_at_join(parent);
    }

    pub(super) fn start_loop(&mut self, start: &LoopStart) {
        self.forget_ask_of(start.frame);
        let state = LoopState {
            items: start.items.clone(),
            count: start.count,
            alias: start.alias.clone(),
            concurrency: start.concurrency,
            collect: start.collect,
            start: start.start.clone(),
            started: 0,
            ended: 0,
            results: BTreeMap::new(),
        };
        let join = Join {
            step: start.step.clone(),
            next: start.next.clone(),
            kind: JoinKind::Loop(state),
            live: BTreeSet::new(),
            left: BTreeMap::new(),
        };
        self.with_frame(start.frame, |frame| frame.state = FrameState::Joining(Box::new(join)));
        self.look_at_join(start.frame);
    }

    pub(super) fn start_item(
        &mut self,
        parent: FrameId,
        child: FrameId,
        index: u32,
        item: Arc<Datum>,
    ) {
        let Some(Join { kind: JoinKind::Loop(state), live, .. }) = self.join_mut(parent) else {
            return;
        };
        state.started += 1;
        live.insert(child);
        let context = item_context(&state.alias, item, index);
        let mode = if state.concurrency == 1 { ForkMode::InTurn } else { ForkMode::Apart };
        let kind = FrameKind::Item { index, collect: state.collect };
        let start = state.start.clone();
        self.add_child(parent, child, kind, mode);
        self.with_frame(child, |frame| frame.context = context);
        self.enter(child, start);
        self.look_at_join(parent);
    }

    pub(super) fn fail_item(&mut self, id: FrameId, fault: &Fault) {
        self.forget_call_of(id);
        self.forget_ask_of(id);
        self.drop_agent(id);
        self.clear_ready(id);
        let Some(frame) = self.frames.remove(&id) else { return };
        let (Some(parent), FrameKind::Item { index, .. }) = (frame.parent, &frame.kind) else {
            return;
        };
        let index = *index;
        // What it wrote is void; what it called is history all the same.
        let remains = BranchResult { context: Context::new(), ..frame.remains(None) };
        let error = Arc::new(Datum::inline(json!({"error": fault}), Origin::Join));
        if let Some(join) = self.join_mut(parent) {
            join.live.remove(&id);
        }
        self.end_item(parent, index, error, remains);
        self.look_at_join(parent);
    }

    /// An iteration is over, with this result. Where they run in turn, the next one sees what it
    /// leaves.
    fn end_item(&mut self, parent: FrameId, index: u32, result: Arc<Datum>, remains: BranchResult) {
        let Some(join) = self.join_mut(parent) else { return };
        let JoinKind::Loop(state) = &mut join.kind else { return };
        state.ended += 1;
        state.results.insert(index, result);
        if state.concurrency == 1 {
            self.with_frame(parent, |frame| frame.merge(remains));
        } else {
            let position = position(&join.left, index);
            join.left.insert(position, remains);
        }
    }

    pub(super) fn end_frame(&mut self, id: FrameId) {
        self.clear_ready(id);
        let Some(frame) = self.frames.remove(&id) else { return };
        let Some(parent) = frame.parent else { return };
        let Some(join) = self.join_mut(parent) else { return };
        join.live.remove(&id);
        match (&join.kind, &frame.kind) {
            (JoinKind::Branches(_), FrameKind::Branch { index }) => {
                let position = position(&join.left, *index);
                join.left.insert(position, frame.remains(None));
            }
            (JoinKind::Loop(state), FrameKind::Item { index, .. }) => {
                let index = *index;
                let null = || Arc::new(Datum::inline(Value::Null, Origin::Join));
                let result = frame.last_output.clone().unwrap_or_else(null);
                let remains = frame.remains(Some(&state.alias));
                self.end_item(parent, index, result, remains);
            }
            _ => {}
        }
        self.look_at_join(parent);
    }

    pub(super) fn cancel_frame(&mut self, id: FrameId) {
        self.forget_call_of(id);
        self.forget_ask_of(id);
        self.drop_agent(id);
        self.clear_ready(id);
        self.wake_above(id);
        let Some(frame) = self.frames.remove(&id) else { return };
        if let Some(join) = frame.parent.and_then(|parent| self.join_mut(parent)) {
            join.live.remove(&id);
        }
        if let (Some(_), Some(failed)) = (frame.corrects, frame.parent) {
            self.drop_correction(failed);
        }
    }

    pub(super) fn join_frames(&mut self, id: FrameId, blob: Option<&BlobRef>) {
        let Some(frame) = self.frames.get_mut(&id) else { return };
        let FrameState::Joining(join) = std::mem::replace(&mut frame.state, FrameState::AtStep)
        else {
            return;
        };
        let held = match blob {
            Some(blob) => DatumValue::Blob(blob.clone()),
            None => join.value(),
        };
        let Join { step, next, left, .. } = *join;
        for remains in left.into_values() {
            frame.merge(remains);
        }
        let joined = Arc::new(Datum::joined(held));
        frame.last_output = Some(joined.clone());
        frame.context.insert(step.as_str().into(), joined);
        self.enter(id, next);
    }

    pub(super) fn enter_plan(&mut self, entry: &PlanEntry) {
        self.forget_ask_of(entry.frame);
        let depth = self.plan_depth(entry.frame) + 1;
        let kind = FrameKind::SubPlan { input: entry.input.clone(), depth };
        self.add_child(entry.frame, entry.child, kind, ForkMode::Plan);
        self.with_frame(entry.child, |frame| frame.plan = entry.plan.clone());
        self.with_frame(entry.frame, |frame| {
            frame.state = FrameState::InPlan {
                child: entry.child,
                save_as: entry.save_as.clone(),
                next: entry.next.clone(),
            };
        });
        self.clear_ready(entry.frame);
        self.enter(entry.child, Some(entry.start.clone()));
    }

    pub(super) fn return_plan(&mut self, parent: FrameId, child: FrameId, answer: &Arc<Datum>) {
        self.clear_ready(child);
        self.frames.remove(&child);
        let Some(frame) = self.frames.get_mut(&parent) else { return };
        let FrameState::InPlan { save_as, next, .. } =
            std::mem::replace(&mut frame.state, FrameState::AtStep)
        else {
            return;
        };
        frame.context.insert(save_as, answer.clone());
        frame.last_output = Some(answer.clone());
        self.enter(parent, next);
    }

    pub(super) fn give_answer(&mut self, id: FrameId, answer: &Arc<Datum>) {
        self.forget_ask_of(id);
        let Some(frame) = self.frames.get_mut(&id) else { return };
        frame.enter(None);
        let answered = self.frames.get(&id).map_or(id, |frame| self.plan_frame(frame));
        self.clear_ready(id);
        self.with_frame(answered, |frame| {
            frame.answer = Some(answer.clone());
            frame.context.insert("finalResponse".into(), answer.clone());
        });
        self.set_ready(answered);
    }

    /// How deep plans called plans, here.
    pub fn plan_depth(&self, frame: FrameId) -> u32 {
        let mut at = self.frames.get(&frame);
        while let Some(frame) = at {
            if let FrameKind::SubPlan { depth, .. } = frame.kind {
                return depth;
            }
            at = frame.parent.and_then(|parent| self.frames.get(&parent));
        }
        0
    }

    pub(super) fn add_child(
        &mut self,
        parent: FrameId,
        id: FrameId,
        kind: FrameKind,
        mode: ForkMode,
    ) {
        let Some(above) = self.frames.get(&parent) else { return };
        let child = match kind {
            FrameKind::Branch { index }
            | FrameKind::Item { index, .. }
            | FrameKind::Call { index, .. } => index,
            FrameKind::Root | FrameKind::SubPlan { .. } => 0,
        };
        let path = above.path.child(PathSegment { ordinal: above.ordinal, child, mode });
        let frame = new_frame(id, above.run, &above.plan, kind);
        self.add_frame(Frame { parent: Some(parent), path, ..frame });
    }

    fn join_mut(&mut self, frame: FrameId) -> Option<&mut Join> {
        match &mut self.frames.get_mut(&frame)?.state {
            FrameState::Joining(join) => Some(join),
            _ => None,
        }
    }

    /// A frame that joins is ready when it can start an item or when all have ended, and only then:
    /// a run whose children all wait for people must count as waiting.
    fn look_at_join(&mut self, parent: FrameId) {
        let Some(join) = self.join_mut(parent) else { return };
        let live = join.live.len() as u32;
        let ready = match &join.kind {
            JoinKind::Branches(_) => live == 0,
            JoinKind::Loop(state) => {
                state.ended == state.count
                    || (state.started < state.count && live < state.concurrency)
            }
        };
        if ready {
            self.set_ready(parent);
        } else {
            self.clear_ready(parent);
        }
    }
}

/// Where a child's remains are kept until the join: by declared order, whatever ended first.
fn position(left: &BTreeMap<u32, BranchResult>, index: u32) -> u32 {
    if is_on(Switch::MergeByFinishOrder) { left.len() as u32 } else { index }
}
