//! Blobs that calls put and read: large outputs, what is held while a call runs, and what goes.

use crate::world::{LOOK, LOOKS_MAX, WAIT_MS, caller, files, parts};
use engine::{CallReport, Engine, RunRequest, RunSession, RunTarget, ToolSource};
use futures::future::{BoxFuture, ready};
use futures::stream::{self, StreamExt, TryStreamExt};
use kernel::contracts::Tool;
use kernel::limits::Limits;
use kernel::tool::call::{BlobError, Call, Caller, Pieces, Reach, ToolError, ToolOutput, ToolSpec};
use kernel::values::datum::BlobRef;
use kernel::values::ids::{ContentHash, PlanId};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

const PIECE_BYTES: usize = 64 * 1024;
const BEFORE: &[u8] = b"{\"a\":\"";
const AFTER: &[u8] = b"\"}";

const LOOK_INSIDE: &str = "planId: look\nsteps: [{id: make, type: tool_call, toolId: 'blob::make', \
    arguments: {pieces: 1}, saveAs: out, nextStepId: end}, {id: end, type: final_response, \
    message: {jsonPath: $.context.out.a, default: opaque}}]";

/// Puts a blob of as many pieces as its argument says, or reads one.
struct Maker {
    spec: Arc<ToolSpec>,
    folder: PathBuf,
    /// One for each blob that was put.
    put: Arc<Semaphore>,
    /// A call that shall fail waits for one.
    may_fail: Arc<Semaphore>,
}

impl Maker {
    async fn make(&self, call: &Call) -> Result<ToolOutput, ToolError> {
        let pieces = call.arguments["pieces"].as_u64().unwrap();
        let put = call.context.blobs.put(text(pieces, &self.folder)).await;
        self.put.add_permits(1);
        if call.arguments["fail"] == json!(true) {
            self.may_fail.acquire().await.unwrap().forget();
            return Err(ToolError::failed("Boom", "as told"));
        }
        Ok(match put {
            Ok(blob) => ToolOutput::Blob(blob),
            Err(error) => ToolOutput::Value(json!(error.to_string())),
        })
    }

    /// The first bytes of a blob.
    async fn read(&self, call: &Call, hash: &str) -> Result<String, BlobError> {
        let blob = BlobRef { hash: ContentHash::from(hash), bytes: 0 };
        let pieces = call.context.blobs.get(&blob, 0..8).await?;
        let read: Vec<Vec<u8>> = pieces.try_collect().await.unwrap();
        Ok(String::from_utf8(read.concat()).unwrap())
    }
}

/// `{"a": "xx.."}` of so many pieces. When one is asked for, those before it are on the disk: none
/// of them waits in memory.
fn text(pieces: u64, folder: &Path) -> Pieces<'static> {
    let drafts = folder.join("blobs/.drafts");
    let piece = move |number: u64| {
        let written: u64 = std::fs::read_dir(&drafts)
            .unwrap()
            .map(|draft| draft.unwrap().metadata().unwrap().len())
            .sum();
        assert_eq!(written, BEFORE.len() as u64 + number * PIECE_BYTES as u64);
        Ok(vec![b'x'; PIECE_BYTES])
    };
    let before = stream::iter([Ok(BEFORE.to_vec())]);
    let after = stream::iter([Ok(AFTER.to_vec())]);
    before.chain(stream::iter(0..pieces).map(piece)).chain(after).boxed()
}

impl Tool for Maker {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }
    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let named = call.arguments["read"].as_str().and_then(|uri| uri.strip_prefix("blob://"));
            let Some(hash) = named.or(call.arguments["guess"].as_str()) else {
                return self.make(call).await;
            };
            let read = self.read(call, hash).await;
            Ok(ToolOutput::Value(json!(read.unwrap_or_else(|error| error.to_string()))))
        })
    }
}

struct House {
    engine: Engine,
    put: Arc<Semaphore>,
    may_fail: Arc<Semaphore>,
}

impl House {
    fn open(folder: &Path, limits: Limits) -> Self {
        let put = Arc::new(Semaphore::new(0));
        let may_fail = Arc::new(Semaphore::new(0));
        let spec = ToolSpec { reach: Reach::Writes, ..testkit::specs::tool("blob::make") };
        let maker = Maker {
            spec: Arc::new(spec),
            folder: folder.to_owned(),
            put: put.clone(),
            may_fail: may_fail.clone(),
        };
        let tools = vec![ToolSource::new("the test", vec![Arc::new(maker) as Arc<dyn Tool>])];
        let limits = Limits { call_timeout_ms: WAIT_MS, ..limits };
        let engine = Engine::start(parts(folder, limits, tools)).unwrap();
        engine.catalog().load_plans(&caller().realm, files(&[LOOK_INSIDE])).unwrap();
        Self { engine, put, may_fail }
    }

    /// The outcome of a call.
    async fn call(&self, arguments: Value) -> String {
        let tool = "blob::make".into();
        let called = self.engine.tools().call(&caller(), &tool, arguments, WAIT_MS).await;
        match called.unwrap() {
            CallReport::Done(Value::String(output)) => output,
            other => panic!("{other:?}"),
        }
    }

    async fn has(&self, hash: &ContentHash) -> bool {
        self.engine.sessions().open_blob(&caller(), hash).await.is_ok()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_of_64_mib_is_never_held_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), Limits::default());
    let uri = house.call(json!({"pieces": 1_024})).await;
    let hash = ContentHash::from(uri.strip_prefix("blob://").unwrap());
    let open = house.engine.sessions().open_blob(&caller(), &hash).await.unwrap();
    let bytes = (BEFORE.len() + 1_024 * PIECE_BYTES + AFTER.len()) as u64;
    assert_eq!(open.bytes, bytes);
    // To its end, where its hash is looked at.
    let read = open.pieces.try_fold(0, |read, piece| ready(Ok(read + piece.len() as u64)));
    assert_eq!(read.await, Ok(bytes));
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_of_a_call_stay_while_it_runs_and_are_swept_if_unnamed() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { blob_grace_ms: 1, ..Limits::default() };
    let house = House::open(folder.path(), limits);
    let piece = "x".repeat(PIECE_BYTES);
    let hash = ContentHash::of(&[BEFORE, piece.as_bytes(), AFTER].concat());
    let arguments = json!({"pieces": 1, "fail": true});
    let tool = "blob::make".into();
    house.engine.tools().call(&caller(), &tool, arguments, 0).await.unwrap();
    let put = tokio::time::timeout(Duration::from_millis(WAIT_MS), house.put.acquire());
    put.await.unwrap().unwrap().forget();
    tokio::time::sleep(LOOK).await;
    house.engine.admin().prune_expired().await;
    assert!(house.has(&hash).await, "the call that put it still runs");
    house.may_fail.add_permits(1);
    for _ in 0..LOOKS_MAX {
        house.engine.admin().prune_expired().await;
        if !house.has(&hash).await {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
    panic!("the call is over, and what it put is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_reads_only_blobs_in_its_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), Limits::default());
    let uri = house.call(json!({"pieces": 1})).await;
    assert_eq!(house.call(json!({"read": uri})).await, "{\"a\":\"xx");
    let hash = uri.strip_prefix("blob://").unwrap();
    let refused = house.call(json!({"guess": hash})).await;
    assert_eq!(refused, format!("the call was not given blob `{hash}`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_of_a_call_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { blob_bytes_max: 100_000, ..Limits::default() };
    let house = House::open(folder.path(), limits);
    let refused = house.call(json!({"pieces": 2})).await;
    assert_eq!(refused, "it has more than 100000 bytes");
    assert!(house.call(json!({"pieces": 1})).await.starts_with("blob://"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_too_large_for_a_value_is_returned_as_its_uri() {
    for (bytes_max, answer) in [(1_000_000, "blob://"), (10_000, "opaque")] {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { blob_value_bytes_max: bytes_max, ..Limits::default() };
        let house = House::open(folder.path(), limits);
        let request = RunRequest {
            target: RunTarget::Plan(PlanId::from("look")),
            input: json!({}),
            session: RunSession::New,
            once: None,
            about: Default::default(),
        };
        let report = house.engine.runs().start(&caller(), request, WAIT_MS).await.unwrap();
        let given = report.run.answer.unwrap();
        assert!(given.as_str().is_some_and(|given| given.starts_with(answer)), "{given}");
    }
}
