//! `publish_event`: publishes an event. No one is called: the journal holds the event, and
//! the outbox finds it there.

use super::{At, Decided};
use crate::conversation::published::Published;
use crate::definition::plan::{Expr, Step};
use crate::event::Fact;
use crate::expression::pointer::Stop;
use crate::values::datum::larger_than;
use crate::values::fault::Fault;
use crate::values::ids::StepId;
use serde_json::Value;
use std::sync::Arc;

impl At<'_> {
    pub(super) fn publish(&self, step: &Step, event: &Expr, next: Option<&StepId>) -> Decided {
        let event = self.view().required_opened(event, "event")?;
        self.check_event(&event).map_err(Stop::Fault)?;
        // A plan that says nothing of it publishes as the one that it works for.
        let source = self.plan.event_source.as_ref().or(self.closure.main.event_source.as_ref());
        Ok(Some(Fact::EventPublished {
            frame: self.frame.id,
            step: step.id.clone(),
            published: Published { source: source.cloned(), event: Arc::new(event) },
            next: self.after(&step.id, next),
        }))
    }

    fn check_event(&self, event: &Value) -> Result<(), Fault> {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        if !event.is_object() || kind.is_empty() {
            let message = "what is published must be an object whose `type` is a text";
            let hint = "mend what `event` points to, then retry";
            return Err(Fault::new("InvalidEvent", message).hint(hint));
        }
        // It stays in the journal, so that it goes out only once it is durable, and then for sure.
        let max = self.env.limits.event_bytes_max;
        if !larger_than(event, max) {
            return Ok(());
        }
        let bytes = event.to_string().len();
        if bytes > max {
            let message = format!("the event has {bytes} bytes, more than {max}");
            return Err(Fault::new("EventTooLarge", message).hint("publish less"));
        }
        Ok(())
    }
}
