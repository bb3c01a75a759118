SELECT event, actor_sub, arguments_digest, reply FROM operator_tool_calls WHERE key = $1 AND reply IS NOT NULL
