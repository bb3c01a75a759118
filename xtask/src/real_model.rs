//! `cargo xtask real-model`: the whole stack against a real language model behind a real OpenAI-compatible server.
//!
//! The model is about the smallest that calls tools at all, so its words are worth nothing. What is checked is what the
//! stack makes of them, in the rows that a turn leaves: a tool that reads was called with arguments that it takes and
//! ended with data, and the answer was given after that. Not a part of `cargo test`, as it installs Python packages.

mod python;
mod verdict;

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use xtask::services::{Install, Services, random_hex};

use crate::cargo::root;
use crate::programs::{Programs, run};
use crate::scratch::Scratch;
use crate::signals::Interrupt;
use crate::stack::{Stack, lock};
use verdict::Turn;

/// What requests call the model.
const MODEL: &str = "smollm2";

/// Of the person's own environment, what would lead the stack to another database, model or gate.
const HIDDEN: &[&str] = &[
    "APP_DATABASE_URL",
    "PLATFORM_DATABASE_URL",
    "DIRECTORY_DATABASE_URL",
    "AUTH_JWKS_URL",
    "OPENAI_API_KEY",
    "REQUIRE_GRANT",
];

/// Something said by somebody.
struct Sentence {
    email: &'static str,
    campus: Option<&'static str>,
    text: &'static str,
}

/// Close to the words of the tools: with a belt of a dozen, a small model goes by words.
const SENTENCES: [Sentence; 5] = [
    Sentence {
        email: "clerk@hilltop.example",
        campus: Some("Main"),
        text: "List the departments by name.",
    },
    Sentence {
        email: "head@hilltop.example",
        campus: Some("Main"),
        text: "List the staff of the campus.",
    },
    Sentence {
        email: "clerk@hilltop.example",
        campus: None,
        text: "List the staff of the whole school.",
    },
    Sentence {
        email: "class.teacher@riverside.example",
        campus: None,
        text: "Get the name, motto and colours of the school.",
    },
    Sentence {
        email: "admin@riverside.example",
        campus: None,
        text: "Get the academic year and its terms with their dates.",
    },
];

/// How many of the sentences must be answered after data was read. Not all: the model is no better than that.
const ENOUGH: usize = 3;

/// What becomes of the stack after the checks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    Stop,
    /// It runs until Ctrl-C, for whoever wants to talk with the model.
    Keep,
}

/// Says the sentences, and fails where too few were answered after data was read.
pub(crate) fn real_model(install: Install, afterwards: Afterwards) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let folder = root().join("target/real-model");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let _lock = lock(&folder, "cargo xtask real-model")?;
    let python = python::with_model(&folder, &interrupt)?;

    let services = Services::find_or_start(root(), install)?;
    interrupt.check()?;
    let mut programs = Programs::build(&["server", "worker"], &interrupt)?;
    let scratch = Scratch::create(&services, "real_model")?;
    programs.hide(HIDDEN);
    programs.set(settings(&scratch, &services)?);
    programs.fill_database(&interrupt)?;

    let mut stack = Stack::new(&folder)?;
    eprintln!("start      model, with its log in {}", folder.display());
    let listening = |line: &str| Some(line.strip_prefix("listening on ")?.trim().to_owned());
    let model = stack.start("model", python::serve(&python, MODEL), &interrupt, listening)?;
    let door = programs.start_server(&mut stack, &interrupt)?;
    programs.set([("HTTP_URL", door)]);
    programs.start_worker(Some((&format!("{model}/v1"), MODEL)), &mut stack, &interrupt)?;

    let reads = reading_tools(&programs)?;
    let mut told = Vec::new();
    for sentence in &SENTENCES {
        let took = say(sentence, &programs, &interrupt)?;
        told.push((sentence, Turn::read(&scratch, sentence.text)?, took));
    }
    let passed = told
        .iter()
        .filter(|(_, turn, _)| turn.answered_after_data(&reads))
        .count();
    println!("\n{}", table(&told, &reads));
    println!(
        "{passed} of {} answered after data, of which {ENOUGH} are enough",
        told.len()
    );
    if afterwards == Afterwards::Keep {
        keep(&mut stack, &programs, &folder, &interrupt)?;
    }
    if passed < ENOUGH {
        bail!(
            "too few sentences were answered after data; the logs are in {}",
            folder.display()
        );
    }
    Ok(())
}

/// As `up` has them, but nothing is kept, and names on the broker are this run's own.
fn settings(scratch: &Scratch<'_>, services: &Services) -> anyhow::Result<[(&'static str, String); 6]> {
    Ok([
        ("DATABASE_URL", scratch.url()),
        ("AMQP_URL", services.amqp_url().to_owned()),
        ("QUEUE_PREFIX", format!("real-model-{}.", random_hex(4)?)),
        ("GRANT_SECRET", random_hex(32)?),
        ("AUTH_SECRET", random_hex(32)?),
        ("HTTP_ADDR", "127.0.0.1:0".to_owned()),
    ])
}

/// The tools of the registry that change nothing. What runs in the worker alone is not among them.
fn reading_tools(programs: &Programs) -> anyhow::Result<Vec<String>> {
    let output = programs.command("server", &["tools"]).output();
    let output = output.context("starting `server tools`")?;
    let table = String::from_utf8(output.stdout).context("the table of tools is not UTF-8")?;
    let reads = verdict::reading_tools(&table);
    if reads.is_empty() {
        bail!("`server tools` names no tool that reads");
    }
    Ok(reads)
}

/// Says one sentence at the HTTP door, in a thread of its own, and shows what happens. How it ended is in the rows.
fn say(sentence: &Sentence, programs: &Programs, interrupt: &Interrupt) -> anyhow::Result<Duration> {
    let Sentence { email, campus, text } = sentence;
    let place = campus.map_or_else(String::new, |campus| format!(", on campus {campus}"));
    println!("\n{email}{place}: {text}");
    let mut arguments = vec!["chat", "--as", email];
    arguments.extend(campus.iter().flat_map(|campus| ["--campus", campus]));
    // A pipe holds a sentence without anybody reading it.
    let (reader, mut writer) = io::pipe().context("making a pipe")?;
    writeln!(writer, "{text}").context("writing to a pipe")?;
    drop(writer);
    let mut chat = programs.command("server", &arguments);
    chat.stdin(reader);
    let begun = Instant::now();
    let said = run(chat, interrupt);
    interrupt.check()?;
    if let Err(error) = said {
        println!("  {error:#}");
    }
    Ok(begun.elapsed())
}

/// A line for each sentence: what was called, and how it ended.
fn table(told: &[(&Sentence, Turn, Duration)], reads: &[String]) -> String {
    let width = |of: fn(&Turn, &Sentence) -> String| {
        let widths = told
            .iter()
            .map(|(sentence, turn, _)| of(turn, sentence).chars().count());
        widths.max().unwrap_or(0)
    };
    let (text, calls) = (
        width(|_, sentence| sentence.text.to_owned()),
        width(|turn, _| turn.calls()),
    );
    let line = |(sentence, turn, took): &(&Sentence, Turn, Duration)| {
        let passed = if turn.answered_after_data(reads) {
            "passed"
        } else {
            "FAILED"
        };
        let (says, called, ended, took) = (sentence.text, turn.calls(), turn.ending(), took.as_secs());
        format!("{passed}  {says:text$}  {called:calls$}  {ended} ({took} s)")
    };
    told.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn keep(stack: &mut Stack, programs: &Programs, folder: &Path, interrupt: &Interrupt) -> anyhow::Result<()> {
    let file = programs.write_environment(folder)?;
    let shown = file.strip_prefix(root()).unwrap_or(&file).display();
    println!("\nIn a second shell, in this folder:\n\n  . {shown}\n  server chat --as head@hilltop.example\n");
    println!("Ctrl-C here stops everything.");
    let outcome = stack.wait(interrupt);
    eprintln!();
    // What it names is about to be gone.
    let _ = fs::remove_file(file);
    outcome
}
