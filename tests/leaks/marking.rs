//! Puts a mark into every text column of every table, as the catalog lists them, with the school and the campus of its row.
//!
//! The campus is the row's own, or that of the rows that it refers to by foreign keys. What a CHECK lets no mark into is a
//! vocabulary, and is on a list that must be exactly that.

use super::marks::{COMMON, Owner, PLATFORM, UNPLACED, serial};
use sqlx::{AssertSqlSafe, Connection, PgConnection, error::DatabaseError};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};
use uuid::Uuid;

/// Tables that hold nothing of any school, and why.
const NO_SCHOOL: &[(&str, &str)] = &[
    ("_sqlx_migrations", "the names of migrations"),
    ("delivery_attempts", "message keys only"),
    (
        "operator_tool_calls",
        "platform administrators' own calls, which no school's role may read",
    ),
];
/// Columns whose texts are words of a vocabulary, so that no mark fits.
const VOCABULARY: &[(&str, &str)] = &[
    ("audit_log", "actor_type"),
    ("department_permissions", "action"),
    ("department_permissions", "resource"),
    ("role_permissions", "action"),
    ("role_permissions", "condition"),
    ("role_permissions", "effect"),
    ("role_permissions", "resource"),
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
}

/// Everything that was marked.
#[derive(Debug, Default)]
pub(super) struct Marked {
    /// By serial.
    pub(super) marks: HashMap<String, Origin>,
    /// By id.
    pub(super) rows: HashMap<Uuid, Origin>,
}

/// The catalog, as far as marking needs it.
pub(super) struct Catalog {
    /// Text columns by table, with their types.
    texts: BTreeMap<String, Vec<(String, String)>>,
    columns: BTreeMap<String, BTreeSet<String>>,
    /// Foreign keys by table.
    parents: BTreeMap<String, Vec<ForeignKey>>,
}

/// The table referred to, and pairs of columns: the own one and theirs.
type ForeignKey = (String, Vec<(String, String)>);
/// Place, id, school and campus of a row.
type RowOfTable = (String, Option<Uuid>, Option<Uuid>, Option<Uuid>);
/// How a mark is written in a column.
type Form = fn(&str) -> String;

impl Catalog {
    pub(super) async fn read(owner: &mut PgConnection) -> Self {
        let columns: Vec<(String, String, String)> = sqlx::query_as(
            "SELECT c.table_name::text, c.column_name::text, c.udt_name::text
               FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
              WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' ORDER BY 1, c.ordinal_position",
        )
        .fetch_all(&mut *owner)
        .await
        .unwrap();
        let keys: Vec<(String, String, String, String)> = sqlx::query_as(
            "SELECT c.conrelid::regclass::text, c.confrelid::regclass::text, own.attname::text, theirs.attname::text
               FROM pg_constraint c
               CROSS JOIN LATERAL unnest(c.conkey, c.confkey) AS pair (own, theirs)
               JOIN pg_attribute own ON own.attrelid = c.conrelid AND own.attnum = pair.own
               JOIN pg_attribute theirs ON theirs.attrelid = c.confrelid AND theirs.attnum = pair.theirs
              WHERE c.contype = 'f' ORDER BY c.conname, own.attnum",
        )
        .fetch_all(owner)
        .await
        .unwrap();
        let mut catalog = Self {
            texts: BTreeMap::new(),
            columns: BTreeMap::new(),
            parents: BTreeMap::new(),
        };
        for (table, column, kind) in columns {
            let is_text =
                ["text", "varchar", "bpchar", "name", "json", "jsonb", "xml"].contains(&kind.trim_start_matches('_'));
            if is_text {
                catalog
                    .texts
                    .entry(table.clone())
                    .or_default()
                    .push((column.clone(), kind));
            }
            catalog.columns.entry(table).or_default().insert(column);
        }
        for (table, parent, own, theirs) in keys {
            let parents = catalog.parents.entry(table).or_default();
            match parents
                .iter_mut()
                .find(|(known, pairs)| *known == parent && !pairs.iter().any(|(column, _)| *column == own))
            {
                Some((_, pairs)) => pairs.push((own, theirs)),
                None => parents.push((parent, vec![(own, theirs)])),
            }
        }
        catalog
    }

    /// The tables with texts of schools.
    pub(super) fn tables(&self) -> Vec<String> {
        let tables = self.texts.keys().cloned();
        tables
            .filter(|table| !NO_SCHOOL.iter().any(|(name, _)| name == table))
            .collect()
    }

    fn has(&self, table: &str, column: &str) -> bool {
        self.columns.get(table).is_some_and(|columns| columns.contains(column))
    }

    /// SQL for the school of a row `t`.
    pub(super) fn school_sql(&self, table: &str) -> String {
        match table {
            "schools" => "t.id".to_owned(),
            "users" => "(SELECT s.school_id FROM staff s WHERE s.user_id = t.id)".to_owned(),
            _ if self.has(table, "school_id") => "t.school_id".to_owned(),
            _ => panic!("{table} has texts and no school: mark it, or say in NO_SCHOOL why not"),
        }
    }

    /// SQL for the campus of a row `t`.
    pub(super) fn campus_sql(&self, table: &str) -> String {
        match table {
            "users" => "(SELECT s.campus_id FROM staff s WHERE s.user_id = t.id)".to_owned(),
            _ => self.campus_of(table, "t", &mut vec![table.to_owned()]),
        }
    }

    /// The row's own campus, or its parents'.
    fn campus_of(&self, table: &str, alias: &str, seen: &mut Vec<String>) -> String {
        if table == "campuses" {
            return format!("{alias}.id");
        }
        let mut found = Vec::new();
        if self.has(table, "campus_id") {
            found.push(format!("{alias}.campus_id"));
        }
        for (parent, pairs) in self.parents.get(table).into_iter().flatten() {
            if seen.contains(parent) || !self.has(parent, "school_id") {
                continue;
            }
            seen.push(parent.clone());
            let inner = format!("{alias}_{parent}");
            let joined: Vec<String> = pairs
                .iter()
                .map(|(own, theirs)| format!("{inner}.{theirs} = {alias}.{own}"))
                .collect();
            let campus = self.campus_of(parent, &inner, seen);
            found.push(format!(
                "(SELECT {campus} FROM {parent} {inner} WHERE {})",
                joined.join(" AND ")
            ));
        }
        found.push("NULL::uuid".to_owned());
        format!("coalesce({})", found.join(", "))
    }
}

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
        let rows = rows(owner, catalog, table).await;
        let schools: BTreeSet<_> = rows.iter().filter_map(|row| row.school).collect();
        assert_eq!(schools.len(), 2, "{table} has rows of both schools");
        let mut columns = Vec::new();
        for (column, kind) in &catalog.texts[table] {
            let is_listed = VOCABULARY.contains(&(table, column)) || PARSED.contains(&(table, column));
            match form_for(owner, table, column, kind, &rows[0].ctid).await {
                Some(form) if !is_listed => columns.push((column, kind, form)),
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
            };
            let set: Vec<String> = columns
                .iter()
                .map(|(column, kind, form)| {
                    let serial = serial(u64::try_from(marked.marks.len()).unwrap());
                    let value = literal(kind, &form(&origin.owner.mark(&serial)));
                    marked.marks.insert(serial, origin.clone());
                    format!("{column} = {value}")
                })
                .collect();
            marked.rows.extend(row.id.map(|id| (id, origin)));
            if !set.is_empty() {
                // one statement a row, because the row is found by its place, and moves when it is written
                let ctid = row.ctid;
                writeln!(
                    statements,
                    "UPDATE {table} SET {} WHERE ctid = '{ctid}';",
                    set.join(", ")
                )
                .unwrap();
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
}

async fn rows(owner: &mut PgConnection, catalog: &Catalog, table: &str) -> Vec<Row> {
    let id = if catalog.has(table, "id") { "t.id" } else { "NULL::uuid" };
    let (school, campus) = (catalog.school_sql(table), catalog.campus_sql(table));
    let query = format!("SELECT t.ctid::text, {id}, {school}, {campus} FROM {table} t ORDER BY 3, 4, 2");
    let rows: Vec<RowOfTable> = sqlx::query_as(AssertSqlSafe(query)).fetch_all(owner).await.unwrap();
    rows.into_iter()
        .map(|(ctid, id, school, campus)| Row {
            ctid,
            id,
            school,
            campus,
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

/// Fills what the seeds leave empty: audit rows and answered calls of each campus and of none, departments to spare, and in each school
/// somebody who has something to do with both campuses.
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
        INSERT INTO tool_calls (school_id, key, event, actor_sub, arguments_digest, reply, finished_at)
        SELECT s.id, 'key ' || n, 'update.department', gen_random_uuid(), sha256('x'), '{}', now()
          FROM schools s CROSS JOIN generate_series(1, 3) n;
        INSERT INTO departments (school_id, campus_id, name)
        SELECT school_id, id, 'Spare ' || lpad(n::text, 3, '0') FROM campuses CROSS JOIN generate_series(1, 40) n;
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
pub(super) async fn seal(owner: &mut PgConnection, catalog: &Catalog) {
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
            let query = format!("SELECT count(*) FROM {table} WHERE {column}::text !~* 'qcanaryx' OR {column} IS NULL");
            let unmarked: i64 = sqlx::query_scalar(AssertSqlSafe(query))
                .fetch_one(&mut *owner)
                .await
                .unwrap();
            assert_eq!(unmarked, 0, "{table}.{column} has rows without a mark");
        }
    }
}
