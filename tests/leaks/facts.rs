//! The seeded facts, read by this test itself: who people are, what they hold and teach, and the rows there are to name.

use super::{
    marking::{Marked, Names},
    marks::{Owner, UNPLACED},
};
use contract::UserType;
use sqlx::{PgConnection, types::Json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// A role that somebody holds, on a campus or as it is defined.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub(super) struct Held {
    /// The role's seeded name.
    pub(super) role: String,
    pub(super) campus: Option<Uuid>,
}

/// Somebody with an account.
#[derive(Debug, Clone)]
pub(super) struct Person {
    /// What stood before the `@`.
    pub(super) who: String,
    /// The address, once it is a mark.
    pub(super) email: String,
    pub(super) user: Uuid,
    pub(super) user_type: UserType,
    pub(super) active: bool,
    /// None for the operator.
    pub(super) school: Option<Uuid>,
    pub(super) staff: Option<Uuid>,
    pub(super) campus: Option<Uuid>,
    pub(super) roles: Vec<Held>,
    /// Streams of the current year that they are class teacher of.
    pub(super) class_teacher_of: BTreeSet<Uuid>,
    /// Streams of the current year that they have anything to do with.
    pub(super) teaches_in: BTreeSet<Uuid>,
    /// Campuses whose studies they direct.
    pub(super) directs: BTreeSet<Uuid>,
}

/// A row that a call may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: Uuid,
    pub(super) school: Uuid,
    pub(super) campus: Option<Uuid>,
}

/// Kinds of rows that calls name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Campus,
    Department,
    Staff,
    Stream,
    Year,
    Student,
}

impl Kind {
    pub(super) const ALL: [Self; 6] = [
        Self::Campus,
        Self::Department,
        Self::Staff,
        Self::Stream,
        Self::Year,
        Self::Student,
    ];
}

/// All of it.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) names: Names,
    pub(super) people: Vec<Person>,
    pub(super) rows: BTreeMap<Kind, Vec<Row>>,
    /// Departments that calls may delete.
    pub(super) spare: Vec<Row>,
    /// Streams of the current year by the students in them.
    pub(super) streams_of: HashMap<Uuid, BTreeSet<Uuid>>,
    /// Each school's roles: their seeded names, and their names once these are marks.
    pub(super) roles: Vec<(Uuid, String, String)>,
    pub(super) marked: Marked,
}

impl Facts {
    /// Reads what there is, before it is marked.
    pub(super) async fn read(owner: &mut PgConnection) -> Self {
        Self {
            names: Names::read(owner).await,
            people: people(owner).await,
            rows: rows(owner).await,
            spare: select(
                owner,
                "SELECT id, school_id, campus_id FROM departments WHERE name LIKE 'Spare%' ORDER BY campus_id, name",
            )
            .await,
            streams_of: streams_of(owner).await,
            roles: Vec::new(),
            marked: Marked::default(),
        }
    }

    /// Reads what marking has changed; `names` are the names of roles from before.
    pub(super) async fn read_again(&mut self, owner: &mut PgConnection, names: Vec<(Uuid, Uuid, String)>) {
        for person in &mut self.people {
            person.email = sqlx::query_scalar("SELECT email FROM users WHERE id = $1")
                .bind(person.user)
                .fetch_one(&mut *owner)
                .await
                .unwrap();
        }
        for (school, id, name) in names {
            let marked = sqlx::query_scalar("SELECT name FROM roles WHERE school_id = $1 AND id = $2")
                .bind(school)
                .bind(id)
                .fetch_one(&mut *owner)
                .await
                .unwrap();
            self.roles.push((school, name, marked));
        }
    }

    pub(super) fn of(&self, kind: Kind) -> &[Row] {
        &self.rows[&kind]
    }

    pub(super) fn find(&self, kind: Kind, id: Uuid) -> Option<Row> {
        self.of(kind).iter().copied().find(|row| row.id == id)
    }

    /// Whose a row of this school and campus is.
    pub(super) fn owner(&self, school: Uuid, campus: Option<Uuid>) -> Owner {
        let place = campus.map_or(UNPLACED, |campus| &self.names.0[&campus]);
        Owner::new(&self.names.0[&school], place)
    }

    pub(super) fn campuses_of(&self, school: Uuid) -> BTreeSet<Uuid> {
        let campuses = self.of(Kind::Campus).iter();
        campuses.filter(|row| row.school == school).map(|row| row.id).collect()
    }
}

/// Schools, ids and names of all roles.
pub(super) async fn role_names(owner: &mut PgConnection) -> Vec<(Uuid, Uuid, String)> {
    sqlx::query_as("SELECT school_id, id, name FROM roles ORDER BY school_id, rank")
        .fetch_all(owner)
        .await
        .unwrap()
}

#[derive(sqlx::FromRow)]
struct PersonRow {
    id: Uuid,
    email: String,
    user_type: String,
    active: bool,
    school_id: Option<Uuid>,
    staff_id: Option<Uuid>,
    campus_id: Option<Uuid>,
    roles: Json<Vec<Held>>,
    class_teacher_of: Vec<Uuid>,
    teaches_in: Vec<Uuid>,
    directs: Vec<Uuid>,
}

async fn people(owner: &mut PgConnection) -> Vec<Person> {
    let rows: Vec<PersonRow> = sqlx::query_as(
        "WITH current AS (SELECT st.id FROM streams st JOIN campus_academic_years y ON y.id = st.campus_academic_year_id
                           WHERE y.is_current)
         SELECT u.id, u.email, u.type AS user_type, u.active AND coalesce(s.active, true) AS active, s.school_id,
                s.id AS staff_id, s.campus_id,
                coalesce((SELECT jsonb_agg(jsonb_build_object('role', r.name, 'campus', ur.campus_id))
                            FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.staff_id = s.id), '[]') AS roles,
                ARRAY(SELECT t.stream_id FROM class_teachers t JOIN current c ON c.id = t.stream_id
                       WHERE t.staff_id = s.id) AS class_teacher_of,
                ARRAY(SELECT t.stream_id FROM class_teachers t JOIN current c ON c.id = t.stream_id WHERE t.staff_id = s.id
                      UNION SELECT t.stream_id FROM subject_teachers t JOIN current c ON c.id = t.stream_id
                             WHERE t.staff_id = s.id) AS teaches_in,
                ARRAY(SELECT d.campus_id FROM directors_of_studies d WHERE d.staff_id = s.id) AS directs
           FROM users u LEFT JOIN staff s ON s.user_id = u.id
          ORDER BY u.type, split_part(u.email, '@', 2), u.email",
    )
    .fetch_all(owner)
    .await
    .unwrap();
    rows.into_iter().map(person).collect()
}

fn person(row: PersonRow) -> Person {
    Person {
        who: row.email.split('@').next().unwrap_or_default().to_owned(),
        email: row.email,
        user: row.id,
        user_type: serde_json::from_value(row.user_type.into()).unwrap(),
        active: row.active,
        school: row.school_id,
        staff: row.staff_id,
        campus: row.campus_id,
        roles: row.roles.0,
        class_teacher_of: row.class_teacher_of.into_iter().collect(),
        teaches_in: row.teaches_in.into_iter().collect(),
        directs: row.directs.into_iter().collect(),
    }
}

async fn rows(owner: &mut PgConnection) -> BTreeMap<Kind, Vec<Row>> {
    let mut rows = BTreeMap::new();
    for kind in Kind::ALL {
        let query = match kind {
            Kind::Campus => "SELECT id, school_id, id FROM campuses ORDER BY 2, name",
            Kind::Department => "SELECT id, school_id, campus_id FROM departments ORDER BY 2, 3, name",
            Kind::Staff => "SELECT id, school_id, campus_id FROM staff ORDER BY 2, 3, id",
            Kind::Stream => "SELECT id, school_id, campus_id FROM streams ORDER BY 2, 3, name",
            Kind::Year => "SELECT id, school_id, campus_id FROM campus_academic_years ORDER BY 2, 3, is_current",
            Kind::Student => "SELECT id, school_id, campus_id FROM students ORDER BY 2, 3, admission_number",
        };
        rows.insert(kind, select(owner, query).await);
    }
    rows
}

async fn select(owner: &mut PgConnection, query: &'static str) -> Vec<Row> {
    let rows: Vec<(Uuid, Uuid, Option<Uuid>)> = sqlx::query_as(query).fetch_all(owner).await.unwrap();
    assert!(!rows.is_empty(), "there are rows to name");
    rows.into_iter()
        .map(|(id, school, campus)| Row { id, school, campus })
        .collect()
}

async fn streams_of(owner: &mut PgConnection) -> HashMap<Uuid, BTreeSet<Uuid>> {
    let rows: Vec<(Uuid, Uuid)> = sqlx::query_as(
        "SELECT e.student_id, e.stream_id FROM enrolments e JOIN campus_academic_years y ON y.id = e.campus_academic_year_id
          WHERE y.is_current",
    )
    .fetch_all(owner)
    .await
    .unwrap();
    let mut streams: HashMap<Uuid, BTreeSet<Uuid>> = HashMap::new();
    for (student, stream) in rows {
        streams.entry(student).or_default().insert(stream);
    }
    streams
}
