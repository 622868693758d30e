//! Tools without a journal: a direct call of one leaves no run behind, unless a person must approve
//! it.

use crate::world::{WAIT_MS, caller, parts};
use engine::{CallReport, Engine, Parts, RefusalKind, ToolSource};
use futures::future::BoxFuture;
use kernel::contracts::policy::{Decision, Request};
use kernel::contracts::{PageRequest, Policy, SessionFilter, Store, Tool};
use kernel::limits::Limits;
use kernel::tool::call::{Call, Caller, Pace, Reach, ToolError, ToolOutput, ToolSpec, Verdict};
use kernel::values::ids::RealmId;
use serde_json::{Value, json};
use std::sync::Arc;

/// Writes, and answers as it is told.
struct Note(Arc<ToolSpec>);

impl Tool for Note {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }
    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            if call.arguments["fail"] == true {
                return Err(ToolError::failed("ToolFailed", "no").content(failed()));
            }
            Ok(ToolOutput::Value(call.arguments["answer"].clone()))
        })
    }
}

fn failed() -> Value {
    json!({"content": [{"type": "text", "text": "no"}], "isError": true})
}

/// Asks where the arguments say so.
struct Careful;

impl Policy for Careful {
    fn decide(&self, request: &Request<'_>) -> Decision {
        match request.context.arguments {
            Some(arguments) if arguments["ask"] == true => {
                Verdict::Ask("it says so".to_owned()).into()
            }
            _ => Decision::allow(),
        }
    }
}

async fn sessions(store: &Arc<dyn Store>) -> usize {
    let realm = RealmId::from("default");
    let page = PageRequest { cursor: None, limit: 10 };
    store.sessions(&realm, &SessionFilter::default(), &page).await.unwrap().items.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_call_of_an_unrecorded_tool_leaves_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let note: Arc<dyn Tool> = Arc::new(Note(Arc::new(ToolSpec {
        description: String::new(),
        output_schema: Some(Arc::new(json!({"type": "string"}))),
        reach: Reach::Writes,
        pace: Pace::Slow,
        unrecorded: true,
        ..testkit::specs::tool("note")
    })));
    let tools = vec![ToolSource::new("us", vec![note])];
    let brought = parts(folder.path(), Limits::default(), tools);
    let store = brought.store.clone();
    let engine = Engine::start(Parts { policy: Arc::new(Careful), ..brought }).unwrap();
    let call = async |arguments: Value| {
        engine.tools().call(&caller(), &"note".into(), arguments, WAIT_MS).await
    };
    let done = call(json!({"answer": "kept"})).await;
    assert_eq!(done, Ok(CallReport::Done(json!("kept"))));
    let refused = call(json!({"fail": true})).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code.name()), (RefusalKind::Upstream, "tool_failed"));
    assert_eq!(refused.code.detail(), Some(json!({"result": failed()})));
    // It wrote all the same: that is not passed off as undone.
    let refused = call(json!({"answer": 1})).await.unwrap_err();
    assert!(refused.message.contains("the call happened"), "{}", refused.message);
    assert_eq!(sessions(&store).await, 0);
    let asked = call(json!({"answer": "kept", "ask": true})).await.unwrap();
    assert!(matches!(asked, CallReport::Pending(_)), "{asked:?}");
    assert_eq!(sessions(&store).await, 1);
}
