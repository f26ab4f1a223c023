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
fn a_damaged_entry_counts_as_missing() {
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
