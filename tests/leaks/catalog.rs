//! The tables as the catalog lists them: which columns are texts, and what a row is about by what it refers to.

use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
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

/// Tables whose rows a row may be about.
const ABOUT: &[&str] = &[
    "campus_academic_years",
    "classes",
    "departments",
    "staff",
    "streams",
    "students",
    "subjects",
];

/// The rows that a row is about, by table.
pub(super) type About = BTreeMap<String, Uuid>;

/// The catalog, as far as this test needs it.
pub(super) struct Catalog {
    /// Text columns by table, with their types.
    pub(super) texts: BTreeMap<String, Vec<(String, String)>>,
    columns: BTreeMap<String, BTreeSet<String>>,
    /// Foreign keys by table.
    parents: BTreeMap<String, Vec<ForeignKey>>,
}

/// The table referred to, and pairs of columns: the own one and theirs.
type ForeignKey = (String, Vec<(String, String)>);
/// A pair of columns of a foreign key: the two tables, its name, the columns, and whether every row has it.
type KeyRow = (String, String, String, String, String, bool);

/// A reference that every row has says more than one that a row may have, and who wrote a row says least about where it belongs.
fn always_there_first(mut keys: Vec<KeyRow>) -> Vec<KeyRow> {
    keys.sort_by_key(|(_, parent, .., always)| (parent == "staff", !always));
    keys
}

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
        let keys: Vec<KeyRow> = sqlx::query_as(
            "SELECT c.conrelid::regclass::text, c.confrelid::regclass::text, c.conname::text, own.attname::text, theirs.attname::text,
                    bool_and(own.attnotnull) OVER (PARTITION BY c.oid)
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
                let texts = catalog.texts.entry(table.clone()).or_default();
                texts.push((column.clone(), kind));
            }
            catalog.columns.entry(table).or_default().insert(column);
        }
        let mut last = None;
        for (table, parent, name, own, theirs, _) in always_there_first(keys) {
            let parents = catalog.parents.entry(table.clone()).or_default();
            let key = Some((table, name));
            if last != key {
                parents.push((parent, Vec::new()));
            }
            let (_, pairs) = parents.last_mut().expect("one was added");
            pairs.push((own, theirs));
            last = key;
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

    pub(super) fn has(&self, table: &str, column: &str) -> bool {
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

    /// SQL for the campus of a row `t`: its own, or that of what it is about. Who wrote it decides only where nothing else does.
    pub(super) fn campus_sql(&self, table: &str) -> String {
        let found = match table {
            "users" => Some("(SELECT s.campus_id FROM staff s WHERE s.user_id = t.id)".to_owned()),
            _ => self.campus_of(table, "t", &mut vec![table.to_owned()]),
        };
        found.unwrap_or_else(|| "NULL::uuid".to_owned())
    }

    fn campus_of(&self, table: &str, alias: &str, seen: &mut Vec<String>) -> Option<String> {
        if table == "campuses" {
            return Some(format!("{alias}.id"));
        }
        let mut found = Vec::new();
        if self.has(table, "campus_id") {
            found.push(format!("{alias}.campus_id"));
        }
        for (parent, pairs) in self.parents.get(table).into_iter().flatten() {
            if parent == "staff" && !found.is_empty() {
                continue;
            }
            found.extend(self.through(parent, pairs, alias, seen, |inner, seen| {
                self.campus_of(parent, inner, seen)
            }));
        }
        (!found.is_empty()).then(|| format!("coalesce({})", found.join(", ")))
    }

    /// SQL for a JSON object of the rows that a row `t` is about.
    pub(super) fn about_sql(&self, table: &str) -> String {
        let rows = ABOUT.iter().filter_map(|wanted| {
            let row = self.row_of(wanted, table, "t", &mut vec![table.to_owned()])?;
            Some(format!("'{wanted}', {row}"))
        });
        let rows: Vec<String> = rows.collect();
        format!("jsonb_strip_nulls(jsonb_build_object({}))", rows.join(", "))
    }

    /// The row of another table: itself, what it refers to, or what that refers to.
    fn row_of(&self, wanted: &str, table: &str, alias: &str, seen: &mut Vec<String>) -> Option<String> {
        if table == wanted {
            return Some(format!("{alias}.id"));
        }
        let parents = self.parents.get(table)?;
        let own = parents
            .iter()
            .filter(|(parent, _)| parent == wanted)
            .flat_map(|(_, pairs)| pairs);
        if let Some((own, _)) = own.clone().find(|(_, theirs)| theirs == "id") {
            return Some(format!("{alias}.{own}"));
        }
        let through = |(parent, pairs): &ForeignKey, seen: &mut Vec<String>| {
            self.through(parent, pairs, alias, seen, |inner, seen| {
                self.row_of(wanted, parent, inner, seen)
            })
        };
        parents.iter().find_map(|key| through(key, seen))
    }

    /// What `of` finds in the row of another table that a row refers to.
    fn through(
        &self,
        parent: &str,
        pairs: &[(String, String)],
        alias: &str,
        seen: &mut Vec<String>,
        of: impl Fn(&str, &mut Vec<String>) -> Option<String>,
    ) -> Option<String> {
        if seen.iter().any(|table| table == parent) || !self.has(parent, "school_id") {
            return None;
        }
        seen.push(parent.to_owned());
        let inner = format!("{alias}_{parent}");
        let found = of(&inner, seen)?;
        let joined: Vec<String> = pairs
            .iter()
            .map(|(own, theirs)| format!("{inner}.{theirs} = {alias}.{own}"))
            .collect();
        Some(format!(
            "(SELECT {found} FROM {parent} {inner} WHERE {})",
            joined.join(" AND ")
        ))
    }
}
