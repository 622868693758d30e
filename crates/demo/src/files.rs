//! A folder as tools: files are read, written and listed in it, and nothing outside of it is
//! reached. A path names what is below the folder; one that is absolute, goes up or leads over a
//! link is refused. Each part of it is opened in the one before: a link that takes the place of a
//! part meanwhile is not followed either.

use futures::future::BoxFuture;
use kernel::contracts::{Spawn, Tool};
use kernel::tool::call::{Call, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, mkdirat, open, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// How many bytes a file may have that is read or written.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How many bytes a path may have. Folders that are opened one by one could be deeper than the
/// system's own limit, and what is too deep is hard to remove.
const PATH_BYTES_MAX: usize = 1024;
/// How much of a path that has more is shown.
const PATH_SHOWN_CHARS: usize = 100;
/// How many entries of a folder are listed.
const ENTRIES_MAX: usize = 1_000;
/// The end of the name of a file that is being written.
const UNFINISHED: &str = ".unfinished";

/// How everything is opened: as it is, and never by a link.
const HERE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const FOLDER: OFlags = HERE.union(OFlags::DIRECTORY);
/// A pipe does not wait for who writes into it, and a terminal does not become ours.
const FILE: OFlags = HERE.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// One that is not there yet.
const NEW_FILE: OFlags = HERE.union(OFlags::WRONLY).union(OFlags::CREATE).union(OFlags::EXCL);

struct Jail {
    /// As it really is: no part of it is a link.
    root: PathBuf,
    /// One file is written at a time: two writes of it have the same unfinished one.
    writing: Mutex<()>,
    spawn: Arc<dyn Spawn>,
}

/// What a tool does at a place, with its arguments. It blocks.
type Act = fn(&Jail, &Value) -> Result<Value, ToolError>;

struct FileTool {
    spec: Arc<ToolSpec>,
    jail: Arc<Jail>,
    act: Act,
}

impl FileTool {
    async fn run(&self, call: &Call) -> Result<ToolOutput, ToolError> {
        let (sender, done) = oneshot::channel();
        let jail = self.jail.clone();
        let act = self.act;
        let arguments = call.arguments.clone();
        let working = async move {
            // The caller may be gone.
            let _ = sender.send(act(&jail, &arguments));
        };
        self.jail.spawn.thread("files", Box::pin(working));
        let lost = || ToolError::unknown("WorkLost", "the work on the file broke off");
        done.await.unwrap_or_else(|_| Err(lost())).map(ToolOutput::Value)
    }
}

impl Tool for FileTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(call))
    }
}

/// The tools over this folder, which is made where it is not there. One that is only read has no
/// tool that writes.
pub fn files(
    folder: &Path,
    is_read_only: bool,
    spawn: Arc<dyn Spawn>,
) -> io::Result<Vec<Arc<dyn Tool>>> {
    fs::create_dir_all(folder)?;
    let root = folder.canonicalize()?;
    let writing = Mutex::default();
    let jail = Arc::new(Jail { root, writing, spawn });
    let tool = |name: &str, about: &str, reach: Reach, inputs: &[&str], act: Act| {
        let spec = Arc::new(spec(name, about, reach, inputs));
        let tool: Arc<dyn Tool> = Arc::new(FileTool { spec, jail: jail.clone(), act });
        tool
    };
    let reads = Reach::Reads;
    let path = &["path"];
    let mut tools = vec![
        tool("filesystem.readFile", "Reads a text file of the folder.", reads, path, read),
        tool("filesystem.listDirectory", "Lists a folder in the folder.", reads, path, list),
    ];
    if !is_read_only {
        let about = "Writes a text file of the folder, in the place of one that is there.";
        let inputs = &["path", "content"];
        tools.push(tool("filesystem.writeFile", about, Reach::Writes, inputs, write));
    }
    Ok(tools)
}

fn spec(name: &str, about: &str, reach: Reach, inputs: &[&str]) -> ToolSpec {
    let text = |name: &&str| ((*name).to_owned(), json!({"type": "string"}));
    let properties: serde_json::Map<String, Value> = inputs.iter().map(text).collect();
    let schema = json!({"type": "object", "properties": properties, "required": inputs});
    ToolSpec {
        name: name.into(),
        title: name.to_owned(),
        description: about.to_owned(),
        input_schema: Arc::new(schema),
        output_schema: None,
        reach,
        idempotent: true,
        tags: vec!["files".to_owned()],
        pace: Pace::Quick,
        yields: OutputKind::Content,
        unrecorded: false,
        listed: None,
    }
}

/// What is done in a folder before the next one on the way is opened in it.
type Before = fn(&OwnedFd, &OsStr) -> Result<(), Errno>;

fn nothing(_folder: &OwnedFd, _name: &OsStr) -> Result<(), Errno> {
    Ok(())
}

/// Makes the next one, where it is not there.
fn make(folder: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    match mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

impl Jail {
    /// Opens the folder that these names of a path lead to.
    fn folder(&self, path: &str, names: &[&OsStr], before: Before) -> Result<OwnedFd, ToolError> {
        let root = open(&self.root, FOLDER, Mode::empty());
        let mut folder = root.map_err(|errno| failed(path, &errno.into()))?;
        for name in names {
            before(&folder, name).map_err(|errno| failed(path, &errno.into()))?;
            folder = opened(&folder, name, FOLDER, path)?;
        }
        Ok(folder)
    }
}

/// Opens what has this name in a folder, and is no link.
fn opened(folder: &OwnedFd, name: &OsStr, flags: OFlags, path: &str) -> Result<OwnedFd, ToolError> {
    openat(folder, name, flags, Mode::empty()).map_err(|errno| match kind(folder, name) {
        Some(FileType::Symlink) => a_link(path),
        Some(_) | None => failed(path, &errno.into()),
    })
}

/// What has this name in a folder; none where there is nothing.
fn kind(folder: &OwnedFd, name: impl Arg) -> Option<FileType> {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

/// The names that a path is made of, below the folder.
fn names(path: &str) -> Result<Vec<&OsStr>, ToolError> {
    if path.len() > PATH_BYTES_MAX {
        // Its beginning is enough to know it by.
        let shown: String = path.chars().take(PATH_SHOWN_CHARS).collect();
        return Err(outside(&shown, &format!("it has more than {PATH_BYTES_MAX} bytes")));
    }
    let mut names = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => names.push(name),
            Component::ParentDir => return Err(outside(path, "it goes up with `..`")),
            Component::RootDir | Component::Prefix(_) => {
                return Err(outside(path, "it is absolute"));
            }
        }
    }
    Ok(names)
}

fn outside(path: &str, why: &str) -> ToolError {
    ToolError::not_sent("PathRefused", format!("`{path}` is refused: {why}"))
        .hint("name a file below the folder, such as `notes/a.txt`")
}

fn a_link(path: &str) -> ToolError {
    outside(path, "a part of it is a link")
}

fn no_file(path: &str) -> ToolError {
    ToolError::failed("FileError", format!("`{path}` is no file"))
}

fn text<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments[name].as_str().unwrap_or_default()
}

fn failed(path: &str, error: &io::Error) -> ToolError {
    ToolError::failed("FileError", format!("`{path}`: {error}"))
}

fn too_large(path: &str) -> ToolError {
    let message = format!("`{path}` has more than {FILE_BYTES_MAX} bytes");
    ToolError::failed("FileTooLarge", message)
}

fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn read(jail: &Jail, arguments: &Value) -> Result<Value, ToolError> {
    let path = text(arguments, "path");
    let names = names(path)?;
    let Some((name, above)) = names.split_last() else { return Err(no_file(path)) };
    let folder = jail.folder(path, above, nothing)?;
    let file = File::from(opened(&folder, name, FILE, path)?);
    let found = file.metadata().map_err(|error| failed(path, &error))?;
    if !found.is_file() {
        return Err(no_file(path));
    }
    if found.len() > FILE_BYTES_MAX {
        return Err(too_large(path));
    }
    let mut read = Vec::new();
    // It may grow meanwhile.
    let size = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut read);
    if size.map_err(|error| failed(path, &error))? as u64 > FILE_BYTES_MAX {
        return Err(too_large(path));
    }
    let text = String::from_utf8(read);
    let text = text.map_err(|_| ToolError::failed("FileError", format!("`{path}` is no text")))?;
    Ok(text_result(&text))
}

/// Writes beside the file first: it is there whole or as it was.
fn write(jail: &Jail, arguments: &Value) -> Result<Value, ToolError> {
    let path = text(arguments, "path");
    let content = text(arguments, "content");
    let names = names(path)?;
    let Some((name, above)) = names.split_last() else { return Err(no_file(path)) };
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(too_large(path));
    }
    let _writing = jail.writing.lock().unwrap_or_else(PoisonError::into_inner);
    fs::create_dir_all(&jail.root).map_err(|error| failed(path, &error))?;
    let folder = jail.folder(path, above, make)?;
    match kind(&folder, *name) {
        Some(FileType::Symlink) => return Err(a_link(path)),
        Some(FileType::Directory) => return Err(no_file(path)),
        Some(_) | None => {}
    }
    let unfinished = format!(".{}{UNFINISHED}", name.to_string_lossy());
    let written = || -> io::Result<()> {
        match unlinkat(&folder, &unfinished, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let made = openat(&folder, &unfinished, NEW_FILE, Mode::from_raw_mode(0o666))?;
        let mut file = File::from(made);
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        // A link that came there meanwhile is replaced.
        Ok(renameat(&folder, &unfinished, &folder, *name)?)
    };
    written().map_err(|error| {
        // A part of a file is of no use; one that stays is replaced by the next write.
        let _ = unlinkat(&folder, &unfinished, AtFlags::empty());
        failed(path, &error)
    })?;
    Ok(text_result(&format!("wrote {} bytes to `{path}`", content.len())))
}

fn list(jail: &Jail, arguments: &Value) -> Result<Value, ToolError> {
    let path = text(arguments, "path");
    let folder = jail.folder(path, &names(path)?, nothing)?;
    let wrong = |errno: Errno| failed(path, &errno.into());
    let mut names = Vec::new();
    let mut has_more = false;
    for entry in Dir::read_from(&folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if names.len() == ENTRIES_MAX {
            has_more = true;
            break;
        }
        let end = if kind(&folder, name) == Some(FileType::Directory) { "/" } else { "" };
        names.push(format!("{}{end}", name.to_string_lossy()));
    }
    names.sort_unstable();
    let end = if has_more { "\n(there are more entries, which are not listed)" } else { "" };
    let mut listed = text_result(&format!("{}{end}", names.join("\n")));
    listed["structuredContent"] = json!({"entries": names});
    if has_more {
        listed["structuredContent"]["truncated"] = json!(true);
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Nothing;

    impl Spawn for Nothing {
        fn task(&self, _name: &'static str, _future: BoxFuture<'static, ()>) {}
        fn thread(&self, _name: &'static str, _future: BoxFuture<'static, ()>) {}
    }

    fn jail(folder: &Path) -> Jail {
        let root = folder.canonicalize().unwrap();
        let writing = Mutex::default();
        Jail { root, writing, spawn: Arc::new(Nothing) }
    }

    #[test]
    fn files_are_written_read_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let jail = jail(folder.path());
        write(&jail, &json!({"path": "notes/a.txt", "content": "one"})).unwrap();
        write(&jail, &json!({"path": "./notes/a.txt", "content": "two"})).unwrap();
        let read = read(&jail, &json!({"path": "notes/a.txt"})).unwrap();
        assert_eq!(read["content"][0]["text"], "two");
        let listed = list(&jail, &json!({"path": "."})).unwrap();
        assert_eq!(listed["structuredContent"], json!({"entries": ["notes/"]}));
        let listed = list(&jail, &json!({"path": "notes"})).unwrap();
        assert_eq!(listed["content"][0]["text"], "a.txt", "nothing unfinished is left");
        for wrong in ["none.txt", "notes", ""] {
            assert!(super::read(&jail, &json!({"path": wrong})).is_err(), "{wrong}");
        }
        assert!(write(&jail, &json!({"path": "notes", "content": ""})).is_err());
    }

    #[test]
    fn writes_of_one_file_at_the_same_time_leave_a_whole_one() {
        const BYTES: usize = 64 * 1024;
        let folder = tempfile::tempdir().unwrap();
        let jail = jail(folder.path());
        std::thread::scope(|scope| {
            for letter in ["a", "b", "c"] {
                let jail = &jail;
                scope.spawn(move || {
                    let content = letter.repeat(BYTES);
                    for _ in 0..20 {
                        write(jail, &json!({"path": "a.txt", "content": content})).unwrap();
                    }
                });
            }
        });
        let read = read(&jail, &json!({"path": "a.txt"})).unwrap();
        let text = read["content"][0]["text"].as_str().unwrap();
        assert!(text.len() == BYTES && text.replace(&text[..1], "").is_empty());
        let listed = list(&jail, &json!({"path": ""})).unwrap();
        assert_eq!(listed["structuredContent"], json!({"entries": ["a.txt"]}));
    }

    #[test]
    fn a_folder_that_is_gone_is_not_written_as_a_file() {
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("in");
        fs::create_dir(&inside).unwrap();
        let jail = jail(&inside);
        fs::remove_dir(&inside).unwrap();
        for path in ["", "."] {
            let refused = write(&jail, &json!({"path": path, "content": "x"})).unwrap_err();
            assert_eq!(refused.fault.name, "FileError", "{path}");
        }
        assert_eq!(fs::read_dir(around.path()).unwrap().count(), 0);
    }

    #[test]
    fn paths_outside_the_folder_are_refused() {
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("in");
        let secret = around.path().join("secret.txt");
        fs::create_dir(&inside).unwrap();
        fs::write(&secret, "secret").unwrap();
        let jail = jail(&inside);
        let absolute = secret.to_str().unwrap();
        for path in ["../secret.txt", "a/../../secret.txt", "a/..", "/", absolute] {
            for act in [read as Act, write, list] {
                let refused = act(&jail, &json!({"path": path, "content": "x"})).unwrap_err();
                assert_eq!(refused.fault.name, "PathRefused", "{path}");
            }
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    }

    #[test]
    fn links_out_of_the_folder_are_refused() {
        use std::os::unix::fs::symlink;
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("in");
        let outside = around.path().join("out");
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a.txt"), "secret").unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        symlink(outside.join("a.txt"), inside.join("a.txt")).unwrap();
        symlink(outside.join("a.txt"), inside.join(".b.txt.unfinished")).unwrap();
        let jail = jail(&inside);
        for path in ["folder/a.txt", "folder", "a.txt"] {
            for act in [read as Act, write, list] {
                let refused = act(&jail, &json!({"path": path, "content": "x"})).unwrap_err();
                assert_eq!(refused.fault.name, "PathRefused", "{path}");
            }
        }
        write(&jail, &json!({"path": "b.txt", "content": "mine"})).unwrap();
        assert_eq!(fs::read_to_string(outside.join("a.txt")).unwrap(), "secret");
        assert_eq!(fs::read_to_string(inside.join("b.txt")).unwrap(), "mine");
    }

    #[test]
    fn a_path_part_replaced_by_a_link_is_not_followed() {
        use std::os::unix::fs::symlink;
        const READS: usize = 2_000;
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("in");
        let outside = around.path().join("out");
        fs::create_dir_all(inside.join("folder")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a.txt"), "secret").unwrap();
        for own in ["a.txt", "folder/a.txt"] {
            fs::write(inside.join(own), "mine").unwrap();
        }
        symlink(outside.join("a.txt"), inside.join("a.txt.link")).unwrap();
        symlink(&outside, inside.join("folder.link")).unwrap();
        let jail = jail(&inside);
        let is_over = AtomicBool::new(false);
        let mut told = BTreeSet::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for name in ["a.txt", "folder"] {
                        let at = |end: &str| inside.join(format!("{name}{end}"));
                        let here = at("");
                        let link = at(".link");
                        let aside = at(".aside");
                        for (from, to) in
                            [(&here, &aside), (&link, &here), (&here, &link), (&aside, &here)]
                        {
                            fs::rename(from, to).unwrap();
                        }
                    }
                }
            });
            for _ in 0..READS {
                for path in ["a.txt", "folder/a.txt"] {
                    let read = read(&jail, &json!({"path": path}));
                    told.extend(read.ok().map(|read| read["content"][0]["text"].to_string()));
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(told, BTreeSet::from([json!("mine").to_string()]));
    }

    #[test]
    fn pipes_and_files_that_are_too_large_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success(), "{made}");
        let large = File::create(folder.path().join("large")).unwrap();
        large.set_len(FILE_BYTES_MAX + 1).unwrap();
        fs::write(folder.path().join("bytes"), [0xff]).unwrap();
        let jail = jail(folder.path());
        // Nobody writes into the pipe: who waited for that would wait for ever.
        for (path, code) in
            [("pipe", "FileError"), ("large", "FileTooLarge"), ("bytes", "FileError")]
        {
            let refused = read(&jail, &json!({"path": path})).unwrap_err();
            assert_eq!(refused.fault.name, code, "{path}");
        }
        large.set_len(FILE_BYTES_MAX).unwrap();
        assert!(read(&jail, &json!({"path": "large"})).is_ok());
    }

    #[test]
    fn a_write_replaces_a_hard_link_and_keeps_its_target() {
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("in");
        let outside = around.path().join("out.txt");
        fs::create_dir(&inside).unwrap();
        fs::write(&outside, "theirs").unwrap();
        fs::hard_link(&outside, inside.join("a.txt")).unwrap();
        write(&jail(&inside), &json!({"path": "a.txt", "content": "mine"})).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(inside.join("a.txt")).unwrap(), "mine");
    }

    #[test]
    fn a_path_that_is_too_long_is_refused_and_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let jail = jail(folder.path());
        let path = "a/".repeat(PATH_BYTES_MAX);
        for act in [read as Act, write, list] {
            let refused = act(&jail, &json!({"path": path, "content": "x"})).unwrap_err();
            assert_eq!(refused.fault.name, "PathRefused");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_truncated_list_says_so() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..ENTRIES_MAX {
            File::create(folder.path().join(format!("{number:04}"))).unwrap();
        }
        let jail = jail(folder.path());
        let listed = list(&jail, &json!({"path": ""})).unwrap();
        assert_eq!(listed["structuredContent"].get("truncated"), None);
        File::create(folder.path().join("another")).unwrap();
        let listed = list(&jail, &json!({"path": ""})).unwrap();
        let structured = &listed["structuredContent"];
        assert_eq!(structured["truncated"], true);
        assert_eq!(structured["entries"].as_array().unwrap().len(), ENTRIES_MAX);
        assert!(listed["content"][0]["text"].as_str().unwrap().contains("there are more"));
    }

    #[test]
    fn a_folder_that_is_only_read_has_no_tool_that_writes() {
        let folder = tempfile::tempdir().unwrap();
        let names = |is_read_only: bool| -> Vec<String> {
            let tools = files(folder.path(), is_read_only, Arc::new(Nothing)).unwrap();
            tools.iter().map(|tool| tool.spec().name.to_string()).collect()
        };
        assert_eq!(names(true), ["filesystem.readFile", "filesystem.listDirectory"]);
        assert_eq!(names(false).len(), 3);
    }
}
