//! The personas: which specialists a caller is offered this turn with which belts, and what each agent is told.
//!
//! Built anew for each turn. What an agent is told is its persona and its playbooks, which are Markdown in its folder
//! beside this file. A playbook names the tools that it takes, and only those that its persona has; a guard below holds
//! that.

use crate::{
    caller::AgentToolCaller,
    local_tools::{LocalTool, permission_text},
    proxy::{BeltTool, build_role_tools},
};
use chrono_tz::Tz;
use contract::{AgentRunMode, AgentRuntimeContext, ToolRole, agent_map::eligible_agent_roles};
use std::sync::Arc;

/// How the supervisor hands over work; only told where somebody is there to do it.
const DELEGATION: &str = include_str!("agents/rover/playbooks/delegation.md");
/// How an agent asks the person; only told where the turn can wait for the answer.
const ASKING: &str = include_str!("agents/asking.md");
/// What a specialist does about what is missing, where it can ask the person.
const CAN_ASK: &str = "When something is missing that only the person knows, ask them with `ask_user`.";
/// The same, where it cannot.
const CANNOT_ASK: &str = "You cannot ask the person: when something is missing, say what it is, and stop.";

/// The most permissions that the prompt names; the rest is counted. More would push the work out of the model's sight.
const MAX_PERMISSIONS_SHOWN: usize = 40;

/// Who an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persona {
    /// Rover, who talks with the person.
    Supervisor,
    /// One that Rover hands work to.
    Specialist(ToolRole),
}

impl Persona {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supervisor => "Rover",
            Self::Specialist(role) => role.persona(),
        }
    }

    /// What it is told before its playbooks, with places for what this turn knows.
    const fn text(self) -> &'static str {
        match self {
            Self::Supervisor => include_str!("agents/rover/persona.md"),
            Self::Specialist(ToolRole::ClassTeacher) => include_str!("agents/angie/persona.md"),
            Self::Specialist(ToolRole::SubjectTeacher) => include_str!("agents/bean/persona.md"),
            Self::Specialist(ToolRole::Dos) => include_str!("agents/sarah/persona.md"),
        }
    }

    /// How it does what it is often asked for.
    const fn playbooks(self) -> &'static [&'static str] {
        match self {
            Self::Supervisor => &[
                include_str!("agents/rover/playbooks/students.md"),
                include_str!("agents/rover/playbooks/streams.md"),
                include_str!("agents/rover/playbooks/staff.md"),
                include_str!("agents/rover/playbooks/new_staff.md"),
                include_str!("agents/rover/playbooks/departments.md"),
                include_str!("agents/rover/playbooks/announcements.md"),
                include_str!("agents/rover/playbooks/school.md"),
                include_str!("agents/rover/playbooks/trail.md"),
            ],
            Self::Specialist(ToolRole::ClassTeacher) => &[
                include_str!("agents/angie/playbooks/own_stream.md"),
                include_str!("agents/angie/playbooks/attendance.md"),
                include_str!("agents/angie/playbooks/gradebook.md"),
                include_str!("agents/angie/playbooks/report_comments.md"),
            ],
            Self::Specialist(ToolRole::SubjectTeacher) => &[
                include_str!("agents/bean/playbooks/own_classes.md"),
                include_str!("agents/bean/playbooks/scores.md"),
                include_str!("agents/bean/playbooks/lesson_plans.md"),
            ],
            Self::Specialist(ToolRole::Dos) => &[
                include_str!("agents/sarah/playbooks/campus_streams.md"),
                include_str!("agents/sarah/playbooks/coverage.md"),
                include_str!("agents/sarah/playbooks/plan_reviews.md"),
                include_str!("agents/sarah/playbooks/results.md"),
            ],
        }
    }
}

/// A specialist with its belt.
pub struct Subagent {
    /// Which specialist.
    pub role: ToolRole,
    /// The tools that it has in this run mode.
    pub belt: Vec<BeltTool>,
}

/// The specialists that this caller is offered this turn, in the order of the agent map.
#[must_use]
pub fn select_subagents(context: &AgentRuntimeContext, caller: &Arc<dyn AgentToolCaller>) -> Vec<Subagent> {
    let mode = context.run_mode.name();
    let belt = |role| {
        let mut belt = build_role_tools(role, caller, mode);
        belt.push(BeltTool::Local(LocalTool::GetCurrentTime));
        belt
    };
    eligible_agent_roles(context.capabilities)
        .into_iter()
        .map(|role| Subagent { role, belt: belt(role) })
        .collect()
}

/// Whether the person can be asked something in the middle of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// The turn can wait for the answer.
    Possible,
    /// It cannot.
    Impossible,
}

/// What an agent is told that is of this turn alone.
#[derive(Debug, Clone, Copy)]
pub struct Briefing<'a> {
    /// To whom it can hand work.
    pub specialists: &'a [ToolRole],
    /// How many messages of the thread it is not shown.
    pub messages_left_out: u32,
    /// Whether it can ask the person.
    pub asking: Asking,
}

/// What an agent is told before anything else: its persona, the person, the place, the clock, its playbooks, whether it
/// can ask the person, to whom it can hand work, and how many messages of the thread it is not shown.
#[must_use]
pub fn system_prompt(persona: Persona, context: &AgentRuntimeContext, briefing: Briefing<'_>) -> String {
    let asking = (briefing.asking == Asking::Possible).then_some(ASKING);
    let delegation = (!briefing.specialists.is_empty()).then_some(DELEGATION);
    let mut parts = vec![persona.text()];
    parts.extend(persona.playbooks().iter().copied().chain(asking).chain(delegation));
    let template = parts.join("\n");
    // In one pass over the template, so that a name with a placeholder in it is only a name.
    fill(&template, |place| value_of(place, context, briefing)) + &left_out(briefing.messages_left_out)
}

fn left_out(messages: u32) -> String {
    if messages == 0 {
        return String::new();
    }
    format!(
        "\nThis conversation began earlier: {messages} older messages of the person, and what followed them, are not \
         shown to you. When you need something of them, ask the person.\n"
    )
}

/// What a place in a template stands for.
fn value_of(place: &str, context: &AgentRuntimeContext, briefing: Briefing<'_>) -> Option<String> {
    let details = &context.user_details;
    let now = context
        .current_time
        .with_timezone(&context.time_zone.unwrap_or(Tz::UTC));
    let value = match place {
        "person" => details.name.clone(),
        "school" => details
            .school_name
            .clone()
            .unwrap_or_else(|| "no school of their own".to_owned()),
        "place" => match &context.run_mode {
            AgentRunMode::School {} => "the whole school".to_owned(),
            AgentRunMode::Campus { campus } => format!("the campus {}", campus.name),
        },
        "clock" => now.format("%A %-d %B %Y, %H:%M").to_string(),
        "zone" => now.timezone().name().to_owned(),
        "year" => context
            .current_academic_year
            .as_ref()
            .map_or_else(|| "not set up".to_owned(), |year| year.name.clone()),
        "permissions" => permissions(context),
        "missing" => match briefing.asking {
            Asking::Possible => CAN_ASK.to_owned(),
            Asking::Impossible => CANNOT_ASK.to_owned(),
        },
        "specialists" => briefing
            .specialists
            .iter()
            .map(|role| format!("- {}: {}", role.persona(), role.description()))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => return None,
    };
    Some(value)
}

fn permissions(context: &AgentRuntimeContext) -> String {
    let rules = &context.user_permissions;
    if rules.is_empty() {
        return "nothing that is known".to_owned();
    }
    let shown: Vec<String> = rules.iter().take(MAX_PERMISSIONS_SHOWN).map(permission_text).collect();
    let more = rules.len().saturating_sub(MAX_PERMISSIONS_SHOWN);
    let rest = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", shown.join(", "))
}

/// The template with each `{{name}}` replaced; a name that is not known stays as it is.
fn fill(template: &str, value_of: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            filled.push_str("{{");
            rest = after;
            continue;
        };
        filled.push_str(&value_of(name).unwrap_or_else(|| format!("{{{{{name}}}}}")));
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        caller::InProcessToolCaller,
        context::tests::runtime,
        proxy::build_agent_tools,
        turn::{ASK_USER, TASK},
    };
    use contract::{AgentToolResult, agent_map::AGENT_ROLES, context::AgentRunModeName};
    use serde_json::json;
    use std::{collections::BTreeSet, fs, path::Path};

    /// The longest prompt, without what a person and their rules add to it.
    const MAX_PROMPT_BYTES: usize = 12 * 1024;

    fn context() -> AgentRuntimeContext {
        let mut value = runtime(&json!({"mode": "school"})).context.as_ref().clone();
        value["currentTime"] = json!("2026-02-03T21:30:00Z");
        value["userDetails"]["name"] = json!("Ada {{permissions}}");
        serde_json::from_value(value).unwrap()
    }

    fn caller() -> Arc<dyn AgentToolCaller> {
        Arc::new(InProcessToolCaller::new(|_, _, _| async {
            AgentToolResult::error("unused")
        }))
    }

    fn personas() -> impl Iterator<Item = Persona> {
        let specialists = AGENT_ROLES.iter().map(|role| Persona::Specialist(*role));
        std::iter::once(Persona::Supervisor).chain(specialists)
    }

    fn briefing(specialists: &[ToolRole]) -> Briefing<'_> {
        Briefing {
            specialists,
            messages_left_out: 0,
            asking: Asking::Impossible,
        }
    }

    fn prompt(persona: Persona, specialists: &[ToolRole]) -> String {
        system_prompt(persona, &context(), briefing(specialists))
    }

    #[test]
    fn every_prompt_has_the_person_the_place_and_the_schools_clock() {
        for persona in personas() {
            let prompt = prompt(persona, AGENT_ROLES);
            for part in [
                persona.name(),
                "Hilltop Academy",
                "the whole school",
                "Wednesday 4 February 2026, 00:30",
                "Africa/Kampala",
            ] {
                assert!(prompt.contains(part), "{part} in {prompt}");
            }
            assert_eq!(prompt.matches("{{").count(), 1, "a name is only a name: {prompt}");
        }
        assert_eq!(prompt(Persona::Supervisor, &[]).matches("LIST STAFF").count(), 1);
    }

    #[test]
    fn delegation_is_told_with_those_who_are_there() {
        assert!(!prompt(Persona::Supervisor, &[]).contains("`task`"));
        let some = prompt(Persona::Supervisor, &[ToolRole::Dos]);
        assert!(
            some.contains("`task`") && some.contains("- Sarah: ") && !some.contains("- Angie: "),
            "{some}"
        );
    }

    #[test]
    fn what_is_left_out_of_the_thread_is_told() {
        assert!(!prompt(Persona::Supervisor, &[]).contains("older messages"));
        let cut = Briefing {
            messages_left_out: 7,
            ..briefing(&[])
        };
        assert!(system_prompt(Persona::Supervisor, &context(), cut).contains("7 older messages"));
    }

    #[test]
    fn asking_is_told_where_the_turn_can_wait() {
        for persona in personas() {
            let can = Briefing {
                asking: Asking::Possible,
                ..briefing(&[])
            };
            let with = system_prompt(persona, &context(), can);
            let without = prompt(persona, &[]);
            assert!(with.contains("`ask_user`") && !with.contains("cannot ask"), "{with}");
            assert!(!without.contains("ask_user"), "{without}");
            let is_specialist = persona != Persona::Supervisor;
            assert_eq!(without.contains("You cannot ask the person"), is_specialist);
        }
        assert_eq!(tools_in(ASKING), BTreeSet::from([ASK_USER]));
        assert!(!ASKING.contains('\u{2014}'), "agents must not learn the character");
    }

    #[test]
    fn specialists_are_those_of_the_callers_hats() {
        let caller = caller();
        let mut context = context();
        assert!(select_subagents(&context, &caller).is_empty());
        context.capabilities.is_class_teacher = true;
        context.capabilities.is_director_of_studies = true;
        let subagents = select_subagents(&context, &caller);
        assert_eq!(
            subagents.iter().map(|agent| agent.role).collect::<Vec<_>>(),
            [ToolRole::ClassTeacher, ToolRole::Dos]
        );
        let angie: Vec<_> = subagents.first().unwrap().belt.iter().map(BeltTool::name).collect();
        assert!(
            angie.contains(&"list_my_classrooms") && angie.contains(&"get_current_time"),
            "{angie:?}"
        );
        assert!(!angie.contains(&TASK), "a specialist cannot delegate");
    }

    /// What is on a persona's belt in some run mode.
    fn belt_of(persona: Persona) -> BTreeSet<&'static str> {
        let (caller, mut context) = (caller(), context());
        context.capabilities = serde_json::from_value(json!({
            "isClassTeacher": true, "isSubjectTeacher": true, "isDirectorOfStudies": true,
        }))
        .unwrap();
        let campus = json!({"mode": "campus", "campus": {"id": uuid::Uuid::nil(), "name": "Main"}});
        let mut names = BTreeSet::new();
        for mode in [json!({"mode": "school"}), campus] {
            context.run_mode = serde_json::from_value(mode).unwrap();
            match persona {
                Persona::Supervisor => {
                    let mode: AgentRunModeName = context.run_mode.name();
                    names.extend(build_agent_tools(&caller, mode).iter().map(BeltTool::name));
                    names.insert(TASK);
                }
                Persona::Specialist(role) => {
                    let subagents = select_subagents(&context, &caller);
                    let own = subagents.iter().filter(|subagent| subagent.role == role);
                    names.extend(own.flat_map(|subagent| subagent.belt.iter().map(BeltTool::name)));
                }
            }
        }
        names
    }

    /// The tools that a text names: what is in backticks and has the shape of a tool's name.
    fn tools_in(text: &str) -> BTreeSet<&str> {
        let is_tool = |word: &&str| {
            let plain = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            plain && (word.contains('_') || *word == TASK)
        };
        text.split('`').skip(1).step_by(2).filter(is_tool).collect()
    }

    /// Every file of a persona's folder.
    fn files_of(persona: Persona) -> Vec<String> {
        // Tests run in their package's folder.
        let folder = Path::new("src/agents").join(persona.name().to_lowercase());
        let playbooks = fs::read_dir(folder.join("playbooks")).unwrap();
        let paths = playbooks.map(|entry| entry.unwrap().path());
        paths
            .chain([folder.join("persona.md")])
            .map(|path| fs::read_to_string(path).unwrap())
            .collect()
    }

    #[test]
    fn a_tool_that_a_playbook_names_is_on_its_personas_belt() {
        for persona in personas() {
            let belt = belt_of(persona);
            let told = persona.playbooks().len() + usize::from(persona == Persona::Supervisor);
            let files = files_of(persona);
            assert_eq!(
                files.len(),
                told + 1,
                "{}: every file is told, and no other",
                persona.name()
            );
            assert!(!persona.playbooks().is_empty(), "{} has no playbook", persona.name());
            for text in &files {
                let missing: Vec<_> = tools_in(text).difference(&belt).copied().collect();
                assert!(missing.is_empty(), "{}: {missing:?} in {text}", persona.name());
                assert!(
                    !text.contains('\u{2014}'),
                    "agents must not learn the character: {text}"
                );
            }
            for playbook in persona.playbooks() {
                assert!(
                    !tools_in(playbook).is_empty(),
                    "{}: no tool in {playbook}",
                    persona.name()
                );
            }
        }
    }

    /// What a tool is for stands in its description; when to take it, and what before it, only in a playbook.
    #[test]
    fn every_tool_of_a_belt_is_named_by_a_playbook() {
        for persona in personas() {
            let files = files_of(persona);
            let told: BTreeSet<_> = files.iter().flat_map(|text| tools_in(text)).collect();
            let untold: Vec<_> = belt_of(persona).difference(&told).copied().collect();
            assert!(
                untold.is_empty(),
                "{}: no playbook says when to take {untold:?}",
                persona.name()
            );
        }
    }

    /// A small model has a view of a few thousand tokens, and the belt's schemas want most of it.
    #[test]
    fn a_prompt_leaves_room_for_the_work() {
        for persona in personas() {
            let length = prompt(persona, AGENT_ROLES).len();
            assert!(length <= MAX_PROMPT_BYTES, "{}: {length} bytes", persona.name());
        }
    }

    #[test]
    fn names_of_tools_are_found_in_a_text() {
        let text = "Call `list_staff`, then `task`; `data` and `campusId` are none, nor is get_department.";
        assert_eq!(tools_in(text), BTreeSet::from(["list_staff", "task"]));
    }
}
