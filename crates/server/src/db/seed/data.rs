//! The shape of a seeded school, and what both schools have: their roles and the operator.
//!
//! Things refer to each other by short names: a campus by its key, a person by what stands before the `@`, a subject by its code, a
//! stream by its name.

/// A school with all that is in it.
pub(super) struct School {
    pub(super) slug: &'static str,
    pub(super) name: &'static str,
    pub(super) time_zone: &'static str,
    pub(super) motto: &'static str,
    pub(super) description: &'static str,
    pub(super) colours: &'static [&'static str],
    pub(super) logo_url: &'static str,
    pub(super) campuses: &'static [Campus],
    pub(super) people: &'static [Person],
    pub(super) terms: &'static [Term],
    pub(super) departments: &'static [Department],
    pub(super) subjects: &'static [Subject],
    pub(super) classes: &'static [Class],
    pub(super) streams: &'static [Stream],
    /// Students of a stream are named by going through both lists at different paces.
    pub(super) given_names: &'static [&'static str],
    pub(super) family_names: &'static [&'static str],
    pub(super) notes: &'static [&'static str],
    pub(super) admission_prefix: &'static str,
}

pub(super) struct Campus {
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) address: &'static str,
    /// Who directs the studies here.
    pub(super) director: Option<&'static str>,
}

/// A person with an account and a staff profile.
pub(super) struct Person {
    pub(super) who: &'static str,
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Where they work; `None` is the whole school.
    pub(super) campus: Option<&'static str>,
    pub(super) standing: Standing,
    pub(super) roles: &'static [Held],
}

/// The type of an account, and whether it is open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    SchoolAdmin,
    Staff,
    FormerStaff,
}

/// A role in somebody's hands.
pub(super) struct Held {
    pub(super) role: &'static str,
    /// Where it counts; `None` is as the role says.
    pub(super) campus: Option<&'static str>,
}

pub(super) const fn held(role: &'static str) -> Held {
    Held { role, campus: None }
}

pub(super) const fn held_on(role: &'static str, campus: &'static str) -> Held {
    Held {
        role,
        campus: Some(campus),
    }
}

/// A term of every year, by month and day.
pub(super) struct Term {
    pub(super) number: i32,
    pub(super) name: &'static str,
    pub(super) starts: (i32, i32),
    pub(super) ends: (i32, i32),
}

pub(super) struct Department {
    pub(super) campus: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) heads: &'static [&'static str],
    pub(super) members: &'static [&'static str],
    pub(super) permissions: &'static [(&'static str, &'static str)],
}

pub(super) struct Subject {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
}

pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) level: i32,
    pub(super) description: &'static str,
    /// The codes of the subjects that it takes.
    pub(super) subjects: &'static [&'static str],
}

pub(super) struct Stream {
    pub(super) campus: &'static str,
    pub(super) year: Year,
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) class_teacher: Option<&'static str>,
    /// Subject and teacher.
    pub(super) taught: &'static [(&'static str, &'static str)],
    pub(super) students: Students,
}

/// Which of the seeded years; there are two, so that what leaks from last year shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Year {
    Previous,
    Current,
}

impl Year {
    pub(super) const ALL: [Self; 2] = [Self::Previous, Self::Current];

    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Previous => "previous",
            Self::Current => "current",
        }
    }
}

/// Whom a stream has.
pub(super) enum Students {
    /// Students who are in no other stream of the tables.
    New,
    /// Those who are now in the stream of this name on the campus.
    NowIn(&'static str),
}

/// How many students a stream has.
pub(super) const STREAM_SIZE: usize = 36;

pub(super) struct Role {
    pub(super) name: &'static str,
    /// `{school}` stands for the school's name.
    pub(super) description: &'static str,
    pub(super) rank: i32,
    pub(super) rules: &'static [Rule],
}

/// A rule that allows: action, resource, condition.
pub(super) type Rule = (&'static str, &'static str, Option<&'static str>);

/// Only what is on the holder's campus.
const OWN_CAMPUS: Option<&str> = Some(r#"{"campusId": "$own"}"#);

/// What every teacher may look at.
const TEACHING: &[Rule] = &[
    ("READ", "SCHOOL", None),
    ("LIST", "SUBJECT", None),
    ("LIST", "CAMPUS", OWN_CAMPUS),
    ("LIST", "DEPARTMENT", OWN_CAMPUS),
    ("READ", "DEPARTMENT", OWN_CAMPUS),
    ("LIST", "STAFF", OWN_CAMPUS),
    ("LIST", "STREAM", OWN_CAMPUS),
];

pub(super) const ROLES: &[Role] = &[
    Role {
        name: "class_teacher",
        description: "Answers for a stream of {school}.",
        rank: 10,
        rules: TEACHING,
    },
    Role {
        name: "subject_teacher",
        description: "Teaches a subject at {school}.",
        rank: 20,
        rules: TEACHING,
    },
    Role {
        name: "director_of_studies",
        description: "Sees to what is taught on a campus of {school}.",
        rank: 30,
        rules: &[
            ("READ", "SCHOOL", None),
            ("LIST", "SUBJECT", None),
            ("LIST", "CAMPUS", OWN_CAMPUS),
            ("LIST", "DEPARTMENT", OWN_CAMPUS),
            ("READ", "DEPARTMENT", OWN_CAMPUS),
            ("LIST", "STAFF", OWN_CAMPUS),
            ("READ", "STAFF", OWN_CAMPUS),
            ("LIST", "STREAM", OWN_CAMPUS),
            ("READ", "STREAM", OWN_CAMPUS),
            ("LIST", "STUDENT", OWN_CAMPUS),
            ("READ", "STUDENT", OWN_CAMPUS),
        ],
    },
    Role {
        name: "clerk",
        description: "Looks things up anywhere in {school}, and changes nothing.",
        rank: 40,
        rules: &[("READ", "ALL", None), ("LIST", "ALL", None)],
    },
    Role {
        name: "head_teacher",
        description: "Runs a campus of {school}.",
        rank: 50,
        rules: &[("MANAGE", "ALL", OWN_CAMPUS)],
    },
    Role {
        name: "school_admin",
        description: "Runs the whole of {school}.",
        rank: 60,
        rules: &[("MANAGE", "ALL", None)],
    },
];

/// The operator's own account, in no school.
pub(super) struct Operator {
    pub(super) who: &'static str,
    pub(super) name: &'static str,
}

pub(super) const PLATFORM_ADMIN: Operator = Operator {
    who: "platform",
    name: "Jordan Kiprop",
};

#[cfg(test)]
impl School {
    /// Names in the tables that stand for nothing; those would only show as ids that the database does not know.
    pub(super) fn dangling_names(&self) -> Vec<String> {
        let campus = |key: &str| self.campuses.iter().any(|campus| campus.key == key);
        let person = |who: &str| self.people.iter().any(|person| person.who == who);
        let role = |name: &str| ROLES.iter().any(|role| role.name == name);
        let campuses = (self.people.iter().filter_map(|p| p.campus))
            .chain(self.people.iter().flat_map(|p| p.roles).filter_map(|held| held.campus))
            .chain(self.departments.iter().map(|d| d.campus))
            .chain(self.streams.iter().map(|s| s.campus))
            .filter(|key| !campus(key));
        let people = (self.campuses.iter().filter_map(|c| c.director))
            .chain(
                self.departments
                    .iter()
                    .flat_map(|d| d.heads.iter().chain(d.members))
                    .copied(),
            )
            .chain(self.streams.iter().filter_map(|s| s.class_teacher))
            .chain(self.streams.iter().flat_map(|s| s.taught).map(|&(_, who)| who))
            .filter(|who| !person(who));
        let roles = self
            .people
            .iter()
            .flat_map(|p| p.roles)
            .map(|held| held.role)
            .filter(|name| !role(name));
        campuses.chain(people).chain(roles).map(str::to_owned).collect()
    }
}
