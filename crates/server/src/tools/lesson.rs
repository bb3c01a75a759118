//! Lesson plans: written by who teaches, reviewed by who directs the studies.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
    relationship::{director_of, director_over_plan, pinned, subject_teacher, teaches, writer_of},
};
use crate::{
    db::{
        department::NameKey,
        lesson::{self, LessonPlan, NewPlan, PlanChange, TaughtKey, Template, WaitingKey},
        relationship::Teaches,
    },
    error::ToolError,
    posture::{AuditSubject, Posture, relationship, relationship_noted},
};
use chrono::{Datelike, NaiveDate};
use contract::{
    Action,
    tool::{Read, Write},
    tools::lesson::{
        CreateLessonPlan, LessonPlanField, LessonPlanStatus, ListLessonPlanReviews, ListMyLessonPlans, ListTemplates,
        ReviewDecision, ReviewLessonPlan, SubmitLessonPlan, UpdateLessonPlan,
    },
};
use std::ops::RangeInclusive;
use uuid::Uuid;

const RESOURCE_TYPE: &str = "LESSON_PLAN";
const ONE_PLAN_NOTE: &str = "This was one lesson plan.";
const NOT_ONES_OWN: ToolError = ToolError::Forbidden("nobody reviews a lesson plan of their own");
const NO_SUCH_TEMPLATE: ToolError = ToolError::NotFound("Lesson template for that subject");
/// What a date is taken for one of a lesson; the table has the same bounds.
const YEARS: RangeInclusive<i32> = 2000..=2199;

impl ToolHandler for ListTemplates {
    type Output = Page<Template>;
    const POSTURE: Posture<Read, Self::Output> =
        relationship_noted("These are lesson templates of the whole school, the same on every campus.");
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = subject_teacher(call).await?;
        let after: Option<NameKey> = page::after(call, self.cursor.as_deref())?;
        let limit = fetch(self.limit);
        let found = lesson::templates(call.tx(), &proof, self.subject_id, after.as_ref(), limit).await?;
        page(call, found, self.limit, |row| NameKey(row.name.clone(), row.id))
    }
}

impl ToolHandler for CreateLessonPlan {
    type Output = LessonPlan;
    const POSTURE: Posture<Write, Self::Output> =
        relationship_noted(ONE_PLAN_NOTE).audited(Action::Create, RESOURCE_TYPE, subject);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        is_possible(self.taught_on)?;
        let proof = teaches(call, self.stream_id, self.subject_id).await?;
        fits(call, &proof, self.template_id).await?;
        let plan = NewPlan {
            template_id: self.template_id,
            topic: &self.topic,
            objectives: &self.objectives,
            activities: &self.activities,
            materials: self.materials.as_deref(),
            taught_on: self.taught_on,
        };
        let staff = call.actor().staff_id;
        let id = lesson::insert(call.tx(), &proof, staff, plan).await?;
        Ok(lesson::read(call.tx(), proof.stream().school(), id).await?)
    }
}

impl ToolHandler for UpdateLessonPlan {
    type Output = LessonPlan;
    const POSTURE: Posture<Write, Self::Output> =
        relationship_noted(ONE_PLAN_NOTE).audited(Action::Update, RESOURCE_TYPE, subject);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let change = change_of(&self)?;
        is_possible(self.taught_on)?;
        let proof = writer_of(call, self.plan_id).await?;
        is_unfinished(proof.status(), "changed")?;
        fits(call, proof.teaches(), self.template_id).await?;
        lesson::update(call.tx(), &proof, change).await?;
        Ok(lesson::read(call.tx(), proof.school(), proof.id()).await?)
    }
}

impl ToolHandler for SubmitLessonPlan {
    type Output = LessonPlan;
    const POSTURE: Posture<Write, Self::Output> =
        relationship_noted(ONE_PLAN_NOTE).audited(Action::Update, RESOURCE_TYPE, subject);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = writer_of(call, self.plan_id).await?;
        is_unfinished(proof.status(), "submitted")?;
        lesson::submit(call.tx(), &proof).await?;
        Ok(lesson::read(call.tx(), proof.school(), proof.id()).await?)
    }
}

impl ToolHandler for ListMyLessonPlans {
    type Output = Page<LessonPlan>;
    const POSTURE: Posture<Read, Self::Output> = relationship();
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let after: Option<TaughtKey> = page::after(call, self.cursor.as_deref())?;
        let (rows, limit) = (pinned(call), fetch(self.limit));
        let status = self.status.map(word);
        let found = match call.actor().staff_id {
            Some(staff) => lesson::of_teacher(call.tx(), staff, &rows, status, after.as_ref(), limit).await?,
            None => Vec::new(),
        };
        page(call, found, self.limit, |row| TaughtKey(row.taught_on, row.id))
    }
}

impl ToolHandler for ListLessonPlanReviews {
    type Output = Page<LessonPlan>;
    const POSTURE: Posture<Read, Self::Output> = relationship();
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = director_of(call, self.campus_id).await?;
        let after: Option<WaitingKey> = page::after(call, self.cursor.as_deref())?;
        let found = lesson::waiting(call.tx(), &proof, after.as_ref(), fetch(self.limit)).await?;
        page(call, found, self.limit, |row| {
            WaitingKey(row.submitted_at.unwrap_or_default(), row.id)
        })
    }
}

impl ToolHandler for ReviewLessonPlan {
    type Output = LessonPlan;
    const POSTURE: Posture<Write, Self::Output> =
        relationship_noted(ONE_PLAN_NOTE).audited(Action::Update, RESOURCE_TYPE, subject);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let status = match (self.decision, &self.comment) {
            (ReviewDecision::Approve, _) => LessonPlanStatus::Approved,
            (ReviewDecision::Return, Some(_)) => LessonPlanStatus::Returned,
            (ReviewDecision::Return, None) => {
                return Err(ToolError::Invalid(
                    "comment: say what to mend; a plan is not returned without".to_owned(),
                ));
            }
        };
        let proof = director_over_plan(call, self.plan_id).await?;
        if proof.is_own() {
            return Err(NOT_ONES_OWN);
        }
        if proof.status() != word(LessonPlanStatus::Submitted) {
            return Err(ToolError::Conflict(format!(
                "This lesson plan is {}. Only a submitted one can be reviewed.",
                proof.status()
            )));
        }
        lesson::review(call.tx(), &proof, word(status), self.comment.as_deref()).await?;
        Ok(lesson::read(call.tx(), proof.school(), proof.id()).await?)
    }
}

/// The status as it stands in the table.
const fn word(status: LessonPlanStatus) -> &'static str {
    match status {
        LessonPlanStatus::Draft => "draft",
        LessonPlanStatus::Submitted => "submitted",
        LessonPlanStatus::Approved => "approved",
        LessonPlanStatus::Returned => "returned",
    }
}

/// What an update asks for, which must be something and must not contradict itself.
fn change_of(update: &UpdateLessonPlan) -> Result<PlanChange<'_>, ToolError> {
    let cleared = |field| update.clear.as_ref().is_some_and(|clear| clear.contains(&field));
    let change = PlanChange {
        template_id: update.template_id,
        clear_template: cleared(LessonPlanField::TemplateId),
        topic: update.topic.as_deref(),
        objectives: update.objectives.as_deref(),
        activities: update.activities.as_deref(),
        materials: update.materials.as_deref(),
        clear_materials: cleared(LessonPlanField::Materials),
        taught_on: update.taught_on,
    };
    for (name, is_given, is_cleared) in [
        ("materials", change.materials.is_some(), change.clear_materials),
        ("templateId", change.template_id.is_some(), change.clear_template),
    ] {
        if is_given && is_cleared {
            return Err(ToolError::Invalid(format!(
                "clear: {name} is given and cleared at once"
            )));
        }
    }
    let texts = [change.topic, change.objectives, change.activities, change.materials];
    let is_nothing = texts.iter().all(Option::is_none)
        && change.template_id.is_none()
        && change.taught_on.is_none()
        && !change.clear_materials
        && !change.clear_template;
    if is_nothing {
        return Err(ToolError::Invalid("arguments: name what to change".to_owned()));
    }
    Ok(change)
}

fn is_possible(taught_on: Option<NaiveDate>) -> Result<(), ToolError> {
    match taught_on {
        Some(day) if !YEARS.contains(&day.year()) => Err(ToolError::Invalid(format!(
            "taughtOn: a year from {} to {}",
            YEARS.start(),
            YEARS.end()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// A template, where one is named, is one of the school that fits what is taught.
async fn fits(call: &mut Call<'_>, proof: &Teaches, template: Option<Uuid>) -> Result<(), ToolError> {
    match template {
        Some(template) if !lesson::template_fits(call.tx(), proof, template).await? => Err(NO_SUCH_TEMPLATE),
        Some(_) | None => Ok(()),
    }
}

/// What was handed in and not returned is the reviewer's.
fn is_unfinished(status: &str, done: &str) -> Result<(), ToolError> {
    if [LessonPlanStatus::Draft, LessonPlanStatus::Returned]
        .map(word)
        .contains(&status)
    {
        Ok(())
    } else {
        Err(ToolError::Conflict(format!(
            "This lesson plan is {status}. Only a draft or a returned one can be {done}."
        )))
    }
}

fn subject(plan: &LessonPlan) -> AuditSubject {
    AuditSubject {
        school_id: plan.school_id,
        campus_id: Some(plan.campus_id),
        resource_id: plan.id,
    }
}
