//! The history of a session: one entry per finished tool call. A frame's path in the tree of forks
//! gives each entry its sort key, and says which entries the frame sees.

use crate::values::datum::{Datum, DatumValue, Origin};
use crate::values::fault::Fault;
use crate::values::ids::{CallId, Millis, RunId, StepId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One finished tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When it finished.
    pub at: Millis,
    /// The step that made it.
    pub step: StepId,
    pub call: CallId,
    pub tool: ToolName,
    pub arguments: Arc<Value>,
    pub result: EntryResult,
}

/// The outcome of a finished call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryResult {
    Output(Arc<Datum>),
    /// Why it failed.
    Error(Fault),
}

impl Entry {
    /// The entry in the shape that pointers and `/sessions` see.
    pub fn datum(&self) -> Datum {
        let from = Origin::Call(self.call);
        let inline = |value: Value| Arc::new(Datum::inline(value, from.clone()));
        let result = match &self.result {
            EntryResult::Output(output) => BTreeMap::from([
                ("status".to_owned(), inline(json!("success"))),
                ("output".to_owned(), output.clone()),
            ]),
            EntryResult::Error(fault) => BTreeMap::from([
                ("status".to_owned(), inline(json!("error"))),
                ("error".to_owned(), inline(json!(fault))),
            ]),
        };
        let request = json!({"toolId": self.tool, "arguments": self.arguments});
        Datum::joined(DatumValue::Object(BTreeMap::from([
            ("timestamp".to_owned(), inline(json!(self.at.rfc3339()))),
            ("toolId".to_owned(), inline(json!(self.tool))),
            ("planStepId".to_owned(), inline(json!(self.step))),
            ("request".to_owned(), inline(request)),
            ("result".to_owned(), Arc::new(Datum::joined(DatumValue::Object(result)))),
        ])))
    }
}

/// The path of a frame in its run: one segment for each fork on the way down. Paths compare as the
/// history orders them: in declared order, whatever finished first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FramePath(pub Vec<PathSegment>);

/// One fork: at which step of the parent, which child, and how children see each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PathSegment {
    /// How many steps the parent had taken.
    pub ordinal: u32,
    /// Which branch or item.
    pub child: u32,
    /// How children see each other and the parent sees them.
    pub mode: ForkMode,
}

/// How the children of a fork see each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForkMode {
    /// Beside each other: never a sibling's; the parent sees them after the join.
    Apart,
    /// One after the other: each sees the ones before it.
    InTurn,
    /// A plan of its own: nothing crosses but input and answer.
    Plan,
}

impl FramePath {
    pub fn child(&self, segment: PathSegment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    /// The sort key of an entry made at this ordinal of this frame, in its run.
    pub fn position(&self, run_no: u32, ordinal: u32) -> Vec<u8> {
        let mut key = Vec::with_capacity(8 + 9 * self.0.len());
        key.extend(run_no.to_be_bytes());
        for segment in &self.0 {
            key.extend(segment.ordinal.to_be_bytes());
            key.extend(segment.child.to_be_bytes());
            key.push(segment.mode as u8);
        }
        key.extend(ordinal.to_be_bytes());
        key
    }

    /// Whether a frame here sees an entry whose sort key is this. `run_no` is the frame's run.
    pub fn sees(&self, run_no: u32, position: &[u8]) -> bool {
        let Some((run, mut rest)) = position.split_first_chunk::<4>() else { return false };
        if u32::from_be_bytes(*run) != run_no {
            return false;
        }
        let mut mine = self.0.as_slice();
        while rest.len() > 4 {
            let Some((segment, tail)) = read_segment(rest) else { return false };
            rest = tail;
            let same = mine.split_first().filter(|(own, _)| own.ordinal == segment.ordinal);
            match same {
                Some((own, below)) if own.child == segment.child => {
                    mine = below;
                    continue;
                }
                Some((own, below)) => {
                    let before = own.mode == ForkMode::InTurn && segment.child < own.child;
                    return before && holds_no_plan(rest) && in_one_plan(below);
                }
                // It forked elsewhere: visible once joined, unless a plan of its own made it.
                None => {
                    let joined = segment.mode != ForkMode::Plan && holds_no_plan(rest);
                    return joined && in_one_plan(mine);
                }
            }
        }
        // Made by this frame or an ancestor: ancestors below a plan boundary only.
        in_one_plan(mine)
    }
}

/// Whether no plan begins on the way down these segments: what is below one sees nothing above.
fn in_one_plan(segments: &[PathSegment]) -> bool {
    segments.iter().all(|segment| segment.mode != ForkMode::Plan)
}

fn read_segment(bytes: &[u8]) -> Option<(PathSegment, &[u8])> {
    let (ordinal, rest) = bytes.split_first_chunk::<4>()?;
    let (child, rest) = rest.split_first_chunk::<4>()?;
    let (mode, rest) = rest.split_first()?;
    let mode = match mode {
        0 => ForkMode::Apart,
        1 => ForkMode::InTurn,
        _ => ForkMode::Plan,
    };
    let segment = PathSegment {
        ordinal: u32::from_be_bytes(*ordinal),
        child: u32::from_be_bytes(*child),
        mode,
    };
    Some((segment, rest))
}

fn holds_no_plan(mut bytes: &[u8]) -> bool {
    while bytes.len() > 4 {
        match read_segment(bytes) {
            Some((segment, rest)) if segment.mode != ForkMode::Plan => bytes = rest,
            _ => return false,
        }
    }
    true
}

/// A finished call in the history: where it stands and in which events its values are.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryRow {
    /// Sort key in the session; newest is largest.
    pub position: Vec<u8>,
    pub run: RunId,
    pub step: StepId,
    pub tool: ToolName,
    /// Whether it succeeded.
    pub success: bool,
    /// The sequence of `call.requested`.
    pub requested_seq: u64,
    /// The sequence of `call.finished` or `call.failed`.
    pub finished_seq: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(segments: &[(u32, u32, ForkMode)]) -> FramePath {
        let segment = |&(ordinal, child, mode)| PathSegment { ordinal, child, mode };
        FramePath(segments.iter().map(segment).collect())
    }

    #[test]
    fn a_frame_sees_its_own_its_ancestors_and_joined_entries() {
        let root = at(&[]);
        let left = at(&[(3, 0, ForkMode::Apart)]);
        let right = at(&[(3, 1, ForkMode::Apart)]);
        assert!(left.sees(1, &root.position(1, 2)));
        assert!(left.sees(1, &left.position(1, 5)));
        assert!(!left.sees(1, &right.position(1, 1)));
        assert!(!left.sees(2, &root.position(1, 2)));
        assert!(root.sees(1, &right.position(1, 1)));
        let later = at(&[(4, 0, ForkMode::Apart)]);
        assert!(later.sees(1, &right.position(1, 1)));
    }

    #[test]
    fn sequential_items_see_earlier_items_and_sub_plans_are_isolated() {
        let second = at(&[(1, 1, ForkMode::InTurn)]);
        assert!(second.sees(1, &at(&[(1, 0, ForkMode::InTurn)]).position(1, 1)));
        assert!(!second.sees(1, &at(&[(1, 2, ForkMode::InTurn)]).position(1, 1)));
        let inner = at(&[(1, 0, ForkMode::Plan)]);
        assert!(!inner.sees(1, &at(&[]).position(1, 0)));
        assert!(!at(&[]).sees(1, &inner.position(1, 0)));
        assert!(inner.sees(1, &inner.position(1, 0)));
        // Not what was joined before it either, nor earlier items of the loop that it stands in.
        let branch = at(&[(1, 0, ForkMode::Apart)]).position(1, 0);
        assert!(at(&[(2, 0, ForkMode::Apart)]).sees(1, &branch));
        assert!(!at(&[(2, 0, ForkMode::Plan)]).sees(1, &branch));
        let item = at(&[(1, 0, ForkMode::InTurn)]).position(1, 0);
        assert!(!at(&[(1, 1, ForkMode::InTurn), (0, 0, ForkMode::Plan)]).sees(1, &item));
    }

    #[test]
    fn positions_sort_in_declared_order() {
        let left = at(&[(1, 0, ForkMode::Apart)]).position(1, 9);
        let right = at(&[(1, 1, ForkMode::Apart)]).position(1, 0);
        let after = at(&[]).position(1, 2);
        assert!(left < right && right < after);
        assert!(after < at(&[]).position(2, 0));
    }
}
