-- Turns that go on where they stopped: who runs them, what is kept of them, and what they wait for.

alter table turns
    add column dispatch integer not null default 1,
    add column dispatched_at timestamptz not null default now(),
    add column sent boolean not null default false,
    add column attempt integer not null default 0,
    add column run uuid,
    add column earlier_runs uuid[] not null default '{}',
    add constraint turns_dispatch_check check (dispatch >= 1 and attempt between 0 and 1000),
    add constraint turns_waiting_check check (status <> 'waiting' or run is null);
comment on column turns.dispatch is 'How often it was handed to the workers, with one more each time that it goes on after it waited.';
comment on column turns.dispatched_at is 'When it was handed to them the last time.';
comment on column turns.sent is 'Whether the message of its dispatch is known to be with the broker.';
comment on column turns.attempt is 'How many runs have claimed it; events and reports carry the number of theirs.';
comment on column turns.run is 'The run that has it; null while it waits, for somebody or for a worker.';
comment on column turns.earlier_runs is 'The runs that had it and lost it. A claim of theirs that comes late is refused.';

-- Looked for by a sweep over all schools.
create index turns_open_idx on turns (school_id, status, deadline_at) where ended_at is null;

grant update (deadline_at, dispatch, dispatched_at, sent, attempt, run, earlier_runs) on turns to school_app, school_platform;

create table turn_messages (
    school_id uuid not null,
    turn_id uuid not null,
    name text not null,
    entry jsonb not null,
    created_at timestamptz not null default now(),
    primary key (school_id, turn_id, name),
    constraint turn_messages_turn_fkey foreign key (school_id, turn_id) references turns (school_id, id),
    constraint turn_messages_name_check check (char_length(name) between 2 and 200),
    constraint turn_messages_entry_check check (jsonb_typeof(entry) = 'object')
);
comment on table turn_messages is 'The checkpoint of a turn: each answer of a model and each result of a call, once. A run asks no model again whose answer is here.';
comment on column turn_messages.school_id is 'The tenant.';
comment on column turn_messages.turn_id is 'The turn.';
comment on column turn_messages.name is 'What it is about: conversation#step for an answer, =call for a result. The same whenever the turn comes to the same point.';
comment on column turn_messages.entry is 'The answer or the result, as the conversation goes on with it.';
comment on column turn_messages.created_at is 'When it was kept.';

alter table turn_messages enable row level security, force row level security;
create policy tenant on turn_messages
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on turn_messages to school_app, school_platform;

create table turn_waits (
    school_id uuid not null,
    turn_id uuid not null,
    tool_call_id text not null,
    approval_id uuid,
    question text,
    choices text[] not null default '{}',
    answer text,
    decision text,
    asked_at timestamptz not null default now(),
    settled_at timestamptz,
    told boolean not null default false,
    primary key (school_id, turn_id, tool_call_id),
    constraint turn_waits_turn_fkey foreign key (school_id, turn_id) references turns (school_id, id),
    constraint turn_waits_call_check check (char_length(tool_call_id) between 1 and 200),
    constraint turn_waits_kind_check check ((approval_id is null) <> (question is null)),
    constraint turn_waits_question_check check (char_length(question) between 1 and 2000),
    constraint turn_waits_choices_check check (cardinality(choices) <= 8),
    constraint turn_waits_answer_check check (char_length(answer) between 1 and 4000),
    constraint turn_waits_decision_check check (decision in ('approved', 'rejected', 'expired', 'revoked', 'replaced')),
    constraint turn_waits_settled_check check ((settled_at is not null) = (answer is not null or decision is not null)),
    constraint turn_waits_told_check check (settled_at is not null or not told)
);
comment on table turn_waits is 'What a turn waits for: questions to its person, and approvals. It goes on once all are settled.';
comment on column turn_waits.school_id is 'The tenant.';
comment on column turn_waits.turn_id is 'The turn.';
comment on column turn_waits.tool_call_id is 'The call that waits; an answer names it.';
comment on column turn_waits.approval_id is 'The approval that is waited for; null for a question.';
comment on column turn_waits.question is 'What is asked; null for an approval.';
comment on column turn_waits.choices is 'The answers to choose from; empty where any will do.';
comment on column turn_waits.answer is 'What the person said; null until then, and for an approval.';
comment on column turn_waits.decision is 'What became of the approval; null until then, and for a question.';
comment on column turn_waits.asked_at is 'When it was asked.';
comment on column turn_waits.settled_at is 'When it was settled; null until then.';
comment on column turn_waits.told is 'Whether its settlement is among the turn''s events.';

alter table turn_waits enable row level security, force row level security;
create policy tenant on turn_waits
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on turn_waits to school_app, school_platform;
grant update (answer, decision, settled_at, told) on turn_waits to school_app, school_platform;

create table turn_tokens (
    school_id uuid not null,
    day date not null,
    turn_id uuid not null,
    tokens bigint not null,
    -- One row a turn, since turns of a school that report at once would wait for a row of theirs all; the day's sum is read.
    primary key (school_id, day, turn_id),
    constraint turn_tokens_turn_fkey foreign key (school_id, turn_id) references turns (school_id, id),
    constraint turn_tokens_tokens_check check (tokens >= 0)
);
create index turn_tokens_turn_idx on turn_tokens (school_id, turn_id);
comment on table turn_tokens is 'How many tokens a turn''s agents have read and written, by day.';
comment on column turn_tokens.school_id is 'The tenant.';
comment on column turn_tokens.day is 'The day, in the school''s time zone.';
comment on column turn_tokens.turn_id is 'The turn.';
comment on column turn_tokens.tokens is 'Tokens, read and written.';

alter table turn_tokens enable row level security, force row level security;
create policy tenant on turn_tokens
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert on turn_tokens to school_app, school_platform;
grant update (tokens) on turn_tokens to school_app, school_platform;
