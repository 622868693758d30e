//! Tasks of A2A while the server is killed again and again. Each task asks an agent on another
//! server three times, is followed by three subscribers, one in each binding, and notifies a
//! webhook.
//!
//! Every subscriber that comes back sees the rest in order and nothing twice after its snapshot,
//! the webhook gets everything at least once and in order, a message that is sent again is the same
//! task, and the other agent is asked each question once.

mod hook;
mod watch;
mod judge;

use self::hook::Hook;
use self::watch::{BINDINGS, LIMIT, Place, Segment, Story};
use crate::api;
use crate::kill::hits::Hits;
use crate::kill::{number_in, seed_of_the_moment};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testkit::harness::{Project, Server, StartOptions, wait_for};
use testkit::http::{Client, Request};
use testkit::kill::{Ask, Rng};
use testkit::servers::a2a::AgentServer;
use wire::a2a::SKILLS_EXTENSION;

const KILLS: u64 = 6;
/// So many times as many kills, and servers that live longer, where no kill cut a stream yet: on a
/// busy machine a server can be gone before its subscribers were heard.
const TRIES: u64 = 4;
const TASKS: usize = 6;
/// The tasks share so many contexts.
const CONTEXTS: usize = 2;
/// How long the other agent works at what it is asked.
const WORKS: Duration = Duration::from_millis(120);
const POLL: Duration = Duration::from_millis(20);
const SKILL: &str = "kill/story";

const PLAN: (&str, &str) = (
    "kill/story.yaml",
    r#"planId: kill/story
description: asks another agent three times, and tells how far it is
parameters: {type: object, required: [one, two, three]}
startStepId: one
steps:
  - id: one
    type: tool_call
    toolId: "peer.send"
    arguments: {text: {jsonPath: $.promptInput.one}}
    nextStepId: told_one
  - id: told_one
    type: publish_event
    event: {type: a2a.artifact, artifactId: one, text: one}
    nextStepId: two
  - id: two
    type: tool_call
    toolId: "peer.send"
    arguments: {text: {jsonPath: $.promptInput.two}}
    nextStepId: told_two
  - id: told_two
    type: publish_event
    event: {type: a2a.artifact, artifactId: two, text: two}
    nextStepId: three
  - id: three
    type: tool_call
    toolId: "peer.send"
    arguments: {text: {jsonPath: $.promptInput.three}}
    nextStepId: told_three
  - id: told_three
    type: publish_event
    event: {type: a2a.artifact, artifactId: three, text: three}
    nextStepId: end
  - {id: end, type: final_response, message: told}
"#,
);

#[test]
fn tasks_of_a2a_outlive_a_killed_server() {
    let _turn = crate::my_turn();
    let seed = number_in("WAYPOST_SEED").unwrap_or_else(seed_of_the_moment);
    crate::tell(&format!("tasks of A2A: {KILLS} kills, WAYPOST_SEED={seed}"));
    let site = Site::build();
    let stories: Vec<Story> = (0..TASKS).map(|number| site.story(number)).collect();
    let place = Place::default();
    let (server, watched) = thread::scope(|scope| {
        let pairs = stories.iter().flat_map(|story| BINDINGS.map(|binding| (story, binding)));
        let place = &place;
        let watchers: Vec<_> = pairs
            .map(|(story, binding)| scope.spawn(move || watch::follow(place, story, binding)))
            .collect();
        site.kill_again_and_again(place, &mut Rng::new(seed));
        let mut server = site.start();
        server.wait_until_ready();
        place.set(server.address());
        let begun = Instant::now();
        while !watchers.iter().all(thread::ScopedJoinHandle::is_finished) {
            assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} in vain for all subscribers");
            site.answer(&mut server.client());
            thread::sleep(POLL);
        }
        let watched: Vec<Vec<Segment>> =
            watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect();
        (server, watched)
    });
    let (mut streams, mut posts) = (0, 0);
    for (story, watched) in stories.iter().zip(watched.chunks(BINDINGS.len())) {
        let updates = site.updates(story);
        judge::whole(&updates);
        for segments in watched {
            judge::streams(&updates, segments);
            streams += segments.len();
        }
        posts += site.hook.taken(task_of(story)).len() - updates.len();
    }
    site.check_remote();
    assert_eq!(tasks(&mut server.client())["totalSize"], TASKS, "a message began two tasks");
    crate::tell(&format!(
        "tasks of A2A: {KILLS} kills or more, {} of {streams} streams of {TASKS} tasks were cut, \
         {posts} updates posted again, WAYPOST_SEED={seed}",
        place.cuts()
    ));
    // Kills that hit no stream would prove nothing.
    assert!(place.cuts() > 0, "no kill hit a stream");
}

fn task_of(story: &Story) -> &str {
    story.task.get().unwrap()
}

fn tasks(client: &mut Client) -> Value {
    let headers = [("a2a-version", "1.0")];
    let request = Request { method: "GET", path: "/a2a/v1/tasks", headers: &headers, body: None };
    client.send(&request).unwrap().json()
}

/// What one story asks the other agent.
fn questions(number: usize) -> [String; 3] {
    ["one", "two", "three"].map(|step| format!("tck-long-running story-{number} {step}"))
}

/// Everything that is never killed, and what the servers share.
struct Site {
    agent: AgentServer,
    hook: Hook,
    project: Project,
    data: PathBuf,
    folder: TempDir,
}

impl Site {
    fn build() -> Self {
        let folder = tempfile::Builder::new().prefix("waypost-kill-a2a-").tempdir().unwrap();
        let agent = AgentServer::start(WORKS);
        let settings = format!(
            "[a2a]\nexpose = [\"kill/*\"]\n\n[a2a.push]\nallow = [\"127.0.0.1\"]\n\n\
             [a2a.agents.peer]\ncard = \"{}\"\n\n\
             [limits]\ndelivery_backoff_ms = 20\ndelivery_backoff_ms_max = 500\n\
             push_attempts_max = 100000\n",
            agent.url()
        );
        let project = Project::write(&folder.path().join("project"), &[PLAN], &settings);
        let data = folder.path().join("data");
        Self { agent, hook: Hook::start(), project, data, folder }
    }

    fn start(&self) -> Server {
        let (project, data) = (self.project.path(), self.data.as_path());
        Server::start(&StartOptions { project, data, args: &[] })
    }

    /// Every third time the server is killed while it still recovers from the kill before.
    fn kill_again_and_again(&self, place: &Place, rng: &mut Rng) {
        for number in 0..KILLS * TRIES {
            let is_extra = number >= KILLS;
            if is_extra && place.cuts() > 0 {
                return;
            }
            let mut server = self.start();
            if !rng.one_in(3) {
                server.wait_until_ready();
            }
            place.set(server.address());
            let moment_ms = if is_extra { 400 + rng.below(2_000) } else { 100 + rng.below(400) };
            thread::sleep(Duration::from_millis(moment_ms));
            server.kill9();
        }
    }

    fn story(&self, number: usize) -> Story {
        let [one, two, three] = questions(number);
        let message = json!({
            "messageId": format!("story-{number}"), "contextId": format!("c-{}", number % CONTEXTS),
            "role": "ROLE_USER", "parts": [{"data": {"one": one, "two": two, "three": three}}],
            "metadata": {SKILLS_EXTENSION: {"skill": SKILL}},
        });
        let webhook = json!({"url": self.hook.url});
        let params = json!({"message": message,
            "configuration": {"taskPushNotificationConfig": webhook}});
        let sender = BINDINGS[number % BINDINGS.len()];
        Story { params, sender, task: OnceLock::new() }
    }

    /// Settles calls of unknown outcome, as a person would who can look at the other agent.
    fn answer(&self, client: &mut Client) {
        for ask in api::open_asks(client, None) {
            let reply = self.reply(&ask);
            let action = reply["action"].as_str().unwrap_or_default();
            assert!(ask.actions.iter().any(|known| known == action), "no `{action}` in {ask:?}");
            let answer = client.post(&format!("/api/v1/asks/{}", ask.id), &reply).unwrap();
            assert_eq!(answer.status, 200, "{reply} to {ask:?}: {}", answer.body);
        }
    }

    fn reply(&self, ask: &Ask) -> Value {
        let known = self.agent.message_ids();
        let happened = ask.calls.iter().any(|call| known.contains(&call.call_id));
        let is_unknown = ask.how.as_deref() == Some("unknown");
        assert!(
            ask.kind == "fix" && (is_unknown || Hits::is_given_up(ask)),
            "the other agent was well all the time: {ask:?}"
        );
        match happened {
            true => json!({"action": "settle", "output": {"content": []}}),
            false => json!({"action": "retry"}),
        }
    }

    /// All updates of a task, once its webhook took the last one.
    fn updates(&self, story: &Story) -> Vec<Value> {
        let task = task_of(story);
        let what = format!("the webhook of {task} to get the end of it");
        wait_for(&what, LIMIT, || {
            let updates = judge::updates(&self.hook.taken(task));
            judge::are_all(&updates).then_some(updates)
        })
    }

    /// The other agent was sent each question once.
    fn check_remote(&self) {
        let mut sent = BTreeMap::<String, usize>::new();
        let asked = self.agent.asked();
        for asked in asked.iter().filter(|asked| asked.body["method"] == "SendMessage") {
            let text = asked.body["params"]["message"]["parts"][0]["text"].as_str();
            *sent.entry(text.unwrap_or_default().to_owned()).or_default() += 1;
        }
        let expected: BTreeMap<String, usize> =
            (0..TASKS).flat_map(questions).map(|question| (question, 1)).collect();
        assert_eq!(sent, expected, "how often the other agent was sent each question");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if thread::panicking() {
            // The journal and the server's log are what a failure is found by.
            self.folder.disable_cleanup(true);
            crate::tell(&format!("tasks of A2A: kept `{}`", self.folder.path().display()));
        }
    }
}
