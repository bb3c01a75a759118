//! Makes a drawn write one whose outcome the facts foretell: what may succeed changes nobody's rules unnoticed, and carries marks of
//! the row that it changes; what must be refused carries the caller's own. It goes by what arguments are called, not by tools.

use super::{
    actors::Actor,
    facts::{Facts, Held, NAMED, Row},
    marks::{COMMON, Owner, PLATFORM},
    reach::{Change, Reach, reach},
};
use contract::{AgentCallScope, RpcTool};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// What stands for a mark in a drawn text.
pub(super) const MARK: char = '§';

/// People who are given roles and streams. Nobody else is, so that everybody else's rules stay what the seeds say.
const PROMOTED_IN_SCHOOL: &[&str] = &["moses.balikowa", "nathan.owuor"];
const PROMOTED_ON_CAMPUS: &[&str] = &["rose.nalubega", "isaac.ocen", "grace.mumbua", "ali.bakari"];

/// Roles that teachers have beside what they teach.
const SMALL_ROLES: &[&str] = &["class_teacher", "subject_teacher"];

/// Tables of rows that belong to a campus, that which says most about where a call goes first.
const TELLING: &[&str] = &[
    "lesson_plans",
    "assessments",
    "students",
    "streams",
    "departments",
    "staff",
    "terms",
    "campuses",
    "campus_academic_years",
];

/// A write that was made foreseeable.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) args: Value,
    /// Whose marks its texts carry.
    pub(super) owner: Owner,
    /// The table and the row that its texts go to, or to what belongs to it, where the call may succeed and names one.
    pub(super) row: Option<(&'static str, Row)>,
    /// What may be so from now on.
    pub(super) changes: Vec<Change>,
}

/// The table whose rows an argument of this name names.
pub(super) fn table_of(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let is_id = name.ends_with("Id") || name.ends_with("Ids");
    let named = NAMED.iter().find(|(word, _)| is_id && lower.contains(word));
    named.map(|(_, table)| *table)
}

/// All that calls of this test may ever make true of those who are promoted.
pub(super) fn potential(facts: &Facts) -> Vec<Change> {
    let mut changes = Vec::new();
    for (at, person) in facts.people.iter().enumerate() {
        let who = person.who.as_str();
        let role = match person.campus {
            None if PROMOTED_IN_SCHOOL.contains(&who) => "school_admin",
            Some(_) if PROMOTED_ON_CAMPUS.contains(&who) => "head_teacher",
            _ => continue,
        };
        let role = role.to_owned();
        let campus = person.campus;
        changes.push(Change::Holds(at, Held { role, campus }));
        let spare = facts.spare["streams"].iter();
        let theirs =
            spare.filter(|row| Some(row.school) == person.school && (campus.is_none() || row.campus == campus));
        let subject = facts
            .of("subjects")
            .iter()
            .find(|row| Some(row.school) == person.school);
        for stream in theirs {
            changes.push(Change::AnswersFor(at, stream.id));
            changes.extend(subject.map(|subject| Change::Teaches(at, stream.id, subject.id)));
        }
    }
    changes
}

/// Settles a drawn call. `potential` is what people may be by the time that it is made.
pub(super) fn settle(facts: &Facts, potential: &[Change], actor: &Actor, tool: &RpcTool, args: Value) -> Settled {
    let own = match facts.people[actor.person].school {
        None => Owner::new(PLATFORM, COMMON),
        Some(school) => facts.owner(school, facts.people[actor.person].campus),
    };
    let may = reach(facts, potential, actor, tool);
    let (Value::Object(mut args), true) = (args.clone(), tool.definition.event.is_mutating()) else {
        return Settled {
            args,
            owner: own,
            row: None,
            changes: Vec::new(),
        };
    };
    let mut settling = Settling {
        facts,
        actor,
        tool,
        may,
        changes: Vec::new(),
    };
    let (mut owner, mut row) = (None, None);
    if settling.may != Reach::Nothing {
        settling.make_foreseeable(&mut args);
        (owner, row) = settling.lands_with(&args);
    }
    Settled {
        args: Value::Object(args),
        owner: owner.unwrap_or(own),
        row,
        changes: settling.changes,
    }
}

struct Settling<'a> {
    facts: &'a Facts,
    actor: &'a Actor,
    tool: &'a RpcTool,
    /// How far the actor's power to do this reaches at most.
    may: Reach,
    changes: Vec<Change>,
}

impl Settling<'_> {
    fn covers(&self, row: &Row) -> bool {
        self.may.admits(&self.facts.owner(row.school, row.campus))
    }

    fn is_near(&self, row: &Row) -> bool {
        let person = &self.facts.people[self.actor.person];
        person.school.is_none_or(|school| school == row.school)
    }

    /// The row of a table that the arguments name, if there is one.
    fn named(&self, args: &Map<String, Value>, table: &str) -> Option<Row> {
        let argument = args.iter().find(|(name, _)| table_of(name) == Some(table));
        let id = argument.and_then(|(_, value)| value.as_str()?.parse().ok())?;
        self.facts.find(table, id).cloned()
    }

    fn make_foreseeable(&mut self, args: &mut Map<String, Value>) {
        make_harmless(args);
        self.keep_accounts_apart(args);
        address(args, self.actor);
        let staff = self.named(args, "staff");
        let stream = self.named(args, "streams").filter(|row| self.is_near(row));
        let student = self.named(args, "students").filter(|row| self.is_near(row));
        let department = self.named(args, "departments");
        let covered = staff.clone().filter(|row| self.covers(row));
        match (student, stream, department) {
            (Some(student), Some(_), _) => self.move_within(args, &student),
            (None, Some(stream), _) if args.contains_key("targetStaffId") => self.hand_over(args, &stream),
            (_, _, Some(department)) if ["delete", "archive"].contains(&self.tool.definition.event.verb()) => {
                if self.is_near(&department) && !self.facts.spare["departments"].contains(&department) {
                    let id = self.spare_beside("departments", &department);
                    args.insert("departmentId".to_owned(), json!(id));
                }
            }
            (_, _, Some(department)) => {
                let leads = self
                    .facts
                    .people
                    .iter()
                    .position(|person| person.staff == staff.as_ref().map(|row| row.id));
                let leads = leads.filter(|_| staff.is_some() && self.covers(&department));
                self.changes.extend(leads.map(|at| Change::Leads(at, department.id)));
            }
            _ => match covered {
                Some(_) if self.takes_little_away(args) => {}
                Some(row) if self.tool.schema()["properties"].get("role").is_some() => self.promote(args, &row),
                Some(row) => stay(args, &row),
                None => {}
            },
        }
    }

    /// Whose marks what is written must carry, where the call may succeed at all, and the row that it is about.
    fn lands_with(&self, args: &Map<String, Value>) -> (Option<Owner>, Option<(&'static str, Row)>) {
        let person = &self.facts.people[self.actor.person];
        let school = person.school;
        if let Some("school") = args.get("audience").and_then(Value::as_str) {
            return (school.map(|school| self.facts.shared(school)), None);
        }
        let names = |table: &&&str| args.keys().any(|name| table_of(name) == Some(**table));
        let pinned = self.actor.scope.pinned().filter(|_| self.takes("campuses"));
        let mut telling = TELLING.iter();
        let telling = telling.find(|table| names(table) || (**table == "campuses" && pinned.is_some()));
        let (table, row) = match (telling, pinned) {
            (Some(table @ &"campuses"), Some(campus)) => (table, self.facts.find("campuses", campus).cloned()),
            (Some(table), _) => (table, self.named(args, table)),
            (None, _) => return (self.lands_by_itself(args, school), None),
        };
        let row = row.filter(|row| self.covers(row));
        let owner = row.as_ref().map(|row| self.facts.owner(row.school, row.campus));
        (owner, row.map(|row| (*table, row)))
    }

    /// The same where no argument names a row of a campus.
    fn lands_by_itself(&self, args: &Map<String, Value>, school: Option<Uuid>) -> Option<Owner> {
        let shared = ["classes", "subjects"].iter().find_map(|table| {
            let ids = args.iter().filter(|(name, _)| table_of(name) == Some(table));
            let mut ids = ids.flat_map(|(_, value)| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]));
            ids.find_map(|id| self.facts.find(table, id.as_str()?.parse().ok()?))
        });
        let school = school.or(shared.map(|row| row.school))?;
        let is_placed = TELLING.iter().any(|table| self.takes(table));
        match &self.may {
            _ if !is_placed => Some(self.facts.shared(school)),
            may if may.has_unplaced() => Some(self.facts.owner(school, None)),
            Reach::Some { campuses, .. } if campuses.len() == 1 => {
                Some(Owner::new(&self.facts.shared(school).school, campuses.first()?))
            }
            Reach::Some { .. } | Reach::Everything | Reach::Nothing => None,
        }
    }

    /// Whether an argument of the tool names rows of a table.
    fn takes(&self, table: &str) -> bool {
        let schema = self.tool.schema();
        let mut names = schema["properties"].as_object().into_iter().flatten();
        names.any(|(name, _)| table_of(name) == Some(table))
    }

    /// An account of another school would be joined, and its name would be theirs by right.
    fn keep_accounts_apart(&self, args: &mut Map<String, Value>) {
        let Some(Value::String(email)) = args.get("email") else {
            return;
        };
        let school = self.facts.people[self.actor.person].school;
        let other = self.facts.people.iter().find(|person| person.email == *email);
        if other.is_some_and(|person| person.school.is_some() && person.school != school) {
            args.insert("email".to_owned(), json!(format!("{MARK}@mail.example")));
        }
    }

    fn spare_beside(&self, table: &str, row: &Row) -> Uuid {
        let spare = self.facts.spare[table].iter();
        let beside: Vec<&Row> = spare.filter(|spare| spare.campus == row.campus).collect();
        beside[usize::from(row.id.as_bytes()[15]) % beside.len()].id
    }

    /// A student moves to a stream of the own campus in which nobody is; whoever answers for it may see them then.
    fn move_within(&mut self, args: &mut Map<String, Value>, student: &Row) {
        let stream = self.spare_beside("streams", student);
        args.insert("streamId".to_owned(), json!(stream));
        self.changes.push(Change::IsIn(student.id, stream));
    }

    /// A stream is given to somebody who may get one, and it is one that nobody has.
    fn hand_over(&mut self, args: &mut Map<String, Value>, stream: &Row) {
        let spare = self.spare_beside("streams", stream);
        let who = usize::from(stream.id.as_bytes()[14]);
        let people = self.facts.people.iter().enumerate();
        let able: Vec<_> = people
            .filter(|(_, person)| {
                let who = person.who.as_str();
                let there = person.campus == stream.campus && PROMOTED_ON_CAMPUS.contains(&who);
                person.school == Some(stream.school)
                    && (there || (person.campus.is_none() && PROMOTED_IN_SCHOOL.contains(&who)))
            })
            .collect();
        let (at, person) = able[who % able.len()];
        args.insert("streamId".to_owned(), json!(spare));
        args.insert("targetStaffId".to_owned(), json!(person.staff));
        self.changes.push(match self.named(args, "subjects") {
            Some(subject) => Change::Teaches(at, spare, subject.id),
            None => Change::AnswersFor(at, spare),
        });
    }

    /// Whether the role that is taken from somebody only lets them look around: that they still might is no great matter.
    fn takes_little_away(&self, args: &Map<String, Value>) -> bool {
        let role = args.get("role").and_then(Value::as_str);
        let mut roles = self.facts.roles.iter();
        let is_small = |(_, role, _): &(Uuid, String, String)| SMALL_ROLES.contains(&role.as_str());
        let held = roles.find(|(.., marked)| Some(marked.as_str()) == role);
        self.tool.definition.event.verb() == "revoke" && held.is_some_and(is_small)
    }

    /// Turns the gift of a role to somebody who may get one, and notes what they may hold then.
    fn promote(&mut self, args: &mut Map<String, Value>, row: &Row) {
        let is_limited = !self.may.has_unplaced();
        let (names, campus) = if is_limited {
            (PROMOTED_ON_CAMPUS, row.campus)
        } else {
            (PROMOTED_IN_SCHOOL, None)
        };
        let person = self.facts.people.iter().position(|person| {
            person.school == Some(row.school) && person.campus == campus && names.contains(&person.who.as_str())
        });
        let person = person.expect("each place has somebody to promote");
        args.insert("targetStaffId".to_owned(), json!(self.facts.people[person].staff));
        let role = args.get("role").and_then(Value::as_str).unwrap_or_default();
        let mut roles = self.facts.roles.iter();
        let Some((_, role, _)) = roles.find(|(school, _, marked)| *school == row.school && marked == role) else {
            return;
        };
        let requested = match (self.actor.scope, args.get("campusId")) {
            (AgentCallScope::Campus { campus_id }, _) => Some(campus_id),
            (AgentCallScope::School {}, None | Some(Value::Null)) => None,
            (AgentCallScope::School {}, Some(_)) => match self.named(args, "campuses") {
                Some(row) => Some(row.id),
                None => return,
            },
        };
        let is_theirs_to_give = match requested {
            Some(requested) if is_limited => row.campus == Some(requested),
            // as it is defined, only the role that means the holder's campus throughout
            None if is_limited => role == "head_teacher",
            Some(requested) => self.facts.campuses_of(row.school).contains(&requested),
            None => true,
        };
        if is_theirs_to_give {
            let (role, campus) = (role.clone(), requested);
            self.changes.push(Change::Holds(person, Held { role, campus }));
        }
    }
}

/// Permissions of a department that no tool asks for.
fn make_harmless(args: &mut Map<String, Value>) {
    let Some(Value::Array(permissions)) = args.get_mut("permissions") else {
        return;
    };
    for permission in permissions.iter_mut().filter_map(Value::as_object_mut) {
        if permission.get("resource").is_some_and(Value::is_string) {
            permission.insert("resource".to_owned(), json!("REPORT"));
        }
    }
}

/// Leaves only that place in what is addressed which its audience means.
fn address(args: &mut Map<String, Value>, actor: &Actor) {
    let audience = args
        .get("audience")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if audience.is_empty() {
        return;
    }
    let pinned = actor.scope.pinned().is_some();
    if audience != "stream" {
        args.remove("streamId");
    }
    if audience != "campus" || pinned {
        args.remove("campusId");
    }
}

/// Whoever moves takes rules along; in this test nobody does.
fn stay(args: &mut Map<String, Value>, row: &Row) {
    match row.campus {
        Some(campus) if args.contains_key("campusId") => drop(args.insert("campusId".to_owned(), json!(campus))),
        _ => drop(args.remove("campusId")),
    }
}
