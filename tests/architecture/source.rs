//! The source tree as the architecture test reads it: files by path, and code without comments and texts.

use e2e::world::root;
use std::{collections::BTreeMap, fs, path::Path};

/// Files by their path in the repository.
#[derive(Clone)]
pub(super) struct Tree(BTreeMap<String, String>);

/// The folders that hold what we write.
const FOLDERS: [&str; 4] = ["crates", "migrations", "tests", "xtask"];

impl Tree {
    /// The tree of this repository.
    pub(super) fn read() -> Self {
        let mut files = BTreeMap::new();
        for folder in FOLDERS {
            read_folder(&root().join(folder), folder, &mut files);
        }
        assert!(files.len() > 100, "the tree was found");
        Self(files)
    }

    /// The tree with one file added or replaced.
    pub(super) fn with(&self, path: &str, text: &str) -> Self {
        let mut files = self.0.clone();
        files.insert(path.to_owned(), text.to_owned());
        Self(files)
    }

    /// A file's text.
    pub(super) fn text(&self, path: &str) -> &str {
        self.0.get(path).unwrap_or_else(|| panic!("{path} is in the tree"))
    }

    /// Every file with its text.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust files below a folder, with their code.
    pub(super) fn code(&self, folder: &str) -> impl Iterator<Item = (&str, String)> {
        self.files()
            .filter(move |(path, _)| path.starts_with(folder) && is_rust(path))
            .map(|(path, text)| (path, code_of(text)))
    }
}

/// Whether a path is that of a Rust file.
pub(super) fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

fn read_folder(folder: &Path, path: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let entry = entry.expect("its entries too");
        let path = format!("{path}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("they have a type").is_dir() {
            read_folder(&entry.path(), &path, files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            files.insert(path, text);
        }
    }
}

/// The words of code, each with the character before it that is no space.
pub(super) fn words(code: &str) -> impl Iterator<Item = (Option<char>, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + code[at..].find(is_part)?;
        let end = code[start..]
            .find(|c| !is_part(c))
            .map_or(code.len(), |length| start + length);
        at = end;
        Some((code[..start].trim_end().chars().next_back(), &code[start..end]))
    })
}

/// Whether code names something, such as a crate.
pub(super) fn names(code: &str, name: &str) -> bool {
    words(code).any(|(_, word)| word == name)
}

/// The modules of its own crate that code names: after `crate::`, or in the braces after it.
pub(super) fn own_modules(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for after in code.split("crate::").skip(1) {
        let mut depth = 0_usize;
        let mut is_first = true;
        for (before, word) in tokens(after) {
            match word {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                word if depth == 0 && is_first => found.push(word),
                word if depth == 1 && matches!(before, Some("{" | ",")) => found.push(word),
                _ => {}
            }
            is_first = is_first && word == "{";
            if depth == 0 {
                break;
            }
        }
    }
    found
}

/// Words and single signs, each with the token before it.
fn tokens(code: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    let mut before = None;
    std::iter::from_fn(move || {
        let start = at + code[at..].find(|c: char| !c.is_whitespace())?;
        let first = code[start..].chars().next()?;
        let length = if is_part(first) {
            code[start..].find(|c| !is_part(c)).unwrap_or(code.len() - start)
        } else {
            first.len_utf8()
        };
        at = start + length;
        let token = &code[start..at];
        Some((before.replace(token), token))
    })
}

/// A file's code: comments and what is between quotes are left out.
pub(super) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            'r' if !code.ends_with(|c: char| c.is_alphanumeric() || c == '_') => raw(rest),
            '\'' if rest.starts_with("'\"'") => 3,
            '\'' if rest.starts_with("'\\") => rest[2..].find('\'').map_or(rest.len(), |end| end + 3),
            _ => 0,
        };
        if skipped == 0 {
            code.push(first);
        }
        rest = &rest[skipped.max(if skipped == 0 { first.len_utf8() } else { 0 })..];
    }
    code
}

/// The length of the text that begins here.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of the raw text that begins here, if one does.
fn raw(rest: &str) -> usize {
    let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
    if !rest[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let body = 2 + hashes;
    rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len())
}

#[test]
fn code_is_what_is_no_comment_and_no_text() {
    let text = "use a; // sqlx\n/* lapin */ let b = \"x \\\" axum\"; let c = r#\"tokio \" \"#; let d = '\"'; let e = '\\''; fin";
    let code = code_of(text);
    for hidden in ["sqlx", "lapin", "axum", "tokio"] {
        assert!(!names(&code, hidden), "{hidden} in {code}");
    }
    for seen in ["a", "b", "c", "d", "e", "fin"] {
        assert!(names(&code, seen), "{seen} in {code}");
    }
}

#[test]
fn own_modules_are_found_in_braces_too() {
    let code = "use crate::{db::{self, Tx}, error::ToolError}; use crate::grant::Door; crate::clock::now();";
    assert_eq!(own_modules(code), ["db", "error", "grant", "clock"]);
}
