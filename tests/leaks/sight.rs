//! What may be seen of a row that is within reach: by the table that it is in and what it is about, never by the tool that shows it.

use super::{
    actors::Actor,
    facts::Facts,
    marking::Origin,
    marks::{Mark, Owner},
    reach::{Change, Eyes, Reach, Rows, reach},
};
use contract::{Resource, RpcTool};
use server::posture::Auth;
use uuid::Uuid;

/// Tables whose rows are for everybody within reach.
const OPEN: &[&str] = &[
    "academic_years",
    "campus_academic_years",
    "campuses",
    "classes",
    "grading_bands",
    "grading_configs",
    "lesson_templates",
    "roles",
    "schools",
    "staff",
    "subjects",
    "terms",
    "users",
];
/// Tables that no tool shows anything of.
const CLOSED: &[&str] = &["threads", "tool_calls", "turn_events", "turns"];

/// What one call may show.
pub(super) struct Sight<'a> {
    facts: &'a Facts,
    pub(super) reach: Reach,
    auth: Auth,
    eyes: Eyes<'a>,
    changes: &'a [Change],
}

impl<'a> Sight<'a> {
    pub(super) fn of(facts: &'a Facts, changes: &'a [Change], actor: &Actor, tool: &RpcTool) -> Self {
        Self {
            facts,
            reach: reach(facts, changes, actor, tool),
            auth: facts.posture(tool),
            eyes: Eyes::of(facts, changes, actor.person),
            changes,
        }
    }

    /// The same where nothing may be had.
    pub(super) fn closed(self) -> Self {
        Self {
            reach: Reach::Nothing,
            ..self
        }
    }

    /// Whether the tool's gate is about this.
    pub(super) fn is_gated_by(&self, wanted: Resource) -> bool {
        matches!(self.auth, Auth::Casl { resource, .. } if resource == wanted)
    }

    /// Whether a text may be shown. Where calls of this test wrote it, `written` says about which rows.
    pub(super) fn admits(&self, mark: &Mark, written: &[Origin]) -> bool {
        match self.facts.marked.marks.get(&mark.serial) {
            Some(origin) => self.admits_row(origin),
            None if written.is_empty() => self.reach.admits(&mark.owner),
            None => written.iter().any(|origin| self.admits_row(origin)),
        }
    }

    pub(super) fn admits_row(&self, origin: &Origin) -> bool {
        match self.reach {
            Reach::Everything => true,
            Reach::Nothing => false,
            Reach::Some { .. } => self.is_within_reach(origin) && self.is_theirs(origin),
        }
    }

    fn is_within_reach(&self, origin: &Origin) -> bool {
        if self.reach.admits(&origin.owner) {
            return true;
        }
        // what is announced to the whole school is read on every campus
        if origin.table == "announcements" && super::marks::is_shared(&origin.owner) {
            return self.reach.admits(&origin.owner.shared());
        }
        // people work elsewhere too, or for the whole school; what is about staff shows them by its gate alone
        let is_person = matches!(origin.table.as_str(), "staff" | "users") && !self.is_gated_by(Resource::Staff);
        let row = origin.row;
        let person = self
            .facts
            .people
            .iter()
            .find(|person| person.staff == row || Some(person.user) == row);
        let Some((person, school)) = person.filter(|_| is_person).and_then(|of| Some((of, of.school?))) else {
            return false;
        };
        let is_near = |campus: &Uuid| self.reach.admits(&self.facts.owner(school, Some(*campus)));
        let shared = self.reach.admits(&self.facts.shared(school)) && self.reach.has_campuses();
        person.works_on.iter().any(is_near) || (shared && person.campus.is_none()) || self.was_put_near(person.staff)
    }

    /// Whether calls of this test gave a person something to do within reach.
    fn was_put_near(&self, staff: Option<Uuid>) -> bool {
        let is = |at: &usize| self.facts.people[*at].staff == staff;
        let near = |table: &str, id: &Uuid| {
            let row = self.facts.find(table, *id);
            row.is_some_and(|row| self.reach.admits(&self.facts.owner(row.school, row.campus)))
        };
        self.changes.iter().any(|change| match change {
            Change::AnswersFor(who, stream) | Change::Teaches(who, stream, _) => is(who) && near("streams", stream),
            Change::Leads(who, department) => is(who) && near("departments", department),
            Change::Holds(..) | Change::IsIn(..) => false,
        })
    }

    fn is_theirs(&self, origin: &Origin) -> bool {
        let eyes = &self.eyes;
        let about = |table: &str| origin.about.get(table).copied();
        match origin.table.as_str() {
            open if OPEN.contains(&open) => true,
            closed if CLOSED.contains(&closed) => false,
            "audit_log" => self.by_rule("AUDIT_LOG", &origin.owner),
            "departments" | "department_permissions" => {
                self.has_rule("DEPARTMENT", &origin.owner)
                    || about("departments").is_some_and(|department| eyes.leads.contains(&department))
            }
            "streams" => about("streams").is_some_and(|stream| self.facts.current.contains(&stream)),
            "students" | "student_words" => {
                let student = about("students");
                self.by_rule("STUDENT", &origin.owner)
                    || self.any_stream_of(student, |stream| self.is_in_charge(stream) || self.teaches_in(stream))
            }
            "guardians" => self.by_rule("STUDENT", &origin.owner),
            "attendance_marks" | "report_comments" => {
                self.any_stream_of(about("students"), |stream| self.is_in_charge(stream))
            }
            "assessments" | "scores" => {
                let (stream, subject) = (about("streams"), about("subjects"));
                stream.is_some_and(|stream| {
                    self.is_in_charge(stream)
                        || subject.is_some_and(|subject| eyes.teaches.contains(&(stream, subject)))
                })
            }
            "lesson_plans" => {
                let is_author = eyes.person.staff.is_some() && about("staff") == eyes.person.staff;
                is_author || about("streams").is_some_and(|stream| self.directs(stream))
            }
            "announcements" => self.is_addressed(origin),
            other => panic!("say who may see rows of {other}"),
        }
    }

    /// To the whole school, to a campus, or to those who have to do with a stream.
    fn is_addressed(&self, origin: &Origin) -> bool {
        let person = self.eyes.person;
        let is_to_campus = |campus: Uuid| self.facts.place(campus) == origin.owner.place;
        match origin.about.get("streams") {
            _ if self.by_rule("ANNOUNCEMENT", &origin.owner) => true,
            Some(stream) => self.is_in_charge(*stream) || self.teaches_in(*stream),
            None => super::marks::is_shared(&origin.owner) || person.campus.is_none_or(is_to_campus),
        }
    }

    fn any_stream_of(&self, student: Option<Uuid>, is_it: impl Fn(Uuid) -> bool) -> bool {
        let Some(student) = student else { return false };
        let seeded = self.facts.streams_of.get(&student).into_iter().flatten().copied();
        let is_theirs = |change: &&Change| matches!(change, Change::IsIn(who, _) if *who == student);
        let moved = self.changes.iter().filter(is_theirs).filter_map(Change::stream);
        seeded.chain(moved).any(is_it)
    }

    fn is_in_charge(&self, stream: Uuid) -> bool {
        self.eyes.class_teacher_of.contains(&stream) || self.directs(stream)
    }

    fn directs(&self, stream: Uuid) -> bool {
        let campus = self.facts.campus_of_stream(stream);
        campus.is_some_and(|campus| self.eyes.person.directs.contains(&campus))
    }

    fn teaches_in(&self, stream: Uuid) -> bool {
        self.eyes.teaches.iter().any(|(taught, _)| *taught == stream)
    }

    /// Whether any rule of theirs about this reaches the row.
    fn has_rule(&self, resource: &str, owner: &Owner) -> bool {
        let Rows { campuses, unplaced } = self.eyes.allowed(|permission| permission.is_on(resource));
        let is_there = |campus: &Uuid| self.facts.place(*campus) == owner.place;
        campuses.iter().any(is_there) || (unplaced && super::marks::is_shared(owner))
    }

    /// The same, where the tool goes by rules at all.
    fn by_rule(&self, resource: &str, owner: &Owner) -> bool {
        matches!(self.auth, Auth::Casl { .. }) && self.has_rule(resource, owner)
    }
}
