//! Plans and agents of every realm that is configured: what is stored for it is there again after a
//! restart, and the project's files are its too, as far as they fit there.

use crate::api_keys::{ADMIN, get, send};
use crate::house::{ADDRESS, House, approval, assembled, demo_with_agents, refused, setup};
use axum::http::Method;
use engine::{PlanFile, ProjectFiles};
use project::config::Config;
use project::folder::Project;
use serde_json::json;
use server::{AssembleError, ProjectPart, Setup, assemble};

const ACME: &str = "[realms.acme]\nmax_find_limit = 100\n";
const PLAN: &str = "/api/v1/plans/it%2Fapproval";
const AGENT: &str = "/api/v1/agents/helper";

/// The demo on a server that asks for credentials, with these tables in its settings.
fn project(tables: &str) -> Project {
    let settings = format!("[server]\nhosts = [\"wp.example.com\"]\n{tables}");
    let config = Config::parse("waypost.toml", &settings).unwrap();
    Project { config, ..Project::demo() }
}

fn in_acme(path: &str) -> String {
    format!("{path}?realm=acme")
}

#[tokio::test]
async fn definitions_of_a_realm_outlast_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let (house, stopper) = House::over(|| project(ACME), &data, Some(ADMIN)).await;
    let helper = json!({"name": "Helper", "llmConfigRef": "openai"});
    for (path, body) in [(PLAN, approval()), (AGENT, helper)] {
        let stored = send(&house, ADMIN, Method::PUT, &in_acme(path), body).await;
        assert_eq!(stored.status, 201, "{stored:?}");
    }
    stopper.stop().await;
    drop(house);

    // Without its table there is no such realm, and what is stored for it waits.
    let (house, stopper) = House::over(|| project(""), &data, Some(ADMIN)).await;
    for path in [PLAN, AGENT] {
        let entered = get(&house, ADMIN, &in_acme(path)).await;
        assert_eq!(entered.refusal(), refused(403, "realm_not_allowed", &[]), "{path}");
        assert_eq!(get(&house, ADMIN, path).await.status, 404, "{path}");
    }
    stopper.stop().await;
    drop(house);

    let (house, stopper) = House::over(|| project(ACME), &data, Some(ADMIN)).await;
    for path in [PLAN, AGENT] {
        let shown = get(&house, ADMIN, &in_acme(path)).await;
        assert_eq!((shown.status, shown.header("etag")), (200, "\"1\""), "{shown:?}");
        assert_eq!(get(&house, ADMIN, path).await.status, 404, "{path}");
    }
    let body = json!({"planId": "it/approval"});
    let run = send(&house, ADMIN, Method::POST, "/api/v1/runs?realm=acme", body).await;
    assert!(run.status == 200 || run.status == 202, "{run:?}");
    stopper.stop().await;
}

/// The demo with a plan that calls a tool of another server, and one that names that plan.
fn with_far() -> Project {
    let server = "[mcp.servers.far]\nurl = \"http://127.0.0.1:1/mcp\"\n";
    let mut project = project(&format!("{ACME}{server}"));
    for (name, step) in
        [("far", "type: tool_call, toolId: far.echo"), ("near", "type: plan, planId: it/far")]
    {
        project.plans.push(PlanFile {
            file: format!("plans/it/{name}.yaml"),
            text: format!(
                "planId: it/{name}\nsteps: [{{id: a, {step}, arguments: {{}}, nextStepId: end}}, \
                 {{id: end, type: final_response, message: ok}}]\n"
            ),
            default_id: format!("it/{name}").into(),
        });
    }
    project
}

#[tokio::test]
async fn files_are_every_realms_as_far_as_they_fit() {
    let data = tempfile::tempdir().unwrap();
    let server = assembled(with_far(), &data, ADDRESS.parse().unwrap(), Some(ADMIN)).await;
    let told: Vec<String> = server.warnings.iter().map(ToString::to_string).collect();
    let left_out: Vec<&String> = told.iter().filter(|one| one.contains("`acme`")).collect();
    assert_eq!(left_out.len(), 2, "{told:?}");
    for (told, file) in left_out.into_iter().zip(["plans/it/far.yaml:", "plans/it/near.yaml:"]) {
        assert!(told.starts_with(file), "{told}");
        assert!(told.contains("warning: left out in the realm `acme`: "), "{told}");
    }
    server.stopper().stop().await;
    drop(server);

    let (house, stopper) = House::over(with_far, &data, Some(ADMIN)).await;
    for (id, there) in [("it%2Ffar", 404), ("it%2Fnear", 404), ("interaction%3A%3Agreeting", 200)] {
        let path = format!("/api/v1/plans/{id}");
        assert_eq!(get(&house, ADMIN, &path).await.status, 200, "{id}");
        assert_eq!(get(&house, ADMIN, &in_acme(&path)).await.status, there, "{id}");
    }
    stopper.stop().await;
}

/// A plan of one step that answers with this.
fn saying(file: &str, id: &str, message: &str) -> PlanFile {
    let text =
        format!("planId: {id}\nsteps: [{{id: end, type: final_response, message: {message}}}]");
    PlanFile { file: file.to_owned(), text, default_id: id.into() }
}

/// The demo with a plan, which the realm `acme` has otherwise, beside one of its own.
fn with_own() -> Project {
    let mut project = project(ACME);
    project.plans.push(saying("plans/it/word.yaml", "it/word", "all"));
    let own = ProjectFiles {
        plans: vec![
            saying("realms/acme/plans/it/word.yaml", "it/word", "acme"),
            saying("realms/acme/plans/it/own.yaml", "it/own", "own"),
        ],
        ..ProjectFiles::default()
    };
    project.of_realms.insert("acme".into(), own);
    project
}

#[tokio::test]
async fn files_of_a_realm_are_there_alone_and_take_precedence() {
    let house = House::build(with_own(), Some(ADMIN)).await;
    let said = async |realm: &str, plan: &str| {
        let path = format!("/api/v1/runs?realm={realm}");
        let run = send(&house, ADMIN, Method::POST, &path, json!({"planId": plan})).await;
        run.body["run"]["answer"].clone()
    };
    assert_eq!(said("default", "it/word").await, "all");
    assert_eq!(said("acme", "it/word").await, "acme");
    assert_eq!(said("acme", "it/own").await, "own");
    assert_eq!(get(&house, ADMIN, "/api/v1/plans/it%2Fown").await.status, 404);
    let made = send(&house, ADMIN, Method::POST, "/api/v1/realms", json!({"name": "shop"})).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(said("shop", "it/word").await, "all");
}

#[tokio::test]
async fn a_mistake_in_a_file_of_a_realm_is_reported_at_the_start() {
    let mut project = with_own();
    let broken = saying("realms/acme/plans/it/broken.yaml", "it/broken", "{jsonPath: nowhere}");
    let own = project.of_realms.values_mut().next().unwrap();
    own.plans.push(broken);
    let data = tempfile::tempdir().unwrap();
    let setup = setup(project, &data, ADDRESS.parse().unwrap());
    let setup = Setup { admin_key: Some(ADMIN.to_owned()), ..setup };
    match assemble(setup).await.map(|_| ()) {
        Err(AssembleError::Mistakes { part: ProjectPart::Realms, mistakes }) => {
            let told = mistakes[0].to_string();
            assert!(told.starts_with("realms/acme/plans/it/broken.yaml:2:"), "{told}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_realm_has_a_default_agent_of_its_own_or_none() {
    let tables = "[agents]\ndefault = \"desk\"\n[realms.acme]\ndefault_agent = \"sales\"\n\
                  [realms.bare]\n";
    let agents = [
        ("agents/desk.yaml", "refName: desk\nllmConfigRef: rules\n"),
        ("agents/sales.yaml", "refName: sales\nllmConfigRef: rules\n"),
    ];
    let project = Project { agents: demo_with_agents(&agents).agents, ..project(tables) };
    let house = House::build(project, Some(ADMIN)).await;
    for (realm, expected) in [("default", Some("desk")), ("acme", Some("sales")), ("bare", None)] {
        let listed = get(&house, ADMIN, &format!("/api/v1/agents?realm={realm}")).await;
        let agents = listed.body["items"].as_array().unwrap_or_else(|| panic!("{listed:?}"));
        assert_eq!(agents.len(), 2, "{realm}: {listed:?}");
        let default = agents.iter().find(|agent| agent["default"] == true);
        let default = default.and_then(|agent| agent["refName"].as_str());
        assert_eq!(default, expected, "{realm}");
    }
}
