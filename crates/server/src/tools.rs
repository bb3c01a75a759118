//! Handlers: what a tool does once every gate has admitted its call, and the context it does it in.
//!
//! A handler is `impl ToolHandler` for the tool's argument struct, in the file that mirrors the contract's. It has no other way to
//! the database than the transaction in its [`Call`], and no other way to a campus than the call's scope.

mod announcement;
mod assessment;
mod attendance;
mod audit;
mod campus;
mod coverage;
mod department;
mod gradebook;
mod grading;
mod lesson;
pub(crate) mod page;
mod relationship;
mod report;
mod school;
mod staff;
mod stream;
mod student;
mod subject;
mod teaching;

use crate::{
    ability::{Ability, CampusRule, Topics},
    audit::Written,
    db::Tx,
    error::ToolError,
    posture::{Admitted, Auth, Posture},
    scope_context::{Coverage, Covered},
    standing::{Actor, Standing},
};
use contract::{
    Action, AgentCallScope, AgentTool, Resource, RpcTool, argument::RequestedCampus, schema::without_nulls,
    tools::RpcAgentTools,
};
use jsonschema::Validator;
use serde::Serialize;
use serde_json::Value;
use std::{collections::HashMap, future::Future, pin::Pin};
use uuid::Uuid;

/// The context of one admitted call.
pub struct Call<'a> {
    standing: &'a Standing,
    scope: AgentCallScope,
    admitted: Admitted,
    tx: &'a mut Tx,
    list: &'static str,
    coverage: Coverage,
    left_out: usize,
}

/// What there is to say where a campus is needed and none was named.
const NAME_A_CAMPUS: &str = "campusId: name a campus; this person works on more than one";

impl<'a> Call<'a> {
    pub(crate) const fn new(standing: &'a Standing, scope: AgentCallScope, admitted: Admitted, tx: &'a mut Tx) -> Self {
        Self {
            standing,
            scope,
            admitted,
            tx,
            list: "",
            coverage: Coverage::Unsaid,
            left_out: 0,
        }
    }

    /// Who acts. Never taken from arguments.
    #[must_use]
    pub const fn actor(&self) -> &'a Actor {
        &self.standing.actor
    }

    /// What the actor may do.
    #[must_use]
    pub const fn ability(&self) -> &'a Ability {
        &self.standing.ability
    }

    /// Where the actor stands.
    #[must_use]
    pub const fn standing(&self) -> &'a Standing {
        self.standing
    }

    /// By what authority the call runs.
    #[must_use]
    pub const fn auth(&self) -> Auth {
        self.admitted.auth()
    }

    /// The call's transaction.
    pub(crate) const fn tx(&mut self) -> &mut Tx {
        self.tx
    }

    /// The list that this call may be about, as its cursors name it: the tool's event.
    pub(crate) const fn list(&self) -> &'static str {
        self.list
    }

    /// Notes rows that were asked for and for which the reply has no room.
    pub(crate) const fn leave_out(&mut self, rows: usize) {
        self.left_out += rows;
    }

    /// What the result covers, and how many rows were left out of it.
    pub(crate) fn into_coverage(self) -> Covered {
        Covered {
            rows: self.coverage,
            left_out: self.left_out,
        }
    }

    /// The campus that the call is about, if it is about one: the pinned one, else the requested one.
    pub(crate) fn named_campus(&self, requested: Option<RequestedCampus>) -> Option<Uuid> {
        self.scope.campus(requested)
    }

    /// The rows that the actor may do this to, within the pinned or requested campus. What a result covers follows from it.
    ///
    /// # Errors
    ///
    /// [`ToolError::NotFound`] where the campus named is none that the actor may do this on.
    pub(crate) fn rows(
        &mut self,
        action: Action,
        resource: Resource,
        requested: Option<RequestedCampus>,
    ) -> Result<CampusRule, ToolError> {
        let allowed = self.ability().campuses(action, resource, self.standing.campus_ids())?;
        self.covering(allowed, requested)
    }

    /// The same for a relationship tool about the school's common matters: the campuses open to the actor.
    ///
    /// # Errors
    ///
    /// [`ToolError::NotFound`] where the campus named is not open to the actor.
    pub(crate) fn open_rows(&mut self, requested: Option<RequestedCampus>) -> Result<CampusRule, ToolError> {
        self.covering(self.standing.open_campuses()?, requested)
    }

    fn covering(&mut self, allowed: CampusRule, requested: Option<RequestedCampus>) -> Result<CampusRule, ToolError> {
        let rows = match self.named_campus(requested) {
            Some(campus) if !allowed.includes(Some(campus)) || !self.is_campus(campus) => {
                return Err(ToolError::NotFound("Campus"));
            }
            Some(campus) => allowed.within(campus),
            None => allowed,
        };
        self.coverage = Coverage::Campuses(rows.clone());
        Ok(rows)
    }

    /// The one campus that a call goes to: the pinned or requested one, else the only one on which the actor may do this.
    ///
    /// # Errors
    ///
    /// [`ToolError::Invalid`] where there are several and none was named, [`ToolError::NotFound`] where the one named is not
    /// among them.
    pub(crate) fn one_campus(
        &mut self,
        action: Action,
        resource: Resource,
        requested: Option<RequestedCampus>,
    ) -> Result<Uuid, ToolError> {
        let rows = self.rows(action, resource, requested)?;
        let campus = match (
            self.named_campus(requested),
            rows.campuses(),
            self.standing.campus_ids(),
        ) {
            (Some(campus), _, _) | (None, Some(&[campus]), _) | (None, None, &[campus]) => campus,
            (None, Some([]), _) => return Err(ToolError::Denied { action, resource }),
            (None, _, _) => return Err(ToolError::Invalid(NAME_A_CAMPUS.to_owned())),
        };
        self.coverage = Coverage::Campuses(CampusRule::Only {
            campuses: vec![campus],
            and_none: false,
        });
        Ok(campus)
    }

    /// Says that the result is the same on every campus, whatever the caller's rule is.
    pub(crate) fn covers_all(&mut self) {
        self.coverage = Coverage::Campuses(CampusRule::All);
    }

    /// A campus of the school; of any school for a platform admin, whose statements find out.
    fn is_campus(&self, campus: Uuid) -> bool {
        self.actor().school_id.is_none() || self.standing.campus_ids().contains(&campus)
    }
}

/// What a tool does. Implemented for the tool's arguments.
#[diagnostic::on_unimplemented(
    message = "the registered tool `{Self}` has no handler",
    label = "write `impl ToolHandler for {Self}` in the server's `tools/<domain>.rs`"
)]
pub trait ToolHandler: AgentTool {
    /// What it answers.
    type Output: Serialize + Send;

    /// By what authority it runs, and what it leaves in the audit log.
    const POSTURE: Posture<Self::Effect, Self::Output>;

    /// Whether one plan of its statements is right for all arguments, as it is for a list from a key on, in that order. The database would
    /// else plan each page anew, because it does not know how long a page will be, and that costs more than to read one.
    const ONE_PLAN: bool = false;

    /// What it asks of the caller's rights, beside its gate: of other resources than the gate's and campuses. Whoever gives rules to
    /// others asks about all of them.
    fn asks(&self) -> Topics {
        Topics::NONE
    }

    /// Does it.
    fn run(self, call: &mut Call<'_>) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// What a handler did: its output, and what to write about it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) data: Value,
    pub(crate) written: Option<Written>,
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Done, ToolError>> + Send + 'a>>;

/// A handler with its type erased, as `execute()` uses it.
pub struct Handler {
    pub(crate) tool: &'static RpcTool,
    pub(crate) auth: Auth,
    pub(crate) one_plan: bool,
    pub(crate) contract_hash: String,
    validator: Validator,
    parses: fn(&Value) -> Result<Topics, serde_json::Error>,
    run: for<'a> fn(&'a Value, &'a mut Call<'_>) -> Running<'a>,
}

/// A tool's arguments, proven to fit its schema and its type.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    value: Value,
    topics: Topics,
}

impl Arguments {
    pub(crate) const fn value(&self) -> &Value {
        &self.value
    }

    /// What a call with them asks about.
    pub(crate) const fn topics(&self) -> Topics {
        self.topics
    }
}

/// How many problems with arguments are told at once: enough to mend a call, few enough to be read.
const MAX_PROBLEMS: usize = 5;
/// The longest description of one problem, in characters.
const MAX_PROBLEM_CHARS: usize = 300;

impl Handler {
    /// Step 4: the schema that the model was shown, then the type.
    ///
    /// # Errors
    ///
    /// [`ToolError::Invalid`] with at most five problems, each with its place and without the value.
    pub(crate) fn arguments(&self, args: Value) -> Result<Arguments, ToolError> {
        let args = without_nulls(args);
        let mut problems: Vec<String> = self
            .validator
            .iter_errors(&args)
            .take(MAX_PROBLEMS)
            .map(|error| problem(&error.instance_path().to_string(), &error.masked().to_string()))
            .collect();
        if problems.is_empty() {
            problems.extend(nul_in(&args, ""));
        }
        if problems.is_empty() {
            match (self.parses)(&args) {
                Ok(asks) => {
                    return Ok(Arguments {
                        value: args,
                        topics: self.auth.topics().and(asks),
                    });
                }
                Err(error) => problems.push(problem("", &error.to_string())),
            }
        }
        Err(ToolError::Invalid(problems.join("; ")))
    }

    /// Whether a caller that says which contract it knows means this tool. One that says nothing is believed.
    ///
    /// # Errors
    ///
    /// [`ToolError::OtherContract`].
    pub(crate) fn means(&self, contract: Option<&str>) -> Result<(), ToolError> {
        match contract {
            Some(there) if there != self.contract_hash => {
                let event = self.tool.definition.event.as_str();
                Err(ToolError::other_contract(event, &self.contract_hash, there))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Step 11.
    pub(crate) fn run<'a>(&self, arguments: &'a Arguments, call: &'a mut Call<'_>) -> Running<'a> {
        (self.run)(&arguments.value, call)
    }
}

fn problem(path: &str, reason: &str) -> String {
    let place = path.trim_start_matches('/');
    let place = if place.is_empty() { "arguments" } else { place };
    let text = format!("{place}: {reason}");
    match text.char_indices().nth(MAX_PROBLEM_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// Where a text holds a NUL, which no column can store.
fn nul_in(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text
            .contains('\0')
            .then(|| problem(path, "a NUL character is not allowed")),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| nul_in(item, &format!("{path}/{at}"))),
        Value::Object(members) => members
            .iter()
            .find_map(|(name, member)| nul_in(member, &format!("{path}/{name}"))),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Every handler by its event.
pub struct Handlers(HashMap<&'static str, Handler>);

impl Handlers {
    /// The handlers of the registry, each with its schema compiled.
    ///
    /// # Errors
    ///
    /// When a tool's schema is none; the guards over the registry find that first.
    pub fn of_registry() -> Result<Self, ToolError> {
        let mut handlers = Self(HashMap::new());
        // named as the trait's, so that a tool without a handler is told by the trait's own words
        <RpcAgentTools as Bind>::bind(&mut handlers)?;
        Ok(handlers)
    }

    /// The handler of an event.
    #[must_use]
    pub fn get(&self, event: &str) -> Option<&Handler> {
        self.0.get(event)
    }

    /// The authority by which the tool of an event runs, for documentation and explanations.
    #[must_use]
    pub fn auth(&self, event: &str) -> Option<Auth> {
        self.0.get(event).map(|handler| handler.auth)
    }

    fn insert<T: ToolHandler>(&mut self) -> Result<(), ToolError> {
        let event = T::DEFINITION.event.as_str();
        let tool = contract::tools::tool_for_event(event)
            .ok_or_else(|| ToolError::Malformed(format!("{event} is not in the registry")))?;
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&tool.schema())
            .map_err(|error| ToolError::Malformed(format!("the schema of {event} is none: {error}")))?;
        let handler = Handler {
            tool,
            auth: T::POSTURE.auth(),
            one_plan: T::ONE_PLAN,
            contract_hash: tool.contract_hash(),
            validator,
            parses: |args| T::deserialize(args).map(|args| args.asks()),
            run: |args, call| Box::pin(run::<T>(args, call)),
        };
        self.0.insert(event, handler);
        Ok(())
    }
}

async fn run<T: ToolHandler>(args: &Value, call: &mut Call<'_>) -> Result<Done, ToolError> {
    call.list = T::DEFINITION.event.as_str();
    let output = T::deserialize(args)?.run(call).await?;
    let written = T::POSTURE.audit().map(|audit| Written {
        action: audit.action,
        resource_type: audit.resource_type,
        subject: (audit.subject)(&output),
    });
    Ok(Done {
        data: serde_json::to_value(output)?,
        written,
    })
}

/// Walks a registry's list of types; a registered tool without a handler does not compile. Public so that a test can show that.
pub trait Bind {
    /// Adds the handlers of the list.
    ///
    /// # Errors
    ///
    /// See [`Handlers::of_registry`].
    fn bind(handlers: &mut Handlers) -> Result<(), ToolError>;
}

impl Bind for () {
    fn bind(_: &mut Handlers) -> Result<(), ToolError> {
        Ok(())
    }
}

impl<T: ToolHandler, Rest: Bind> Bind for (T, Rest) {
    fn bind(handlers: &mut Handlers) -> Result<(), ToolError> {
        handlers.insert::<T>()?;
        Rest::bind(handlers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(event: &str, args: Value) -> String {
        let handlers = Handlers::of_registry().unwrap();
        handlers
            .get(event)
            .unwrap()
            .arguments(args)
            .map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn no_arguments_are_empty_arguments() {
        assert_eq!(problems("list.departments", Value::Null), "");
        assert_eq!(problems("list.departments", json!({"campusId": null})), "");
    }

    #[test]
    fn problems_name_their_place_and_never_the_value() {
        let text = problems(
            "create.department",
            json!({"name": 7, "campusId": "secret-value", "userId": "x"}),
        );
        assert!(text.starts_with("Invalid tool arguments: "), "{text}");
        for part in ["name: ", "campusId: ", "userId"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("secret-value"), "{text}");
    }

    #[test]
    fn problems_are_bounded() {
        let many: Vec<Value> = (0..20).map(|_| json!({"action": "FLY", "resource": "STAFF"})).collect();
        let text = problems("create.department", json!({"name": "A", "permissions": many}));
        assert_eq!(text.matches("action").count(), MAX_PROBLEMS, "{text}");
        let text = problems("create.department", json!({"name": "A", "x".repeat(5000): 1}));
        assert!(text.len() < 500, "{}", text.len());
    }

    #[test]
    fn a_nul_is_refused_and_a_blank_name_too() {
        assert!(problems("create.department", json!({"name": "A\0B"})).contains("name: a NUL"));
        assert!(problems("create.department", json!({"name": "  \n"})).contains("name: "));
        assert_eq!(problems("create.department", json!({"name": "Théâtre 🎭 演劇"})), "");
    }
}
