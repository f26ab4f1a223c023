//! One JSON document for each object, in the fields of `pgvet_schema`. Columns that only some majors have are read
//! through `to_jsonb`. Objects of extensions and of the system are omitted.

/// Shared by all: the user's namespaces, and what belongs to an extension.
macro_rules! with_own {
    ($rest:literal) => {
        concat!(
            "WITH own AS (SELECT oid, nspname FROM pg_catalog.pg_namespace \
               WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND nspname !~ '^pg_(toast|temp)'), \
             of_extension AS (SELECT classid, objid FROM pg_catalog.pg_depend WHERE deptype = 'e') ",
            $rest
        )
    };
}

pub(super) const SCHEMAS: &str = with_own!(
    "SELECT to_json(nspname::text) FROM own
     WHERE (2615, oid) NOT IN (SELECT classid::int, objid FROM of_extension) ORDER BY nspname COLLATE \"C\""
);

/// Without `plpgsql`, which every new database has.
pub(super) const EXTENSIONS: &str = "
    SELECT jsonb_build_object('name', extname, 'schema', nspname)
    FROM pg_catalog.pg_extension JOIN pg_catalog.pg_namespace n ON n.oid = extnamespace
    WHERE extname <> 'plpgsql' ORDER BY extname COLLATE \"C\"";

pub(super) const EXTENSION_RELATIONS: &str = with_own!(
    "SELECT jsonb_build_object('schema', nspname, 'name', relname)
     FROM pg_catalog.pg_class c JOIN own ON own.oid = relnamespace
     WHERE relkind IN ('r', 'p', 'f', 'v', 'm', 'S')
       AND EXISTS (SELECT FROM of_extension WHERE classid = 1259 AND objid = c.oid)
     ORDER BY nspname COLLATE \"C\", relname COLLATE \"C\""
);

pub(super) const ENUMS: &str = with_own!(
    "SELECT jsonb_build_object('schema', nspname, 'name', typname, 'labels', COALESCE(
        (SELECT jsonb_agg(enumlabel ORDER BY enumsortorder) FROM pg_catalog.pg_enum WHERE enumtypid = t.oid), '[]'))
     FROM pg_catalog.pg_type t JOIN own ON own.oid = typnamespace
     WHERE typtype = 'e' AND NOT EXISTS (SELECT FROM of_extension WHERE classid = 1247 AND objid = t.oid)
     ORDER BY nspname COLLATE \"C\", typname COLLATE \"C\""
);

pub(super) const DOMAINS: &str = with_own!(
    "SELECT jsonb_build_object('schema', nspname, 'name', typname,
        'type', format_type(typbasetype, typtypmod), 'not_null', typnotnull,
        'default', pg_get_expr(typdefaultbin, 0),
        'checks', COALESCE((SELECT jsonb_agg(jsonb_build_object('name', conname, 'valid', convalidated,
            'expression', pg_get_expr(conbin, 0)) ORDER BY conname COLLATE \"C\")
          FROM pg_catalog.pg_constraint WHERE contypid = t.oid AND contype = 'c'), '[]'))
     FROM pg_catalog.pg_type t JOIN own ON own.oid = typnamespace
     WHERE typtype = 'd' AND NOT EXISTS (SELECT FROM of_extension WHERE classid = 1247 AND objid = t.oid)
     ORDER BY nspname COLLATE \"C\", typname COLLATE \"C\""
);

pub(super) const COMPOSITES: &str = with_own!(
    "SELECT jsonb_build_object('schema', nspname, 'name', relname, 'columns', COALESCE((
        SELECT jsonb_agg(jsonb_build_object('name', attname, 'type', format_type(atttypid, atttypmod),
          'not_null', false) ORDER BY attnum)
        FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped), '[]'))
     FROM pg_catalog.pg_class c JOIN own ON own.oid = relnamespace
     WHERE relkind = 'c' AND NOT EXISTS (SELECT FROM of_extension WHERE classid = 1247 AND objid = c.reltype)
     ORDER BY nspname COLLATE \"C\", relname COLLATE \"C\""
);

/// Without those of identity columns.
pub(super) const SEQUENCES: &str = with_own!(
    "SELECT jsonb_build_object('schema', own.nspname, 'name', c.relname, 'type', format_type(seqtypid, NULL),
        'options', jsonb_build_object('start', seqstart, 'increment', seqincrement, 'minimum', seqmin,
          'maximum', seqmax, 'cache', seqcache, 'cycle', seqcycle),
        'owned_by', (SELECT jsonb_build_array(jsonb_build_object('schema', tn.nspname, 'name', t.relname), a.attname)
          FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class t ON t.oid = d.refobjid
          JOIN pg_catalog.pg_namespace tn ON tn.oid = t.relnamespace
          JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
          WHERE d.classid = 1259 AND d.objid = c.oid AND d.deptype = 'a' AND d.refclassid = 1259),
        'privileges', COALESCE((SELECT jsonb_agg(jsonb_build_object('grantee',
            CASE WHEN grantee = 0 THEN 'public' ELSE pg_get_userbyid(grantee) END, 'privilege', privilege_type)
            ORDER BY CASE WHEN grantee = 0 THEN 'public' ELSE pg_get_userbyid(grantee) END COLLATE \"C\", privilege_type)
          FROM aclexplode(relacl) WHERE grantee <> relowner), '[]'))
     FROM pg_catalog.pg_class c JOIN own ON own.oid = relnamespace JOIN pg_catalog.pg_sequence ON seqrelid = c.oid
     WHERE NOT EXISTS (SELECT FROM of_extension WHERE classid = 1259 AND objid = c.oid)
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend WHERE classid = 1259 AND objid = c.oid AND deptype = 'i')
     ORDER BY own.nspname COLLATE \"C\", c.relname COLLATE \"C\""
);

/// Tables and views with everything that hangs on them. The triggers of a partition that come from its parent's are
/// internal before 15. The constraints that a foreign key to a partitioned table has for each of its partitions are
/// omitted.
pub(super) const RELATIONS: &str = with_own!(
    ", privilege AS (
       SELECT c.oid, 0 AS attnum, a.grantee, a.privilege_type FROM pg_catalog.pg_class c, aclexplode(c.relacl) a
       WHERE a.grantee <> c.relowner AND a.privilege_type <> 'MAINTAIN'
       UNION ALL
       SELECT c.oid, t.attnum, a.grantee, a.privilege_type FROM pg_catalog.pg_class c
       JOIN pg_catalog.pg_attribute t ON t.attrelid = c.oid AND NOT t.attisdropped, aclexplode(t.attacl) a
       WHERE a.grantee <> c.relowner
     ), name AS (SELECT c.oid, jsonb_build_object('schema', n.nspname, 'name', c.relname) AS named, c.relname, c.relkind
       FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace)
     SELECT jsonb_build_object('schema', own.nspname, 'name', c.relname,
       'kind', CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table' WHEN 'f' THEN 'foreign table'
         WHEN 'v' THEN 'view' ELSE 'materialized view' END,
       'created_by_migrations', true, 'unlogged', c.relpersistence = 'u',
       'columns', COALESCE((SELECT jsonb_agg(jsonb_build_object('name', a.attname,
           'type', format_type(a.atttypid, a.atttypmod), 'not_null', a.attnotnull,
           'default', pg_get_expr(d.adbin, d.adrelid),
           'identity', CASE a.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by default' END,
           'generated', CASE a.attgenerated WHEN 's' THEN 'stored' WHEN 'v' THEN 'virtual' END,
           'collation', (SELECT l.collname FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation
             AND a.attcollation <> t.typcollation),
           'local', a.attislocal) ORDER BY a.attnum)
         FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
         LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '[]'),
       'constraints', COALESCE((SELECT jsonb_agg(jsonb_build_object('name', k.conname,
           'kind', CASE k.contype WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'unique' WHEN 'x' THEN 'exclude'
             WHEN 'c' THEN 'check' ELSE 'foreign key' END,
           'columns', CASE WHEN k.contype IN ('p', 'u', 'f') THEN (SELECT jsonb_agg(a.attname ORDER BY n.place)
             FROM unnest(k.conkey) WITH ORDINALITY AS n(number, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n.number) ELSE '[]' END,
           'including', COALESCE((SELECT jsonb_agg(a.attname ORDER BY place)
             FROM pg_catalog.pg_index x, generate_series(x.indnkeyatts + 1, x.indnatts) AS place,
               pg_catalog.pg_attribute a
             WHERE x.indexrelid = k.conindid AND k.contype <> 'f'
               AND a.attrelid = x.indrelid AND a.attnum = x.indkey[place - 1]), '[]'),
           'nulls_not_distinct', COALESCE((SELECT (to_jsonb(x) ->> 'indnullsnotdistinct')::boolean
             FROM pg_catalog.pg_index x WHERE x.indexrelid = k.conindid AND k.contype = 'u'), false),
           'valid', k.convalidated, 'enforced', COALESCE((to_jsonb(k) ->> 'conenforced')::boolean, true),
           'over_period', COALESCE((to_jsonb(k) ->> 'conperiod')::boolean, false),
           'deferrable', k.condeferrable, 'initially_deferred', k.condeferred,
           'no_inherit', k.connoinherit AND k.contype = 'c', 'local', k.conislocal,
           'expression', CASE k.contype WHEN 'c' THEN pg_get_expr(k.conbin, k.conrelid)
             WHEN 'x' THEN pg_get_constraintdef(k.oid) END,
           'references', (SELECT jsonb_build_object('table', f.named,
               'columns', (SELECT jsonb_agg(a.attname ORDER BY n.place)
                 FROM unnest(k.confkey) WITH ORDINALITY AS n(number, place)
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = n.number),
               'on_delete', concat(CASE k.confdeltype WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT'
                   WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END,
                 (SELECT format(' (%s)', string_agg(a.attname, ', ' ORDER BY n.place))
                   FROM jsonb_array_elements_text(NULLIF(to_jsonb(k) -> 'confdelsetcols', 'null'))
                     WITH ORDINALITY AS n(number, place)
                   JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n.number::int
                   HAVING count(*) > 0)),
               'on_update', CASE k.confupdtype WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT'
                 WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END,
               'match_full', k.confmatchtype = 'f')
             FROM name f WHERE f.oid = k.confrelid)) ORDER BY k.conname COLLATE \"C\")
         FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('p', 'u', 'x', 'c', 'f')
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint p WHERE p.oid = k.conparentid AND p.conrelid = k.conrelid)
         ), '[]'),
       'indexes', COALESCE((SELECT jsonb_agg(jsonb_build_object('name', i.relname, 'unique', x.indisunique,
           'valid', x.indisvalid, 'method', m.amname,
           'keys', (SELECT jsonb_agg(jsonb_build_object('expression', pg_get_indexdef(x.indexrelid, place, true),
               'collation', (SELECT l.collname FROM pg_catalog.pg_collation l LEFT JOIN pg_catalog.pg_attribute a
                 ON a.attrelid = c.oid AND a.attnum = x.indkey[place - 1]
                 WHERE l.oid = x.indcollation[place - 1] AND x.indkey[place - 1] <> 0
                   AND l.oid IS DISTINCT FROM a.attcollation),
               'operator_class', (SELECT o.opcname FROM pg_catalog.pg_opclass o
                 WHERE o.oid = x.indclass[place - 1] AND NOT o.opcdefault),
               'descending', (x.indoption[place - 1] & 1) = 1, 'nulls_first', (x.indoption[place - 1] & 2) = 2)
               ORDER BY place)
             FROM generate_series(1, x.indnkeyatts) AS place),
           'including', COALESCE((SELECT jsonb_agg(a.attname ORDER BY place)
             FROM generate_series(x.indnkeyatts + 1, x.indnatts) AS place
             JOIN pg_catalog.pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[place - 1]), '[]'),
           'predicate', pg_get_expr(x.indpred, x.indrelid),
           'nulls_not_distinct', COALESCE((to_jsonb(x) ->> 'indnullsnotdistinct')::boolean, false),
           'parent', (SELECT p.named FROM pg_catalog.pg_inherits h JOIN name p ON p.oid = h.inhparent
             WHERE h.inhrelid = i.oid)) ORDER BY i.relname COLLATE \"C\")
         FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
         JOIN pg_catalog.pg_am m ON m.oid = i.relam
         WHERE x.indrelid = c.oid AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint k
           WHERE k.conindid = i.oid AND k.contype IN ('p', 'u', 'x') AND k.conrelid = c.oid)), '[]'),
       'triggers', COALESCE((SELECT jsonb_agg(jsonb_build_object('name', t.tgname,
           'timing', CASE WHEN t.tgtype & 64 <> 0 THEN 'INSTEAD OF' WHEN t.tgtype & 2 <> 0 THEN 'BEFORE' ELSE 'AFTER' END,
           'events', (SELECT jsonb_agg(e.word ORDER BY e.place)
             FROM (VALUES (1, 4, 'INSERT'), (2, 16, 'UPDATE'), (3, 8, 'DELETE'), (4, 32, 'TRUNCATE')) AS e(place, bit, word)
             WHERE t.tgtype & e.bit <> 0),
           'columns', COALESCE((SELECT jsonb_agg(a.attname ORDER BY n.place)
             FROM unnest(t.tgattr::int2[]) WITH ORDINALITY AS n(number, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = n.number), '[]'),
           'for_each_row', t.tgtype & 1 <> 0, 'constraint', t.tgconstraint <> 0,
           'condition', CASE WHEN t.tgqual IS NOT NULL THEN
             substring(pg_get_triggerdef(t.oid) FROM ' WHEN [(](.*)[)] EXECUTE FUNCTION ') END,
           'deferrable', t.tgdeferrable, 'initially_deferred', t.tginitdeferred,
           'function', (SELECT jsonb_build_object('schema', pn.nspname, 'name', p.proname)
             FROM pg_catalog.pg_namespace pn WHERE pn.oid = p.pronamespace),
           'arguments', COALESCE(to_jsonb((string_to_array(encode(t.tgargs, 'escape'), '\\000'))[1:t.tgnargs]), '[]'),
           'transition_tables', to_jsonb(array_remove(ARRAY['OLD ' || t.tgoldtable, 'NEW ' || t.tgnewtable], NULL)),
           'firing', CASE t.tgenabled WHEN 'O' THEN 'ENABLE' WHEN 'D' THEN 'DISABLE' WHEN 'A' THEN 'ENABLE ALWAYS'
             ELSE 'ENABLE REPLICA' END,
           'inherited', t.tgparentid <> 0) ORDER BY t.tgname COLLATE \"C\")
         FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
         LEFT JOIN pg_catalog.pg_constraint k ON k.oid = t.tgconstraint
         WHERE t.tgrelid = c.oid AND (NOT t.tgisinternal OR (t.tgparentid <> 0 AND COALESCE(k.contype = 't', true)))
         ), '[]'),
       'policies', COALESCE((SELECT jsonb_agg(jsonb_build_object('name', o.polname, 'permissive', o.polpermissive,
           'command', CASE o.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
             WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
           'roles', (SELECT jsonb_agg(r.name ORDER BY r.name COLLATE \"C\") FROM (SELECT CASE WHEN role = 0 THEN 'public'
             ELSE pg_get_userbyid(role)::text END AS name FROM unnest(o.polroles) AS role) AS r),
           'using', pg_get_expr(o.polqual, o.polrelid), 'check', pg_get_expr(o.polwithcheck, o.polrelid))
           ORDER BY o.polname COLLATE \"C\")
         FROM pg_catalog.pg_policy o WHERE o.polrelid = c.oid), '[]'),
       'rules', COALESCE((SELECT jsonb_agg(jsonb_build_object('name', w.rulename, 'definition', pg_get_ruledef(w.oid))
           ORDER BY w.rulename COLLATE \"C\")
         FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid AND w.rulename <> '_RETURN'), '[]'),
       'statistics', COALESCE((SELECT jsonb_agg(jsonb_build_object('schema', sn.nspname, 'name', s.stxname)
           ORDER BY sn.nspname COLLATE \"C\", s.stxname COLLATE \"C\")
         FROM pg_catalog.pg_statistic_ext s JOIN pg_catalog.pg_namespace sn ON sn.oid = s.stxnamespace
         WHERE s.stxrelid = c.oid), '[]'),
       'row_level_security', c.relrowsecurity, 'forced_row_level_security', c.relforcerowsecurity,
       'replica_identity', CASE WHEN c.relkind NOT IN ('r', 'p', 'm') THEN 'DEFAULT' ELSE CASE c.relreplident
         WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING'
         WHEN 'i' THEN concat('USING INDEX ', (SELECT i.relname FROM pg_catalog.pg_index x
           JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid AND x.indisreplident))
         ELSE 'DEFAULT' END END,
       'options', COALESCE((SELECT jsonb_agg(o ORDER BY o COLLATE \"C\") FROM unnest(c.reloptions) AS o), '[]'),
       'parents', COALESCE((SELECT jsonb_agg(p.named ORDER BY p.named ->> 'schema' COLLATE \"C\",
           p.named ->> 'name' COLLATE \"C\")
         FROM pg_catalog.pg_inherits h JOIN name p ON p.oid = h.inhparent WHERE h.inhrelid = c.oid), '[]'),
       'partition_key', CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END,
       'partition_bound', pg_get_expr(c.relpartbound, c.oid),
       'query', CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END,
       'privileges', COALESCE((SELECT jsonb_agg(jsonb_build_object('grantee', p.name, 'privilege', p.privilege_type,
           'column', p.attname) ORDER BY p.name COLLATE \"C\", p.privilege_type, p.attname COLLATE \"C\" NULLS FIRST)
         FROM (SELECT CASE WHEN grantee = 0 THEN 'public' ELSE pg_get_userbyid(grantee)::text END AS name,
             privilege_type, a.attname
           FROM privilege v LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = v.oid AND a.attnum = v.attnum
             AND v.attnum <> 0
           WHERE v.oid = c.oid) AS p), '[]'))
     FROM pg_catalog.pg_class c JOIN own ON own.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm')
       AND NOT EXISTS (SELECT FROM of_extension WHERE classid = 1259 AND objid = c.oid)
     ORDER BY own.nspname COLLATE \"C\", c.relname COLLATE \"C\""
);

/// Without aggregates, which the model does not keep. PUBLIC may execute a new function; that is not read.
pub(super) const FUNCTIONS: &str = with_own!(
    "SELECT jsonb_build_object('schema', nspname, 'name', proname,
       'inputs', COALESCE((SELECT jsonb_agg(format_type(type, NULL) ORDER BY place)
         FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS t(type, place)), '[]'),
       'kind', CASE prokind WHEN 'p' THEN 'procedure' ELSE 'function' END,
       'parameters', pg_get_function_arguments(p.oid),
       'returns', CASE WHEN prokind = 'p' THEN '' ELSE pg_get_function_result(p.oid) END,
       'language', lanname,
       'volatility', CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END,
       'strict', proisstrict, 'security_definer', prosecdef,
       'settings', COALESCE((SELECT jsonb_agg(s ORDER BY s COLLATE \"C\") FROM unnest(proconfig) AS s), '[]'),
       'body', CASE WHEN to_jsonb(p) ->> 'prosqlbody' IS NULL AND lanname NOT IN ('c', 'internal') THEN to_jsonb(prosrc)
         ELSE jsonb_build_object('not_known', 'BEGIN ATOMIC and RETURN bodies, and functions of libraries') END,
       'privileges', COALESCE((SELECT jsonb_agg(jsonb_build_object('grantee', pg_get_userbyid(grantee),
           'privilege', privilege_type) ORDER BY pg_get_userbyid(grantee) COLLATE \"C\", privilege_type)
         FROM aclexplode(proacl) WHERE grantee NOT IN (proowner, 0)), '[]'))
     FROM pg_catalog.pg_proc p JOIN own ON own.oid = pronamespace JOIN pg_catalog.pg_language l ON l.oid = prolang
     WHERE prokind <> 'a' AND NOT EXISTS (SELECT FROM of_extension WHERE classid = 1255 AND objid = p.oid)
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend WHERE classid = 1255 AND objid = p.oid AND deptype = 'i')
     ORDER BY nspname COLLATE \"C\", proname COLLATE \"C\", proargtypes::text"
);

/// Publications of schemas exist since 15.
pub(super) fn publications(server_version: u32) -> String {
    let schemas = if server_version >= 150_000 {
        "COALESCE((SELECT jsonb_agg(nspname ORDER BY nspname COLLATE \"C\") FROM pg_catalog.pg_publication_namespace
           JOIN pg_catalog.pg_namespace n ON n.oid = pnnspid WHERE pnpubid = p.oid), '[]')"
    } else {
        "'[]'::jsonb"
    };
    format!(
        "SELECT jsonb_build_object('name', pubname, 'all_tables', puballtables, 'schemas', {schemas},
           'tables', COALESCE((SELECT jsonb_agg(jsonb_build_object('schema', nspname, 'name', relname)
               ORDER BY nspname COLLATE \"C\", relname COLLATE \"C\")
             FROM pg_catalog.pg_publication_rel JOIN pg_catalog.pg_class c ON c.oid = prrelid
             JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace WHERE prpubid = p.oid), '[]'),
           'updates', pubupdate, 'deletes', pubdelete)
         FROM pg_catalog.pg_publication p ORDER BY pubname COLLATE \"C\""
    )
}

/// What is there and not read, counted.
pub(super) const GAPS: &str = with_own!(
    "SELECT to_json(format('%s: %s not read', what, count(*))) FROM (
       SELECT 'aggregates' AS what FROM pg_catalog.pg_proc p JOIN own ON own.oid = pronamespace WHERE prokind = 'a'
         AND NOT EXISTS (SELECT FROM of_extension WHERE classid = 1255 AND objid = p.oid)
       UNION ALL SELECT 'range and base types' FROM pg_catalog.pg_type t JOIN own ON own.oid = typnamespace
         WHERE (typtype = 'r' OR typtype = 'b' AND typelem = 0)
         AND NOT EXISTS (SELECT FROM of_extension WHERE classid = 1247 AND objid = t.oid)
       UNION ALL SELECT 'operators' FROM pg_catalog.pg_operator o JOIN own ON own.oid = oprnamespace
         WHERE NOT EXISTS (SELECT FROM of_extension WHERE classid = 2617 AND objid = o.oid)
       UNION ALL SELECT 'column lists and row filters of publications' FROM pg_catalog.pg_publication_rel r
         WHERE to_jsonb(r) ->> 'prattrs' IS NOT NULL OR to_jsonb(r) ->> 'prqual' IS NOT NULL
       UNION ALL SELECT 'event triggers' FROM pg_catalog.pg_event_trigger e
         WHERE NOT EXISTS (SELECT FROM of_extension WHERE classid = 3466 AND objid = e.oid)
     ) AS other GROUP BY what ORDER BY what"
);
