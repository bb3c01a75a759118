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

/// What it says about itself when it understands nothing.
const HELP: &str = "I am a demo and understand a few sentences only, such as: Create a department called Drama. Delete the \
                    department Drama. List the departments. List the staff. List the campuses. Show my classrooms. Who is in my stream? \
                    Show the terms. What is the school's motto? Show the audit log. What time is it? What can you do?";

/// The reply to a conversation.
pub(crate) fn reply(request: &ChatRequest) -> Reply {
    let talk = Talk {
        request,
        results: request.results(),
    };
    let step = match intent::of(&request.sentence()) {
        Intent::CreateDepartment { name, campus } => talk.create_department(&name, campus.as_deref()),
        Intent::DeleteDepartment { name } => talk.delete_department(&name),
        Intent::Show(listing) => talk.show(&listing),
        Intent::Roster => talk.roster(),
        Intent::Unknown => Step::Say(HELP.to_owned()),
    };
    match step {
        Step::Call(tool, arguments) if request.offers(tool) => Reply::call(tool, arguments.to_string()),
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
    Call(&'static str, Value),
    Say(String),
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

    fn create_department(&self, name: &str, campus: Option<&str>) -> Step {
        const CREATE: &str = "create_department";
        match self.outcome(CREATE) {
            Some(Ok(data)) => {
                let created = name_of(data).unwrap_or_else(|| name.to_owned());
                return Step::Say(format!(
                    "Done: the department \"{created}\" has been created. {}",
                    self.note(CREATE)
                ));
            }
            Some(Err(error)) => return Step::Say(format!("The department \"{name}\" was not created: {error}")),
            None => {}
        }
        // In campus mode the list is not offered, and the campus is the one that the person works in.
        let Some(campus) = campus.filter(|_| self.request.offers("list_campuses")) else {
            return Step::Call(CREATE, json!({"name": name}));
        };
        match self.outcome("list_campuses") {
            None => Step::Call("list_campuses", json!({})),
            Some(Err(error)) => Step::Say(format!("I could not look up the campus {campus}: {error}")),
            Some(Ok(data)) => match named(data, campus).as_slice() {
                [only] => Step::Call(CREATE, json!({"name": name, "campusId": only.get("id")})),
                _ => Step::Say(format!("There is no campus called {campus}, as far as you can see.")),
            },
        }
    }

    fn delete_department(&self, name: &str) -> Step {
        const DELETE: &str = "delete_department";
        match self.outcome(DELETE) {
            Some(Ok(_)) => return Step::Say(format!("Done: the department \"{name}\" has been deleted.")),
            Some(Err(error)) => return Step::Say(format!("The department \"{name}\" was not deleted: {error}")),
            None => {}
        }
        match self.outcome("list_departments") {
            None => Step::Call("list_departments", json!({"limit": 200})),
            Some(Err(error)) => Step::Say(format!("I could not look up the department {name}: {error}")),
            Some(Ok(data)) => match named(data, name).as_slice() {
                [] => Step::Say(format!("There is no department called {name}, as far as you can see.")),
                [only] => Step::Call(DELETE, json!({"departmentId": only.get("id")})),
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
            None => Step::Call(tool, json!({})),
            Some(Err(error)) => Step::Say(format!("I could not get {}: {error}", listing.what)),
            Some(Ok(data)) => Step::Say(format!(
                "Here is {}: {}. {}",
                listing.what,
                names(data),
                self.note(tool)
            )),
        }
    }

    /// Who is in the person's stream: the first one that they have.
    fn roster(&self) -> Step {
        const ROSTER: &str = "list_stream_roster";
        let stream = match self.outcome("list_my_classrooms") {
            None => return Step::Call("list_my_classrooms", json!({})),
            Some(Err(error)) => return Step::Say(format!("I could not look up your classes: {error}")),
            Some(Ok(data)) => rows(data)
                .iter()
                .find_map(|row| row.get("streamId").or_else(|| row.get("id")).cloned()),
        };
        let Some(stream) = stream else {
            return Step::Say("You have no stream this year.".to_owned());
        };
        match self.outcome(ROSTER) {
            None => Step::Call(ROSTER, json!({"streamId": stream})),
            Some(Err(error)) => Step::Say(format!("I could not get the roster: {error}")),
            Some(Ok(data)) => Step::Say(format!("In your stream are: {}. {}", names(data), self.note(ROSTER))),
        }
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
