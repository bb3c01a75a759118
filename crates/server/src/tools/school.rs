//! The school itself.

use super::{
    Call, ToolHandler,
    page::{Page, fetch, page},
};
use crate::{
    db::{
        academic_year::{self, CampusCalendar},
        school::{self, Branding},
    },
    error::ToolError,
    posture::{Posture, relationship_noted},
};
use contract::{
    tool::Read,
    tools::school::{GetAcademicCalendar, GetSchoolBranding},
};

impl ToolHandler for GetSchoolBranding {
    type Output = Branding;
    const POSTURE: Posture<Read, Self::Output> =
        relationship_noted("This is the school's own name and look, the same on every campus.");

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let Some(school) = call.actor().school_id else {
            return Err(ToolError::Invalid(
                "a platform administrator works for no school, and this names none".to_owned(),
            ));
        };
        school::branding(call.tx(), school)
            .await?
            .ok_or(ToolError::NotFound("School"))
    }
}

impl ToolHandler for GetAcademicCalendar {
    type Output = Page<CampusCalendar>;
    const POSTURE: Posture<Read, Self::Output> =
        relationship_noted("These are the dates of the campuses that are open to this person.");

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let rows = call.open_rows(self.campus_id)?;
        let year = match (self.campus_academic_year_id, call.named_campus(self.campus_id)) {
            (Some(year), Some(campus)) => Some(year.of(campus)),
            (Some(_), None) => {
                return Err(ToolError::Invalid(
                    "campusAcademicYearId: name its campus too".to_owned(),
                ));
            }
            (None, _) => None,
        };
        let found = academic_year::calendars(call.tx(), &rows, year, fetch(None)).await?;
        if year.is_some() && found.iter().all(|calendar| calendar.year.is_none()) {
            return Err(ToolError::NotFound("Academic year"));
        }
        // more campuses than fit are asked for by name, one at a time
        Ok(Page {
            next_cursor: None,
            ..page(call, found, None, |calendar| calendar.campus_id)?
        })
    }
}
