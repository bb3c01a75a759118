//! Types of tool arguments that carry a rule with them.
//!
//! A campus or a year that a model names can be read only through the call's scope, so that no handler can forget the pin. A
//! page's limit has its bounds in its type.

use crate::identity::AgentCallScope;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use std::borrow::Cow;
use uuid::Uuid;

/// A campus as the model names it. In campus mode the envelope's campus wins, always.
///
/// There is no way to the id but through a scope:
///
/// ```
/// use contract::{AgentCallScope, argument::RequestedCampus};
/// # let requested: RequestedCampus = serde_json::from_str("\"018f0000-0000-7000-8000-000000000001\"").unwrap();
/// # let here = uuid::Uuid::from_u128(7);
/// let pinned = AgentCallScope::Campus { campus_id: here };
/// assert_eq!(pinned.campus(Some(requested)), Some(here));
/// ```
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RequestedCampus(Uuid);

/// A campus's academic year as the model names it. It is only ever looked up together with the campus it must belong to.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RequestedYear(Uuid);

/// A requested year, bound to the campus whose year it must be.
#[derive(Debug, Clone, Copy)]
pub struct YearOfCampus {
    /// The row of `campus_academic_years`.
    pub campus_academic_year_id: Uuid,
    /// The campus that the row must belong to.
    pub campus_id: Uuid,
}

impl RequestedYear {
    /// Binds the year to a campus that the call's scope gave.
    #[must_use]
    pub const fn of(self, campus_id: Uuid) -> YearOfCampus {
        YearOfCampus {
            campus_academic_year_id: self.0,
            campus_id,
        }
    }
}

impl AgentCallScope {
    /// The campus of a call: the pinned one, else the requested one.
    #[must_use]
    pub fn campus(&self, requested: Option<RequestedCampus>) -> Option<Uuid> {
        self.pinned().or(requested.map(|campus| campus.0))
    }
}

/// How many rows a page holds at the most: 1 to [`PageLimit::MAX`], [`PageLimit::DEFAULT`] where none is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit(u16);

impl PageLimit {
    /// The bound of every list.
    pub const MAX: u16 = 200;
    /// The length of a page where the caller names none.
    pub const DEFAULT: Self = Self(50);

    /// The number of rows.
    #[must_use]
    pub const fn rows(self) -> u16 {
        self.0
    }
}

impl Default for PageLimit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl<'de> Deserialize<'de> for PageLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rows = u16::deserialize(deserializer)?;
        if (1..=Self::MAX).contains(&rows) {
            Ok(Self(rows))
        } else {
            Err(de::Error::custom(format_args!("a page has 1 to {} rows", Self::MAX)))
        }
    }
}

impl JsonSchema for PageLimit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "PageLimit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 1, "maximum": Self::MAX})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(id: Uuid) -> RequestedCampus {
        serde_json::from_value(serde_json::json!(id)).unwrap()
    }

    #[test]
    fn the_envelope_beats_the_model() {
        let (here, there) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let campus = AgentCallScope::Campus { campus_id: here };
        assert_eq!(campus.campus(Some(requested(there))), Some(here));
        assert_eq!(campus.campus(None), Some(here));
        assert_eq!(AgentCallScope::School {}.campus(Some(requested(there))), Some(there));
        assert_eq!(AgentCallScope::School {}.campus(None), None);
    }

    #[test]
    fn a_page_has_bounds() {
        for (text, rows) in [
            ("1", Some(1)),
            ("200", Some(200)),
            ("0", None),
            ("201", None),
            ("1.5", None),
        ] {
            assert_eq!(
                serde_json::from_str::<PageLimit>(text).ok().map(PageLimit::rows),
                rows,
                "{text}"
            );
        }
    }
}
