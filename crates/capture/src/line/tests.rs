use super::*;

#[test]
fn statements_are_found_where_their_names_come_together() {
    let source = SourceText::new(
        "class Migration(migrations.Migration):\n    operations = [\n        \
         migrations.AddField('order', 'note', models.TextField(null=True)),\n        \
         migrations.AddField('order', 'rank', models.IntegerField(default=0)),\n        \
         migrations.AddIndex('order', models.Index(fields=['rank'], name='order_rank_idx')),\n    ]\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("ALTER TABLE \"shop_order\" ADD COLUMN \"note\" text NULL"), Some(3));
    assert_eq!(lines.of("ALTER TABLE \"shop_order\" ADD COLUMN \"rank\" integer DEFAULT 0 NOT NULL"), Some(4));
    assert_eq!(lines.of("CREATE INDEX \"order_rank_idx\" ON \"shop_order\" (\"rank\")"), Some(5));
    assert_eq!(lines.of("VACUUM"), None);
}

#[test]
fn arguments_may_stand_on_lines_of_their_own() {
    let source = SourceText::new(
        "exports.up = (knex) =>\n  knex.schema.alterTable('users', (table) => {\n    \
         table.text('state').notNullable().alter();\n    table.integer('logins');\n  });\n\n\
         exports.down = (knex) =>\n  knex.schema.alterTable('users', (table) => {\n    table.dropColumn('logins');\n  });\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("alter table \"users\" alter column \"state\" set not null"), Some(3));
    assert_eq!(lines.of("alter table \"users\" add column \"logins\" integer"), Some(4));
}

#[test]
fn a_block_says_which_table_its_lines_are_about() {
    let source = SourceText::new(
        "def upgrade():\n    with op.batch_alter_table('cookbooks') as batch:\n        \
         batch.add_column(sa.Column('household_id', GUID()))\n        \
         batch.create_index('ix_cookbooks_household_id', ['household_id'])\n\n    \
         with op.batch_alter_table('tokens') as batch:\n        \
         batch.add_column(sa.Column('household_id', GUID()))\n        batch.drop_column('kind')\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("ALTER TABLE cookbooks ADD COLUMN household_id UUID"), Some(3));
    assert_eq!(lines.of("CREATE INDEX ix_cookbooks_household_id ON cookbooks (household_id)"), Some(4));
    assert_eq!(lines.of("ALTER TABLE tokens ADD COLUMN household_id UUID"), Some(7));
    assert_eq!(lines.of("ALTER TABLE tokens DROP COLUMN kind"), Some(8));
}

#[test]
fn a_table_is_created_where_the_call_begins() {
    let source = SourceText::new(
        "def upgrade():\n    op.create_table(\n        'tags',\n        sa.Column('updated_at', sa.DateTime()),\n        \
         sa.ForeignKeyConstraint(\n            ['group_id'],\n            ['groups.id'],\n        ),\n    )\n    \
         op.create_index(\n        'ix_tags_updated_at',\n        'tags',\n    )\n    op.create_index('ix_tags', 'tags')\n",
    );
    let mut lines = source.lines();
    let table = "CREATE TABLE tags (updated_at TIMESTAMP, group_id INT, FOREIGN KEY(group_id) REFERENCES groups (id))";
    assert_eq!(lines.of(table), Some(2));
    assert_eq!(lines.of("CREATE INDEX ix_tags_updated_at ON tags (updated_at)"), Some(10));
    let django = SourceText::new(
        "    operations = [\n        migrations.CreateModel(\n            name='Tag',\n            fields=[\n                \
         ('updated_at', models.DateTimeField()),\n            ],\n        ),\n    ]\n",
    );
    assert_eq!(django.lines().of("CREATE TABLE \"shop_tag\" (\"updated_at\" timestamptz)"), Some(2));
}

#[test]
fn what_creates_is_not_found_where_something_is_dropped() {
    let source = SourceText::new(
        "def setup():\n    op.create_index(\n        'ix_notes_gin',\n        table_name='notes',\n        \
         postgresql_using='gin',\n    )\n\n\ndef remove():\n    op.drop_index('ix_notes_gin', table_name='notes')\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("CREATE INDEX ix_notes_gin ON notes USING gin (body)"), Some(2));
    assert_eq!(lines.of("DROP INDEX ix_notes_gin"), Some(10));
}

#[test]
fn rows_are_changed_where_the_source_says_so() {
    let source = SourceText::new(
        "def convert(apps, editor):\n    User = apps.get_model('auth', 'User')\n    \
         mixed = User.objects.exclude(email=Lower('email'))\n    for user in mixed:\n        check(user.email)\n    \
         mixed.update(email=Lower('email'))\n",
    );
    let update = "UPDATE \"auth_user\" SET \"email\" = LOWER(\"auth_user\".\"email\") WHERE NOT (email = LOWER(email))";
    assert_eq!(source.lines().of(update), Some(6));
    let source = SourceText::new(
        "def fill(session):\n    foods = session.scalars(load(Food))\n\n\ndef upgrade():\n    \
         op.add_column('foods', sa.Column('name_normalized', sa.String()))\n",
    );
    assert_eq!(source.lines().of("SELECT foods.id, foods.name_normalized FROM foods"), Some(2));
}

#[test]
fn statements_are_found_word_for_word() {
    let source = SourceText::new(
        "run(\"ALTER TABLE room ADD COLUMN a integer\")\nrun(\"ALTER TABLE room ADD COLUMN a int\")\n\
         DO $$\nBEGIN\n  DROP TABLE room;\nEND $$;\nrun(\"ALTER TABLE room ADD COLUMN a int\")\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("ALTER TABLE room ADD COLUMN a int"), Some(2));
    assert_eq!(lines.of("DO $$\nBEGIN\n  DROP TABLE room;\nEND $$"), Some(3));
    assert_eq!(lines.of("ALTER TABLE room ADD COLUMN a int"), Some(7));
}

#[test]
fn a_statement_with_computed_parts_is_found_by_its_beginning() {
    let source = SourceText::new(
        "def remove(table):\n    execute(f\"DELETE FROM {room} WHERE id = :id\")\n    pk = 'ctid'\n    execute(f\"\"\"\n        DELETE FROM {table.name}\n        \
         WHERE {pk} > 1\n    \"\"\")\n\ndef fill(value):\n    execute(f\"UPDATE room SET open = {value} WHERE pk = 1\")\n    \
         execute(f\"UPDATE room SET open = {not value}\")\n\nremove(Table('rooms_of_guests'))\nroom.delete()\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("DELETE FROM rooms_of_guests\n WHERE ctid > 1"), Some(5));
    assert_eq!(lines.of("UPDATE room SET open = true WHERE pk = 1"), Some(10));
    assert_eq!(lines.of("UPDATE room SET open = false"), Some(11));
}

#[test]
fn the_column_of_a_foreign_key_is_named_after_its_field() {
    let source = SourceText::new(
        "operations = [\n    migrations.RemoveField('profile', 'current_team'),\n    \
         migrations.RemoveField('profile', 'team_name'),\n]\n",
    );
    let mut lines = source.lines();
    let dropped = "ALTER TABLE \"accounts_profile\" DROP COLUMN \"current_team_id\" CASCADE";
    assert_eq!(lines.of(dropped), Some(2));
}

#[test]
fn a_common_name_is_one_that_the_source_quotes() {
    let source = SourceText::new(
        "operations = [\n    migrations.AddField(\n        model_name='check',\n        name='name',\n        \
         field=models.CharField(),\n    ),\n    migrations.AlterField(\n        model_name='check',\n        \
         name='alert',\n        field=models.DateTimeField(),\n    ),\n]\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("ALTER TABLE \"api_check\" ADD COLUMN \"name\" varchar(100) NOT NULL"), Some(4));
}

#[test]
fn a_function_without_a_word_about_schemas_changes_none() {
    let source = SourceText::new(
        "def forwards(apps, editor):\n    for user in User.objects.all():\n        \
         profile = UserProfile(user=user)\n        profile.save(latest_id=1)\n\noperations = [\n    \
         migrations.CreateModel(\n        name='UserProfile',\n        fields=[('user', models.OneToOneField())],\n    ),\n    \
         migrations.AddField('userprofile', 'latest'),\n]\n",
    );
    let mut lines = source.lines();
    let foreign_key = "ALTER TABLE \"shop_userprofile\" ADD CONSTRAINT \"shop_userprofile_user_id_06aa\" FOREIGN KEY \
                       (\"user_id\") REFERENCES \"auth_user\" (\"id\")";
    assert_eq!(lines.of(foreign_key), Some(9));
    assert_eq!(lines.of("ALTER TABLE \"shop_userprofile\" ADD COLUMN \"latest_id\" bigint NULL"), Some(11));
}

#[test]
fn names_of_a_statement_before_do_not_matter() {
    let source = SourceText::new(
        "def up\n  add_foreign_key :plants, :beds\n  change_column_null :plants, :bed_id, false\nend\n",
    );
    let mut lines = source.lines();
    let foreign_key =
        "ALTER TABLE \"plants\" ADD CONSTRAINT \"fk\" FOREIGN KEY (\"bed_id\") REFERENCES \"beds\" (\"id\")";
    assert_eq!(lines.of(foreign_key), Some(2));
    assert_eq!(lines.of("ALTER TABLE \"plants\" ALTER COLUMN \"bed_id\" SET NOT NULL"), Some(3));
}

#[test]
fn descriptions_and_comments_send_nothing() {
    let source = SourceText::new(
        "\"\"\"convert quantity of items to float\n\nRevision ID: 26\n\"\"\"\n\n# quantity of items\ndef upgrade():\n    \
         op.alter_column(\n        'items',\n        'quantity',\n        type_=sa.Float(),\n    )\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("DROP INDEX \"shop_items_quantity_06aa\"").map(|line| line > 7), Some(true));
    assert!(lines.of("ALTER TABLE items ALTER COLUMN quantity TYPE FLOAT").unwrap() > 7);
}

#[test]
fn verbs_tell_equal_names_apart() {
    let source = SourceText::new(
        "query('SELECT id FROM project WHERE owner IS NULL')\nfor project in projects:\n    \
         query('UPDATE project SET owner = ?')\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("SELECT id FROM project WHERE owner IS NULL"), Some(1));
    assert_eq!(lines.of("UPDATE project SET owner = $1 WHERE id = $2"), Some(3));
}

#[test]
fn a_schema_is_not_changed_where_rows_are_nor_where_names_are_imported() {
    let source = SourceText::new(
        "from uuid import UUID\n\ndef fill(only: UUID):\n    Order.objects.update(parcel_id=1)\n    \
         execute('UPDATE orders SET weight = 0')\n\ndef upgrade():\n    with op.batch_alter_table('orders') as op:\n        \
         op.add_column(sa.Column('parcel', Uuid()))\n        op.alter_column('weight', nullable=False)\n",
    );
    let mut lines = source.lines();
    assert_eq!(lines.of("ALTER TABLE shop_order ADD COLUMN parcel_id UUID"), Some(9));
    assert_eq!(lines.of("ALTER TABLE orders ALTER COLUMN weight SET NOT NULL"), Some(10));
    assert_eq!(lines.of("UPDATE orders SET weight = 0"), Some(5));
}
