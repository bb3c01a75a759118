-- Approvals: calls that wait for a person's yes, and what became of each.

create table approvals (
    school_id uuid not null references schools (id),
    id uuid not null default uuid_v7(),
    turn_id uuid,
    tool_call_id text not null,
    key text not null,
    event text not null,
    contract_hash text not null,
    arguments jsonb not null,
    arguments_digest bytea not null,
    requester_sub uuid not null,
    identity jsonb not null,
    scope jsonb not null,
    door text not null,
    campus_id uuid,
    preview jsonb not null,
    scope_context text not null,
    previewed_at timestamptz not null,
    approver_action text,
    approver_resource text,
    status text not null default 'pending',
    attempts integer not null default 0,
    claimed_at timestamptz,
    decided_by uuid,
    decided_at timestamptz,
    reason text,
    result jsonb,
    replaces uuid,
    expires_at timestamptz not null,
    created_at timestamptz not null default now(),
    told boolean not null default false,
    primary key (school_id, id),
    constraint approvals_campus_fkey foreign key (school_id, campus_id) references campuses (school_id, id),
    constraint approvals_replaces_fkey foreign key (school_id, replaces) references approvals (school_id, id),
    constraint approvals_tool_call_id_check check (char_length(tool_call_id) between 1 and 512),
    constraint approvals_key_check check (char_length(key) between 1 and 512),
    constraint approvals_event_check check (event ~ '^[a-z]+\.[a-z0-9_]+$' and char_length(event) <= 200),
    constraint approvals_contract_hash_check check (contract_hash ~ '^[0-9a-f]{64}$'),
    constraint approvals_arguments_check check (jsonb_typeof(arguments) = 'object'),
    constraint approvals_arguments_digest_check check (octet_length(arguments_digest) = 32),
    constraint approvals_identity_check check (jsonb_typeof(identity) = 'object'),
    constraint approvals_scope_check check (jsonb_typeof(scope) = 'object'),
    constraint approvals_door_check check (door ~ '^[a-z][a-z_]{0,62}$'),
    constraint approvals_scope_context_check check (char_length(scope_context) <= 10000),
    constraint approvals_approver_check check ((approver_action is null) = (approver_resource is null)),
    constraint approvals_approver_action_check check (approver_action ~ '^[A-Z][A-Z_]{0,62}$'),
    constraint approvals_approver_resource_check check (approver_resource ~ '^[A-Z][A-Z_]{0,62}$'),
    constraint approvals_status_check check (status in
        ('pending', 'executing', 'executed', 'rejected', 'expired', 'revoked', 'replaced', 'failed')),
    constraint approvals_attempts_check check (attempts >= 0),
    constraint approvals_claimed_check check ((status = 'executing') <= (claimed_at is not null)),
    constraint approvals_decided_check check ((decided_by is null) = (decided_at is null)),
    constraint approvals_reason_check check (char_length(reason) between 1 and 1000),
    constraint approvals_result_check check ((result is null) = (status in ('pending', 'executing', 'replaced'))),
    constraint approvals_order_check check (created_at < expires_at)
);
-- One call asks once; what a person made of it follows it, one after the other.
create unique index approvals_key on approvals (school_id, key) where replaces is null;
create unique index approvals_replaces_key on approvals (school_id, replaces) where replaces is not null;
create index approvals_key_idx on approvals (school_id, key, id);
create index approvals_campus_idx on approvals (school_id, campus_id);
create index approvals_turn_idx on approvals (school_id, turn_id, event);
create index approvals_open_idx on approvals (school_id, id) where status in ('pending', 'executing');
create index approvals_untold_idx on approvals (school_id, id) where not told and turn_id is not null;
comment on table approvals is 'Calls that took no effect before a person said yes, and what became of each. Nothing in a row runs by itself: it is run again through every gate.';
comment on column approvals.school_id is 'The tenant in which the change would show.';
comment on column approvals.id is 'The approval, unique within its school; what a decision names.';
comment on column approvals.turn_id is 'The turn that made the call; null for a peer without turns. No foreign key: a turn that is not kept has no row.';
comment on column approvals.tool_call_id is 'The call within that turn.';
comment on column approvals.key is 'The call''s idempotency key: under it, at most one effect is made, with whatever arguments.';
comment on column approvals.event is 'The tool''s event. A decision cannot change it.';
comment on column approvals.contract_hash is 'SHA-256 of the tool''s contract as it was previewed; another one asks anew.';
comment on column approvals.arguments is 'What the tool is to be called with.';
comment on column approvals.arguments_digest is 'SHA-256 of the arguments and the pinned scope.';
comment on column approvals.requester_sub is 'The account that asked, and as which the call is run.';
comment on column approvals.identity is 'The identity of that call, as its grant proved it.';
comment on column approvals.scope is 'Where the call is pinned, as its grant proved it.';
comment on column approvals.door is 'The way in: chat, rest, mcp and the like.';
comment on column approvals.campus_id is 'The campus of the row that would be changed; null when it has none.';
comment on column approvals.preview is 'What would be done: the call''s own answer before it was undone.';
comment on column approvals.scope_context is 'What the preview covers, in a sentence.';
comment on column approvals.previewed_at is 'When the preview''s transaction began: ids and moments from then on were made up by it.';
comment on column approvals.approver_action is 'What the approver must be allowed to do; null where the requester decides.';
comment on column approvals.approver_resource is 'To what.';
comment on column approvals.status is 'pending: nobody decided; executing: approved, not yet done; replaced: other arguments took its place; the others are final.';
comment on column approvals.attempts is 'How often it was begun to be carried out since it was last approved.';
comment on column approvals.claimed_at is 'When it was last begun to be carried out.';
comment on column approvals.decided_by is 'The account that decided; null where nobody did.';
comment on column approvals.decided_at is 'When that account decided.';
comment on column approvals.reason is 'Why it was rejected, in the words of whoever did.';
comment on column approvals.result is 'What came of the call, as the model reads it, once that is final.';
comment on column approvals.replaces is 'The approval whose arguments a person changed to these.';
comment on column approvals.expires_at is 'When it can no longer be decided.';
comment on column approvals.created_at is 'When it was asked for.';
comment on column approvals.told is 'Whether the turn that made the call knows what became of it.';

alter table approvals enable row level security, force row level security;
create policy tenant on approvals
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on approvals to school_app, school_platform;
grant update (contract_hash, preview, scope_context, previewed_at, campus_id, approver_action, approver_resource, status, attempts,
              claimed_at, decided_by, decided_at, reason, result, told) on approvals to school_app, school_platform;

-- The trail tells the decision, and the change that was made under it, by this.
create index audit_log_approval_idx on audit_log (school_id, approval_id) where approval_id is not null;
comment on index audit_log_approval_idx is 'Finds what was decided and done under an approval.';
