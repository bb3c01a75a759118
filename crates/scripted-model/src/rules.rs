//! From a sentence to tool calls, and from their results to an answer: the few things that the demo understands.
//!
//! It calls only tools that are offered, and answers only from what they returned.

mod intent;
mod words;

use crate::{protocol::ChatRequest, script::Reply};
use intent::{Intent, Listing};
use serde_json::{Value, json};
use words::{explain, name_of, names, rows};

/// How every text begins, so that nobody takes it for a language model's.
const MARK: &str = "[demo model]";

/// By which the supervisor hands work to a specialist.
const TASK: &str = "task";
const CREATE: &str = "create_department";
const ROSTER: &str = "list_stream_roster";
const CLASSROOMS: &str = "list_my_classrooms";
const ATTENDANCE: &str = "record_attendance";
const SEARCH: &str = "search_students";
const ANNOUNCE: &str = "publish_announcement";
/// By which the person is asked something.
const ASK: &str = "ask_user";

/// What it says about itself when it understands nothing.
const HELP: &str = "I am a demo and understand a few sentences only, such as: Create a department called Drama. Create a department. Create \
                    departments Art and Music. Delete the department Drama. List the departments. List the staff. List the \
                    campuses. List the streams. List the subjects. Find the student Amina. Show my classrooms. Who is in my \
                    stream? Mark everybody in my stream present. Show my lesson plans. Show the teaching coverage. Announce \
                    to the school Sports day: It begins at nine. Show the announcements. Show the terms. What is the \
                    school's motto? Show the audit log. What time is it? What can you do? With a language model behind \
                    them, the same tools do much more.";

/// The reply to a conversation.
pub(crate) fn reply(request: &ChatRequest) -> Reply {
    let talk = Talk {
        request,
        results: request.results(),
    };
    let sentence = request.sentence();
    let step = match talk.specialist(&sentence) {
        Some((agent, asked)) => talk.delegate(agent, &asked),
        None => talk.answer(&sentence),
    };
    match step {
        Step::Call(tool, arguments) if request.offers(tool) => {
            arguments.iter().fold(Reply::nothing(), |reply, of_one| {
                reply.and_call(None, tool, of_one.to_string())
            })
        }
        Step::Call(tool, _) => say(&format!(
            "I would need the tool {tool} for that, and it is not offered to me here."
        )),
        Step::Say(text) => say(&text),
    }
}

fn say(text: &str) -> Reply {
    Reply::text(format!("{MARK} {text}"))
}

/// What to do next.
enum Step {
    /// A tool, once with each of these arguments, all at once.
    Call(&'static str, Vec<Value>),
    Say(String),
}

impl Step {
    fn call(tool: &'static str, arguments: Value) -> Self {
        Self::Call(tool, vec![arguments])
    }
}

/// A conversation since the person's last sentence.
struct Talk<'a> {
    request: &'a ChatRequest,
    results: Vec<crate::protocol::ToolResult>,
}

impl Talk<'_> {
    /// What the last call of a tool returned: its data, or its error in plain words. None if it was not called yet.
    fn outcome(&self, tool: &str) -> Option<Result<&Value, String>> {
        let result = self.results.iter().rfind(|result| result.tool == tool)?;
        Some(result.content.get("data").ok_or_else(|| explain(&result.content)))
    }

    fn note(&self, tool: &str) -> String {
        let result = self.results.iter().rfind(|result| result.tool == tool);
        result
            .and_then(|result| result.content.get("scopeContext")?.as_str())
            .unwrap_or_default()
            .to_owned()
    }

    fn answer(&self, sentence: &str) -> Step {
        match intent::of(sentence) {
            Intent::CreateDepartments { names, campus } => self.create_departments(&names, campus.as_deref()),
            Intent::NameDepartment => self.name_department(),
            Intent::DeleteDepartment { name } => self.delete_department(&name),
            Intent::SearchStudents { query } => self.search(&query),
            Intent::Announce { title, body, audience } => self.announce(&title, &body, audience),
            Intent::Show(listing) => self.show(&listing),
            Intent::Roster => self.roster(),
            Intent::MarkPresent => self.mark_present(),
            Intent::Unknown => Step::Say(HELP.to_owned()),
        }
    }

    /// The agent that a sentence is for, if it is not this one, and what is asked of it.
    fn specialist(&self, sentence: &str) -> Option<(&'static str, String)> {
        if !self.request.offers(TASK) {
            return None;
        }
        let (tool, whose) = match intent::of(sentence) {
            Intent::Roster => (ROSTER, &["Angie"][..]),
            Intent::MarkPresent => (ATTENDANCE, &["Angie"][..]),
            Intent::Show(listing) => (*listing.tools.first()?, listing.specialists),
            Intent::CreateDepartments { .. }
            | Intent::NameDepartment
            | Intent::DeleteDepartment { .. }
            | Intent::SearchStudents { .. }
            | Intent::Announce { .. }
            | Intent::Unknown => ("", &[][..]),
        };
        let there = self.request.words(TASK, "agent");
        let by_work = || {
            let one = whose.iter().find(|name| there.contains(name)).or(whose.first())?;
            (!self.request.offers(tool)).then(|| (*one, sentence.to_owned()))
        };
        intent::addressed(sentence).or_else(by_work)
    }

    fn delegate(&self, agent: &str, task: &str) -> Step {
        let Some(result) = self.results.iter().rfind(|result| result.tool == TASK) else {
            return Step::call(TASK, json!({"agent": agent, "task": task}));
        };
        if result.content.get("error").is_some() {
            return Step::Say(format!("{agent} could not do it: {}", explain(&result.content)));
        }
        let data = result.content.get("data").unwrap_or(&result.content);
        let said = ["text", "answer"].into_iter().find_map(|key| data.get(key)?.as_str());
        let said = said
            .or_else(|| data.as_str())
            .map_or_else(|| names(data), str::to_owned);
        Step::Say(format!("{agent} says: {}", said.trim_start_matches(MARK).trim()))
    }

    fn create_departments(&self, wanted: &[String], campus: Option<&str>) -> Step {
        let create = |campus: Option<&Value>| {
            let arguments = wanted.iter().map(|name| match campus {
                Some(campus) => json!({"name": name, "campusId": campus}),
                None => json!({"name": name}),
            });
            Step::Call(CREATE, arguments.collect())
        };
        let results: Vec<_> = self.results.iter().filter(|result| result.tool == CREATE).collect();
        if !results.is_empty() {
            let told = wanted
                .iter()
                .zip(results)
                .map(|(name, result)| created(name, &result.content));
            let told: Vec<String> = told.collect();
            return Step::Say(format!("{} {}", told.join(" "), self.note(CREATE)).trim().to_owned());
        }
        // In campus mode the list is not offered, and the campus is the one that the person works in.
        let Some(campus) = campus.filter(|_| self.request.offers("list_campuses")) else {
            return create(None);
        };
        match self.outcome("list_campuses") {
            None => Step::call("list_campuses", json!({})),
            Some(Err(error)) => Step::Say(format!("I could not look up the campus {campus}: {error}")),
            Some(Ok(data)) => match named(data, campus).as_slice() {
                [only] => create(only.get("id")),
                _ => Step::Say(format!("There is no campus called {campus}, as far as you can see.")),
            },
        }
    }

    /// Asks the person for the name that the sentence does not say.
    fn name_department(&self) -> Step {
        if !self.request.offers(ASK) {
            return Step::Say("Say how it is to be called, such as: Create a department called Drama.".to_owned());
        }
        match self.outcome(ASK) {
            None => Step::call(ASK, json!({"question": "What shall the department be called?"})),
            Some(Err(error)) => Step::Say(format!("No department was created: {error}")),
            Some(Ok(data)) => {
                let name = data.get("answer").and_then(Value::as_str).unwrap_or_default();
                self.create_departments(&[name.trim().to_owned()], None)
            }
        }
    }

    fn delete_department(&self, name: &str) -> Step {
        const DELETE: &str = "delete_department";
        match self.outcome(DELETE) {
            Some(Ok(data)) if data.get("pending").is_some() => {
                return Step::Say(format!(
                    "The department \"{name}\" is not deleted yet: that waits for approval. See it with: server approvals list"
                ));
            }
            Some(Ok(data)) => {
                let deleted = name_of(data).unwrap_or_else(|| name.to_owned());
                return Step::Say(format!("Done: the department \"{deleted}\" has been deleted."));
            }
            Some(Err(error)) => return Step::Say(format!("The department \"{name}\" was not deleted: {error}")),
            None => {}
        }
        match self.outcome("list_departments") {
            None => Step::call("list_departments", json!({"limit": 200})),
            Some(Err(error)) => Step::Say(format!("I could not look up the department {name}: {error}")),
            Some(Ok(data)) => match named(data, name).as_slice() {
                [] => Step::Say(format!("There is no department called {name}, as far as you can see.")),
                [only] => Step::call(DELETE, json!({"departmentId": only.get("id")})),
                _ => Step::Say(format!(
                    "There is more than one department called {name}. Work in one campus, and ask again."
                )),
            },
        }
    }

    fn show(&self, listing: &Listing) -> Step {
        let offered = listing.tools.iter().find(|tool| self.request.offers(tool));
        let Some(&tool) = offered.or(listing.tools.first()) else {
            return Step::Say(HELP.to_owned());
        };
        match self.outcome(tool) {
            None => Step::call(tool, json!({})),
            Some(Err(error)) => Step::Say(format!("I could not get {}: {error}", listing.what)),
            Some(Ok(data)) => Step::Say(format!(
                "Here is {}: {}. {}",
                listing.what,
                names(data),
                self.note(tool)
            )),
        }
    }

    fn search(&self, query: &str) -> Step {
        match self.outcome(SEARCH) {
            None => Step::call(SEARCH, json!({"query": query})),
            Some(Err(error)) => Step::Say(format!("I could not search: {error}")),
            Some(Ok(data)) if rows(data).is_empty() => {
                Step::Say(format!("No student is found by {query}. {}", self.note(SEARCH)))
            }
            Some(Ok(data)) => Step::Say(format!("By {query} I find: {}. {}", names(data), self.note(SEARCH))),
        }
    }

    fn announce(&self, title: &str, body: &str, audience: &str) -> Step {
        match self.outcome(ANNOUNCE) {
            None => Step::call(ANNOUNCE, json!({"title": title, "body": body, "audience": audience})),
            Some(Err(error)) => Step::Say(format!("\"{title}\" was not announced: {error}")),
            Some(Ok(data)) if data.get("pending").is_some() => Step::Say(format!(
                "\"{title}\" is not announced yet: it waits for approval. See it with: server approvals list"
            )),
            Some(Ok(data)) => {
                let said = |key| data.get(key).and_then(Value::as_str);
                let (title, audience) = (said("title").unwrap_or(title), said("audience").unwrap_or(audience));
                Step::Say(format!("Done: \"{title}\" has been announced to the {audience}."))
            }
        }
    }

    /// The stream that the person is class teacher of; the first that they have, where they are of none.
    fn own_stream(&self) -> Result<&Value, Step> {
        let data = match self.outcome(CLASSROOMS) {
            None => return Err(Step::call(CLASSROOMS, json!({}))),
            Some(Err(error)) => return Err(Step::Say(format!("I could not look up your classes: {error}"))),
            Some(Ok(data)) => rows(data),
        };
        let own = data
            .iter()
            .find(|row| row.get("isClassTeacher") == Some(&Value::Bool(true)));
        let stream = own.or(data.first()).and_then(|row| row.get("streamId"));
        stream.ok_or_else(|| Step::Say("You have no stream this year.".to_owned()))
    }

    fn mark_present(&self) -> Step {
        let stream = match self.own_stream() {
            Ok(stream) => stream,
            Err(step) => return step,
        };
        match self.outcome(ATTENDANCE) {
            None => Step::call(
                ATTENDANCE,
                json!({"streamId": stream, "marks": [], "everyoneElse": "present"}),
            ),
            Some(Err(error)) => Step::Say(format!("Nothing was recorded: {error}")),
            Some(Ok(_)) => Step::Say("Done: everybody in your stream is marked present today.".to_owned()),
        }
    }

    fn roster(&self) -> Step {
        let stream = match self.own_stream() {
            Ok(stream) => stream,
            Err(step) => return step,
        };
        match self.outcome(ROSTER) {
            None => Step::call(ROSTER, json!({"streamId": stream})),
            Some(Err(error)) => Step::Say(format!("I could not get the roster: {error}")),
            Some(Ok(data)) => Step::Say(format!("In your stream are: {}. {}", names(data), self.note(ROSTER))),
        }
    }
}

/// What became of a department that was wanted.
fn created(wanted: &str, content: &Value) -> String {
    match content.get("data") {
        Some(data) => {
            let name = name_of(data).unwrap_or_else(|| wanted.to_owned());
            format!("Done: the department \"{name}\" has been created.")
        }
        None => format!("The department \"{wanted}\" was not created: {}", explain(content)),
    }
}

/// The rows with this name, in any case.
fn named<'a>(data: &'a Value, name: &str) -> Vec<&'a Value> {
    let wanted = name.to_lowercase();
    rows(data)
        .iter()
        .filter(|row| name_of(row).is_some_and(|found| found.to_lowercase() == wanted))
        .collect()
}

#[cfg(test)]
mod tests;
