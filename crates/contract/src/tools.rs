//! The registry: every tool there is, in one list, and who is offered which.
//!
//! A tool is one definition in `tools/<domain>.rs`, one handler in the server, and one word in the list below. Dispatch, schema,
//! offer, agent map and the every-tool tests walk the list.

pub mod announcement;
pub mod assessment;
pub mod attendance;
pub mod audit;
pub mod campus;
pub mod coverage;
pub mod department;
pub mod gradebook;
pub mod grading;
pub mod lesson;
pub mod report;
pub mod school;
pub mod staff;
pub mod stream;
pub mod student;
pub mod subject;
pub mod teaching;

use crate::{
    context::AgentRunModeName,
    digest::digest,
    tool::{RpcTool, ToolRole},
};
use serde_json::Value;
use std::sync::LazyLock;

/// Declares a registry: as values, for whoever walks it, and as a list of types, for the server's dispatch. What contradicts itself
/// does not compile. Exported so that a test can show that.
///
/// A tool's arguments are an object, so its type is a struct with named fields: an enum does not have the pattern below, and the name
/// of a tuple or unit struct is taken when the constant beside the pattern wants it. (A schema written by hand, or a field that is
/// hidden, only the guard over the registry sees.)
#[macro_export]
macro_rules! rpc_agent_tools {
    ($($domain:ident::$tool:ident),* $(,)?) => {
        /// Every tool, as values.
        pub const RPC_AGENT_TOOLS: &[$crate::RpcTool] =
            &[$($crate::RpcTool::of::<$domain::$tool>().in_domain(stringify!($domain))),*];

        /// Every tool, as a list of types: `(A, (B, ()))`.
        pub type RpcAgentTools = $crate::rpc_agent_tools!(@list $($domain::$tool),*);

        const _: () = $crate::tool::assert_distinct(RPC_AGENT_TOOLS);

        $(const _: fn($domain::$tool) = {
            use $domain::$tool;
            #[expect(dead_code, non_upper_case_globals, reason = "it only takes the name")]
            const $tool: () = ();
            |$tool { .. }| ()
        };)*
    };
    (@list) => { () };
    (@list $head:path $(, $tail:path)*) => { ($head, $crate::rpc_agent_tools!(@list $($tail),*)) };
}

rpc_agent_tools![
    school::GetSchoolBranding,
    school::GetAcademicCalendar,
    campus::ListCampuses,
    department::ListDepartments,
    department::GetDepartment,
    department::CreateDepartment,
    department::UpdateDepartment,
    department::DeleteDepartment,
    department::AssignDepartmentHead,
    staff::ListStaff,
    staff::ListCampusStaff,
    staff::GetStaffMember,
    staff::InviteStaffMember,
    staff::UpdateStaffMember,
    staff::AssignStaffRole,
    staff::RevokeStaffRole,
    subject::ListSubjects,
    subject::CreateSubject,
    stream::ListStreams,
    stream::ListCampusStreams,
    stream::CreateStream,
    stream::AssignClassTeacher,
    stream::AssignSubjectTeacher,
    student::SearchStudents,
    student::GetStudent,
    student::EnrolStudent,
    student::UpdateStudent,
    student::TransferStudent,
    teaching::ListMyClassrooms,
    teaching::ListStreamRoster,
    attendance::RecordAttendance,
    attendance::GetAttendanceSummary,
    report::WriteReportComment,
    report::ListReportComments,
    grading::GetGradingConfig,
    grading::UpdateGradingConfig,
    assessment::ListAssessments,
    assessment::CreateAssessment,
    assessment::RecordScores,
    gradebook::GetSubjectGradebook,
    gradebook::GetClassGradebook,
    gradebook::PublishResults,
    lesson::ListTemplates,
    lesson::CreateLessonPlan,
    lesson::UpdateLessonPlan,
    lesson::SubmitLessonPlan,
    lesson::ListMyLessonPlans,
    lesson::ListLessonPlanReviews,
    lesson::ReviewLessonPlan,
    coverage::GetTeachingCoverage,
    announcement::ListAnnouncements,
    announcement::PublishAnnouncement,
    audit::ListAuditEntries,
];

/// The tool with this event.
#[must_use]
pub fn tool_for_event(event: &str) -> Option<&'static RpcTool> {
    RPC_AGENT_TOOLS
        .iter()
        .find(|tool| tool.definition.event.as_str() == event)
}

/// The tool with this name.
#[must_use]
pub fn tool_for_name(name: &str) -> Option<&'static RpcTool> {
    RPC_AGENT_TOOLS.iter().find(|tool| tool.definition.name == name)
}

/// A hash of the contracts of all tools: two processes with the same one agree on every call.
#[must_use]
pub fn contract_hash() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| {
        let hashes = RPC_AGENT_TOOLS.iter().map(|tool| {
            let event = tool.definition.event.to_string();
            (event, Value::String(tool.contract_hash()))
        });
        digest(&Value::Object(hashes.collect()))
    });
    &HASH
}

/// The tools whose scope is offered in a run mode, whoever's belt they are on.
pub fn tools_for_mode(mode: AgentRunModeName) -> impl Iterator<Item = &'static RpcTool> {
    RPC_AGENT_TOOLS
        .iter()
        .filter(move |tool| tool.definition.scope.is_offered_in(mode))
}

/// The tools on a specialist's belt in a run mode, shared ones included.
pub fn tools_for_role(role: ToolRole, mode: AgentRunModeName) -> impl Iterator<Item = &'static RpcTool> {
    tools_for_mode(mode).filter(move |tool| tool.definition.placement.is_on(role))
}
