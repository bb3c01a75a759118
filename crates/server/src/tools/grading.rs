//! How a campus grades.

use super::{
    Call, ToolHandler,
    relationship::{director_of, teaches_on},
};
use crate::{
    db::{
        DbError,
        grading::{self, Band, GradingConfig, NewBand},
    },
    error::ToolError,
    posture::{AuditSubject, Posture, relationship_noted},
};
use contract::{
    Action,
    tool::{Read, Write},
    tools::grading::{GetGradingConfig, GradingBand, UpdateGradingConfig},
};
use serde::Serialize;
use std::collections::HashSet;

const NOT_FOUND: ToolError = ToolError::NotFound("Grading configuration");
const SAME_LABEL: &str = "two of them have the same label";
const ONE_CAMPUS: &str = "This is how one campus grades.";

impl ToolHandler for GetGradingConfig {
    type Output = GradingConfig;
    const POSTURE: Posture<Read, Self::Output> = relationship_noted(ONE_CAMPUS);

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = teaches_on(call, self.campus_id).await?;
        grading::get(call.tx(), &proof).await?.ok_or(NOT_FOUND)
    }
}

/// How a campus grades from now on, and how it did: whoever approves of it is to see both.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replaced {
    #[serde(flatten)]
    config: GradingConfig,
    /// Empty where nobody had said yet.
    replaced_bands: Vec<Band>,
}

impl ToolHandler for UpdateGradingConfig {
    type Output = Replaced;
    const POSTURE: Posture<Write, Self::Output> =
        relationship_noted(ONE_CAMPUS).audited(Action::Update, "GRADING_CONFIG", |replaced: &Replaced| AuditSubject {
            school_id: replaced.config.school_id,
            campus_id: Some(replaced.config.campus_id),
            resource_id: replaced.config.id,
        });

    async fn run(self, call: &mut Call<'_>) -> Result<Self::Output, ToolError> {
        let proof = director_of(call, self.campus_id).await?;
        if let Some(problem) = problem(&self.bands) {
            return Err(ToolError::Invalid(format!("bands: {problem}")));
        }
        let bands: Vec<_> = self.bands.iter().map(new_band).collect();
        let replaced = grading::replace(call.tx(), &proof, &bands).await.map_err(label_taken)?;
        let (config, replaced_bands) = replaced.ok_or(NOT_FOUND)?;
        Ok(Replaced { config, replaced_bands })
    }
}

/// The database takes more labels for the same than [`problem`] does: `İ` and `i`, for one.
fn label_taken(error: DbError) -> ToolError {
    if error.is_duplicate_of("grading_bands_label_key") {
        ToolError::Invalid(format!("bands: {SAME_LABEL}"))
    } else {
        error.into()
    }
}

fn new_band(band: &GradingBand) -> NewBand<'_> {
    NewBand {
        label: &band.label,
        from: band.from,
        remark: band.remark.as_deref(),
    }
}

/// What keeps these from being the bands of every percentage.
fn problem(bands: &[GradingBand]) -> Option<&'static str> {
    let bounds: HashSet<i32> = bands.iter().map(|band| band.from).collect();
    let labels: HashSet<String> = bands.iter().map(|band| band.label.to_lowercase()).collect();
    if !bounds.contains(&0) {
        return Some("one of them must begin at 0");
    }
    if bounds.len() < bands.len() {
        return Some("two of them begin at the same percentage");
    }
    (labels.len() < bands.len()).then_some(SAME_LABEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bands(of: &[(&str, i32)]) -> Vec<GradingBand> {
        let band = |&(label, from): &(&str, i32)| GradingBand {
            label: label.to_owned(),
            from,
            remark: None,
        };
        of.iter().map(band).collect()
    }

    #[test]
    fn bands_hold_every_percentage_once() {
        assert_eq!(problem(&bands(&[("B", 0), ("A", 50)])), None);
        assert!(problem(&bands(&[("B", 1), ("A", 50)])).is_some());
        assert!(problem(&bands(&[("B", 0), ("A", 0)])).is_some());
        assert!(problem(&bands(&[("b", 0), ("B", 50)])).is_some());
    }
}
