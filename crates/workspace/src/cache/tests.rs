use super::*;
use std::time::Duration;

fn folder() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("pgvet"));
    (folder, cache)
}

#[test]
fn what_is_kept_comes_back() {
    let (_folder, cache) = folder();
    let key = Key::of("a");
    assert_eq!(cache.get::<Vec<u32>>(key), None);
    cache.put(key, &vec![1_u32, 2]);
    assert_eq!(cache.get(key), Some(vec![1_u32, 2]));
    assert_eq!(cache.get::<Vec<u32>>(Key::of("b")), None);
}

#[test]
fn a_damaged_entry_is_treated_as_missing() {
    let (_folder, cache) = folder();
    let key = Key::of("a");
    cache.put(key, &vec![1_u32, 2]);
    let path = cache.path(key);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(cache.get::<Vec<u32>>(key), None);
    fs::write(&path, b"short").unwrap();
    assert_eq!(cache.get::<Vec<u32>>(key), None);
    cache.put(key, &vec![3_u32]);
    assert_eq!(cache.get(key), Some(vec![3_u32]));
}

#[test]
fn a_folder_that_cannot_be_made_is_no_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let cache = Cache::at(file.path().join("below"));
    cache.put(Key::of("a"), &1_u32);
    assert_eq!(cache.get::<u32>(Key::of("a")), None);
}

#[test]
fn entries_that_nobody_used_for_long_are_removed_and_other_files_stay() {
    let (_folder, cache) = folder();
    fs::create_dir_all(&cache.folder).unwrap();
    fs::write(cache.folder.join("notes.txt"), "mine").unwrap();
    let key = |at: usize| Key::of(&at.to_string());
    let begin = SystemTime::now() - Duration::from_secs(3600);
    for at in 0..MAX_ENTRIES {
        cache.put(key(at), &at);
        let file = File::options().append(true).open(cache.path(key(at))).unwrap();
        file.set_modified(begin + Duration::from_secs(at as u64)).unwrap();
    }
    assert_eq!(cache.get(key(0)), Some(0_usize), "it is used now");
    cache.put(key(MAX_ENTRIES), &MAX_ENTRIES);
    assert!(cache.has(key(0)) && !cache.has(key(1)) && cache.has(key(2)) && cache.has(key(MAX_ENTRIES)));
    assert!(cache.folder.join("notes.txt").exists());
}

/// Every sort of object that a state consists of.
const HISTORY: &str = "CREATE SCHEMA app; CREATE EXTENSION citext; CREATE TYPE state AS ENUM ('a', 'b');
CREATE DOMAIN code AS text CHECK (VALUE <> '');
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, code code NOT NULL, state state DEFAULT 'a',
    at timestamptz DEFAULT now(), v varchar(20) CHECK (length(v) > 2), parent bigint REFERENCES orders,
    low text GENERATED ALWAYS AS (lower(v)) STORED, EXCLUDE USING gist (v WITH =));
CREATE UNIQUE INDEX ON orders (lower(v)) WHERE state = 'a';
CREATE VIEW recent AS SELECT id, v FROM orders WHERE at > now() - interval '1 day';
CREATE TABLE parts (id int, at date) PARTITION BY RANGE (at);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO orders (v) VALUES (NEW.v); END $$;
CREATE FUNCTION total() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(id) FROM orders; END;
CREATE TRIGGER touch BEFORE UPDATE ON orders FOR EACH ROW WHEN (OLD.v IS DISTINCT FROM NEW.v) EXECUTE FUNCTION touch();
ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON orders USING (parent = 1);
CREATE RULE r AS ON DELETE TO orders DO INSTEAD NOTHING; GRANT SELECT ON orders TO PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT SELECT ON TABLES TO web;
CREATE PUBLICATION p FOR TABLE orders; CREATE STATISTICS st ON id, v FROM orders; DROP TABLE part;
CREATE SEQUENCE s OWNED BY orders.id; COMMENT ON TABLE orders IS 'x'; SELECT total();";

#[test]
fn a_state_comes_back_whole() {
    use pgvet_linter::settings::Settings;
    use pgvet_model::checkpoint::Checkpoint;
    use pgvet_model::migration::Migration;
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    let file = parse_file(SourceFile::new("1.sql".to_owned(), HISTORY.to_owned()));
    assert!(file.statements.iter().all(|statement| statement.parsed.is_ok()), "{file:?}");
    let mut state = Checkpoint::default();
    state.advance(&[Migration::new(&file)], 1, Settings::default().versions, &());
    let bytes = postcard::to_stdvec(&state).unwrap();
    let read: Checkpoint = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(read.next(), 1);
    // Maps have no order of their own: what was read says as much, and is written as what it says.
    let again = postcard::to_stdvec(&read).unwrap();
    assert_eq!(again.len(), bytes.len());
}
