//! Puts a mark into every text column of every table, as the catalog lists them, with the school and the campus of its row.
//!
//! The campus is the row's own, or that of the rows that it refers to by foreign keys. What a CHECK lets no mark into is a
//! vocabulary, and is on a list that must be exactly that.

use super::{
    catalog::{About, Catalog},
    marks::{COMMON, Owner, PLATFORM, UNPLACED, serial},
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, error::DatabaseError, types::Json};
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
};
use uuid::Uuid;

/// Columns whose texts are words of a vocabulary, so that no mark fits.
const VOCABULARY: &[(&str, &str)] = &[
    ("announcements", "audience"),
    ("approvals", "contract_hash"),
    ("approvals", "status"),
    ("attendance_marks", "status"),
    ("audit_log", "actor_type"),
    ("department_permissions", "action"),
    ("department_permissions", "resource"),
    ("lesson_plans", "status"),
    ("published_results", "bands"),
    ("role_permissions", "action"),
    ("role_permissions", "condition"),
    ("role_permissions", "effect"),
    ("role_permissions", "resource"),
    ("turn_waits", "decision"),
    ("turns", "status"),
    ("users", "type"),
];
/// Columns that would take a mark, and that the server reads as something else than text.
const PARSED: &[(&str, &str)] = &[("schools", "time_zone")];

/// The forms that a mark takes to fit a column, tried in this order.
const FORMS: &[Form] = &[
    ToOwned::to_owned,
    |mark| mark.to_uppercase(),
    |mark| format!("{mark}@mail.example"),
    |mark| format!("https://mail.example/{mark}"),
    |mark| format!("get.{mark}"),
];

/// Where a mark was put, or whose row an id is.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) owner: Owner,
    pub(super) table: String,
    pub(super) row: Option<Uuid>,
    /// What the row is about.
    pub(super) about: About,
}

/// Everything that was marked.
#[derive(Debug, Default)]
pub(super) struct Marked {
    /// By serial.
    pub(super) marks: HashMap<String, Origin>,
    /// By id.
    pub(super) rows: HashMap<Uuid, Origin>,
    /// Tables and columns that may only hold a text where they hold one already.
    often_empty: BTreeSet<(String, String)>,
}

/// Place, id, school, campus of a row, what it is about, and which of its texts are there.
type RowOfTable = (String, Option<Uuid>, Option<Uuid>, Option<Uuid>, Json<About>, Vec<bool>);
/// How a mark is written in a column.
type Form = fn(&str) -> String;

/// Names of schools and campuses by id, read before their names become marks.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(pub(super) HashMap<Uuid, String>);

impl Names {
    pub(super) async fn read(owner: &mut PgConnection) -> Self {
        let rows: Vec<(Uuid, String)> =
            sqlx::query_as("SELECT id, slug FROM schools UNION ALL SELECT id, lower(name) FROM campuses")
                .fetch_all(owner)
                .await
                .unwrap();
        Self(rows.into_iter().collect())
    }

    fn owner_of(&self, catalog: &Catalog, table: &str, school: Option<Uuid>, campus: Option<Uuid>) -> Owner {
        let Some(school) = school else {
            return Owner::new(PLATFORM, COMMON);
        };
        let place = match campus {
            Some(campus) => &self.0[&campus],
            None if catalog.has(table, "campus_id") || table == "users" => UNPLACED,
            None => COMMON,
        };
        Owner::new(&self.0[&school], place)
    }
}

/// Marks every row of every table.
pub(super) async fn mark_everything(owner: &mut PgConnection, catalog: &Catalog, names: &Names) -> Marked {
    let mut marked = Marked::default();
    let mut vocabulary = BTreeSet::new();
    let tables = catalog.tables();
    for table in &tables {
        let texts = &catalog.texts[table];
        let rows = rows(owner, catalog, table).await;
        let schools: BTreeSet<_> = rows.iter().filter_map(|row| row.school).collect();
        assert_eq!(schools.len(), 2, "{table} has rows of both schools");
        let mut columns = Vec::new();
        for (at, (column, kind)) in texts.iter().enumerate() {
            let is_listed = VOCABULARY.contains(&(table, column)) || PARSED.contains(&(table, column));
            let filled = rows.iter().find(|row| row.filled[at]).unwrap_or(&rows[0]);
            match form_for(owner, table, column, kind, &filled.ctid).await {
                Some(form) if !is_listed => {
                    let fills = fits_everywhere(owner, table, column, kind, form).await;
                    if !fills {
                        marked.often_empty.insert((table.clone(), column.clone()));
                    }
                    columns.push((at, column, kind, form, fills));
                }
                Some(_) => {}
                None => {
                    vocabulary.insert((table.as_str(), column.as_str()));
                }
            }
        }
        let mut statements = String::new();
        for row in rows {
            let origin = Origin {
                owner: names.owner_of(catalog, table, row.school, row.campus),
                table: table.clone(),
                row: row.id,
                about: row.about,
            };
            let taken = columns.iter().filter(|(at, .., fills)| *fills || row.filled[*at]);
            let set: Vec<String> = taken
                .map(|(_, column, kind, form, _)| {
                    let serial = serial(u64::try_from(marked.marks.len()).unwrap());
                    let value = literal(kind, &form(&origin.owner.mark(&serial)));
                    marked.marks.insert(serial, origin.clone());
                    format!("{column} = {value}")
                })
                .collect();
            marked.rows.extend(row.id.map(|id| (id, origin)));
            if !set.is_empty() {
                // one statement a row, because the row is found by its place, and moves when it is written
                let (ctid, set) = (row.ctid, set.join(", "));
                writeln!(statements, "UPDATE {table} SET {set} WHERE ctid = '{ctid}';").unwrap();
            }
        }
        run(owner, statements).await;
    }
    let listed: BTreeSet<_> = VOCABULARY.iter().copied().collect();
    assert_eq!(
        vocabulary, listed,
        "no mark fits into these columns, and into these only"
    );
    marked
}

struct Row {
    ctid: String,
    id: Option<Uuid>,
    school: Option<Uuid>,
    campus: Option<Uuid>,
    about: About,
    /// By text column.
    filled: Vec<bool>,
}

async fn rows(owner: &mut PgConnection, catalog: &Catalog, table: &str) -> Vec<Row> {
    let id = if catalog.has(table, "id") { "t.id" } else { "NULL::uuid" };
    let (school, campus) = (catalog.school_sql(table), catalog.campus_sql(table));
    let about = catalog.about_sql(table);
    let texts = catalog.texts[table].iter();
    let filled: Vec<String> = texts.map(|(column, _)| format!("t.{column} IS NOT NULL")).collect();
    let query = format!(
        "SELECT t.ctid::text, {id}, {school}, {campus}, {about}, ARRAY[{}] FROM {table} t ORDER BY 3, 4, 2",
        filled.join(", ")
    );
    let rows: Vec<RowOfTable> = sqlx::query_as(AssertSqlSafe(query)).fetch_all(owner).await.unwrap();
    rows.into_iter()
        .map(|(ctid, id, school, campus, Json(about), filled)| Row {
            ctid,
            id,
            school,
            campus,
            about,
            filled,
        })
        .collect()
}

/// The first form that the column's constraints admit; none where it is a vocabulary.
async fn form_for(owner: &mut PgConnection, table: &str, column: &str, kind: &str, ctid: &str) -> Option<Form> {
    let mark = Owner::new("trial", "trial").mark("a");
    for form in FORMS {
        let mut trial = owner.begin().await.unwrap();
        let value = literal(kind, &form(&mark));
        let statement = format!("UPDATE {table} SET {column} = {value} WHERE ctid = '{ctid}'");
        let result = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *trial).await;
        trial.rollback().await.unwrap();
        match result {
            Ok(_) => return Some(*form),
            Err(error) if error.as_database_error().and_then(DatabaseError::code).as_deref() == Some("23514") => {}
            Err(error) => panic!("{table}.{column} takes no mark: {error}"),
        }
    }
    None
}

/// Whether the rows without a text in a column may all have one.
async fn fits_everywhere(owner: &mut PgConnection, table: &str, column: &str, kind: &str, form: Form) -> bool {
    let mark = Owner::new("trial", "trial").mark("a");
    let value = literal(kind, &form(&mark));
    let statement = format!("UPDATE {table} SET {column} = {value} WHERE {column} IS NULL");
    let mut trial = owner.begin().await.unwrap();
    let result = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *trial).await;
    trial.rollback().await.unwrap();
    result.is_ok()
}

/// A mark as an SQL value; its letters need no quoting.
fn literal(kind: &str, text: &str) -> String {
    match kind {
        "jsonb" | "json" => format!(r#"'{{"text": "{text}"}}'"#),
        array if array.starts_with('_') => format!("ARRAY['{text}']"),
        _ => format!("'{text}'"),
    }
}

async fn run(owner: &mut PgConnection, statements: String) {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(owner).await.unwrap();
}

/// Fills what the seeds leave empty: audit rows and answered calls of each campus and of none, approvals, departments and streams to
/// spare, students whom only the last year had, and in each school somebody who has something to do with both campuses.
pub(super) async fn add_rows(owner: &mut PgConnection) {
    let statements = "
        ALTER TABLE audit_log DISABLE TRIGGER append_only;
        INSERT INTO audit_log (school_id, campus_id, actor_sub, actor_email, actor_type, action, resource_type, resource_id,
                               event, door, turn_id, tool_call_id)
        SELECT s.id, c.id, gen_random_uuid(), 'someone', 'STAFF', 'UPDATE', 'DEPARTMENT', NULL, 'update.department', 'chat', 't', 'c'
          FROM schools s
          CROSS JOIN generate_series(1, 3)
          CROSS JOIN LATERAL (SELECT id FROM campuses WHERE school_id = s.id UNION ALL SELECT NULL) c;
        INSERT INTO threads (school_id, staff_id, campus_id) SELECT school_id, id, campus_id FROM staff;
        INSERT INTO turns (school_id, id, thread_id, status, message, outcome, deadline_at, ended_at)
        SELECT school_id, uuid_v7(), id, 'answered', 'a message', 'an answer', now(), now() FROM threads;
        INSERT INTO turn_events (school_id, turn_id, attempt, place, event)
        SELECT school_id, id, 1, 1, jsonb_build_object('type', 'text', 'delta', 'a text') FROM turns;
        INSERT INTO turn_messages (school_id, turn_id, name, entry) SELECT school_id, id, 'a name', '{}' FROM turns;
        INSERT INTO turn_waits (school_id, turn_id, tool_call_id, question, choices, answer, settled_at)
        SELECT school_id, id, 'c', 'a question', ARRAY['a choice'], 'an answer', now() FROM turns;
        INSERT INTO tool_calls (school_id, key, event, actor_sub, arguments_digest, reply, finished_at)
        SELECT s.id, 'key ' || n, 'update.department', gen_random_uuid(), sha256('x'), '{}', now()
          FROM schools s CROSS JOIN generate_series(1, 3) n;
        INSERT INTO approvals (school_id, campus_id, tool_call_id, key, event, contract_hash, arguments, arguments_digest, requester_sub,
                               identity, scope, door, preview, scope_context, previewed_at, approver_action, approver_resource, status,
                               reason, result, expires_at)
        SELECT s.id, c.id, 'c', gen_random_uuid()::text, 'update.department', repeat('0', 64), '{}', sha256('x'), gen_random_uuid(),
               '{}', '{}', 'chat', '{}', 'a sentence', now(), 'UPDATE', 'DEPARTMENT', 'executed', 'a reason', '{}',
               now() + interval '1 hour'
          FROM schools s
          CROSS JOIN LATERAL (SELECT id FROM campuses WHERE school_id = s.id UNION ALL SELECT NULL) c;
        INSERT INTO published_results (school_id, term_id, published_by, bands)
        SELECT t.school_id, t.id, (SELECT s.id FROM staff s WHERE s.school_id = t.school_id ORDER BY s.id LIMIT 1), '[]'
          FROM terms t
          JOIN campus_academic_years y ON y.id = t.campus_academic_year_id AND NOT y.is_current AND t.term_number = 1;
        INSERT INTO departments (school_id, campus_id, name)
        SELECT school_id, id, 'Spare ' || lpad(n::text, 3, '0') FROM campuses CROSS JOIN generate_series(1, 40) n;
        INSERT INTO streams (school_id, class_id, campus_id, campus_academic_year_id, name)
        SELECT y.school_id, k.id, y.campus_id, y.id, 'Spare ' || n
          FROM campus_academic_years y
          JOIN classes k ON k.school_id = y.school_id AND k.level = 2
          CROSS JOIN generate_series(1, 4) n
         WHERE y.is_current;
        INSERT INTO students (school_id, campus_id, admission_number, given_name, family_name, notes)
        SELECT school_id, id, 'LAST-' || name, 'Of', 'Last Year', 'is in no stream now' FROM campuses;
        INSERT INTO enrolments (school_id, student_id, stream_id, campus_academic_year_id)
        SELECT s.school_id, s.id, st.id, st.campus_academic_year_id
          FROM students s
          JOIN LATERAL (SELECT st.id, st.campus_academic_year_id
                          FROM streams st JOIN campus_academic_years y ON y.id = st.campus_academic_year_id AND NOT y.is_current
                         WHERE st.campus_id = s.campus_id ORDER BY st.name LIMIT 1) st ON true
         WHERE s.family_name = 'Last Year';
        INSERT INTO department_heads (school_id, department_id, staff_id)
        SELECT d.school_id, d.id, s.id
          FROM departments d JOIN staff s ON s.school_id = d.school_id AND s.campus_id = d.campus_id AND s.active
         WHERE d.name IN ('Spare 001', 'Spare 002');
        CREATE TEMPORARY TABLE both_hats AS
        SELECT s.school_id, s.id, c.id AS elsewhere
          FROM staff s JOIN users u ON u.id = s.user_id JOIN campuses c ON c.school_id = s.school_id AND c.id <> s.campus_id
         WHERE u.email LIKE 'both.hats@%';
        INSERT INTO user_roles (school_id, staff_id, role_id, campus_id)
        SELECT b.school_id, b.id, r.id, b.elsewhere
          FROM both_hats b JOIN roles r ON r.school_id = b.school_id AND r.name = 'director_of_studies';
        INSERT INTO class_teachers (school_id, stream_id, staff_id)
        SELECT b.school_id, st.id, b.id
          FROM both_hats b JOIN streams st ON st.school_id = b.school_id AND st.campus_id = b.elsewhere
         WHERE NOT EXISTS (SELECT 1 FROM class_teachers t WHERE t.stream_id = st.id);
        INSERT INTO department_members (school_id, department_id, staff_id)
        SELECT b.school_id, d.id, b.id
          FROM both_hats b JOIN departments d ON d.school_id = b.school_id AND d.campus_id = b.elsewhere
         WHERE d.name = 'Spare 003';";
    run(owner, statements.to_owned()).await;
}

/// Makes the audit log again what it is, and makes sure that each text is marked.
pub(super) async fn seal(owner: &mut PgConnection, catalog: &Catalog, marked: &Marked) {
    run(
        owner,
        "ALTER TABLE audit_log ENABLE ALWAYS TRIGGER append_only".to_owned(),
    )
    .await;
    for table in &catalog.tables() {
        for (column, _) in &catalog.texts[table] {
            if VOCABULARY.contains(&(table, column)) || PARSED.contains(&(table, column)) {
                continue;
            }
            let may_be_empty = marked.often_empty.contains(&(table.clone(), column.clone()));
            let query = format!(
                "SELECT count(*) FROM {table} WHERE coalesce({column}::text !~* 'qcanaryx', NOT {may_be_empty})"
            );
            let unmarked: i64 = sqlx::query_scalar(AssertSqlSafe(query))
                .fetch_one(&mut *owner)
                .await
                .unwrap();
            assert_eq!(unmarked, 0, "{table}.{column} has rows without a mark");
        }
    }
}
