-- Documents the views and the functions for users from their comments: holdfast inspect reference views.

create or replace function holdfast.reference()
  returns table (kind text, name text, about text, part text, type text, part_about text)
  language sql stable as $$
  -- Returns one row for each column of a view. A column without a comment gets that of the columns of its
  -- name in the tables behind the view, if they agree; sentences about foreign keys are left out.
  (select 'view', c.relname::text, obj_description(c.oid, 'pg_class'), a.attname::text,
          format_type(a.atttypid, a.atttypmod), coalesce(col_description(c.oid, a.attnum), behind.about)
     from pg_catalog.pg_class c
     join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0
     cross join lateral (
       select case when count(distinct t.about) = 1 then min(t.about) end as about
         from pg_catalog.pg_rewrite r
         join pg_catalog.pg_depend d on d.objid = r.oid and d.refclassid = 'pg_catalog.pg_class'::regclass
         join pg_catalog.pg_attribute b on b.attrelid = d.refobjid and b.attnum = d.refobjsubid
         cross join lateral (
           select regexp_replace(col_description(b.attrelid, b.attnum), ' No foreign key.*', '') as about) t
         where r.ev_class = c.oid and d.refobjsubid > 0 and b.attname = a.attname) behind
     where c.relnamespace = 'holdfast'::regnamespace and c.relkind = 'v' and c.relname like 'v\_%'
     order by c.relname collate "C", a.attnum)
  union all
  (select 'function', f.name, f.about, null, min(f.role), null
     from (select p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' as name,
                  obj_description(p.oid, 'pg_proc') as about,
                  case r.rolname when 'holdfast_reader' then 'everybody' else 'operator' end as role
             from pg_catalog.pg_proc p
             join pg_catalog.pg_roles r on r.rolname in ('holdfast_reader', 'holdfast_operator')
             where p.pronamespace = 'holdfast'::regnamespace
               and has_function_privilege(r.oid, p.oid, 'execute') and p.proname not like 'list\_%') f
     group by f.name, f.about
     order by f.name collate "C")
$$;
comment on function holdfast.reference is 'Returns the views and the functions for users, with their comments.';

create or replace function holdfast.answer_columns()
  returns table (source text, name text, type text, about text) language sql stable as $$
  -- A column of search() has the comment of that of v_snapshot.
  with views as materialized (select r.* from holdfast.reference() r where r.kind = 'view')
  select v.name, v.part, v.type, v.part_about from views v
  union all
  (select p.proname::text, a.name, format_type(a.type, null), v.part_about
     from pg_catalog.pg_proc p
     cross join lateral unnest(p.proargnames, p.proallargtypes, p.proargmodes)
                with ordinality a(name, type, mode, number)
     left join views v on v.name = 'v_snapshot' and v.part = a.name
     where p.oid = 'holdfast.search'::regproc and a.mode = 't'
     order by a.number)
$$;
comment on function holdfast.answer_columns is
  'Returns the columns of the views and of search(), from which the schemas of the API are made.';
