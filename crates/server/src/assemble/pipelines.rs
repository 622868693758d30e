//! What must be right of a project's pipelines beside what each file says: routes that are neither
//! ours nor another one's, ports that are not shared, models that are there.

use crate::routes::taken_by;
use kernel::definition::pipeline::{Pipeline, PipelineLlm};
use kernel::definition::plan::mistake::Mistake;
use kernel::limits::Limits;
use project::folder::{Project, RealmFiles, readable, unfit};
use project::models::instead;
use project::realm::default_realm;
use project::upstream_entries::Variables;

/// All that a start would find wrong with the place of one of a project's pipelines, by its file:
/// its name, its route, its port and its model. What the file itself says is read elsewhere.
pub fn check_pipeline(project: &Project, file: &str, variables: &Variables<'_>) -> Vec<Mistake> {
    let is_its = |mistake: &Mistake| mistake.file.as_deref() == Some(file);
    let (mine, mut all): (Vec<_>, Vec<_>) =
        project.readable_pipelines().into_iter().partition(|(known, _)| known == file);
    let met = mine.first().and_then(|(_, pipeline)| meets(pipeline, &all));
    let met = met.map(|mistake| Mistake { file: Some(file.to_owned()), ..mistake });
    let (names, of_models) = models_of(project, file, variables);
    // The last of two that share something is reported: that is to be this one.
    all.extend(mine);
    let misplaced = misplaced(&all, names.as_deref()).into_iter().filter(is_its);
    met.into_iter().chain(misplaced).chain(of_models).collect()
}

/// The models that pipelines of a project can name, and what is wrong with the one of this file.
fn models_of(
    project: &Project,
    file: &str,
    variables: &Variables<'_>,
) -> (Option<Vec<String>>, Vec<Mistake>) {
    match project.models(variables) {
        Ok(configs) => {
            let own = configs.iter().filter(|config| config.origin == file);
            let wrong = own.filter_map(|config| llms::open(config).err()).flatten().collect();
            (Some(configs.iter().map(|config| config.name.clone()).collect()), wrong)
        }
        Err(mut mistakes) => {
            mistakes.retain(|mistake| mistake.file.as_deref() == Some(file));
            (None, mistakes)
        }
    }
}

/// All that is wrong with these, each in its file. `models` are those that pipelines can name;
/// nothing where they are not known.
pub(crate) fn misplaced(
    pipelines: &[(String, Pipeline)],
    models: Option<&[String]>,
) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (index, (file, pipeline)) in pipelines.iter().enumerate() {
        let found = [
            hidden(pipeline),
            shared_route(pipeline, &pipelines[..index]),
            shared_port(pipeline, &pipelines[..index]),
            models.and_then(|models| missing(pipeline, models)),
        ];
        let filed = |mistake| Mistake { file: Some(file.clone()), ..mistake };
        mistakes.extend(found.into_iter().flatten().map(filed));
    }
    mistakes
}

/// All that is wrong with those of single realms: their places among all pipelines of the realm,
/// and that they have what only the server has.
pub(crate) fn misplaced_own(
    files: &RealmFiles,
    models: Option<&[String]>,
    limits: &Limits,
) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (realm, own) in &files.own {
        let brought = readable(&own.pipelines, limits);
        mistakes.extend(brought.iter().flat_map(|(file, pipeline)| unfit(file, pipeline)));
        // Those of the realm that every server has are checked with all others there.
        if *realm != default_realm() {
            let all = readable(&files.of(realm).pipelines, limits);
            let is_own = |mistake: &Mistake| files.is_own(realm, mistake.file.as_deref());
            mistakes.extend(misplaced(&all, models).into_iter().filter(is_own));
        }
    }
    mistakes
}

fn hidden(pipeline: &Pipeline) -> Option<Mistake> {
    let why = taken_by(&pipeline.route)?;
    let what = format!("`route` cannot be `{}`: {why}", pipeline.route);
    Some(Mistake::error(what).hint("choose a path that is not the server's"))
}

/// What a pipeline must not have in common with others; the catalog says so too.
fn meets(pipeline: &Pipeline, others: &[(String, Pipeline)]) -> Option<Mistake> {
    if let Some((file, _)) = others.iter().find(|(_, other)| other.name == pipeline.name) {
        let what = format!("pipeline `{}` is already defined in {file}", pipeline.name);
        return Some(Mistake::error(what).hint("give one of them another `name`"));
    }
    let place = |pipeline: &Pipeline| (pipeline.route.clone(), pipeline.port);
    let (file, _) = others.iter().find(|(_, other)| place(other) == place(pipeline))?;
    let what = format!("route `{}` is taken by {file}", pipeline.route);
    Some(Mistake::error(what).hint("give one of them another `http.route`"))
}

/// The catalog checks two of one port; the server's own port has all of them.
fn shared_route(pipeline: &Pipeline, before: &[(String, Pipeline)]) -> Option<Mistake> {
    let is_same = |other: &Pipeline| other.route == pipeline.route && other.port != pipeline.port;
    let (_, other) = before.iter().find(|(_, other)| is_same(other))?;
    let what = format!("`route` `{}` is the one of pipeline `{}`", pipeline.route, other.name);
    Some(Mistake::error(what).hint("choose another: the server's own port serves both"))
}

fn shared_port(pipeline: &Pipeline, before: &[(String, Pipeline)]) -> Option<Mistake> {
    let port = pipeline.port.filter(|port| *port != 0)?;
    let (_, other) = before.iter().find(|(_, other)| other.port == Some(port))?;
    let what = format!("`port` {port} is the one of pipeline `{}`", other.name);
    let hint = "leave it out: the server's own port serves every route";
    Some(Mistake::error(what).hint(hint))
}

fn missing(pipeline: &Pipeline, models: &[String]) -> Option<Mistake> {
    let PipelineLlm::Named(name) = &pipeline.llm else { return None };
    if models.iter().any(|known| known.as_str() == &**name) {
        return None;
    }
    let what = format!("`llm` names the model `{name}`, which is not there");
    Some(Mistake::error(what).hint(instead(name, models)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::definition::pipeline_reader::read_text;
    use kernel::limits::Limits;
    use serde_json::{Value, json};

    fn pipeline(name: &str, http: Value, llm: Value) -> (String, Pipeline) {
        let source = json!({
            "http": http,
            "schema": {"caseIdField": "id", "allowedFields": ["id", "reason"],
                "requiredFields": ["id", "reason"]},
            "tools": ["case.raiseTicket"],
            "llm": llm,
        });
        let file = format!("pipelines/{name}.yaml");
        let read = read_text(&source.to_string(), &file, name, &Limits::default());
        (file, read.unwrap().0)
    }

    fn stub() -> Value {
        json!({"type": "stub"})
    }

    /// What is wrong with the place of `b` in a project of these.
    fn checked(texts: &[(&str, Value)]) -> Vec<String> {
        let file = |(name, source): &(&str, Value)| engine::PipelineFile {
            file: format!("{name}.yaml"),
            text: source.to_string(),
            default_name: (*name).into(),
        };
        let pipelines = texts.iter().map(file).collect();
        let project = Project { pipelines, ..Project::default() };
        check_pipeline(&project, "b.yaml", &|_| None).iter().map(Mistake::to_string).collect()
    }

    #[test]
    fn one_pipeline_is_checked_among_the_others() {
        let of = |http: Value, llm: Value| {
            json!({"http": http, "schema": {"caseIdField": "id", "allowedFields": ["id", "reason"],
                "requiredFields": ["id", "reason"]}, "tools": ["case.raiseTicket"], "llm": llm})
        };
        let right = || of(json!({"route": "/b"}), stub());
        // What is wrong with others is not its own.
        let others = [("a", of(json!({"route": "/run"}), stub())), ("c", right())];
        let all = [&others[..1], &[("b", right())]].concat();
        assert_eq!(checked(&all), Vec::<String>::new());
        let all = [&others[..], &[("b", right())]].concat();
        let told = checked(&all);
        assert!(told[0].starts_with("b.yaml: error: route `/b` is taken by c.yaml"), "{told:?}");
        let mut twin = right();
        twin["name"] = json!("a");
        let told = checked(&[others[0].clone(), ("b", twin)]);
        assert!(
            told[0].starts_with("b.yaml: error: pipeline `a` is already defined in a.yaml"),
            "{told:?}"
        );
        let hidden =
            of(json!({"route": "/run"}), json!({"type": "model", "params": {"name": "m"}}));
        let told = checked(&[("b", hidden)]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("`/run`") && told[1].contains("model `m`"), "{told:?}");
        let rules = json!({"type": "stub", "params": {"rules": "nowhere.yaml"}});
        let told = checked(&[("b", of(json!({"route": "/b"}), rules))]);
        assert!(told[0].contains("nowhere.yaml") && told.len() == 1, "{told:?}");
    }

    fn told(pipelines: &[(String, Pipeline)], models: Option<&[String]>) -> Vec<String> {
        misplaced(pipelines, models).iter().map(Mistake::to_string).collect()
    }

    #[test]
    fn a_route_of_the_server_belongs_to_no_pipeline() {
        let pipelines = [
            pipeline("a", json!({"route": "/trade/failures"}), stub()),
            pipeline("b", json!({"route": "/run"}), stub()),
        ];
        assert_eq!(
            told(&pipelines, None),
            ["pipelines/b.yaml: error: `route` cannot be `/run`: it is `POST /run`; \
              hint: choose a path that is not the server's"]
        );
    }

    #[test]
    fn a_port_belongs_to_one_pipeline() {
        let of = |name: &str, port: u16| {
            pipeline(name, json!({"route": format!("/{name}"), "port": port}), stub())
        };
        let pipelines = [of("a", 8080), of("b", 8080), of("c", 0), of("d", 0)];
        assert_eq!(
            told(&pipelines, None),
            ["pipelines/b.yaml: error: `port` 8080 is the one of pipeline `a`; \
              hint: leave it out: the server's own port serves every route"]
        );
    }

    #[test]
    fn a_route_belongs_to_one_pipeline_on_any_port() {
        let pipelines = [
            pipeline("a", json!({"route": "/trades"}), stub()),
            pipeline("b", json!({"route": "/trades", "port": 8080}), stub()),
        ];
        assert_eq!(
            told(&pipelines, None),
            ["pipelines/b.yaml: error: `route` `/trades` is the one of pipeline `a`; \
              hint: choose another: the server's own port serves both"]
        );
    }

    #[test]
    fn a_model_that_is_named_must_be_there() {
        let llm = json!({"type": "model", "params": {"name": "fsat"}});
        let pipelines = [pipeline("a", json!({"route": "/a"}), llm)];
        assert_eq!(
            told(&pipelines, Some(&["fast".to_owned()])),
            ["pipelines/a.yaml: error: `llm` names the model `fsat`, which is not there; \
              hint: did you mean `fast`?"]
        );
        assert!(told(&pipelines, Some(&["fsat".to_owned()])).is_empty());
        assert!(told(&pipelines, None).is_empty(), "nobody knows which there are");
    }
}
