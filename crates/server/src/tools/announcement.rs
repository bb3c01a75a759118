//! What the school tells its staff.

use super::{
    Call, ToolHandler,
    page::{self, Page, fetch, page},
    relationship::{STREAM_NOT_FOUND, pinned},
};
use crate::{
    db::{
        announcement::{self, Addressee, Announcement, Draft, NewestKey, Reader},
        relationship,
    },
    error::ToolError,
    posture::{AuditSubject, Posture, casl, relationship_noted},
};
use contract::{
    Action, Resource,
    argument::RequestedCampus,
    tool::{Read, Write},
    tools::announcement::{AnnouncementAudience, ListAnnouncements, PublishAnnouncement},
};
use uuid::Uuid;

impl ToolHandler for ListAnnouncements {
    type Output = Page<Announcement>;
    const POSTURE: Posture<Read, Self::Output> =
        relationship_noted("These are the announcements that are addressed to this person, not all there are.");
    const ONE_PLAN: bool = true;

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = pinned(call);
        let before: Option<NewestKey> = page::after(call, self.cursor.as_deref())?;
        let found = match reader(call) {
            Some(reader) => {
                announcement::addressed_to(call.tx(), reader, &rows, before.as_ref(), fetch(self.limit)).await?
            }
            None => Vec::new(),
        };
        page(call, found, self.limit, |row| NewestKey(row.published_at, row.id))
    }
}

impl ToolHandler for PublishAnnouncement {
    type Output = Announcement;
    const POSTURE: Posture<Write, Self::Output> = casl(Action::Create, Resource::Announcement).audited(
        Action::Create,
        "ANNOUNCEMENT",
        |published: &Announcement| AuditSubject {
            school_id: published.school_id,
            campus_id: published.campus_id,
            resource_id: published.id,
        },
    );

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let addressee = match (self.audience, self.stream_id) {
            (AnnouncementAudience::School, None) => whole_school(call, self.campus_id)?,
            (AnnouncementAudience::Campus, None) => {
                Addressee::Campus(call.one_campus(Action::Create, Resource::Announcement, self.campus_id)?)
            }
            (AnnouncementAudience::Stream, Some(stream)) => of_stream(call, stream, self.campus_id).await?,
            (AnnouncementAudience::Stream, None) => {
                return Err(ToolError::Invalid("streamId: name the stream".to_owned()));
            }
            (AnnouncementAudience::School | AnnouncementAudience::Campus, Some(_)) => {
                return Err(ToolError::Invalid(
                    "streamId: goes with the audience stream only".to_owned(),
                ));
            }
        };
        let draft = Draft {
            title: &self.title,
            body: &self.body,
            published_by: call.actor().staff_id,
        };
        announcement::insert(call.tx(), addressee, draft)
            .await?
            .ok_or(ToolError::NotFound("Campus"))
    }
}

/// The actor as a reader; nothing is addressed to a platform administrator.
fn reader(call: &Call<'_>) -> Option<Reader> {
    let actor = call.actor();
    Some(Reader {
        school: actor.school_id?,
        staff: actor.staff_id?,
        campus: actor.campus_id,
    })
}

/// What reaches everybody is said by whoever may say something on no campus.
fn whole_school(call: &Call<'_>, requested: Option<RequestedCampus>) -> Result<Addressee, ToolError> {
    if call.named_campus(None).is_some() {
        return Err(ToolError::Invalid(
            "audience: while working in one campus, that campus or one of its streams".to_owned(),
        ));
    }
    if requested.is_some() {
        return Err(ToolError::Invalid(
            "campusId: does not go with the audience school".to_owned(),
        ));
    }
    let Some(school) = call.actor().school_id else {
        return Err(ToolError::Invalid(
            "audience: a platform administrator works for no school, and this names none".to_owned(),
        ));
    };
    if !call.ability().can_on(Action::Create, Resource::Announcement, None)? {
        return Err(ToolError::Forbidden(
            "you may not announce anything to the whole school; choose a campus",
        ));
    }
    Ok(Addressee::School(school))
}

async fn of_stream(
    call: &mut Call<'_>,
    stream: Uuid,
    requested: Option<RequestedCampus>,
) -> Result<Addressee, ToolError> {
    let rows = call.rows(Action::Create, Resource::Announcement, requested)?;
    let stream = relationship::current_stream(call.tx(), stream, &rows)
        .await?
        .ok_or(STREAM_NOT_FOUND)?;
    Ok(Addressee::Stream(stream))
}
