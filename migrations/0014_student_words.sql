-- Students are found by beginnings of their names' words and of their admission numbers, whatever the case and the accents. Patterns
-- and trigrams cannot use an index under row-level security, and ranges of plain texts can: so each word is a row.

-- Apart from our own tables and functions, which nobody has by being anybody; an extension's functions are everybody's.
create schema extensions;
comment on schema extensions is 'What extensions bring, apart from the tables and functions of the schools.';
grant usage on schema extensions to school_app, school_platform;
create extension if not exists unaccent with schema extensions;

-- ICU's collation knows letters and their cases in a database of any locale. What is written above or below a letter goes with the
-- accents in scripts that read without it; in those of South and Southeast Asia it is part of the word.
create function search_words(given text) returns text[]
    language sql stable parallel safe
    return (
        select coalesce(array_agg(distinct left(word, 64) collate "C"), '{}')
          from regexp_split_to_table(
                   translate(
                       normalize(
                           lower(
                               regexp_replace(
                                   normalize(
                                       extensions.unaccent('extensions.unaccent'::regdictionary, normalize(given, NFKC)), NFKD),
                                   '[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]', '', 'g')
                               collate "und-x-icu"),
                           NFKC),
                       'ς', 'σ')
                   collate "und-x-icu",
                   '[^[:alnum:]\u0900-\u0963\u0966-\u109f\u1780-\u17ff]+') as word
         where word <> '');
comment on function search_words(text) is 'The words of a text as students are searched by them: without case and accents, of letters and digits.';
revoke all on function search_words(text) from public;
grant execute on function search_words(text) to school_app, school_platform;

create table student_words (
    school_id uuid not null,
    word text collate "C" not null,
    student_id uuid not null,
    primary key (school_id, word, student_id),
    constraint student_words_student_fkey
        foreign key (school_id, student_id) references students (school_id, id) on delete cascade,
    constraint student_words_word_check check (char_length(word) between 1 and 64)
);
create index student_words_student_idx on student_words (school_id, student_id, word);
comment on table student_words is 'By what words a student is found. Kept by a trigger on students, and by nobody else.';
comment on column student_words.school_id is 'The tenant.';
comment on column student_words.word is 'A word of the student''s names or admission number, as search_words makes it.';
comment on column student_words.student_id is 'The student.';

create function keep_student_words() returns trigger
    language plpgsql
as $$
begin
    if tg_op = 'UPDATE' then
        delete from student_words where school_id = new.school_id and student_id = new.id;
    end if;
    insert into student_words (school_id, word, student_id)
    select new.school_id, word, new.id
      from unnest(search_words(concat_ws(' ', new.given_name, new.family_name, new.admission_number))) as word;
    return null;
end
$$;
comment on function keep_student_words() is 'Row trigger: keeps the words of a student true, whoever writes.';
revoke all on function keep_student_words() from public;

create trigger words after insert or update of given_name, family_name, admission_number on students
    for each row execute function keep_student_words();

-- Who migrates has no tenant, and may be held to the policies: not for the students who are there already.
alter table students no force row level security;
insert into student_words (school_id, word, student_id)
select s.school_id, word, s.id
  from students s, unnest(search_words(concat_ws(' ', s.given_name, s.family_name, s.admission_number))) as word;
alter table students force row level security;

alter table student_words enable row level security, force row level security;
create policy tenant on student_words
    using (school_id = nullif(current_setting('app.school_id', true), '')::uuid)
    with check (school_id = nullif(current_setting('app.school_id', true), '')::uuid);

grant select, insert, delete on student_words to school_app, school_platform;
