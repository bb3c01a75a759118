-- Bounds: how much is kept of a turn, how long the id of a call is, and that no call keeps the others from being told.

alter table turns
    add column kept_entries integer not null default 0,
    add column kept_bytes bigint not null default 0,
    add constraint turns_kept_check check (kept_entries >= 0 and kept_bytes >= 0);
comment on column turns.kept_entries is 'How many entries its journal has, counted as they are kept.';
comment on column turns.kept_bytes is 'How many bytes these are, as text.';

grant update (kept_entries, kept_bytes) on turns to school_app, school_platform;

-- A result is kept under its call's id and one character more.
alter table turn_waits
    drop constraint turn_waits_call_check,
    add constraint turn_waits_call_check check (char_length(tool_call_id) between 1 and 199);

-- The id of a peer without turns is its whole key, which no turn is told of.
alter table approvals
    drop constraint approvals_tool_call_id_check,
    add constraint approvals_tool_call_id_check check
        (char_length(tool_call_id) between 1 and case when turn_id is null then 512 else 199 end),
    add column tell_tried_at timestamptz;
comment on column approvals.tell_tried_at is 'When its turn was last tried to be told, and could not be. Those that were not tried, or longest ago, come first.';

grant update (tell_tried_at) on approvals to school_app, school_platform;
