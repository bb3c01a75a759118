//! The words of a permission: what is done ([`Action`]) to what ([`Resource`]).
//!
//! Both processes use them: a tool may take them as arguments, the server's rules are written in them. Having a word for
//! something here grants nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum $name { $(#[doc = concat!("`", $text, "`")] #[serde(rename = $text)] $variant),* }

        impl $name {
            /// Every word there is, in the order in which the documentation names them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The word as it stands on the wire and in the database.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $text),* } }

            /// The word for a text, if it is one.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> { match text { $($text => Some(Self::$variant),)* _ => None } }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }
    };
}

words! {
    /// What is done. [`Action::Manage`] stands for all of them.
    Action { Create = "CREATE", Read = "READ", Update = "UPDATE", Delete = "DELETE", List = "LIST", Manage = "MANAGE" }
}

words! {
    /// What it is done to. [`Resource::Any`] stands for all of them.
    Resource {
        School = "SCHOOL", Campus = "CAMPUS", AcademicYear = "ACADEMIC_YEAR", Department = "DEPARTMENT", Staff = "STAFF",
        Role = "ROLE", Subject = "SUBJECT", Stream = "STREAM", Student = "STUDENT", Attendance = "ATTENDANCE",
        GradingConfig = "GRADING_CONFIG", Assessment = "ASSESSMENT", Gradebook = "GRADEBOOK", Report = "REPORT",
        LessonTemplate = "LESSON_TEMPLATE", LessonPlan = "LESSON_PLAN", Announcement = "ANNOUNCEMENT",
        AuditLog = "AUDIT_LOG", Any = "ALL",
    }
}

/// One pair of an action and a resource, as a tool's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permission {
    /// What may be done.
    pub action: Action,
    /// To what it may be done.
    pub resource: Resource,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_wire() {
        for &resource in Resource::ALL {
            assert_eq!(Resource::parse(resource.as_str()), Some(resource));
            assert_eq!(serde_json::to_value(resource).unwrap(), resource.as_str());
        }
        for &action in Action::ALL {
            assert_eq!(Action::parse(action.as_str()), Some(action));
        }
        assert_eq!(Action::parse("create"), None, "words are exact");
    }
}
