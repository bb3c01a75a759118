//! The seeded facts, read by this test itself: who people are, what they hold, teach and lead, and the rows there are to name.

use super::{
    catalog::{About, Catalog},
    marking::{Marked, Names},
    marks::{COMMON, Owner, UNPLACED},
};
use contract::{RpcTool, UserType};
use server::posture::Auth;
use sqlx::{AssertSqlSafe, PgConnection, types::Json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use uuid::Uuid;

/// What stands in the name of an argument that is an id, and the table whose rows it names; the first that is found.
pub(super) const NAMED: &[(&str, &str)] = &[
    ("year", "campus_academic_years"),
    ("campus", "campuses"),
    ("department", "departments"),
    ("staff", "staff"),
    ("subject", "subjects"),
    ("assessment", "assessments"),
    ("template", "lesson_templates"),
    ("plan", "lesson_plans"),
    ("student", "students"),
    ("stream", "streams"),
    ("class", "classes"),
    ("term", "terms"),
];

/// A role that somebody holds, on a campus or as it is defined.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Deserialize)]
pub(super) struct Held {
    /// The role's seeded name.
    pub(super) role: String,
    pub(super) campus: Option<Uuid>,
}

/// A permission of a role or a department. No seeded one forbids anything.
#[derive(Debug, Clone, serde::Deserialize)]
pub(super) struct Permission {
    action: String,
    resource: String,
    /// Where it holds: on the holder's campus, or everywhere.
    pub(super) own_campus: bool,
}

impl Permission {
    pub(super) fn is_about(&self, action: &str, resource: &str) -> bool {
        (self.action == action || self.action == "MANAGE") && self.is_on(resource)
    }

    pub(super) fn is_on(&self, resource: &str) -> bool {
        self.resource == resource || self.resource == "ALL"
    }
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
    /// What membership of a department gives, with its campus.
    pub(super) of_departments: Vec<(Uuid, Permission)>,
    /// Streams of the current year that they are class teacher of.
    pub(super) class_teacher_of: BTreeSet<Uuid>,
    /// Streams of the current year and the subjects that they teach there.
    pub(super) teaches: BTreeSet<(Uuid, Uuid)>,
    /// Campuses whose studies they direct.
    pub(super) directs: BTreeSet<Uuid>,
    /// Departments that they lead.
    pub(super) leads: BTreeSet<Uuid>,
    /// Campuses on which they have anything to do.
    pub(super) works_on: BTreeSet<Uuid>,
}

/// A row that a call may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: Uuid,
    pub(super) school: Uuid,
    pub(super) campus: Option<Uuid>,
    /// What it is about.
    pub(super) about: About,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) names: Names,
    pub(super) people: Vec<Person>,
    /// By table.
    pub(super) rows: BTreeMap<&'static str, Vec<Row>>,
    /// Departments that calls may delete, and streams that they may fill and staff; by table.
    pub(super) spare: BTreeMap<&'static str, Vec<Row>>,
    /// Streams of the current year.
    pub(super) current: BTreeSet<Uuid>,
    /// Streams of the current year by the students in them.
    pub(super) streams_of: HashMap<Uuid, BTreeSet<Uuid>>,
    /// What each role of a school lets people do, by its seeded name.
    pub(super) permissions: HashMap<(Uuid, String), Vec<Permission>>,
    /// Each school's roles: their seeded names, and their names once these are marks.
    pub(super) roles: Vec<(Uuid, String, String)>,
    pub(super) marked: Marked,
    /// By event.
    pub(super) postures: HashMap<&'static str, Auth>,
}

impl Facts {
    /// Reads what there is, before it is marked.
    pub(super) async fn read(owner: &mut PgConnection, catalog: &Catalog) -> Self {
        let mut rows = BTreeMap::new();
        for (_, table) in NAMED {
            let found = select(owner, catalog, table, "true").await;
            assert!(!found.is_empty(), "there are {table} to name");
            rows.insert(*table, found);
        }
        let mut spare = BTreeMap::new();
        for table in ["departments", "streams"] {
            spare.insert(table, select(owner, catalog, table, "t.name LIKE 'Spare%'").await);
        }
        Self {
            names: Names::read(owner).await,
            people: people(owner).await,
            rows,
            spare,
            current: current(owner).await,
            streams_of: streams_of(owner).await,
            permissions: permissions(owner).await,
            roles: Vec::new(),
            marked: Marked::default(),
            postures: HashMap::new(),
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

    pub(super) fn of(&self, table: &str) -> &[Row] {
        &self.rows[table]
    }

    pub(super) fn find(&self, table: &str, id: Uuid) -> Option<&Row> {
        self.of(table).iter().find(|row| row.id == id)
    }

    /// Whose a row of this school and campus is.
    pub(super) fn owner(&self, school: Uuid, campus: Option<Uuid>) -> Owner {
        let place = campus.map_or(UNPLACED, |campus| &self.names.0[&campus]);
        Owner::new(&self.names.0[&school], place)
    }

    /// Whose a row is that all campuses of a school share.
    pub(super) fn shared(&self, school: Uuid) -> Owner {
        Owner::new(&self.names.0[&school], COMMON)
    }

    /// The place that a campus is in marks.
    pub(super) fn place(&self, campus: Uuid) -> String {
        Owner::new("", &self.names.0[&campus]).place
    }

    /// By what authority a tool runs.
    pub(super) fn posture(&self, tool: &RpcTool) -> Auth {
        self.postures[tool.definition.event.as_str()]
    }

    pub(super) fn campuses_of(&self, school: Uuid) -> BTreeSet<Uuid> {
        let campuses = self.of("campuses").iter();
        campuses.filter(|row| row.school == school).map(|row| row.id).collect()
    }

    pub(super) fn campus_of_stream(&self, stream: Uuid) -> Option<Uuid> {
        self.find("streams", stream)?.campus
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
    of_departments: Json<Vec<(Uuid, Permission)>>,
    class_teacher_of: Vec<Uuid>,
    teaches: Json<Vec<(Uuid, Uuid)>>,
    directs: Vec<Uuid>,
    leads: Vec<Uuid>,
    works_on: Vec<Uuid>,
}

async fn people(owner: &mut PgConnection) -> Vec<Person> {
    let rows: Vec<PersonRow> = sqlx::query_as(
        "WITH current AS (SELECT st.id, st.campus_id
                            FROM streams st JOIN campus_academic_years y ON y.id = st.campus_academic_year_id WHERE y.is_current)
         SELECT u.id, u.email, u.type AS user_type, u.active AND coalesce(s.active, true) AS active, s.school_id,
                s.id AS staff_id, s.campus_id,
                coalesce((SELECT jsonb_agg(jsonb_build_object('role', r.name, 'campus', ur.campus_id))
                            FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.staff_id = s.id), '[]') AS roles,
                coalesce((SELECT jsonb_agg(jsonb_build_array(d.campus_id, jsonb_build_object(
                                     'action', p.action, 'resource', p.resource, 'own_campus', true)))
                            FROM department_members m JOIN departments d ON d.id = m.department_id
                            JOIN department_permissions p ON p.department_id = d.id
                           WHERE m.staff_id = s.id), '[]') AS of_departments,
                ARRAY(SELECT t.stream_id FROM class_teachers t JOIN current c ON c.id = t.stream_id
                       WHERE t.staff_id = s.id) AS class_teacher_of,
                coalesce((SELECT jsonb_agg(jsonb_build_array(t.stream_id, t.subject_id))
                            FROM subject_teachers t JOIN current c ON c.id = t.stream_id WHERE t.staff_id = s.id), '[]') AS teaches,
                ARRAY(SELECT d.campus_id FROM directors_of_studies d WHERE d.staff_id = s.id) AS directs,
                ARRAY(SELECT h.department_id FROM department_heads h WHERE h.staff_id = s.id) AS leads,
                ARRAY(SELECT s.campus_id WHERE s.campus_id IS NOT NULL
                      UNION SELECT c.campus_id FROM class_teachers t JOIN current c ON c.id = t.stream_id WHERE t.staff_id = s.id
                      UNION SELECT c.campus_id FROM subject_teachers t JOIN current c ON c.id = t.stream_id WHERE t.staff_id = s.id
                      UNION SELECT d.campus_id FROM directors_of_studies d WHERE d.staff_id = s.id
                      UNION SELECT d.campus_id FROM departments d JOIN department_heads h ON h.department_id = d.id
                             WHERE h.staff_id = s.id) AS works_on
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
        of_departments: row.of_departments.0,
        class_teacher_of: row.class_teacher_of.into_iter().collect(),
        teaches: row.teaches.0.into_iter().collect(),
        directs: row.directs.into_iter().collect(),
        leads: row.leads.into_iter().collect(),
        works_on: row.works_on.into_iter().collect(),
    }
}

type RuleRow = (Uuid, String, String, String, String, Option<Json<serde_json::Value>>);

async fn permissions(owner: &mut PgConnection) -> HashMap<(Uuid, String), Vec<Permission>> {
    let rows: Vec<RuleRow> = sqlx::query_as(
        "SELECT p.school_id, r.name, p.action, p.resource, p.effect, p.condition
           FROM role_permissions p JOIN roles r ON r.school_id = p.school_id AND r.id = p.role_id",
    )
    .fetch_all(owner)
    .await
    .unwrap();
    let mut permissions: HashMap<_, Vec<Permission>> = HashMap::new();
    for (school, role, action, resource, effect, condition) in rows {
        assert_eq!(effect, "allow", "{role}: say what a seeded rule means that forbids");
        let own_campus = match condition {
            None => false,
            Some(Json(condition)) => {
                assert_eq!(
                    condition,
                    serde_json::json!({"campusId": "$own"}),
                    "{role}: say what it means"
                );
                true
            }
        };
        permissions.entry((school, role)).or_default().push(Permission {
            action,
            resource,
            own_campus,
        });
    }
    permissions
}

async fn select(owner: &mut PgConnection, catalog: &Catalog, table: &str, condition: &str) -> Vec<Row> {
    let (campus, about) = (catalog.campus_sql(table), catalog.about_sql(table));
    let query =
        format!("SELECT t.id, t.school_id, {campus}, {about} FROM {table} t WHERE {condition} ORDER BY 2, 3, 1");
    let rows: Vec<(Uuid, Uuid, Option<Uuid>, Json<About>)> =
        sqlx::query_as(AssertSqlSafe(query)).fetch_all(owner).await.unwrap();
    rows.into_iter()
        .map(|(id, school, campus, Json(about))| Row {
            id,
            school,
            campus,
            about,
        })
        .collect()
}

async fn current(owner: &mut PgConnection) -> BTreeSet<Uuid> {
    let streams: Vec<Uuid> = sqlx::query_scalar(
        "SELECT st.id FROM streams st JOIN campus_academic_years y ON y.id = st.campus_academic_year_id WHERE y.is_current",
    )
    .fetch_all(owner)
    .await
    .unwrap();
    streams.into_iter().collect()
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
