SELECT event, actor_sub, arguments_digest, reply FROM tool_calls WHERE school_id = $1 AND key = $2 AND reply IS NOT NULL
