//! `subjects`, with the classes that take them (`class_subjects`).

use super::{DbResult, Tx, department::NameKey};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use uuid::Uuid;

/// A subject with the classes that take it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    #[serde(rename = "subjectId")]
    pub(crate) id: Uuid,
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The youngest first.
    pub(crate) classes: Vec<Class>,
}

/// A class.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Class {
    pub(crate) class_id: Uuid,
    pub(crate) name: String,
}

/// A subject that is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewSubject<'a> {
    pub(crate) code: &'a str,
    pub(crate) name: &'a str,
    pub(crate) description: Option<&'a str>,
}

/// Lists subjects by name: all of the school's, or those that a class takes.
pub(crate) async fn list(
    tx: &mut Tx,
    class: Option<Uuid>,
    after: Option<&NameKey>,
    limit: i64,
) -> DbResult<Vec<Subject>> {
    let found = sqlx::query!(
        r#"
        SELECT b.school_id, b.id, b.code, b.name, b.description,
               (SELECT json_agg(json_build_object('classId', k.id, 'name', k.name) ORDER BY k.level)
                  FROM class_subjects t
                  JOIN classes k ON k.school_id = t.school_id AND k.id = t.class_id
                 WHERE t.school_id = b.school_id AND t.subject_id = b.id) AS "classes: Json<Vec<Class>>"
          FROM subjects b
         WHERE (b.name, b.id) > ($2, $3)
           AND ($1::uuid IS NULL OR EXISTS (SELECT 1 FROM class_subjects t
                                             WHERE t.school_id = b.school_id AND t.class_id = $1 AND t.subject_id = b.id))
         ORDER BY b.name, b.id
         LIMIT $4
        "#,
        class,
        after.map_or("", |key| key.0.as_str()),
        after.map_or(Uuid::nil(), |key| key.1),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?;
    let subjects = found.into_iter().map(|row| Subject {
        school_id: row.school_id,
        id: row.id,
        code: row.code,
        name: row.name,
        description: row.description,
        classes: row.classes.map(|classes| classes.0).unwrap_or_default(),
    });
    Ok(subjects.collect())
}

/// The schools of these classes, one for each class that the frame sees.
pub(crate) async fn schools_of_classes(tx: &mut Tx, classes: &[Uuid]) -> DbResult<Vec<Uuid>> {
    Ok(
        sqlx::query_scalar!("SELECT school_id FROM classes WHERE id = ANY($1)", classes)
            .fetch_all(tx.connection()?)
            .await?,
    )
}

/// Adds a subject to a school, and to the curriculum of these of its classes, or of every one.
pub(crate) async fn insert(
    tx: &mut Tx,
    school: Uuid,
    new: NewSubject<'_>,
    classes: Option<&[Uuid]>,
) -> DbResult<Subject> {
    let id = Uuid::now_v7();
    sqlx::query!(
        "INSERT INTO subjects (school_id, id, code, name, description) VALUES ($1, $2, $3, $4, $5)",
        school,
        id,
        new.code,
        new.name,
        new.description
    )
    .execute(tx.connection()?)
    .await?;
    let classes = sqlx::query_as!(
        Class,
        r#"
        WITH taken AS (
            INSERT INTO class_subjects (school_id, class_id, subject_id)
            SELECT k.school_id, k.id, $2 FROM classes k WHERE k.school_id = $1 AND ($3::uuid[] IS NULL OR k.id = ANY($3))
            RETURNING school_id, class_id
        )
        SELECT k.id AS class_id, k.name
          FROM taken t
          JOIN classes k ON k.school_id = t.school_id AND k.id = t.class_id
         ORDER BY k.level
        "#,
        school,
        id,
        classes as _
    )
    .fetch_all(tx.connection()?)
    .await?;
    Ok(Subject {
        school_id: school,
        id,
        code: new.code.to_owned(),
        name: new.name.to_owned(),
        description: new.description.map(str::to_owned),
        classes,
    })
}
