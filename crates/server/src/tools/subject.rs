//! Subjects, which belong to the whole school.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
};
use crate::{
    db::{
        DbError,
        department::NameKey,
        subject::{self, NewSubject, Subject},
    },
    error::ToolError,
    posture::{AuditSubject, Posture, casl},
};
use contract::{
    Action, Resource,
    tool::{Read, Write},
    tools::subject::{CreateSubject, ListSubjects},
};
use uuid::Uuid;

const CLASS_NOT_FOUND: ToolError = ToolError::NotFound("Class");

impl ToolHandler for ListSubjects {
    type Output = Page<Subject>;
    const POSTURE: Posture<Read, Self::Output> = casl(Action::List, Resource::Subject);
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let (action, resource) = (Action::List, Resource::Subject);
        // a subject is on no campus: whoever may list those of any campus lists the school's
        if call.rows(action, resource, None)?.is_empty() {
            return Err(ToolError::Denied { action, resource });
        }
        call.covers_all();
        if let Some(class) = self.class_id {
            school_of(call, &[class]).await?;
        }
        let after: Option<NameKey> = page::after(call, self.cursor.as_deref())?;
        let found = subject::list(call.tx(), self.class_id, after.as_ref(), fetch(self.limit)).await?;
        page(call, found, self.limit, |row| NameKey(row.name.clone(), row.id))
    }
}

impl ToolHandler for CreateSubject {
    type Output = Subject;
    const POSTURE: Posture<Write, Self::Output> =
        casl(Action::Create, Resource::Subject).audited(Action::Create, "SUBJECT", |subject: &Subject| AuditSubject {
            school_id: subject.school_id,
            campus_id: None,
            resource_id: subject.id,
        });

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let (action, resource) = (Action::Create, Resource::Subject);
        if !call.ability().can_on(action, resource, None)? {
            return Err(ToolError::Denied { action, resource });
        }
        let school = match (&self.class_ids, call.actor().school_id) {
            (Some(classes), _) => school_of(call, classes).await?,
            (None, Some(school)) => school,
            (None, None) => {
                return Err(ToolError::Invalid(
                    "classIds: name the classes; this person belongs to no school".to_owned(),
                ));
            }
        };
        let new = NewSubject {
            code: &self.code,
            name: &self.name,
            description: self.description.as_deref(),
        };
        call.covers_all();
        subject::insert(call.tx(), school, new, self.class_ids.as_deref())
            .await
            .map_err(taken)
    }
}

/// The one school of these classes, all of which must be there.
async fn school_of(call: &mut Call<'_>, classes: &[Uuid]) -> Result<Uuid, ToolError> {
    let mut wanted = classes.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let mut schools = subject::schools_of_classes(call.tx(), &wanted).await?;
    let found = schools.len();
    schools.dedup();
    match schools.as_slice() {
        &[school] if found == wanted.len() => Ok(school),
        _ => Err(CLASS_NOT_FOUND),
    }
}

fn taken(error: DbError) -> ToolError {
    if error.is_duplicate_of("subjects_code_key") {
        ToolError::Conflict("A subject with that code exists in this school.".to_owned())
    } else if error.is_duplicate_of("subjects_name_key") {
        ToolError::Conflict("A subject of that name exists in this school.".to_owned())
    } else {
        error.into()
    }
}
