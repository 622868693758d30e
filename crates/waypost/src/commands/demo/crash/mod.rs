//! The story `waypost demo crash`, a payment and a crash: the server is killed while the bank has
//! the payment and has not answered. Where the bank knows idempotency keys the run completes by
//! itself, paid once. Where it does not, the outcome is unknown, and a person is asked.

mod bank;
mod server_process;

use super::narrator::Narrator;
use super::stage::{Stage, StoryRequest, text_at};
use super::waiting::WaitDeadline;
use crate::assembly::NOWHERE;
use crate::exit::{Exit, Failure, Result};
use crate::process::folder::TemporaryFolder;
use bank::{Bank, Moment};
use serde_json::{Value, json};
use server_process::{ServerProcess, write_project};
use std::net::SocketAddr;
use std::path::Path;
use tokio::net::TcpListener;

/// A payment of the story.
struct Order {
    plan: &'static str,
    invoice: &'static str,
    amount: u64,
    /// When the server is killed, as the bank sees it.
    moment: Moment,
}

const WITH_KEY: Order =
    Order { plan: "invoices/pay", invoice: "A-1", amount: 120, moment: Moment::AfterPaying };
const PAID: Order =
    Order { plan: "invoices/transfer", invoice: "A-2", amount: 80, moment: Moment::AfterPaying };
const NOT_PAID: Order =
    Order { plan: "invoices/transfer", invoice: "A-3", amount: 45, moment: Moment::BeforePaying };

/// What a person needs to see of the question.
const QUESTION: [&str; 7] =
    ["/kind", "/title", "/body", "/calls/*/tool", "/calls/*/arguments", "/how", "/actions"];

pub(super) async fn tell(teller: Narrator) -> Result<()> {
    let folder = TemporaryFolder::new()?;
    let listener = TcpListener::bind(NOWHERE).await.map_err(|error| unbound(&error))?;
    let address = listener.local_addr().map_err(|error| unbound(&error))?;
    write_project(folder.path(), address)?;
    let bank = Bank::default();
    let scene = Scene { teller, project: folder.path(), bank: &bank, address };
    tokio::select! {
        told = scene.tell() => told,
        ended = bank.serve(listener) => Err(ended),
    }
}

/// Where it happens.
struct Scene<'a> {
    teller: Narrator,
    project: &'a Path,
    bank: &'a Bank,
    /// Where the bank listens.
    address: SocketAddr,
}

impl Scene<'_> {
    async fn tell(&self) -> Result<()> {
        self.teller
            .say(
                "This server is a process of its own, so that it can be killed. It pays invoices \
                 at a bank, which this command plays and which keeps its own books.",
            )
            .await?;
        let server = self.start().await?;
        let server = self.with_key(server).await?;
        let server = self.without_key(server).await?;
        self.not_paid(server).await?;
        self.teller
            .say(
                "Three payments, three crashes at the worst moment: each invoice is paid once. \
                 Waypost repeats a write only where that is safe, and else asks.",
            )
            .await
    }

    /// The bank knows idempotency keys: a repeat is safe, and Waypost repeats.
    async fn with_key(&self, server: ServerProcess) -> Result<ServerProcess> {
        self.teller.say("First, a request that the bank accepts once for each key.").await?;
        let (server, run) = self.killed_amid(server, &WITH_KEY).await?;
        let stage = self.stage(&server)?;
        reaches(&stage, &run, "completed").await?;
        self.teller
            .say(
                "The journal says that the request was sent and not that it was answered. The \
                 bank knows keys, so the new server sends it again under the same key.",
            )
            .await?;
        let path = format!("/api/v1/runs/{run}");
        stage.ask(StoryRequest::get(&path).showing(&["/run/status", "/run/answer"])).await?;
        self.paid_once(&WITH_KEY).await?;
        Ok(server)
    }

    /// The bank knows no keys, and has paid.
    async fn without_key(&self, server: ServerProcess) -> Result<ServerProcess> {
        self.teller.say("Now a request that the bank would pay every time it comes.").await?;
        let (server, run) = self.killed_amid(server, &PAID).await?;
        let ask = self.asks(&server, &run).await?;
        self.teller.say("The person looks into the bank's books: it was paid.").await?;
        let payment = self.paid_once(&PAID).await?;
        self.teller.say("So the answer is: it happened, and this is its result.").await?;
        self.reply(&server, &ask, json!({"action": "settle", "output": payment})).await?;
        self.paid_once(&PAID).await?;
        Ok(server)
    }

    /// The same, but the bank has not paid: for the server there is no difference.
    async fn not_paid(&self, server: ServerProcess) -> Result<()> {
        self.teller
            .say("The same once more, killed a moment earlier: the bank has not paid yet.")
            .await?;
        let (server, run) = self.killed_amid(server, &NOT_PAID).await?;
        let ask = self.asks(&server, &run).await?;
        self.teller.say("The same question. This time the books say: not paid.").await?;
        self.books(&NOT_PAID).await?;
        self.teller.say("So the answer is: it did not happen, send it.").await?;
        self.reply(&server, &ask, json!({"action": "retry"})).await?;
        self.paid_once(&NOT_PAID).await.map(drop)
    }

    /// Starts a payment, kills the server in the middle of it and starts another one over the same
    /// data. Gives that one, and the run.
    async fn killed_amid(
        &self,
        server: ServerProcess,
        order: &Order,
    ) -> Result<(ServerProcess, String)> {
        let Order { plan, invoice, amount, moment } = *order;
        self.bank.hold_next(moment);
        let body = json!({"planId": plan, "input": {"invoice": invoice, "amount": amount}});
        let asked = StoryRequest::post("/api/v1/runs?wait=0", body);
        let stage = self.stage(&server)?;
        let run = stage.ask(asked.showing(&["/run/id", "/run/status"])).await?;
        let run = text_at(&run, "/run/id")?;
        let key = self.bank.received(invoice).await?;
        let done = match moment {
            Moment::BeforePaying => "has not paid, and has not answered",
            Moment::AfterPaying => "has paid, and has not answered",
        };
        self.teller
            .happened(&format!("the bank has invoice {invoice} under {key}, {done}"))
            .await?;
        let pid = server.pid();
        server.kill();
        self.teller.happened(&format!("kill -9 {pid}: the server is gone")).await?;
        Ok((self.start().await?, run))
    }

    async fn start(&self) -> Result<ServerProcess> {
        let server = ServerProcess::start(self.project).await?;
        let pid = server.pid();
        let url = &server.url;
        self.teller.happened(&format!("server {pid} listens at {url}")).await?;
        Ok(server)
    }

    fn stage(&self, server: &ServerProcess) -> Result<Stage> {
        Stage::new(server.url.clone(), self.teller, None)
    }

    /// Shows the question that the run has for a person, and gives its id.
    async fn asks(&self, server: &ServerProcess, run: &str) -> Result<String> {
        let stage = self.stage(server)?;
        let answer = reaches(&stage, run, "stuck").await?;
        self.teller
            .say(
                "No one can know whether it was paid: the run waits, and the inbox has the \
                 question. Nothing is sent meanwhile.",
            )
            .await?;
        let ask = text_at(&answer, "/run/asks/0/id")?;
        let path = format!("/api/v1/asks/{ask}");
        stage.ask(StoryRequest::get(&path).showing(&QUESTION)).await?;
        Ok(ask)
    }

    async fn reply(&self, server: &ServerProcess, ask: &str, reply: Value) -> Result<()> {
        let path = format!("/api/v1/asks/{ask}");
        let asked = StoryRequest::post(&path, reply).showing(&["/run/status", "/run/answer"]);
        let answer = self.stage(server)?.ask(asked).await?;
        match answer["run"]["status"].as_str() {
            Some("completed") => Ok(()),
            other => Err(wrong(format!("the run is {other:?} after the reply"))),
        }
    }

    /// Shows what the bank knows about an invoice.
    async fn books(&self, order: &Order) -> Result<Value> {
        let stage = Stage::new(format!("http://{}", self.address), self.teller, None)?;
        stage.ask(StoryRequest::get(&format!("/books/{}", order.invoice))).await
    }

    /// Shows the same, and gives the one payment; any other number is a failure of Waypost.
    async fn paid_once(&self, order: &Order) -> Result<Value> {
        let books = self.books(order).await?;
        match books["payments"].as_array().map(Vec::as_slice) {
            Some([payment]) => Ok(payment.clone()),
            _ => Err(wrong(format!("invoice {} is not paid once: {books}", order.invoice))),
        }
    }
}

/// Waits until the run has this status, and gives the server's answer about it.
async fn reaches(stage: &Stage, run: &str, status: &str) -> Result<Value> {
    let path = format!("/api/v1/runs/{run}");
    let waiting = WaitDeadline::begin("the run to resume");
    loop {
        let answer = stage.quietly(&path).await?;
        match text_at(&answer, "/run/status")?.as_str() {
            now if now == status => return Ok(answer),
            "running" => waiting.next().await?,
            other => return Err(wrong(format!("the run is `{other}` instead of `{status}`"))),
        }
    }
}

fn wrong(what: String) -> Failure {
    Failure::new(Exit::Failed, "demo", what)
}

fn unbound(error: &std::io::Error) -> Failure {
    wrong(format!("cannot listen on this machine: {error}"))
}
