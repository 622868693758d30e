//! What gRPC costs for a message of A2A: a server of `tonic` that parses it and answers with a
//! completed task, once a commit for it is durable. It checks nothing.

use std::convert::Infallible;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use prost_types::Timestamp;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::commits::Commits;
use crate::messages::{
    Artifact, Message, STATE_COMPLETED, SendRequest, SendResponse, Task, TaskStatus,
};
use crate::{Result, SERVICE};

/// As long as a real time, and as cheap as none.
const AT: Timestamp = Timestamp { seconds: 1_767_225_600, nanos: 0 };

/// Names its address on stdout and serves until its stdin ends; commits go into this folder.
pub async fn serve(folder: &Path) -> Result<()> {
    // The writer ends with the process.
    let (commits, _) = Commits::start(&folder.join("bare.db"))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    std::thread::spawn(|| {
        // An error says the same as the end of the input: no one is there any more.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder().add_service(Bare(commits)).serve_with_incoming(incoming).await?;
    Ok(())
}

/// The service as a server of `tonic` has it.
#[derive(Clone, Debug)]
struct Bare(Commits);

impl NamedService for Bare {
    const NAME: &'static str = SERVICE;
}

type Answered = std::result::Result<http::Response<Body>, Infallible>;

impl Service<http::Request<Body>> for Bare {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Answered> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answering = Answering(self.0.clone());
        Box::pin(async move {
            let codec = ProstCodec::<SendResponse, SendRequest>::default();
            Ok(tonic::server::Grpc::new(codec).unary(answering, request).await)
        })
    }
}

type Committed = std::result::Result<Response<SendResponse>, Status>;

/// Its one operation.
#[derive(Debug)]
struct Answering(Commits);

impl UnaryService<SendRequest> for Answering {
    type Response = SendResponse;
    type Future = Pin<Box<dyn Future<Output = Committed> + Send>>;

    fn call(&mut self, request: Request<SendRequest>) -> Self::Future {
        let commits = self.0.clone();
        Box::pin(async move {
            let message = request.into_inner().message;
            let message = message.ok_or_else(|| Status::invalid_argument("no message"))?;
            let task = task(message);
            let session = task.context_id.replacen("ctx", "ses", 1);
            let committed = commits.commit(task.id.clone(), session).await;
            committed.map_err(|why| Status::internal(why.to_string()))?;
            Ok(Response::new(SendResponse { task: Some(task) }))
        })
    }
}

fn task(message: Message) -> Task {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Task {
        id: format!("run_{number:032x}"),
        context_id: format!("ctx_{number:032x}"),
        status: Some(TaskStatus { state: STATE_COMPLETED, timestamp: Some(AT) }),
        artifacts: vec![Artifact {
            artifact_id: "answer".to_owned(),
            parts: message.parts.clone(),
        }],
        history: vec![message],
    }
}
