-- What is asked anew is asked in a row of its own, the same call of a turn waits once, and a turn tells each of these things once.

alter table approvals
    drop constraint approvals_status_check,
    add constraint approvals_status_check check (status in
        ('pending', 'executing', 'executed', 'rejected', 'expired', 'revoked', 'replaced', 'asked_anew', 'failed')),
    drop constraint approvals_result_check,
    add constraint approvals_result_check check
        ((result is null) = (status in ('pending', 'executing', 'replaced', 'asked_anew')));
comment on column approvals.status is 'pending: nobody decided; executing: approved, not yet done; replaced: other arguments took its place; asked_anew: approved, and would have done something else by then, which is asked about in its place; all but the first two are final.';
comment on column approvals.replaces is 'The approval in whose place this one waits: a person changed its arguments, or it would have done something else by then.';

-- What was shown stays as it was shown.
revoke update (contract_hash, preview, scope_context, previewed_at, campus_id, approver_action, approver_resource)
    on approvals from school_app, school_platform;

-- The same call, under whatever key and by whichever agent of the turn, is asked about once at a time.
create unique index approvals_open_key on approvals (school_id, turn_id, event, arguments_digest)
    where status in ('pending', 'executing') and turn_id is not null;

-- A call is settled in place of the approval that it waited for first.
grant update (approval_id) on turn_waits to school_app, school_platform;
comment on column turn_waits.approval_id is 'The approval that is waited for, the last where one took another''s place; null for a question.';

-- Runs that are lost tell things again, and the server tells what became of approvals.
create unique index turn_events_once_key on turn_events
    (school_id, turn_id, (event ->> 'type'), (left(event ->> 'toolCallId', 200)), (coalesce(left(event ->> 'approvalId', 36), '')))
    where event ->> 'type' in ('tool_ended', 'shown', 'approval_asked', 'decided');
comment on index turn_events_once_key is 'Holds a turn to tell once how a call ended, what it shows, what it asks approval for, and what was decided.';
