//! The belts: which tools a model is offered, and the one body that all remote tools share.
//!
//! A proxy does three things, always: it takes identity and scope from the runtime context, calls through the
//! [`AgentToolCaller`], and gives the envelope back to the model as text. There is no proxy of a tool's own.

use crate::{
    caller::AgentToolCaller,
    context::{CONTEXT_MISSING_ERROR, Runtime, resolve_call_scope, resolve_identity},
    local_tools::{LOCAL_AGENT_TOOLS, LocalTool},
};
use contract::{
    AgentToolRequest, AgentToolResult, RpcTool, ToolRole, context::AgentRunModeName, tools_for_mode, tools_for_role,
};
use serde_json::{Map, Value, json};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// A tool that is called through an [`AgentToolCaller`].
pub struct RpcProxy {
    tool: &'static RpcTool,
    caller: Arc<dyn AgentToolCaller>,
    description: String,
    schema: Value,
}

/// A tool on a belt.
pub enum BeltTool {
    /// It runs in the server.
    Rpc(RpcProxy),
    /// It runs here.
    Local(LocalTool),
}

impl BeltTool {
    /// What the model calls it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rpc(proxy) => proxy.name(),
            Self::Local(tool) => tool.name(),
        }
    }

    /// What the model reads about it.
    #[must_use]
    pub fn description(&self) -> &str {
        match self {
            Self::Rpc(proxy) => proxy.description(),
            Self::Local(tool) => tool.description(),
        }
    }

    /// The JSON Schema of its arguments.
    #[must_use]
    pub fn schema(&self) -> Value {
        match self {
            Self::Rpc(proxy) => proxy.schema().clone(),
            Self::Local(tool) => tool.schema(),
        }
    }

    /// Whether a call of it can change anything.
    #[must_use]
    pub const fn is_mutating(&self) -> bool {
        match self {
            Self::Rpc(proxy) => proxy.tool.definition.event.is_mutating(),
            Self::Local(_) => false,
        }
    }

    /// Calls it with the arguments as the model wrote them; the result for the model.
    pub async fn call(&self, arguments: &str, runtime: &Runtime) -> AgentToolResult {
        match self {
            Self::Rpc(proxy) => proxy.call(arguments, runtime).await,
            Self::Local(tool) => match parse_arguments(arguments) {
                Ok(args) => tool.call(args, runtime),
                Err(refusal) => refusal,
            },
        }
    }
}

impl RpcProxy {
    /// What the model calls it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.tool.definition.name
    }

    /// What the model reads about it.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The JSON Schema of its arguments, the one that the server validates against.
    #[must_use]
    pub const fn schema(&self) -> &Value {
        &self.schema
    }

    /// Calls it with the arguments as the model wrote them; the envelope as text, for the model.
    pub async fn invoke(&self, arguments: &str, runtime: &Runtime) -> String {
        envelope_text(&self.call(arguments, runtime).await)
    }

    async fn call(&self, arguments: &str, runtime: &Runtime) -> AgentToolResult {
        let (Some(identity), Some(scope)) = (resolve_identity(runtime), resolve_call_scope(runtime)) else {
            return AgentToolResult::error(CONTEXT_MISSING_ERROR);
        };
        let args = match parse_arguments(arguments) {
            Ok(args) => Value::Object(args),
            Err(refusal) => return refusal,
        };
        let definition = &self.tool.definition;
        let request = AgentToolRequest {
            identity,
            scope,
            args: args.clone(),
        };
        let result = self
            .caller
            .call(definition.event, request, runtime.ticket(self.tool))
            .await;
        if result.is_data() {
            self.show(&args, runtime);
        }
        result
    }

    /// Shows the person what a successful call has to show. Whatever goes wrong here, the call stays a success.
    fn show(&self, args: &Value, runtime: &Runtime) {
        let Some(writer) = &runtime.writer else { return };
        let shown = catch_unwind(AssertUnwindSafe(|| {
            self.tool.stream_on_success(args).map_or(Ok(()), |event| writer(event))
        }));
        match shown {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(tool = self.name(), %error, "a success was not shown"),
            Err(_) => tracing::error!(tool = self.name(), "showing a success panicked"),
        }
    }
}

/// The proxy of a tool of the registry.
#[must_use]
pub fn to_rpc_proxy(tool: &'static RpcTool, caller: Arc<dyn AgentToolCaller>) -> RpcProxy {
    RpcProxy {
        tool,
        caller,
        description: without_em_dash(tool.definition.description),
        schema: tool.schema(),
    }
}

/// The text with a comma for each em dash: what agents read must not teach them the character.
#[must_use]
pub fn without_em_dash(text: &str) -> String {
    text.replace(" \u{2014} ", ", ").replace('\u{2014}', ", ")
}

/// The supervisor's belt in a run mode: its own and the shared tools, and those that run here.
#[must_use]
pub fn build_agent_tools(caller: &Arc<dyn AgentToolCaller>, mode: AgentRunModeName) -> Vec<BeltTool> {
    tools_for_mode(mode)
        .filter(|tool| tool.definition.placement.is_on_supervisor())
        .map(|tool| BeltTool::Rpc(to_rpc_proxy(tool, caller.clone())))
        .chain(LOCAL_AGENT_TOOLS.iter().copied().map(BeltTool::Local))
        .collect()
}

/// A specialist's belt in a run mode: its role's tools and the shared ones.
#[must_use]
pub fn build_role_tools(role: ToolRole, caller: &Arc<dyn AgentToolCaller>, mode: AgentRunModeName) -> Vec<BeltTool> {
    tools_for_role(role, mode)
        .map(|tool| BeltTool::Rpc(to_rpc_proxy(tool, caller.clone())))
        .collect()
}

/// What a model reads of a call that waits for a decision while its turn does not: that it is not done yet. How to decide
/// says whoever shows the answer. Any other result stays as it is.
pub(crate) fn waits_elsewhere(result: AgentToolResult) -> AgentToolResult {
    let AgentToolResult::Pending { pending, scope_context } = result else {
        return result;
    };
    let how = "Nothing is done yet: this waits for somebody's approval. Tell the person so, and do not call it again.";
    AgentToolResult::Data {
        data: json!({"pending": pending, "how": how}),
        scope_context,
    }
}

/// The envelope as the model reads it.
pub(crate) fn envelope_text(result: &AgentToolResult) -> String {
    serde_json::to_string(result).expect("a result is made of JSON values and texts")
}

/// What a model wrote as arguments. The ways in which models say "none" are an empty object; what is no object is refused.
pub(crate) fn parse_arguments(text: &str) -> Result<Map<String, Value>, AgentToolResult> {
    if matches!(text.trim(), "" | "null" | "\"null\"" | "\"\"") {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(args)) => Ok(args),
        Ok(_) => Err(AgentToolResult::error(
            "Invalid tool arguments: arguments: they must be one JSON object.",
        )),
        Err(error) => Err(AgentToolResult::error(format!(
            "Invalid tool arguments: arguments: not valid JSON, {error}."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        caller::{CallTicket, InProcessToolCaller},
        context::{StreamClosed, tests::runtime},
    };
    use contract::{AgentTool, Event, Placement, ToolDefinition, ToolScope, tool::Write, tools::tool_for_name};
    use serde_json::from_str;
    use std::sync::Mutex;

    type Seen = Arc<Mutex<Vec<(Event, AgentToolRequest, String)>>>;

    /// A caller that records what reaches it and answers with `result`.
    fn recorder(result: AgentToolResult) -> (Arc<dyn AgentToolCaller>, Seen) {
        let seen = Seen::default();
        let log = seen.clone();
        let handler = move |event, request, ticket: CallTicket| {
            log.lock().unwrap().push((event, request, ticket.idempotency_key));
            let result = result.clone();
            async move { result }
        };
        (Arc::new(InProcessToolCaller::new(handler)), seen)
    }

    fn done() -> AgentToolResult {
        AgentToolResult::Data {
            data: json!({"id": 1}),
            scope_context: "All.".into(),
        }
    }

    fn school() -> Runtime {
        runtime(&json!({"mode": "school"}))
    }

    #[tokio::test]
    async fn a_call_carries_the_callers_identity_and_the_pinned_campus() {
        let (caller, seen) = recorder(done());
        let proxy = to_rpc_proxy(tool_for_name("create_department").unwrap(), caller);
        let campus = uuid::Uuid::from_u128(7);
        let runtime = runtime(&json!({"mode": "campus", "campus": {"id": campus, "name": "Main"}}));
        let text = proxy
            .invoke(r#"{"name": "Drama", "campusId": "elsewhere"}"#, &runtime)
            .await;
        assert_eq!(
            from_str::<Value>(&text).unwrap(),
            json!({"data": {"id": 1}, "scopeContext": "All."})
        );
        let seen = seen.lock().unwrap();
        let (event, request, key) = &seen[0];
        assert_eq!(
            (event.as_str(), request.scope.pinned()),
            ("create.department", Some(campus))
        );
        assert_eq!(request.identity.email, "ada@hilltop.example");
        assert_eq!(request.args["name"], "Drama");
        assert!(key.ends_with(":call_1"), "{key}");
    }

    #[tokio::test]
    async fn nothing_is_called_where_the_context_is_missing() {
        let (caller, seen) = recorder(done());
        let proxy = to_rpc_proxy(tool_for_name("list_departments").unwrap(), caller);
        let text = proxy.invoke("{}", &runtime(&json!(null))).await;
        assert_eq!(
            from_str::<Value>(&text).unwrap(),
            json!({"error": CONTEXT_MISSING_ERROR})
        );
        assert!(seen.lock().unwrap().is_empty());
    }

    /// fault 33, fault 57
    #[tokio::test]
    async fn no_arguments_in_any_spelling_are_an_empty_object() {
        let (caller, seen) = recorder(done());
        let proxy = to_rpc_proxy(tool_for_name("list_departments").unwrap(), caller);
        for arguments in ["", "  ", "null", "\"null\"", "{}"] {
            proxy.invoke(arguments, &school()).await;
        }
        let seen = seen.lock().unwrap();
        assert!(seen.len() == 5 && seen.iter().all(|(_, request, _)| request.args == json!({})));
    }

    #[tokio::test]
    async fn arguments_that_are_no_object_are_refused_unsent() {
        let (caller, seen) = recorder(done());
        let proxy = to_rpc_proxy(tool_for_name("list_departments").unwrap(), caller);
        let deep = "[".repeat(100_000);
        for arguments in ["{\"name\": ", "[]", "7", "\"text\"", "{} {}", deep.as_str()] {
            let text = proxy.invoke(arguments, &school()).await;
            assert!(text.contains("Invalid tool arguments"), "{text}");
        }
        assert!(seen.lock().unwrap().is_empty());
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct CreateBanner {}

    impl AgentTool for CreateBanner {
        type Effect = Write;
        const DEFINITION: ToolDefinition = ToolDefinition::new(
            Event::new("create.banner"),
            "create_banner",
            ToolScope::General,
            Placement::Supervisor,
            "Hang a banner \u{2014} a big one\u{2014}up.",
        );

        fn example() -> Value {
            json!({})
        }

        fn stream_on_success(args: &Value) -> Option<Value> {
            assert!(args.get("panic").is_none(), "as asked");
            Some(json!({"banner": args}))
        }
    }

    static CREATE_BANNER: RpcTool = RpcTool::of::<CreateBanner>();

    #[tokio::test]
    async fn only_a_success_is_shown() {
        for (result, shown) in [(done(), 1), (AgentToolResult::error("No."), 0)] {
            let (caller, _) = recorder(result);
            let events = Arc::new(Mutex::new(Vec::new()));
            let log = events.clone();
            let writer = move |event| {
                log.lock().unwrap().push(event);
                Ok(())
            };
            let runtime = Runtime {
                writer: Some(Arc::new(writer)),
                ..school()
            };
            to_rpc_proxy(&CREATE_BANNER, caller).invoke("{}", &runtime).await;
            assert_eq!(events.lock().unwrap().len(), shown);
        }
    }

    /// fault 14
    #[tokio::test]
    async fn a_success_stays_one_when_showing_it_fails() {
        let (caller, _) = recorder(done());
        let proxy = to_rpc_proxy(&CREATE_BANNER, caller);
        let fails: crate::context::StreamWriter = Arc::new(|_| Err(StreamClosed));
        let panics: crate::context::StreamWriter = Arc::new(|_| panic!("as asked"));
        for (writer, arguments) in [(fails.clone(), "{}"), (panics, "{}"), (fails, r#"{"panic": 1}"#)] {
            let text = proxy
                .invoke(
                    arguments,
                    &Runtime {
                        writer: Some(writer),
                        ..school()
                    },
                )
                .await;
            assert!(text.contains("scopeContext"), "{text}");
        }
    }

    #[test]
    fn descriptions_have_no_em_dash() {
        let (caller, _) = recorder(done());
        assert_eq!(
            to_rpc_proxy(&CREATE_BANNER, caller).description(),
            "Hang a banner, a big one, up."
        );
    }

    #[test]
    fn belts_follow_mode_and_role() {
        let (caller, _) = recorder(done());
        let names = |belt: Vec<BeltTool>| belt.iter().map(BeltTool::name).collect::<Vec<_>>();
        let school = names(build_agent_tools(&caller, AgentRunModeName::School));
        let campus = names(build_agent_tools(&caller, AgentRunModeName::Campus));
        assert!(school.contains(&"list_staff") && !campus.contains(&"list_staff"));
        assert!(campus.contains(&"get_current_time") && campus.contains(&"get_school_branding"));
        assert!(
            !school.contains(&"list_my_classrooms"),
            "a role's tool is not the supervisor's"
        );
        let angie = names(build_role_tools(
            ToolRole::ClassTeacher,
            &caller,
            AgentRunModeName::Campus,
        ));
        assert!(angie.contains(&"list_stream_roster") && angie.contains(&"get_school_branding"));
        assert!(!angie.contains(&"create_department"));
    }
}
