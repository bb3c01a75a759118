//! What the seeded schools hold, by name, and the arguments that a tool's example stands for.

use contract::{RpcTool, ToolRole, tool::Placement};
use serde_json::Value;
use server::db::seed::id;
use uuid::Uuid;

/// One of the seeded schools, with the rows that examples name.
#[derive(Debug, Clone, Copy)]
pub struct School {
    /// Its slug, which is also what its addresses end in.
    pub slug: &'static str,
    /// The key of its first campus.
    pub first_campus: &'static str,
    /// The key of its second campus.
    pub second_campus: &'static str,
    /// A department on the first campus.
    pub department: &'static str,
    /// The stream of the seeded class teacher, on the first campus, this year.
    pub stream: &'static str,
    /// Another stream on the first campus, this year.
    pub other_stream: &'static str,
    /// The code of the subject that the seeded subject teacher teaches to the first of these streams.
    pub subject: &'static str,
    /// A class, by its name.
    pub class: &'static str,
    /// The admission number of a student of the first of these streams.
    pub student: &'static str,
    /// Somebody without power, on the first campus.
    pub colleague: &'static str,
    /// The class teacher of the first of these streams, who holds that role wherever they work.
    pub class_teacher: &'static str,
}

/// Hilltop Academy.
pub const HILLTOP: School = School {
    slug: "hilltop",
    first_campus: "main",
    second_campus: "lakeside",
    department: "Sciences",
    stream: "S2 East",
    other_stream: "S2 West",
    subject: "CHE",
    class: "Senior 3",
    student: "HA-0040",
    colleague: "newcomer",
    class_teacher: "class.teacher",
};
/// The same school, seen from its other campus.
pub const HILLTOP_LAKESIDE: School = School {
    first_campus: "lakeside",
    second_campus: "main",
    stream: "S1 Lake",
    other_stream: "S2 Lake",
    subject: "PHY",
    student: "HA-0110",
    colleague: "lakeside.teacher",
    class_teacher: "lakeside.teacher",
    ..HILLTOP
};
/// Riverside College.
pub const RIVERSIDE: School = School {
    slug: "riverside",
    first_campus: "north",
    second_campus: "south",
    department: "Computing",
    stream: "2 Blue",
    other_stream: "2 Copper",
    subject: "CMP",
    class: "Form 3",
    student: "RC-0040",
    colleague: "newcomer",
    class_teacher: "class.teacher",
};

impl School {
    /// The address of one of its people.
    #[must_use]
    pub fn email(&self, who: &str) -> String {
        format!("{who}@{}.example", self.slug)
    }

    /// The school.
    #[must_use]
    pub fn id(&self) -> Uuid {
        id(&[self.slug])
    }

    /// A campus, by its key.
    #[must_use]
    pub fn campus(&self, key: &str) -> Uuid {
        id(&[self.slug, "campus", key])
    }

    /// A department of the first campus.
    #[must_use]
    pub fn department_id(&self) -> Uuid {
        id(&[self.slug, "department", self.first_campus, self.department])
    }

    /// Somebody's profile.
    #[must_use]
    pub fn staff(&self, who: &str) -> Uuid {
        id(&[self.slug, "staff", who])
    }

    /// The stream of the seeded class teacher.
    #[must_use]
    pub fn stream_id(&self) -> Uuid {
        self.current("stream", self.stream)
    }

    /// An assessment of the subject in the stream, by the number of its term and its place in it; it is there once the term has begun.
    #[must_use]
    pub fn assessment(&self, term: &str, place: &str) -> Uuid {
        let stream = self.stream_id().to_string();
        id(&[self.slug, "assessment", &stream, self.subject, term, place])
    }

    /// What belongs to the current year of the first campus, by its kind and name.
    fn current(&self, kind: &str, name: &str) -> Uuid {
        id(&[self.slug, kind, self.first_campus, "current", name])
    }

    /// The plan in this status that the seeded subject teacher has for the first stream.
    #[must_use]
    pub fn plan(&self, status: &str) -> Uuid {
        let Self {
            slug,
            first_campus,
            stream,
            subject,
            ..
        } = self;
        id(&[slug, "lesson-plan", first_campus, "current", stream, subject, status])
    }

    /// The address of the seeded person who may use a tool: of a specialist's, whoever has the first role that it names.
    #[must_use]
    pub fn user_of(&self, tool: &RpcTool) -> String {
        self.email(match tool.definition.placement {
            Placement::Supervisor | Placement::Shared => "admin",
            Placement::Roles(roles) => match roles.as_slice().first() {
                Some(ToolRole::ClassTeacher) | None => "class.teacher",
                Some(ToolRole::SubjectTeacher) => "subject.teacher",
                Some(ToolRole::Dos) => "dos",
            },
        })
    }

    /// A tool's example, with ids of this school.
    #[must_use]
    pub fn example(&self, tool: &RpcTool) -> Value {
        self.resolve(tool.example())
    }

    /// Arguments with ids of this school for each `"{kind}"`.
    #[must_use]
    pub fn resolve(&self, args: Value) -> Value {
        match args {
            Value::String(text) => match self.row(&text) {
                Some(row) => Value::String(row.to_string()),
                None => Value::String(text),
            },
            Value::Array(items) => items.into_iter().map(|item| self.resolve(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (name, self.resolve(value)))
                .collect(),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
        }
    }

    /// The row that a placeholder of an example stands for.
    #[must_use]
    pub fn row(&self, placeholder: &str) -> Option<Uuid> {
        match placeholder {
            "{campus}" => Some(self.campus(self.first_campus)),
            "{department}" => Some(self.department_id()),
            "{staff}" => Some(self.staff(self.colleague)),
            "{class_teacher}" => Some(self.staff(self.class_teacher)),
            "{stream}" => Some(self.stream_id()),
            "{other_stream}" => Some(self.current("stream", self.other_stream)),
            "{subject}" => Some(id(&[self.slug, "subject", self.subject])),
            "{class}" => Some(id(&[self.slug, "class", self.class])),
            "{template}" => Some(id(&[self.slug, "lesson-template", "plain"])),
            "{draft_plan}" => Some(self.plan("draft")),
            "{submitted_plan}" => Some(self.plan("submitted")),
            "{term}" => Some(self.current("term", "1")),
            "{assessment}" => Some(self.assessment("1", "1")),
            "{student}" => Some(id(&[self.slug, "student", self.student])),
            other => {
                assert!(!other.starts_with('{'), "{other} is no row that a fixture has");
                None
            }
        }
    }
}
