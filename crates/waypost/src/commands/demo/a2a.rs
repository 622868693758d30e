//! The story `waypost demo a2a`, two servers and one approval: an agent of a supplier is a tool of
//! a shop. The supplier wants an order approved; the question travels to the shop, and the answer
//! back.

use super::narrator::Narrator;
use super::stage::{Stage, StoryRequest, text_at};
use super::waiting::WaitDeadline;
use super::{listen, mistaken, served_while};
use crate::assembly::{Keys, assemble, refused};
use crate::environment::Environment;
use crate::exit::Result;
use crate::process::folder::TemporaryFolder;
use engine::PlanFile;
use project::config::Config;
use project::folder::Project;
use serde_json::json;
use std::net::SocketAddr;

const SUPPLIER: &str = "[tools]\ndemo = true\n\
                        [a2a]\nname = \"Tea supplier\"\ndescription = \"Takes orders of tea\"\n\
                        expose = [\"take_order\"]\n";

/// Adding stands for a booking.
const TAKE_ORDER: &str = r#"description: Takes an order of 20 boxes of tea
steps:
  - id: book
    type: tool_call
    toolId: "math::add"
    approve: true
    arguments: {a: 20, b: 0}
    saveAs: boxes
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.boxes}}
"#;

const RESTOCK: &str = r#"description: Orders tea from the supplier
steps:
  - id: order
    type: tool_call
    toolId: "supplier.take_order"
    arguments: {}
    saveAs: order
    nextStepId: end
  - {id: end, type: final_response, message: {jsonPath: $.context.order}}
"#;

/// Both bindings ask for it.
const VERSION: &[(&str, &str)] = &[("A2A-Version", "1.0")];

pub(super) async fn tell(teller: Narrator) -> Result<()> {
    let supplier = project(SUPPLIER, "take_order", TAKE_ORDER)?;
    served(supplier, async |supplier: SocketAddr| {
        let card = format!("http://{supplier}");
        let settings = format!("[a2a.agents.supplier]\ncard = \"{card}\"\n");
        served(project(&settings, "restock", RESTOCK)?, async |shop: SocketAddr| {
            let supplier = Stage::new(card.clone(), teller, None)?;
            let shop = Stage::new(format!("http://{shop}"), teller, None)?;
            Scene { supplier, shop }.tell().await
        })
        .await
    })
    .await
}

fn project(settings: &str, plan: &str, text: &str) -> Result<Project> {
    let config = Config::parse("waypost.toml", settings).map_err(mistaken)?;
    let plan = PlanFile {
        file: format!("plans/{plan}.yaml"),
        text: text.to_owned(),
        default_id: plan.into(),
    };
    Ok(Project { config, plans: vec![plan], ..Project::default() })
}

/// Tells a story while a project is served, in a folder that is gone at the end.
async fn served<T>(
    project: Project,
    story: impl AsyncFnOnce(SocketAddr) -> Result<T>,
) -> Result<T> {
    let folder = TemporaryFolder::new()?;
    let (listener, address) = listen().await?;
    let keys = Keys::of(&Environment::bare());
    let assembled = assemble(project, folder.path().to_path_buf(), address, keys).await;
    let assembled = assembled.map_err(refused)?;
    let told = served_while(assembled, listener, story(address)).await;
    drop(folder);
    told
}

/// The two servers.
struct Scene {
    supplier: Stage,
    shop: Stage,
}

impl Scene {
    async fn tell(&self) -> Result<()> {
        let supplier = &self.supplier;
        let shop = &self.shop;
        let text = "A supplier of tea runs a Waypost server of its own. Its card says what other \
                    agents can ask of it, and is signed.";
        let shown = ["/name", "/skills/*/id", "/skills/*/description", "/signatures"];
        supplier
            .tell(text, StoryRequest::get("/.well-known/agent-card.json").showing(&shown))
            .await?;

        shop.say(
            "A shop has written the supplier's address into its settings. Each skill of the \
             supplier is a tool there.",
        )
        .await?;
        self.wait_for_card().await?;
        let shown = ["/state", "/version", "/agent/address", "/tools"];
        shop.ask(StoryRequest::get("/api/v1/upstreams/supplier").showing(&shown)).await?;

        let text = "A plan of the shop orders tea. The supplier wants to have that approved, so \
                    the question reaches the shop, and the run waits.";
        let body = json!({"planId": "restock"});
        let shown = ["/run/status", "/run/asks/*/title", "/run/asks/*/body"];
        let waits =
            shop.tell(text, StoryRequest::post("/api/v1/runs", body).showing(&shown)).await?;
        let ask = text_at(&waits, "/run/asks/0/id")?;

        supplier.say("On the supplier's side it is a task that waits for its client.").await?;
        self.tasks().await?;

        let text = "A user of the shop approves. The answer goes back, and both runs end.";
        let path = format!("/api/v1/asks/{ask}");
        let approved = json!({"action": "accept", "content": {"reply": "approve"}});
        let approved = StoryRequest::post(&path, approved);
        shop.tell(text, approved.showing(&["/run/status", "/run/answer"])).await?;
        self.tasks().await
    }

    /// The tasks of the supplier.
    async fn tasks(&self) -> Result<()> {
        let shown = ["/tasks/*/status/state", "/tasks/*/status/message/parts/0", "/totalSize"];
        let tasks = StoryRequest::get("/a2a/v1/tasks").with(VERSION);
        self.supplier.ask(tasks.showing(&shown)).await.map(drop)
    }

    /// Waits until the shop has read the supplier's card.
    async fn wait_for_card(&self) -> Result<()> {
        let waiting = WaitDeadline::begin("the shop to find the supplier");
        while self.shop.quietly("/api/v1/upstreams/supplier").await?["state"] != "ready" {
            waiting.next().await?;
        }
        Ok(())
    }
}
