-- Names, codes and numbers that differ in their case or blanks only are the same.

create function plain_name(given text) returns text
    language sql immutable parallel safe
    return lower(btrim(regexp_replace(given, '[\s\u00A0\u2000-\u200F\u2028-\u202F\u205F-\u2064\u3000\u3164\uFEFF]+', ' ', 'g')));
comment on function plain_name(text) is 'A name as names are compared: without case, and with single blanks, whatever blanks they are and whether one can see them.';
revoke all on function plain_name(text) from public;
grant execute on function plain_name(text) to school_app, school_platform;

drop index campuses_name_key;
create unique index campuses_name_key on campuses (school_id, plain_name(name));
drop index departments_name_key;
create unique index departments_name_key on departments (school_id, campus_id, plain_name(name));
drop index subjects_name_key;
create unique index subjects_name_key on subjects (school_id, plain_name(name));
drop index classes_name_key;
create unique index classes_name_key on classes (school_id, plain_name(name));
drop index streams_name_key;
create unique index streams_name_key on streams (school_id, campus_academic_year_id, plain_name(name));
drop index assessments_name_key;
create unique index assessments_name_key on assessments (school_id, stream_id, subject_id, term_id, plain_name(name));
drop index grading_bands_label_key;
create unique index grading_bands_label_key on grading_bands (school_id, grading_config_id, plain_name(label));
drop index lesson_templates_name_key;
create unique index lesson_templates_name_key on lesson_templates (school_id, plain_name(name));

alter table subjects drop constraint subjects_code_key;
create unique index subjects_code_key on subjects (school_id, plain_name(code));
comment on column subjects.code is 'The short form on timetables, unique in the school whatever its case.';
alter table students drop constraint students_admission_number_key;
create unique index students_admission_number_key on students (school_id, plain_name(admission_number));
comment on column students.admission_number is 'The number under which the school admitted the student, unique in the school whatever its case.';
