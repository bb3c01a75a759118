//! Lesson plans: whose they are, who may write them still, and who reviews them.

use super::{CurrentStream, Teaches, teaches};
use crate::{
    ability::CampusRule,
    db::{DbResult, Tx},
    standing::Actor,
};
use uuid::Uuid;

/// A lesson plan that is held until the transaction ends, because it is about to be changed.
#[derive(Debug)]
struct HeldPlan {
    id: Uuid,
    status: String,
    stream: CurrentStream,
    subject_id: Uuid,
    is_own: bool,
}

/// Proof that a lesson plan of the current year is the actor's own.
#[derive(Debug)]
pub(crate) struct AuthorOf(HeldPlan);

impl AuthorOf {
    /// The same, where the actor still teaches what the plan is for: it may be written then.
    pub(crate) async fn still_teaching(self, tx: &mut Tx, actor: &Actor) -> DbResult<Option<WriterOf>> {
        let teaches = teaches(tx, actor, self.0.stream, self.0.subject_id).await?;
        Ok(teaches.map(|teaches| WriterOf { plan: self.0, teaches }))
    }
}

/// Proof that a lesson plan is the actor's own, and for what the actor teaches now.
#[derive(Debug)]
pub(crate) struct WriterOf {
    plan: HeldPlan,
    teaches: Teaches,
}

impl WriterOf {
    /// The school of the plan.
    pub(crate) const fn school(&self) -> Uuid {
        self.plan.stream.school_id
    }

    /// The plan.
    pub(crate) const fn id(&self) -> Uuid {
        self.plan.id
    }

    /// Where it stands.
    pub(crate) fn status(&self) -> &str {
        &self.plan.status
    }

    /// What it is for.
    pub(crate) const fn teaches(&self) -> &Teaches {
        &self.teaches
    }
}

/// Proof that the actor directs the studies on the campus of a lesson plan of the current year.
#[derive(Debug)]
pub(crate) struct DirectorOverPlan {
    plan: HeldPlan,
    staff_id: Uuid,
}

impl DirectorOverPlan {
    /// The school of the plan.
    pub(crate) const fn school(&self) -> Uuid {
        self.plan.stream.school_id
    }

    /// The plan.
    pub(crate) const fn id(&self) -> Uuid {
        self.plan.id
    }

    /// The actor, who directs.
    pub(crate) const fn director(&self) -> Uuid {
        self.staff_id
    }

    /// Where it stands.
    pub(crate) fn status(&self) -> &str {
        &self.plan.status
    }

    /// Whether the director wrote it, and so is no judge of it.
    pub(crate) const fn is_own(&self) -> bool {
        self.plan.is_own
    }
}

/// Whether a lesson plan is the actor's own, of the current year and on the campuses of a rule. It is held until the transaction ends.
pub(crate) async fn author_of(tx: &mut Tx, actor: &Actor, plan: Uuid, rows: &CampusRule) -> DbResult<Option<AuthorOf>> {
    let held = held_plan(tx, actor, plan, rows).await?;
    Ok(held.filter(|(plan, _)| plan.is_own).map(|(plan, _)| AuthorOf(plan)))
}

/// Whether the actor directs the studies on the campus of a lesson plan of the current year, on the campuses of a rule. It is held until
/// the transaction ends.
pub(crate) async fn director_over_plan(
    tx: &mut Tx,
    actor: &Actor,
    plan: Uuid,
    rows: &CampusRule,
) -> DbResult<Option<DirectorOverPlan>> {
    let held = held_plan(tx, actor, plan, rows).await?;
    Ok(held.and_then(|(plan, director)| director.map(|staff_id| DirectorOverPlan { plan, staff_id })))
}

/// A lesson plan that is the actor's own or of a campus whose studies the actor directs; who directs them, in the latter case. Nobody
/// else's is ever held.
async fn held_plan(
    tx: &mut Tx,
    actor: &Actor,
    plan: Uuid,
    rows: &CampusRule,
) -> DbResult<Option<(HeldPlan, Option<Uuid>)>> {
    let row = sqlx::query!(
        r#"
        SELECT p.school_id, p.id, p.status, p.stream_id, p.campus_id, p.campus_academic_year_id, p.subject_id,
               p.teacher_id = $2 AS "is_own!", d.staff_id AS "director?"
          FROM lesson_plans p
          JOIN campus_academic_years y ON y.school_id = p.school_id AND y.id = p.campus_academic_year_id AND y.is_current
          LEFT JOIN directors_of_studies d ON d.school_id = p.school_id AND d.campus_id = p.campus_id AND d.staff_id = $2
         WHERE p.id = $1 AND ($3::uuid[] IS NULL OR p.campus_id = ANY($3)) AND (p.teacher_id = $2 OR d.id IS NOT NULL)
           FOR UPDATE OF p
        "#,
        plan,
        actor.staff_id,
        rows.campuses() as _
    )
    .fetch_optional(tx.connection()?)
    .await?;
    Ok(row.map(|row| {
        let stream = CurrentStream {
            school_id: row.school_id,
            id: row.stream_id,
            campus_id: row.campus_id,
            campus_academic_year_id: row.campus_academic_year_id,
        };
        let plan = HeldPlan {
            id: row.id,
            status: row.status,
            stream,
            subject_id: row.subject_id,
            is_own: row.is_own,
        };
        (plan, row.director)
    }))
}
