//! `lesson_templates` and `lesson_plans`.
//!
//! Where a list begins is a value like any other: beside row-level security a `coalesce` would keep the key from being a condition of
//! the index.

use super::{
    DbResult, Tx,
    department::NameKey,
    one_row,
    relationship::{DirectorOfStudiesOf, DirectorOverPlan, SubjectTeacherIn, Teaches, WriterOf},
};
use crate::ability::CampusRule;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A lesson template.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// The headings of a lesson, in their order.
    pub(crate) sections: Vec<String>,
    /// None where it fits any subject.
    pub(crate) subject_id: Option<Uuid>,
    pub(crate) subject_name: Option<String>,
}

/// A lesson plan with the names of what it is for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LessonPlan {
    /// For the audit row; a reply does not name the tenant.
    #[serde(skip)]
    pub(crate) school_id: Uuid,
    pub(crate) id: Uuid,
    pub(crate) campus_id: Uuid,
    pub(crate) status: String,
    pub(crate) stream_id: Uuid,
    pub(crate) stream_name: String,
    pub(crate) subject_id: Uuid,
    pub(crate) subject_name: String,
    pub(crate) teacher_id: Uuid,
    pub(crate) teacher_name: String,
    pub(crate) template_id: Option<Uuid>,
    pub(crate) template_name: Option<String>,
    pub(crate) topic: String,
    pub(crate) objectives: String,
    pub(crate) activities: String,
    pub(crate) materials: Option<String>,
    pub(crate) taught_on: NaiveDate,
    pub(crate) submitted_at: Option<DateTime<Utc>>,
    pub(crate) reviewed_at: Option<DateTime<Utc>>,
    pub(crate) review_comment: Option<String>,
}

/// Where a list of one's own plans goes on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TaughtKey(
    #[serde(deserialize_with = "super::in_calendar")] pub(crate) NaiveDate,
    pub(crate) Uuid,
);

/// Where a list of plans that wait goes on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WaitingKey(
    #[serde(deserialize_with = "super::in_calendar")] pub(crate) DateTime<Utc>,
    pub(crate) Uuid,
);

/// A plan to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewPlan<'a> {
    pub(crate) template_id: Option<Uuid>,
    pub(crate) topic: &'a str,
    pub(crate) objectives: &'a str,
    pub(crate) activities: &'a str,
    pub(crate) materials: Option<&'a str>,
    /// None is today, where the school is.
    pub(crate) taught_on: Option<NaiveDate>,
}

/// What to change; what is `None` stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanChange<'a> {
    pub(crate) template_id: Option<Uuid>,
    pub(crate) clear_template: bool,
    pub(crate) topic: Option<&'a str>,
    pub(crate) objectives: Option<&'a str>,
    pub(crate) activities: Option<&'a str>,
    pub(crate) materials: Option<&'a str>,
    pub(crate) clear_materials: bool,
    pub(crate) taught_on: Option<NaiveDate>,
}

/// Lists the school's templates by name, for whoever teaches in it; for one subject, its own and those for any.
pub(crate) async fn templates(
    tx: &mut Tx,
    proof: &SubjectTeacherIn,
    subject: Option<Uuid>,
    after: Option<&NameKey>,
    limit: i64,
) -> DbResult<Vec<Template>> {
    Ok(sqlx::query_as!(
        Template,
        r#"SELECT m.id, m.name, m.description, m.sections, m.subject_id, b.name AS "subject_name?"
             FROM lesson_templates m
             LEFT JOIN subjects b ON b.school_id = m.school_id AND b.id = m.subject_id
            WHERE m.school_id = $1 AND ($2::uuid IS NULL OR m.subject_id IS NULL OR m.subject_id = $2)
              AND (m.name, m.id) > ($3, $4)
            ORDER BY m.name, m.id
            LIMIT $5"#,
        proof.school(),
        subject,
        after.map_or("", |key| key.0.as_str()),
        after.map_or(Uuid::nil(), |key| key.1),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Whether there is such a template, and it fits the subject that is taught.
pub(crate) async fn template_fits(tx: &mut Tx, proof: &Teaches, template: Uuid) -> DbResult<bool> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM lesson_templates
                           WHERE school_id = $1 AND id = $2 AND (subject_id IS NULL OR subject_id = $3)) AS "fits!""#,
        proof.stream().school(),
        template,
        proof.subject()
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Begins a plan for what a member of staff teaches, and answers its id.
pub(crate) async fn insert(tx: &mut Tx, proof: &Teaches, staff: Option<Uuid>, plan: NewPlan<'_>) -> DbResult<Uuid> {
    let stream = proof.stream();
    Ok(sqlx::query_scalar!(
        "INSERT INTO lesson_plans (school_id, id, campus_id, campus_academic_year_id, stream_id, subject_id, teacher_id,
                                   template_id, topic, objectives, activities, materials, taught_on)
         SELECT t.school_id, $1, $2, $3, t.stream_id, t.subject_id, t.staff_id, $8, $9, $10, $11, $12,
                coalesce($13, (now() AT TIME ZONE s.time_zone)::date)
           FROM subject_teachers t
           JOIN schools s ON s.id = t.school_id
          WHERE t.school_id = $4 AND t.stream_id = $5 AND t.subject_id = $6 AND t.staff_id = $7
         RETURNING id",
        Uuid::now_v7(),
        stream.campus(),
        stream.year(),
        stream.school(),
        stream.id(),
        proof.subject(),
        staff,
        plan.template_id,
        plan.topic,
        plan.objectives,
        plan.activities,
        plan.materials,
        plan.taught_on
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// Changes a plan that is held for its writer.
pub(crate) async fn update(tx: &mut Tx, proof: &WriterOf, change: PlanChange<'_>) -> DbResult<()> {
    let updated = sqlx::query!(
        "UPDATE lesson_plans
            SET topic = coalesce($3, topic), objectives = coalesce($4, objectives), activities = coalesce($5, activities),
                materials = CASE WHEN $7 THEN NULL ELSE coalesce($6, materials) END,
                template_id = CASE WHEN $9 THEN NULL ELSE coalesce($8, template_id) END,
                taught_on = coalesce($10, taught_on)
          WHERE school_id = $1 AND id = $2 AND status IN ('draft', 'returned')",
        proof.school(),
        proof.id(),
        change.topic,
        change.objectives,
        change.activities,
        change.materials,
        change.clear_materials,
        change.template_id,
        change.clear_template,
        change.taught_on
    )
    .execute(tx.connection()?)
    .await?;
    one_row(updated.rows_affected())
}

/// Hands in a plan that is held for its writer. What was written about it before stays.
pub(crate) async fn submit(tx: &mut Tx, proof: &WriterOf) -> DbResult<()> {
    let submitted = sqlx::query!(
        "UPDATE lesson_plans SET status = 'submitted', submitted_at = now()
          WHERE school_id = $1 AND id = $2 AND status IN ('draft', 'returned')",
        proof.school(),
        proof.id()
    )
    .execute(tx.connection()?)
    .await?;
    one_row(submitted.rows_affected())
}

/// Decides about a plan that waits and is held for its reviewer. `now()` is when the review's transaction began, which may be before it
/// was submitted: a review waits for a submission of the same plan.
pub(crate) async fn review(tx: &mut Tx, proof: &DirectorOverPlan, status: &str, comment: Option<&str>) -> DbResult<()> {
    let reviewed = sqlx::query!(
        "UPDATE lesson_plans SET status = $3, reviewer_id = $4, reviewed_at = greatest(now(), submitted_at), review_comment = $5
          WHERE school_id = $1 AND id = $2 AND status = 'submitted' AND teacher_id <> $4",
        proof.school(),
        proof.id(),
        status,
        proof.director(),
        comment
    )
    .execute(tx.connection()?)
    .await?;
    one_row(reviewed.rows_affected())
}

/// Reads a plan that was written just now.
pub(crate) async fn read(tx: &mut Tx, school: Uuid, id: Uuid) -> DbResult<LessonPlan> {
    Ok(sqlx::query_as!(
        LessonPlan,
        r#"
        SELECT p.school_id, p.id, p.campus_id, p.status, p.stream_id, st.name AS stream_name, p.subject_id, b.name AS subject_name,
               p.teacher_id, u.name AS teacher_name, p.template_id, m.name AS "template_name?", p.topic, p.objectives, p.activities,
               p.materials, p.taught_on, p.submitted_at, p.reviewed_at, p.review_comment
          FROM lesson_plans p
          JOIN streams st ON st.school_id = p.school_id AND st.id = p.stream_id
          JOIN subjects b ON b.school_id = p.school_id AND b.id = p.subject_id
          JOIN staff s ON s.school_id = p.school_id AND s.id = p.teacher_id
          JOIN users u ON u.id = s.user_id
          LEFT JOIN lesson_templates m ON m.school_id = p.school_id AND m.id = p.template_id
         WHERE p.school_id = $1 AND p.id = $2
        "#,
        school,
        id
    )
    .fetch_one(tx.connection()?)
    .await?)
}

/// A day after all lessons that the table takes.
fn far_future() -> NaiveDate {
    NaiveDate::from_ymd_opt(2200, 1, 1).unwrap_or_default()
}

/// Lists a teacher's plans of the current year on the campuses of a rule, the newest lesson first.
pub(crate) async fn of_teacher(
    tx: &mut Tx,
    staff: Uuid,
    rows: &CampusRule,
    status: Option<&str>,
    after: Option<&TaughtKey>,
    limit: i64,
) -> DbResult<Vec<LessonPlan>> {
    Ok(sqlx::query_as!(
        LessonPlan,
        r#"
        SELECT p.school_id, p.id, p.campus_id, p.status, p.stream_id, st.name AS stream_name, p.subject_id, b.name AS subject_name,
               p.teacher_id, u.name AS teacher_name, p.template_id, m.name AS "template_name?", p.topic, p.objectives, p.activities,
               p.materials, p.taught_on, p.submitted_at, p.reviewed_at, p.review_comment
          FROM lesson_plans p
          JOIN campus_academic_years y ON y.school_id = p.school_id AND y.id = p.campus_academic_year_id AND y.is_current
          JOIN streams st ON st.school_id = p.school_id AND st.id = p.stream_id
          JOIN subjects b ON b.school_id = p.school_id AND b.id = p.subject_id
          JOIN staff s ON s.school_id = p.school_id AND s.id = p.teacher_id
          JOIN users u ON u.id = s.user_id
          LEFT JOIN lesson_templates m ON m.school_id = p.school_id AND m.id = p.template_id
         WHERE p.teacher_id = $1 AND ($2::uuid[] IS NULL OR p.campus_id = ANY($2)) AND ($3::text IS NULL OR p.status = $3)
           AND (p.taught_on, p.id) < ($4, $5)
         ORDER BY p.taught_on DESC, p.id DESC
         LIMIT $6
        "#,
        staff,
        rows.campuses() as _,
        status,
        after.map_or(far_future(), |key| key.0),
        after.map_or(Uuid::max(), |key| key.1),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}

/// Lists the plans that wait for review on a campus in its current year, the longest waiting first, for a director of its studies.
pub(crate) async fn waiting(
    tx: &mut Tx,
    proof: &DirectorOfStudiesOf,
    after: Option<&WaitingKey>,
    limit: i64,
) -> DbResult<Vec<LessonPlan>> {
    // the year is found first, so that the index of what waits in it gives the order
    Ok(sqlx::query_as!(
        LessonPlan,
        r#"
        SELECT p.school_id, p.id, p.campus_id, p.status, p.stream_id, st.name AS stream_name, p.subject_id, b.name AS subject_name,
               p.teacher_id, u.name AS teacher_name, p.template_id, m.name AS "template_name?", p.topic, p.objectives, p.activities,
               p.materials, p.taught_on, p.submitted_at, p.reviewed_at, p.review_comment
          FROM lesson_plans p
          JOIN streams st ON st.school_id = p.school_id AND st.id = p.stream_id
          JOIN subjects b ON b.school_id = p.school_id AND b.id = p.subject_id
          JOIN staff s ON s.school_id = p.school_id AND s.id = p.teacher_id
          JOIN users u ON u.id = s.user_id
          LEFT JOIN lesson_templates m ON m.school_id = p.school_id AND m.id = p.template_id
         WHERE p.school_id = $1
           AND p.campus_academic_year_id = (SELECT y.id FROM campus_academic_years y
                                             WHERE y.school_id = $1 AND y.campus_id = $2 AND y.is_current)
           AND p.status = 'submitted'
           AND (p.submitted_at, p.id) > ($3, $4)
         ORDER BY p.submitted_at, p.id
         LIMIT $5
        "#,
        proof.school(),
        proof.campus(),
        after.map_or(DateTime::UNIX_EPOCH, |key| key.0),
        after.map_or(Uuid::nil(), |key| key.1),
        limit
    )
    .fetch_all(tx.connection()?)
    .await?)
}
