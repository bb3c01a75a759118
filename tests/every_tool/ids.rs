//! Where a tool's arguments are ids, and ids that somebody might put there.

use e2e::{Stage, fixtures::School};
use serde_json::{Value, json};
use uuid::Uuid;

/// The places of a tool's arguments that are ids, however deep: names of members, and `[]` for the items of a list.
pub(crate) fn id_arguments(schema: &Value) -> Vec<Vec<String>> {
    let inner = |step: &str, schema: &Value| -> Vec<Vec<String>> {
        let below = id_arguments(schema).into_iter();
        below.map(|path| [vec![step.to_owned()], path].concat()).collect()
    };
    match schema["type"].as_str() {
        Some("string") if schema["format"] == "uuid" => vec![vec![]],
        Some("array") => inner("[]", &schema["items"]),
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.flat_map(|(name, schema)| inner(name, schema)).collect()
        }
        _ => vec![],
    }
}

/// Puts an id in a place. Where there is no item to put it into, it becomes the item.
pub(crate) fn put(args: &mut Value, path: &[String], id: &Value) {
    match path {
        [] => *args = id.clone(),
        [step, rest @ ..] if step == "[]" => match args.as_array_mut() {
            Some(items) if !items.is_empty() => put(&mut items[0], rest, id),
            _ if rest.is_empty() => *args = json!([id]),
            _ => {}
        },
        [step, rest @ ..] => {
            let is_there = args.get(step).is_some();
            if is_there || rest.len() < 2 {
                put(&mut args[step], rest, id);
            }
        }
    }
}

/// One row's id of every table that has rows of a school, or of a campus of it, by whatever column says so.
pub(crate) async fn ids_of(stage: &Stage, school: &School, campus: Option<&str>) -> Vec<(String, Value)> {
    let mut owner = stage.owner().await;
    let needed = if campus.is_some() {
        vec!["campus_id", "stream_id", "campus_academic_year_id"]
    } else {
        vec!["school_id"]
    };
    let tables: Vec<(String, String)> = sqlx::query_as(
        "SELECT DISTINCT ON (c.table_name) c.table_name::text, c.column_name::text FROM information_schema.columns c
           JOIN information_schema.columns i USING (table_schema, table_name)
           JOIN information_schema.tables t USING (table_schema, table_name)
          WHERE table_schema = 'public' AND t.table_type = 'BASE TABLE' AND i.column_name = 'id' AND c.column_name = ANY($1)
          ORDER BY c.table_name, array_position($1, c.column_name::text)",
    )
    .bind(&needed)
    .fetch_all(&mut owner)
    .await
    .unwrap();
    let owned_by = campus.map_or_else(|| school.id(), |campus| school.campus(campus));
    let mut ids = vec![("itself".to_owned(), json!(owned_by))];
    for (table, column) in tables {
        let is_theirs = match column.as_str() {
            "stream_id" => "stream_id IN (SELECT id FROM streams WHERE campus_id = $1)".to_owned(),
            "campus_academic_year_id" => {
                "campus_academic_year_id IN (SELECT id FROM campus_academic_years WHERE campus_id = $1)".to_owned()
            }
            own => format!("{own} = $1"),
        };
        let query = format!("SELECT id FROM {table} WHERE {is_theirs} ORDER BY id LIMIT 1");
        let id: Option<Uuid> = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .bind(owned_by)
            .fetch_optional(&mut owner)
            .await
            .unwrap();
        ids.extend(id.map(|id| (table, json!(id))));
    }
    ids
}
