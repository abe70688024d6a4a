-- The tables of index.sqlite3 that are read, as `archivebox init` of release 0.9.74rc408 made them:
-- columns and keys.
create table crawls_crawl (id char(32) primary key, created_at datetime not null, modified_at datetime
  not null, num_uses_succeeded integer not null, num_uses_failed integer not null, urls text not null,
  config text check (json_valid(config) or config is null), max_depth smallint not null, tags_str
  varchar(1024) not null, label varchar(64) not null, notes text not null, status varchar(15) not null,
  retry_at datetime, created_by_id integer not null, schedule_id char(32), delete_at datetime, persona_id
  char(32));
create table core_snapshot (id char(32) primary key, url text not null, timestamp varchar(32) not null
  unique, title varchar(512), bookmarked_at datetime not null, created_at datetime not null, modified_at
  datetime not null, downloaded_at datetime, crawl_id char(32) not null, config text not null check
  (json_valid(config)), depth smallint not null, notes text not null, num_uses_failed integer not null,
  num_uses_succeeded integer not null, retry_at datetime, status varchar(15) not null, delete_at
  datetime, output_size bigint not null, fs_version varchar(10) not null, parent_snapshot_id char(32),
  unique (url, crawl_id));
create table core_tag (id integer primary key autoincrement, name varchar(100) not null unique,
  created_at datetime, created_by_id integer, modified_at datetime not null);
create table core_snapshot_tags (id integer primary key autoincrement, snapshot_id char(32) not null,
  tag_id integer not null);
create table machine_process (id char(32) primary key, stderr text not null);
create table core_archiveresult (id char(32) primary key, status varchar(16) not null, start_ts datetime,
  end_ts datetime, snapshot_id char(32) not null, created_at datetime not null, modified_at datetime not
  null, notes text not null, hook_name varchar(255) not null, output_files text not null check
  (json_valid(output_files)), output_json text, output_mimetypes varchar(512) not null, output_size
  bigint not null, output_str text not null, plugin varchar(32) not null, process_id char(32) unique,
  delete_at datetime, retry_at datetime, unique (snapshot_id, plugin, hook_name));
